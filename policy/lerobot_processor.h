// lerobot_processor: policy_preprocessor.json and policy_postprocessor.json (LeRobot 0.4 on),
// the pipelines between robot and network. Only one step of each computes something that actd
// does itself (normalise, unnormalise); steps known to do nothing here pass; everything else
// would change what the network sees and is refused by name. All functions are plain.
#ifndef ACTD_LEROBOT_PROCESSOR_H
#define ACTD_LEROBOT_PROCESSOR_H

#include <jansson.h>
#include <stdbool.h>

#include "policy/lerobot_config.h"

struct lr_processor {
    const char *file;       // "policy_preprocessor.json", static
    bool present;           // the file exists
    double eps;             // 1e-8 unless the step says otherwise
    char state_file[128];   // plain name inside the directory, "" = none
    json_t *root;           // owns what follows
    const json_t *features; // {key: {type, shape}}
    const json_t *norm_map; // {type: mode}
    const json_t *only;     // normalize_observation_keys, or NULL
};

// Reads policy_preprocessor.json, or the postprocessor with `post`. A file that does not
// exist is no error: present is false. *out is the caller's to lr_processor_close, on failure
// too. 0 or -errno with err filled.
int lr_processor_read(struct lr_processor *out, const struct place *place, bool post,
                      const struct lr_config *config, struct policy_error *err);
void lr_processor_close(struct lr_processor *p);

// How this pipeline treats a feature. A feature that the pipeline does not list would pass
// unnormalised and unnoticed in LeRobot; here it is refused, as is one listed with another type
// or width. 0 or -errno with err filled.
int lr_processor_mode(const struct lr_processor *p, const struct lr_feature *f,
                      enum norm_mode *mode, struct policy_error *err);

#endif
