// fitted: a policy fitted to this robot: the checkpoint, what its sidecar says, who is
// who between the two, and the seat from which the worker makes it think. All functions
// are plain.
#ifndef ACTD_FITTED_H
#define ACTD_FITTED_H

#include "daemon/config.h"
#include "daemon/infer.h"
#include "daemon/tape.h"
#include "policy/policy.h"

struct fitted {
    char name[CONFIG_NAME];      // what people call it
    char directory[CONFIG_PATH]; // where it came from
    struct policy *policy;
    const struct policy_info *info; // the policy's own
    struct config_sidecar side;
    char *sidecar; // policy.yaml's text, NULL = none
    struct binding binding;
    struct infer_seat seat; // points into this struct
    ns_t deadline_ns;    // of a chunk, anchor to in view, for this policy's rows and rate
    uint32_t generation; // the seat's: counts who took the worker's seat, from 1
};

// Reads sidecar and checkpoint of `directory` and binds them to cfg's joints and cameras.
// With opt->beside it is a candidate: it may leave cameras of the robot unused; and with
// opt->strict_files policy.yaml must be as the checkpoint's files must. *out is the
// caller's to fitted_free; cfg is only read. 0, or -errno with a sentence in err: -EDOM,
// in opt's precision it is further from float32 than policy.max_deviation.
int fitted_load(struct fitted **out, const struct config *cfg, const char *directory,
                const char *name, const struct policy_options *opt,
                struct config_error *err);

// Fits what is there already (policy, info, side), as fitted_load does. For whoever
// brings a policy of his own. 0, or -errno with err filled; f stays the caller's either
// way.
int fitted_fit(struct fitted *f, const struct config *cfg, bool candidate,
               struct config_error *err);

void fitted_free(struct fitted *f); // NULL is fine

// What a recording says of it.
void fitted_seat(const struct fitted *f, ns_t since_ns, struct tape_seat *out);

// "reach" of ".../reach" and of ".../reach/pretrained_model" (LeRobot's layout).
void fitted_name(const char *directory, char name[CONFIG_NAME]);

#endif
