#include "daemon/config_black_box.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NULL when it is not set or not absolute: a relative one would lie wherever actd was started.
static const char *absolute(const char *variable)
{
    const char *path = getenv(variable);

    return path != NULL && path[0] == '/' ? path : NULL;
}

int config_black_box(const struct config *cfg, char *out, size_t size)
{
    const char *logs = absolute("LOGS_DIRECTORY");
    const char *state = absolute("XDG_STATE_HOME");
    const char *home = absolute("HOME");
    int n;

    if (cfg->black_box.directory[0] != 0)
        n = snprintf(out, size, "%s", cfg->black_box.directory);
    else if (logs != NULL)
        n = snprintf(out, size, "%.*s", (int)strcspn(logs, ":"), logs);
    else if (state != NULL)
        n = snprintf(out, size, "%s/actd/%s", state, cfg->instance);
    else if (home != NULL)
        n = snprintf(out, size, "%s/.local/state/actd/%s", home, cfg->instance);
    else
        n = snprintf(out, size, "%s", cfg->runtime);
    return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

int config_record_directory(const struct config *cfg, char *out, size_t size)
{
    char box[CONFIG_PATH];
    int rc = 0, n;

    if (cfg->record.directory[0] != 0)
        n = snprintf(out, size, "%s", cfg->record.directory);
    else if ((rc = config_black_box(cfg, box, sizeof box)) == 0)
        n = snprintf(out, size, "%s/record", box);
    else
        return rc;
    return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}
