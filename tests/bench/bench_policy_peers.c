// What `make bench-peers` found on this processor: the first table of RESULTS.md, which names the
// processor above it.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_policy.h"

#define COLUMNS 16
#define LINE    1024

static void cpu_name(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");

    *out = 0;
    while (f && !*out && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');

        line[strcspn(line, "\n")] = 0;
        if (colon && strncmp(line, "model name", 10) == 0)
            snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (f)
        fclose(f);
}

// "| a | b |" into cells without blanks around them; how many.
static int cells_of(char *line, char *cell[COLUMNS])
{
    int n = 0;

    if (line[0] != '|')
        return 0;
    for (char *at = line + 1, *bar; n < COLUMNS && (bar = strchr(at, '|'));
         at = bar + 1) {
        *bar = 0;
        at += strspn(at, " ");
        for (char *end = bar; end > at && isspace((unsigned char)end[-1]);)
            *--end = 0;
        cell[n++] = at;
    }
    return n;
}

struct reading {
    char head[COLUMNS][32];
    int columns; // 0: the table has not begun
};

static void read_head(struct reading *r, char *const *cell, int n)
{
    if (n < 3 || strcmp(cell[0], "case") != 0 || strcmp(cell[1], "threads") != 0)
        return;
    for (int i = 0; i < n; i++)
        snprintf(r->head[i], sizeof r->head[i], "%s", cell[i]);
    r->columns = n;
}

static bool is_peer(const char *name)
{
    static const char *const peers[] = {"onnxruntime", "openvino", "torch"};

    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        if (strncmp(name, peers[i], strlen(peers[i])) == 0)
            return true;
    return false;
}

static void fastest(const struct reading *r, char *const *cell, int n,
                    struct bench_peer *out)
{
    for (int i = 2; i < n && i < r->columns; i++) {
        double ms = strtod(cell[i], NULL);

        if (is_peer(r->head[i]) && ms > 0 && (out->ms <= 0 || ms < out->ms)) {
            out->ms = ms;
            snprintf(out->name, sizeof out->name, "%s", r->head[i]);
        }
    }
}

bool bench_peer_of(const char *path, char letter, int threads, struct bench_peer *out)
{
    char line[LINE], cpu[128];
    struct reading r = {.columns = 0};
    bool ours = false;
    FILE *f = path ? fopen(path, "re") : NULL;

    *out = (struct bench_peer){.ms = 0};
    cpu_name(cpu, sizeof cpu);
    while (f && fgets(line, sizeof line, f)) {
        char *cell[COLUMNS];
        ours = ours || (*cpu && strstr(line, cpu));
        int n = cells_of(line, cell);

        if (r.columns && n == 0)
            break; // the tables that follow are not of milliseconds
        if (!r.columns)
            read_head(&r, cell, n);
        else if (n > 2 && cell[0][0] == letter && atoi(cell[1]) == threads)
            fastest(&r, cell, n, out);
    }
    if (f)
        fclose(f);
    return ours && out->ms > 0;
}
