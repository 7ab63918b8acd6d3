// Where a daemon publishes: as its configuration says, or by its name.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/bridge.h"
#include "daemon/endpoint.h"

static int of_config(struct bridge_from *out, const char *file, struct config_error *err)
{
    struct config *cfg = malloc(sizeof *cfg);
    int rc = cfg ? config_load(cfg, file, err) : -ENOMEM;

    if (!cfg)
        snprintf(err->text, sizeof err->text, "out of memory");
    if (rc)
        goto out;
    // Where actd connects, the other end is theirs, and takes one publisher's word.
    if (cfg->joint_command.bind)
        snprintf(out->command, sizeof out->command, "%s", cfg->joint_command.endpoint);
    if (!cfg->joint_state.bind)
        snprintf(out->joints, sizeof out->joints, "%s", cfg->joint_state.endpoint);
    if (cfg->status.bind)
        snprintf(out->status, sizeof out->status, "%s", cfg->status.endpoint);
    snprintf(out->control, sizeof out->control, "%s", cfg->operators.socket);
out:
    free(cfg);
    return rc;
}

static int of_directory(struct bridge_from *out, const char *runtime)
{
    int n[] = {
        snprintf(out->command, CONFIG_PATH, "ipc://%s/joints.command", runtime),
        snprintf(out->status, CONFIG_PATH, "ipc://%s/status", runtime),
        snprintf(out->control, CONFIG_PATH, "%s/control", runtime),
    };

    for (int i = 0; i < 3; i++)
        if (n[i] < 0 || n[i] >= 107 + 6)
            return -ENAMETOOLONG;
    return 0;
}

static int of_name(struct bridge_from *out, const char *instance,
                   struct config_error *err)
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    char runtime[CONFIG_PATH];

    if (!*instance || strchr(instance, '/') || *instance == '.')
        return endpoint_refuse(err, EINVAL, "'%s' is no name of an instance", instance);
    snprintf(runtime, sizeof runtime, "/run/actd/%s", instance);
    if (access(runtime, F_OK) != 0 && xdg && *xdg == '/')
        snprintf(runtime, sizeof runtime, "%s/actd/%s", xdg, instance);
    if (access(runtime, F_OK) != 0)
        return endpoint_refuse(err, ENOENT,
                               "no daemon called '%s' has its sockets in /run/actd or "
                               "$XDG_RUNTIME_DIR/actd; name its configuration: "
                               "-c robot.yaml",
                               instance);
    if (of_directory(out, runtime) != 0)
        return endpoint_refuse(err, ENAMETOOLONG, "%s: too long for a socket", runtime);
    return 0;
}

int bridge_find(struct bridge_from *out, const char *config, const char *instance,
                struct config_error *err)
{
    *out = (struct bridge_from){.command = ""};
    return config ? of_config(out, config, err)
                  : of_name(out, instance ? instance : "default", err);
}
