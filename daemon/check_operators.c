// check_operators: who may talk to the daemon, what it may be swapped to, and where its numbers
// can be fetched. Names become numbers as run resolves them, so that a group that this machine
// does not have is seen before somebody stands in front of a closed door.
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/access.h"
#include "daemon/check_impl.h"
#include "daemon/control_endpoint.h"
#include "daemon/swap_impl.h"

#define POLICIES 64  // looked at
#define WHO      512 // bytes of a row's list

static void append(char *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(char *out, const char *format, ...)
{
    size_t n = strlen(out);
    va_list ap;

    va_start(ap, format);
    vsnprintf(out + n, WHO - n, format, ap);
    va_end(ap);
}

static bool is_number(const char *s)
{
    return *s >= '0' && *s <= '9';
}

static void append_group(char *out, const char *name)
{
    const struct group *g =
        is_number(name) ? getgrgid((gid_t)strtoul(name, NULL, 10)) : getgrnam(name);

    if (!g) {
        append(out, ", @%s (%s)", name,
               is_number(name) ? "without a name here" : "not on this machine: nobody");
        return;
    }
    append(out, ", @%s (gid %u", g->gr_name, g->gr_gid);
    for (char **m = g->gr_mem; *m; m++)
        append(out, "%s%s", m == g->gr_mem ? ": " : " ", *m);
    append(out, ")");
}

static void append_user(char *out, const char *name)
{
    const struct passwd *p =
        is_number(name) ? getpwuid((uid_t)strtoul(name, NULL, 10)) : getpwnam(name);

    if (p)
        append(out, ", %s (uid %u)", p->pw_name, p->pw_uid);
    else
        append(out, ", %s (%s)", name,
               is_number(name) ? "without a name here" : "not on this machine: nobody");
}

// A list of the configuration, a name per line, behind what is in out already.
static void append_list(char *out, const char *list)
{
    char name[CONFIG_NAME + 1];

    for (; *list; list += strcspn(list, "\n"), list += *list == '\n') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(list, "\n"), list);
        if (name[0] == '@')
            append_group(out, name + 1);
        else
            append_user(out, name);
    }
}

static void people(struct check *c)
{
    char who[WHO] = "";

    append_list(who, c->cfg.operators.act);
    table_row(&c->table, "may act\troot, the user who runs actd%s", who);
    who[0] = '\0';
    append_list(who, c->cfg.operators.read);
    table_row(&c->table, "may read\tthose who may act%s", who);
}

static void door(struct check *c)
{
    struct config_error why;
    struct access a;
    const char *open_to = "nobody else";

    if (access_resolve(&a, &c->cfg, geteuid(), &why) == 0) {
        if (!a.only_presets)
            open_to = "everybody; who may not read is told so and closed";
        else if (getgrnam(CONTROL_GROUP))
            open_to = "members of " CONTROL_GROUP " alone";
        else
            open_to = "root and the user who runs actd alone: no group " CONTROL_GROUP;
    }
    table_row(&c->table, "control socket\t%s, open to %s", c->cfg.operators.socket,
              open_to);
}

// How many there are (also when none may be used), or -errno.
static int count_policies(const struct config *cfg, int *usable)
{
    struct swap_entry *e = calloc(POLICIES, sizeof *e);
    int n = e ? swap_files_list(cfg, e, 0, POLICIES) : -ENOMEM;

    *usable = 0;
    for (int i = 0; i < n; i++)
        *usable += e[i].usable;
    free(e);
    return n;
}

static void swapping(struct check *c)
{
    const struct config *cfg = &c->cfg;
    struct table *t = &c->table;
    int usable, n;

    if (!cfg->swap.directory[0]) {
        table_row(t, "policies\tnone to swap to: swap.directory is not set");
        return;
    }
    n = count_policies(cfg, &usable);
    if (n < 0)
        table_row(t, "policies\t%s: refused, see the warnings", cfg->swap.directory);
    else
        table_row(t, "policies\t%s: %s%d, of which %d can be swapped to",
                  cfg->swap.directory, n == POLICIES ? "at least " : "", n, usable);
    table_row(
        t, "swap\tmax. difference %.4g rad, more needs --force; %d trial%s; fade %.4g ms",
        cfg->swap.max_difference, cfg->swap.trials, PLURAL(cfg->swap.trials),
        cfg->swap.fade_ms);
}

void check_report_operators(struct check *c)
{
    door(c);
    people(c);
    swapping(c);
    if (c->cfg.metrics.listen[0])
        table_row(&c->table, "metrics\thttp://%s/metrics, and `actctl metrics`",
                  c->cfg.metrics.listen);
    else
        table_row(&c->table,
                  "metrics\t`actctl metrics` alone: metrics.listen is not set");
    fprintf(c->out, "\nOperators and swaps\n");
    table_print(&c->table, c->out);
}

static void judge_directory(struct check *c)
{
    const char *directory = c->cfg.swap.directory;
    struct stat st;

    if (!directory[0])
        return;
    if (stat(directory, &st) != 0) {
        check_note(
            c, "swap.directory %s can not be looked at (%s): nothing can be swapped to",
            directory, strerror(errno));
        return;
    }
    if (access(directory, R_OK | X_OK) != 0)
        check_note(c, "swap.directory %s can not be read by who asks (%s)", directory,
                   strerror(errno));
    if (st.st_uid != 0 && st.st_uid != geteuid())
        check_note(
            c,
            "swap.directory %s belongs to user %u, neither root nor who asks: actd "
            "swaps to nothing in it unless it runs as that user; sudo chown root %s",
            directory, st.st_uid, directory);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        check_note(
            c,
            "swap.directory %s is writable for %s: whoever can put a policy there "
            "could drive the arm, so that actd swaps to nothing in it; chmod go-w %s",
            directory, st.st_mode & S_IWOTH ? "everybody" : "its group", directory);
}

int check_judge_operators(struct check *c)
{
    struct access a;

    judge_directory(c);
    return access_resolve(&a, &c->cfg, geteuid(), &c->err); // as run would refuse it
}
