// lerobot_config: config.json of an ACT checkpoint, whatever year it is from, as one struct.
// Needed keys have LeRobot's own defaults (configuration_act.py, the same from 0.1 to 0.6);
// unknown keys are ignored, since every release adds some that say nothing about inference.
//
//   era 0.1   input_shapes, output_shapes {key: [...]}, input_normalization_modes,
//             output_normalization_modes {key: "mean_std" | "min_max"}, no `type`
//   later     input_features, output_features {key: {type, shape}},
//             normalization_mapping {type: "MEAN_STD" | ...}, "type": "act"
#ifndef ACTD_LEROBOT_CONFIG_H
#define ACTD_LEROBOT_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "policy/lerobot.h"

enum lr_type { LR_STATE, LR_VISUAL, LR_ENV, LR_ACTION, LR_OTHER };

// rank 0: the checkpoint has no such feature. Images are (3, height, width).
struct lr_feature {
    char key[POLICY_NAME_MAX];
    enum lr_type type;
    int rank;
    int shape[3];
    enum norm_mode mode; // as config.json says; processor files win over it
};

struct lr_config {
    struct lerobot_act act;
    bool era01;
    int n_cameras;
    struct lr_feature camera[POLICY_MAX_CAMERAS]; // order of config.json
    struct lr_feature state, env, action;
};

// Reads and validates config.json; sha256 (POLICY_DIGEST_HEX bytes, or NULL) is what it hashes
// to. plain. 0 or -errno with err filled.
int lr_config_read(struct lr_config *out, const struct place *place, char *sha256,
                   struct policy_error *err);
// The same from a parsed object. plain.
int lr_config_parse(struct lr_config *out, const json_t *root, struct policy_error *err);

// The features of config.json of either dialect, into out. plain; for lr_config_parse.
int lr_features_parse(struct lr_config *out, const json_t *root,
                      struct policy_error *err);

// Values of a statistic of this feature: one per channel for images, else one per value.
int lr_feature_width(const struct lr_feature *f);

// "VISUAL" and the like; LR_OTHER for what ACT does not know.
enum lr_type lr_type_parse(const char *text); // NULL is fine
const char *lr_type_name(enum lr_type t);     // static

// "MEAN_STD" or "mean_std". False if there is no such mode; text may be NULL.
bool lr_mode_parse(const char *text, enum norm_mode *out);

#endif
