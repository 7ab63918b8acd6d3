// log_tool_recover: `actd log recover`.
#include "daemon/log_tool_impl.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/mcap_recover.h"
#include "daemon/table.h"

static const char help[] =
    "usage: actd log recover FILE [-o OUT]\n"
    "\n"
    "Saves what can be saved of a damaged or unfinished recording as a whole file with an index.\n"
    "Past damage it goes on at the next chunk whose checksum is right. The new file is read back,\n"
    "all of it, before it gets its name.\n"
    "\n"
    "Without -o, NAME.mcap.part becomes NAME.mcap, and NAME.mcap is replaced. The file it was made\n"
    "of is then kept as NAME.….damaged if anything was lost, and removed if nothing was. With -o\n"
    "FILE is left as it is; OUT may be FILE.\n"
    "\n"
    "  -o, --output OUT   where to\n"
    "  -h, --help         this text\n"
    "\n"
    "exit status: 0 nothing was lost, 1 saved with losses, 64 usage, 65 nothing could be saved,\n"
    "66 FILE cannot be read, 74 OUT cannot be written, 130 stopped; then OUT is as it was\n";

static void say(const struct mcap_recovery *r, const char *to, int rc)
{
    char size[24];

    if (r->was_whole)
        printf("It was whole. ");
    printf("%s: %llu message%s in %llu chunk%s", to, (unsigned long long)r->messages,
           PLURAL(r->messages), (unsigned long long)r->chunks, PLURAL(r->chunks));
    if (r->loose)
        printf(" and %llu outside of any", (unsigned long long)r->loose);
    log_size(r->bytes_out, size);
    printf(", %s", size);
    if (rc == 0)
        printf(": nothing was lost.\n");
    else
        printf(". %llu damaged place%s, %llu of %llu bytes lost.\n",
               (unsigned long long)r->damaged, PLURAL(r->damaged),
               (unsigned long long)r->bytes_lost, (unsigned long long)r->bytes_in);
}

// A name beside it that nobody has.
static char *spare_name(const char *from, const char *what)
{
    char *name = NULL;

    for (int i = 1; i < 100; i++) {
        int n = i == 1 ? asprintf(&name, "%s.%s", from, what)
                       : asprintf(&name, "%s.%s.%d", from, what, i);
        if (n < 0)
            return NULL;
        if (access(name, F_OK) != 0)
            return name;
        free(name);
    }
    return NULL;
}

// The new one is there, as `fresh`: it gets its name, the old one another or none. 0 or -errno.
static int change_places(const char *from, const char *fresh, const char *to,
                         const char *kept, bool lost)
{
    if (lost && rename(from, kept) != 0)
        return -errno;
    if (lost)
        printf("What it was made of is %s.\n", kept);
    if (strcmp(fresh, to) != 0)
        return rename(fresh, to) == 0 ? 0 : -errno;
    return lost || unlink(from) == 0 ? 0 : -errno;
}

// Without -o.
static int in_place(const char *from, struct mcap_recovery *r, struct mcap_error *err)
{
    size_t n = strlen(from);
    bool part = n > 5 && strcmp(from + n - 5, ".part") == 0;
    char *to = strdup(from), *kept = spare_name(from, "damaged");
    char *fresh = part ? strdup(from) : spare_name(from, "whole");
    int rc = -ENOMEM, rc2;

    if (!to || !kept || !fresh)
        goto out;
    if (part)
        to[n - 5] = fresh[n - 5] = 0;
    rc = -EEXIST;
    if (part && access(to, F_OK) == 0) {
        snprintf(err->text, sizeof err->text,
                 "%.200s is there already; name another file with -o", to);
        goto out;
    }
    rc = mcap_recover(from, fresh, NULL, r, err);
    if (rc < 0)
        goto out;
    say(r, to, rc);
    rc2 = change_places(from, fresh, to, kept, rc == 1);
    if (rc2 != 0) {
        rc = rc2;
        snprintf(err->text, sizeof err->text, "%.100s could not become %.80s: %.40s",
                 fresh, to, strerror(-rc2));
    }
out:
    free(fresh);
    free(kept);
    free(to);
    return rc;
}

int log_recover(int argc, char **argv)
{
    static const struct option longs[] = {
        {"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'}, {0}};
    struct mcap_error err = {""};
    struct mcap_recovery r = {0};
    const char *to = NULL;
    int rc;

    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        if (c == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (c != 'o')
            return log_usage(help);
        to = optarg;
    }
    if (optind != argc - 1)
        return log_usage(help);
    log_catch_signals();
    if (!to) {
        rc = in_place(argv[optind], &r, &err);
    } else {
        rc = mcap_recover(argv[optind], to, NULL, &r, &err);
        if (rc >= 0)
            say(&r, to, rc);
    }
    return rc < 0 ? log_status(r.no_output && rc != -EINTR ? -EIO : rc, &err) : rc;
}
