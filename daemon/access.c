#include "daemon/access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/config_keys.h"

#define GROUPS_ON_STACK 64
#define GROUPS_MAX      65536     // NGROUPS_MAX of Linux
#define ENTRY_MAX       (1 << 20) // bytes of a group's entry, its members included

// ---- names to numbers ----------------------------------------------------------------

// 0, -ENOENT when there is no such name, else what the name service says.
static int ask(const char *name, bool group, char *buf, size_t size, unsigned *id)
{
    struct passwd pw, *user = NULL;
    struct group gr, *set = NULL;
    int r = group ? getgrnam_r(name, &gr, buf, size, &set)
                  : getpwnam_r(name, &pw, buf, size, &user);

    if (set)
        *id = set->gr_gid;
    if (user)
        *id = user->pw_uid;
    if (set || user)
        return 0;
    // getpwnam(3): these, too, mean that there is none.
    return r == 0 || r == ESRCH || r == EBADF || r == EPERM ? -ENOENT : -r;
}

// `name` may start with '@'. Numbers are taken as they are.
static int lookup(const char *name, bool *group, unsigned *id)
{
    size_t size = 4096;
    int r = -ERANGE;

    *group = *name == '@';
    name += *group;
    if (*name >= '0' && *name <= '9') {
        *id = (unsigned)strtoul(name, NULL, 10);
        return 0;
    }
    for (; r == -ERANGE && size <= ENTRY_MAX; size *= 4) {
        char *buf = malloc(size);

        if (!buf)
            return -ENOMEM;
        r = ask(name, *group, buf, size, id);
        free(buf);
    }
    return r;
}

static int refuse(const struct config *cfg, const char *key, const char *name, int r,
                  struct config_error *err)
{
    const char *kind = *name == '@' ? "group" : "user";

    name += *name == '@';
    if (r == -ENOENT)
        snprintf(err->text, sizeof err->text,
                 "%s: operators.%s: this machine knows no %s '%s'; create it, or take it "
                 "out of the list",
                 cfg->file, key, kind, name);
    else if (r == -EACCES)
        snprintf(err->text, sizeof err->text,
                 "%s: operators.%s: %s '%s' is what everybody of another namespace looks "
                 "like; name a user or group of this machine",
                 cfg->file, key, kind, name);
    else
        snprintf(err->text, sizeof err->text,
                 "%s: operators.%s: %s '%s' cannot be looked up: %s; try again, or write "
                 "the number",
                 cfg->file, key, kind, name, strerror(-r));
    return r == -ENOMEM ? r : -EINVAL;
}

// One list of the configuration, a name per line.
static int add(struct access *a, const struct config *cfg, const char *key,
               const char *list, enum access_right right, struct config_error *err)
{
    char name[CONFIG_NAME + 1];
    bool preset = false;

    for (const char *line = list; *line; line += strcspn(line, "\n") + 1) {
        struct access_rule rule = {.right = right};
        int r;

        snprintf(name, sizeof name, "%.*s", (int)strcspn(line, "\n"), line);
        preset = strcmp(name, config_key_find("operators", key)->preset) == 0;
        r = lookup(name, &rule.group, &rule.id);
        if (r == 0 && rule.id == ACCESS_NOBODY)
            r = -EACCES;
        if (r == -ENOENT && preset)
            continue;
        if (r != 0)
            return refuse(cfg, key, name, r, err);
        a->rule[a->n++] = rule;
        a->only_presets = a->only_presets && preset;
    }
    return 0;
}

int access_resolve(struct access *out, const struct config *cfg, uid_t self,
                   struct config_error *err)
{
    int r;

    _Static_assert(sizeof out->rule / sizeof *out->rule == 2 * CONFIG_NAMES,
                   "a rule for every name of both lists");
    *out = (struct access){.self = self, .only_presets = true};
    r = add(out, cfg, "act", cfg->operators.act, ACCESS_ACT, err);
    return r ? r : add(out, cfg, "read", cfg->operators.read, ACCESS_READ, err);
}

// ---- who it is -----------------------------------------------------------------------

static bool is_in(const gid_t *groups, int n, unsigned id)
{
    for (int i = 0; i < n; i++)
        if (groups[i] == id)
            return true;
    return false;
}

enum access_right access_of(const struct access *a, uid_t uid, const gid_t *groups,
                            int n_groups)
{
    enum access_right best = ACCESS_NONE;

    if (uid == 0 || (uid == a->self && uid != ACCESS_NOBODY))
        return ACCESS_ACT;
    for (int i = 0; i < a->n; i++) {
        const struct access_rule *r = &a->rule[i];
        bool fits = r->group ? is_in(groups, n_groups, r->id) : r->id == uid;

        if (fits && r->right > best)
            best = r->right;
    }
    return best;
}

// The peer's groups into *groups, which has room for *n; more, and *groups is allocated.
static int peer_groups(int fd, gid_t **groups, int *n)
{
    socklen_t size = (socklen_t)*n * (socklen_t)sizeof **groups;
    int r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, *groups, &size);

    if (r != 0 && errno == ERANGE && size <= GROUPS_MAX * sizeof **groups) {
        *groups = malloc(size);
        if (!*groups)
            return -ENOMEM;
        r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, *groups, &size);
    }
    *n = (int)(size / sizeof **groups);
    return r == 0 ? 0 : -errno;
}

int access_look(const struct access *a, int fd, struct access_peer *peer,
                enum access_right *right)
{
    gid_t few[GROUPS_ON_STACK], *groups = few;
    struct ucred cred;
    socklen_t size = sizeof cred;
    int n = GROUPS_ON_STACK, r;

    *right = ACCESS_NONE;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0)
        return -errno;
    *peer = (struct access_peer){.pid = cred.pid, .uid = cred.uid, .gid = cred.gid};
    r = peer_groups(fd, &groups, &n);
    if (r == 0) {
        enum access_right own = access_of(a, cred.uid, &cred.gid, 1);
        *right = access_of(a, cred.uid, groups, n);
        *right = own > *right ? own : *right;
    }
    if (groups != few)
        free(groups);
    return r;
}
