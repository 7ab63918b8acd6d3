// replay_eval: the command. How it is done: replay_eval_impl.h.
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/out_path.h"
#include "daemon/replay.h"
#include "daemon/replay_eval_impl.h"

static int usage(FILE *f, int status)
{
    fputs(
        "usage: actd replay eval LOG... --policy DIR [options]\n"
        "\n"
        "Open loop: at each frame the policy is asked what it would do, and its chunk is held\n"
        "against what was commanded afterwards. To be run before a policy touches a robot: on\n"
        "data like that it was trained on the error must be small.\n"
        "\n"
        "LOG is a recording of actd, or a LeRobot data set that was converted to MCAP by\n"
        "policy/convert/dataset_to_mcap.py.\n"
        "\n"
        "      --policy DIR    checkpoint with its policy.yaml\n"
        "  -c, --config FILE   this robot.yaml instead of the recorded one\n"
        "      --every N       only at every Nth frame (1)\n"
        "      --json          for programs\n"
        "      --report FILE   also as a page\n"
        "  -h, --help          this text\n"
        "\n"
        "exit status: 0 evaluated, 64 usage, 65 LOG is none, or has nothing to compare, 66 LOG\n"
        "cannot be read, 73 the page cannot be written, 78 the configuration or the policy\n"
        "was refused\n",
        f);
    return status;
}

struct arguments {
    struct eval_options opt;
    const char *report;
    bool json;
};

// 0, or 1 + exit status.
static int parse(int argc, char **argv, struct arguments *a)
{
    static const struct option longs[] = {{"policy", 1, NULL, 'p'},
                                          {"config", 1, NULL, 'c'},
                                          {"every", 1, NULL, 'e'},
                                          {"json", 0, NULL, 'j'},
                                          {"report", 1, NULL, 'r'},
                                          {"help", 0, NULL, 'h'},
                                          {0}};
    char *end = NULL;
    long every = 1;
    *a = (struct arguments){.opt = {.every = 1}};
    optind = 0;
    for (int c; (c = getopt_long(argc, argv, "p:c:h", longs, NULL)) != -1;) {
        if (c == 'h')
            return 1 + usage(stdout, EX_OK);
        if (c == 'p')
            a->opt.policy = optarg;
        else if (c == 'c')
            a->opt.config = optarg;
        else if (c == 'r')
            a->report = optarg;
        else if (c == 'j')
            a->json = true;
        else if (c != 'e')
            return 1 + usage(stderr, EX_USAGE);
        else if ((every = strtol(optarg, &end, 10)) < 1 || every > 1000000 || *end)
            return 1 +
                   (fprintf(stderr, "replay eval: --every wants a number from 1 on\n"),
                    EX_USAGE);
    }
    a->opt.every = (int)every;
    return a->opt.policy && optind < argc ? 0 : 1 + usage(stderr, EX_USAGE);
}

static int evaluate(struct eval *e, const struct arguments *a, struct config_error *err)
{
    int rc = eval_prepare(e, err);
    if (rc)
        return rc == -ENOMEM ? EX_OSERR : rc == -ENODATA ? EX_DATAERR : EX_CONFIG;
    rc = eval_run(e, err);
    if (rc)
        return rc == -ENOMEM ? EX_OSERR : rc == -EINVAL ? EX_CONFIG : EX_DATAERR;
    if (a->json)
        rc = eval_print_json(e, stdout);
    else
        eval_print(e, stdout);
    if (rc)
        return EX_OSERR;
    return a->report && eval_write_page(e, a->report, err) ? EX_CANTCREAT : EX_OK;
}

int replay_eval_main(int argc, char **argv)
{
    struct arguments a;
    struct mcap_error why = {""};
    struct config_error err = {""};
    struct eval *e;
    int rc = parse(argc, argv, &a);
    if (rc)
        return rc - 1;
    e = calloc(1, sizeof *e);
    if (!e)
        return EX_OSERR;
    e->opt = a.opt;
    rc = logbook_open(&e->book, (const char *const *)argv + optind, argc - optind, &why);
    rc = rc ? rc : out_path_spares(a.report, e->book, &why);
    int status = rc == 0                         ? evaluate(e, &a, &err)
                 : rc == -EEXIST                 ? EX_CANTCREAT
                 : rc == -EINVAL || rc == -EFBIG ? EX_DATAERR
                                                 : EX_NOINPUT;
    if (status != EX_OK)
        fprintf(stderr, "actd replay eval: %s\n",
                rc          ? why.text
                : *err.text ? err.text
                            : "out of memory");
    eval_free(e);
    logbook_close(e->book);
    free(e);
    return status;
}
