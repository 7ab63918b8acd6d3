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
    if (r->was_whole)
        printf("It was whole. ");
    printf("%s: %llu message%s in %llu chunk%s", to, (unsigned long long)r->messages,
           PLURAL(r->messages), (unsigned long long)r->chunks, PLURAL(r->chunks));
    if (r->loose)
        printf(" and %llu outside of any", (unsigned long long)r->loose);
    printf(", %.1f MB", (double)r->bytes_out / 1e6);
    if (rc == 0)
        printf(": nothing was lost.\n");
    else
        printf(". %llu damaged place%s, %llu of %llu bytes lost.\n",
               (unsigned long long)r->damaged, PLURAL(r->damaged),
               (unsigned long long)r->bytes_lost, (unsigned long long)r->bytes_in);
}

// Without -o. 0 or -errno.
static int keep_or_remove(const char *from, const char *to, const char *kept, int rc)
{
    if (rc == 1) {
        printf("What it was made of is %s.\n", kept);
        return strcmp(from, to) == 0 ? 0 : rename(from, kept) == 0 ? 0 : -errno;
    }
    if (strcmp(from, to) == 0)
        return unlink(kept) == 0 ? 0 : -errno;
    return unlink(from) == 0 ? 0 : -errno;
}

// In its own place: a second name for the damaged one first, which then stays behind.
static int in_place(const char *from, struct mcap_error *err)
{
    size_t n = strlen(from);
    bool part = n > 5 && strcmp(from + n - 5, ".part") == 0;
    struct mcap_recovery r;
    char *to = strdup(from), *kept = NULL;
    int rc = -ENOMEM;

    if (!to || asprintf(&kept, "%s.damaged", from) < 0) {
        kept = NULL;
        goto out;
    }
    if (part)
        to[n - 5] = 0;
    rc = -EEXIST;
    if (part && access(to, F_OK) == 0) {
        snprintf(err->text, sizeof err->text,
                 "%.200s is there already; name another file with -o", to);
        goto out;
    }
    if (!part && link(from, kept) != 0) {
        rc = -errno;
        snprintf(err->text, sizeof err->text, "%.150s cannot be kept as %.80s: %s", from,
                 ".damaged", strerror(-rc));
        goto out;
    }
    rc = mcap_recover(from, to, NULL, &r, err);
    if (rc < 0 && !part)
        unlink(kept);
    if (rc < 0)
        goto out;
    say(&r, to, rc);
    int rc2 = keep_or_remove(from, to, kept, rc);
    if (rc2 != 0)
        fprintf(stderr, "%s: %s\n", from, strerror(-rc2));
out:
    free(kept);
    free(to);
    return rc;
}

int log_recover(int argc, char **argv)
{
    static const struct option longs[] = {
        {"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'}, {0}};
    struct mcap_error err = {""};
    struct mcap_recovery r;
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
        rc = in_place(argv[optind], &err);
    } else {
        rc = mcap_recover(argv[optind], to, NULL, &r, &err);
        if (rc >= 0)
            say(&r, to, rc);
    }
    return rc < 0 ? log_status(rc, &err) : rc;
}
