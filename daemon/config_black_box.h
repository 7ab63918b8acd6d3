// config_black_box: where the black box and the recordings go.
#ifndef ACTD_CONFIG_BLACK_BOX_H
#define ACTD_CONFIG_BLACK_BOX_H

#include <stddef.h>

#include "daemon/config.h"

// plain; reads the environment. black_box.directory, else the service's log directory
// ($LOGS_DIRECTORY, the first), else $XDG_STATE_HOME/actd/INSTANCE, else
// $HOME/.local/state/actd/INSTANCE, else the directory of the sockets. Paths in the environment
// that are not absolute do not count. 0 or -ENAMETOOLONG.
int config_black_box(const struct config *cfg, char *out, size_t size);
// plain; likewise. record.directory, else "record" in the directory of the black box.
int config_record_directory(const struct config *cfg, char *out, size_t size);

#endif
