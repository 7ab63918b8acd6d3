// lerobot_stats: the statistics of one feature, wherever its era put them, as the constants
// that normalise it. All functions are plain.
//
//   0.4 on   <feature>.<stat> in the state file of a processor step; files made by LeRobot's
//            migration script have every "_" of the feature turned into "." (compared with the
//            two folded into one), and `<tag>.buffer.<feature>` where several data sets were
//            trained on: then the user has to choose a tag
//   to 0.3   <prefix>buffer_<feature>.<stat> in model.safetensors, with every "." of the
//            feature turned into "_" (so names are flattened, never un-flattened); also
//            <prefix><tag>_buffer_<feature>.<stat> and <prefix><feature>_<stat>
#ifndef ACTD_LEROBOT_STATS_H
#define ACTD_LEROBOT_STATS_H

#include "policy/lerobot_config.h"
#include "policy/lerobot_names.h"
#include "policy/lerobot_processor.h"

// Where the statistics of one direction are.
struct lr_source {
    const struct lr_processor *processor; // NULL: inside the weights
    const char *file;                     // name of the file below, for sentences
    struct st_file *f;                    // NULL: there is none
    const struct lr_names *names;         // of f
    const char *prefix;                   // "normalize_inputs.", "" in state files
    const char *tag;                      // the user's choice, or NULL
};

// Statistics as stored; the arrays belong to block.
struct lr_values {
    float *block;
    struct norm_stats stats;
};

// Finds mode and statistics of a feature and builds its constants. With `keep` the statistics
// are the caller's to lr_values_free (on success); n is lr_feature_width.
// Refuses, with a sentence that names the feature, the file and the remedy, when the mode needs
// statistics that are missing, ambiguous, of another width or not finite.
int lr_stats_build(struct norm *out, struct lr_values *keep, const struct lr_source *s,
                   const struct lr_feature *f, struct policy_error *err);
void lr_values_free(struct lr_values *v);

#endif
