// find: see the header.
#include "daemon/actctl/find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/actctl/exits.h"
#include "daemon/actctl/text.h"

void find_defaults(struct find *f, const char *socket, const char *instance,
                   char *runtime)
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");

    *f = (struct find){
        .socket = socket, .instance = instance, .env = getenv("ACTD_SOCKET")};
    if (f->env && !*f->env)
        f->env = NULL;
    f->root[0] = "/run/actd";
    if (xdg && *xdg == '/') {
        snprintf(runtime, FIND_PATH, "%s/actd", xdg);
        f->root[1] = runtime;
    }
}

__attribute__((format(printf, 3, 4))) static int refuse(int status, char *why,
                                                        const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(why, FIND_WHY, format, ap);
    va_end(ap);
    return status;
}

static bool instance_valid(const char *s)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
            return false;
    return n > 0 && n < 64 && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

// What stands there: 1 a socket, 0 nothing, -1 nobody may look, which is a daemon's as
// far as this user can tell.
static int look(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0)
        return S_ISSOCK(st.st_mode);
    return errno == EACCES ? -1 : 0;
}

static int find_instance(const struct find *f, char *path, char *why)
{
    size_t n = 0;

    if (!instance_valid(f->instance))
        return refuse(
            CTL_USAGE, why,
            "'%s' is no name of an instance: 1 to 63 letters, digits, '-', '_', '.'",
            text_safe(f->instance));
    for (int i = 0; i < FIND_ROOTS; i++) {
        if (!f->root[i])
            continue;
        snprintf(path, FIND_PATH, "%s/%s/control", f->root[i], f->instance);
        if (look(path))
            return 0;
    }
    n = (size_t)snprintf(why, FIND_WHY, "no actd '%s' runs here: tried", f->instance);
    for (int i = 0; i < FIND_ROOTS; i++)
        if (f->root[i] && n < FIND_WHY)
            n += (size_t)snprintf(why + n, FIND_WHY - n, "%s %s/%s/control",
                                  i ? " and" : "", f->root[i], f->instance);
    if (n < FIND_WHY)
        snprintf(why + n, FIND_WHY - n,
                 "; see `systemctl status actd@%s`, or start one: actd run -c robot.yaml",
                 f->instance);
    return CTL_NO_DAEMON;
}

struct list {
    int n;
    char path[FIND_INSTANCES][FIND_PATH];
    char name[FIND_INSTANCES][64];
};

static void scan(const char *root, struct list *l)
{
    DIR *d = opendir(root);
    struct dirent *e;

    while (d && (e = readdir(d)) && l->n < FIND_INSTANCES) {
        if (!instance_valid(e->d_name))
            continue;
        snprintf(l->name[l->n], sizeof l->name[0], "%.63s", e->d_name);
        snprintf(l->path[l->n], FIND_PATH, "%s/%.63s/control", root, e->d_name);
        l->n += look(l->path[l->n]) != 0;
    }
    if (d)
        closedir(d);
}

static bool dead(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = false;

    if (strlen(path) < sizeof a.sun_path) {
        snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
        refused = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) < 0 &&
                  errno == ECONNREFUSED;
    }
    if (fd >= 0)
        close(fd);
    return refused;
}

// Sockets that daemons left behind when they were killed do not make a choice necessary.
static void drop_dead(struct list *l)
{
    int kept = 0;

    for (int i = 0; i < l->n; i++) {
        if (dead(l->path[i]))
            continue;
        if (kept != i) {
            memcpy(l->path[kept], l->path[i], FIND_PATH);
            memcpy(l->name[kept], l->name[i], sizeof l->name[0]);
        }
        kept++;
    }
    if (kept)
        l->n = kept;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int several(struct list *l, char *why)
{
    size_t n;

    qsort(l->name, (size_t)l->n, sizeof l->name[0], by_name);
    n = (size_t)snprintf(why, FIND_WHY, "%d daemons run here:", l->n);
    for (int i = 0; i < l->n && n < FIND_WHY; i++)
        n += (size_t)snprintf(why + n, FIND_WHY - n, "%s %s", i ? "," : "", l->name[i]);
    if (n < FIND_WHY)
        snprintf(why + n, FIND_WHY - n, "; say which one: actctl -i %s", l->name[0]);
    return CTL_USAGE;
}

static int find_only(const struct find *f, char *path, char *why)
{
    static struct list l;
    size_t n;

    l.n = 0;
    for (int i = 0; i < FIND_ROOTS; i++)
        if (f->root[i])
            scan(f->root[i], &l);
    if (l.n > 1)
        drop_dead(&l);
    if (l.n > 1)
        return several(&l, why);
    if (l.n == 1) {
        memcpy(path, l.path[0], FIND_PATH);
        return 0;
    }
    n = (size_t)snprintf(why, FIND_WHY, "no actd runs here: tried");
    for (int i = 0; i < FIND_ROOTS; i++)
        if (f->root[i] && n < FIND_WHY)
            n += (size_t)snprintf(why + n, FIND_WHY - n, "%s %s/*/control",
                                  i ? " and" : "", f->root[i]);
    if (n < FIND_WHY)
        snprintf(why + n, FIND_WHY - n,
                 "; see `systemctl status 'actd@*'`, or start one: "
                 "actd run -c robot.yaml");
    return CTL_NO_DAEMON;
}

bool find_given(const struct find *f)
{
    return f->socket || (f->env && !f->instance);
}

int find_socket(const struct find *f, char path[FIND_PATH], char why[FIND_WHY])
{
    const char *given = f->socket ? f->socket : f->env;

    if (f->socket && f->instance)
        return refuse(CTL_USAGE, why,
                      "--socket and --instance exclude each other: give one");
    if (f->instance)
        return find_instance(f, path, why);
    if (!given)
        return find_only(f, path, why);
    if (strlen(given) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return refuse(CTL_USAGE, why,
                      "'%s' is longer than the %d bytes that a socket's path may have",
                      text_safe(given),
                      (int)sizeof((struct sockaddr_un *)0)->sun_path - 1);
    snprintf(path, FIND_PATH, "%s", given);
    return 0;
}

// The group that may enter: of the socket, or of the first directory above it that can be
// seen.
static const char *gate_group(const char *path)
{
    char up[FIND_PATH];
    struct stat st;
    struct group *g = NULL;

    snprintf(up, sizeof up, "%s", path);
    for (char *p = up; stat(p, &st) < 0; p = dirname(p))
        if (strcmp(p, "/") == 0 || strcmp(p, ".") == 0)
            return "actd-clients";
    if (st.st_gid)
        g = getgrgid(st.st_gid);
    return g ? g->gr_name : "actd-clients";
}

static int no_permission(const char *path, char *why, size_t size)
{
    const char *group = gate_group(path);

    snprintf(
        why, size,
        "no permission to talk to %s: join the group %s (`sudo usermod -aG %s $USER`, then "
        "log in again), or use sudo",
        text_safe(path), text_safe(group), text_safe(group));
    return CTL_DENIED;
}

// "reach" of /run/actd/reach/control.
static const char *instance_of(const char *path, char *copy)
{
    char *last;

    snprintf(copy, FIND_PATH, "%s", path);
    last = basename(dirname(copy));
    return instance_valid(last) ? last : "NAME";
}

int find_explain(const char *path, bool given, int error, char *why, size_t size)
{
    char copy[FIND_PATH];
    const char *what = "cannot be used";

    switch (error) {
    case EACCES:
    case EPERM:
        return no_permission(path, why, size);
    case ENOENT:
    case ENOTDIR:
        what = "is not there";
        break;
    case ECONNREFUSED:
        what = "is there, but nobody listens: actd has ended";
        break;
    case EPROTOTYPE:
        what = "is another kind of socket, not actd's control socket";
        break;
    case EAGAIN:
        what = "took no connection within 2 s";
        break;
    default:
        break;
    }
    if (given)
        snprintf(why, size,
                 "%s %s (%s); without --socket and $ACTD_SOCKET actctl looks for a "
                 "daemon, and `actd run -c robot.yaml` starts one",
                 text_safe(path), what, strerror(error));
    else
        snprintf(why, size, "%s %s (%s); see `systemctl status actd@%s`", text_safe(path),
                 what, strerror(error), instance_of(path, copy));
    return CTL_NO_DAEMON;
}
