// golden: see the header.
#include "daemon/golden.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sysexits.h>

#include "policy/golden.h"

#define SEED 1 // the same checkpoint and build write the same bytes

static int refused(FILE *f, int status, const struct policy_error *why)
{
    fprintf(f, "REFUSED: %s\n", why->text);
    return status;
}

// What was written is what the next load reads: better to see now that it is taken.
static int prove(const char *dir, const char *stats_tag, FILE *out, FILE *err)
{
    const struct policy_options opt = {.stats_tag = stats_tag};
    struct policy_error why = {""};
    struct policy *p;

    if (policy_load(&p, dir, &opt, &why))
        return refused(err, EX_CONFIG, &why);
    fprintf(out,
            "%s/%s written: recorded and computed again, they differ by %.1e (%.0e is "
            "allowed)\ncheckpoint %s\n",
            dir, GOLDEN_FILE, policy_describe(p)->golden_error, GOLDEN_TOLERANCE,
            policy_describe(p)->digest);
    policy_free(p);
    return EX_OK;
}

int golden_run(const char *dir, const char *stats_tag, bool force, FILE *out, FILE *err)
{
    const struct policy_options opt = {.stats_tag = stats_tag, .skip_golden = true};
    struct policy_error why = {""};
    struct policy *p;

    if (policy_load(&p, dir, &opt, &why))
        return refused(err, EX_CONFIG, &why);
    int rc = golden_write(p, dir, SEED, force, &why);
    policy_free(p);
    if (rc)
        return refused(err, rc == -EINVAL ? EX_CONFIG : EX_CANTCREAT, &why);
    return prove(dir, stats_tag, out, err);
}

static int usage(FILE *f, int status)
{
    fprintf(f, "usage: actd golden CHECKPOINT_DIR [--force] [--stats-tag NAME]\n\n"
               "Records what the policy answers to a made-up observation in\n"
               "CHECKPOINT_DIR/" GOLDEN_FILE ". Whoever loads the checkpoint afterwards\n"
               "computes it again and refuses it when the answer is another one.\n\n"
               "  --force           replace a " GOLDEN_FILE " that is there\n"
               "  --stats-tag NAME  which statistics, for a checkpoint that has several "
               "groups\n"
               "  -h, --help        this text\n\n"
               "exit status: 0 written, 64 usage, 73 it could not be written, 78 the "
               "checkpoint is\nrefused\n");
    return status;
}

int golden_main(int argc, char **argv)
{
    static const struct option option[] = {{"force", no_argument, NULL, 'f'},
                                           {"stats-tag", required_argument, NULL, 't'},
                                           {"help", no_argument, NULL, 'h'},
                                           {0}};
    const char *tag = NULL;
    bool force = false;
    int c;

    optind = 0; // start anew: main has been through its own options
    while ((c = getopt_long(argc, argv, "h", option, NULL)) != -1) {
        if (c == 'f')
            force = true;
        else if (c == 't')
            tag = optarg;
        else
            return c == 'h' ? usage(stdout, EX_OK) : usage(stderr, EX_USAGE);
    }
    return optind + 1 == argc ? golden_run(argv[optind], tag, force, stdout, stderr)
                              : usage(stderr, EX_USAGE);
}
