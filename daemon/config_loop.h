// config_loop: from what a person wrote to what the loop computes with: every 0 that
// meant "the default" becomes its number, every rate a period, and every setting is
// compared with the checkpoint's chunk.
#ifndef ACTD_CONFIG_LOOP_H
#define ACTD_CONFIG_LOOP_H

#include "daemon/config.h"
#include "daemon/loop.h"

// plain. 0, or -EINVAL with err filled: names the key and the remedy.
int config_loop(const struct config *cfg, const struct config_sidecar *side,
                const struct policy_info *policy, struct loop_config *out,
                struct config_error *err);

// plain. The resolved settings of inference: rows between inferences (1 for continuous)
// and the age beyond which a chunk is dropped.
int config_every_rows(const struct config *cfg, const struct policy_info *policy);
ns_t config_max_age_ns(const struct config *cfg, const struct config_sidecar *side,
                       const struct policy_info *policy);

#endif
