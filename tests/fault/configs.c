// Mistakes in a configuration: a corpus of files, each with one, and nothing but a sentence with
// its line and column to show for it. No run of the world.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"
#include "tests/fault/matrix.h"

#define CORPUS "tests/data/config"
#define LEAST  60 // files

static char complaint[220];

// The first line of each says where the mistake is: "# expect LINE:COLUMN: …".
static const char *one_config(const char *name)
{
    static struct config cfg;
    struct config_sidecar side;
    struct config_error err = {""};
    char path[300], text[64 * 1024 + 1], where[300];
    FILE *f;
    size_t n;
    int rc;

    snprintf(path, sizeof path, CORPUS "/%.200s", name);
    f = fopen(path, "r");
    if (!f)
        return "no corpus: run from the top of the tree";
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    if (strncmp(name, "policy_", 7) == 0)
        rc = config_sidecar_parse(&side, name, text, n, &err);
    else
        rc = config_parse(&cfg, name, text, n, &err);
    snprintf(where, sizeof where, "%.200s:%.*s", name, (int)strcspn(text + 9, " "),
             text + 9);
    if (rc == -EINVAL && strncmp(err.text, where, strlen(where)) == 0)
        return NULL;
    snprintf(complaint, sizeof complaint, "%.60s: %d '%.100s'", name, rc, err.text);
    return complaint;
}

static const char *configs(struct probe *p)
{
    DIR *d = opendir(CORPUS);
    const char *why = d ? NULL : "no corpus: run from the top of the tree";
    int n = 0;

    probe_begin(p);
    for (struct dirent *e; d && !why && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');

        if (!dot || strcmp(dot, ".yaml") != 0)
            continue;
        why = one_config(e->d_name);
        n++;
    }
    if (d)
        closedir(d);
    if (!why && n < LEAST)
        why = "the corpus is too small";
    snprintf(p->action, sizeof p->action, "%d refused", n);
    return why;
}

static const struct scenario of[] = {
    {.name = "mistakes in the configuration",
     .bound = "refused with line and column",
     .detector = BLIND_CONFIG,
     .alone = configs},
};

const struct scenario_group group_configs = {"configuration", of, sizeof of / sizeof *of};
