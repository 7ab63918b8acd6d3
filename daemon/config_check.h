// config_check: what concerns more than one key of robot.yaml, and the defaults that
// depend on other keys or on the machine (sockets' directory, endpoints, threads).
#ifndef ACTD_CONFIG_CHECK_H
#define ACTD_CONFIG_CHECK_H

#include "daemon/config.h"
#include "daemon/ytree.h"

// plain. Completes cfg, which has been read from tree. 0 or -EINVAL with err filled.
int config_check(struct config *cfg, const struct ytree *tree, struct config_error *err);

#endif
