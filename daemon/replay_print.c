#include "daemon/replay_print.h"

#include <string.h>

#include "daemon/table.h"

typedef unsigned long long u64;

static double seconds(ns_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double times(const struct replay_result *r)
{
    return r->took_ns > 0 ? (double)r->covered_ns / (double)r->took_ns : 0;
}

bool replay_equal(const struct replay_result *r)
{
    return !r->first.any;
}

// ---- for people ------------------------------------------------------------------------------

static const char *fact(struct logbook *book, const char *key)
{
    const char *v = logbook_fact(book, key);

    return v && *v ? v : "?";
}

// OpenBLAS's, in recordings that name no others.
static const char *kernels_then(struct logbook *book)
{
    const char *v = logbook_fact(book, "kernels");

    return v && *v ? v : fact(book, "blas_core");
}

static void print_head(struct logbook *book, const struct replay_options *opt,
                       const struct replay_result *r, FILE *f)
{
    bool judges = !opt->config_file && !opt->policy_directory;
    int files = logbook_files(book);

    fprintf(f, "%s%s%s: actd %s, '%s', kernels %s\n", logbook_path(book, 0),
            files > 1 ? " and others of its run" : "",
            logbook_ours(book) ? "" : " (foreign)", fact(book, "version"),
            fact(book, "instance"), kernels_then(book));
    if (judges && r->other_kernels)
        fprintf(
            f,
            "This machine does not compute with the kernels that made the chunks, so bits "
            "can not be compared: within %g rad%s.\n",
            r->tolerance_rad, r->bits ? ", as asked" : "");
    else if (judges && r->bits)
        fputs("Bit by bit: the same program and kernels recorded it.\n", f);
    else if (judges)
        fprintf(
            f,
            "Within %g rad: bits are only promised by the very program and kernels that "
            "recorded it.\n",
            r->tolerance_rad);
}

static void row(struct table *t, const char *what, uint64_t compared, uint64_t differing,
                uint64_t skipped, const char *why, bool judges)
{
    char differ[64] = "";

    if (judges && differing > 0)
        snprintf(differ, sizeof differ, "%llu differ", (u64)differing);
    else if (judges && compared > 0)
        snprintf(differ, sizeof differ, "equal");
    if (skipped > 0)
        table_row(t, "%s\t%llu\t%s\t%llu %s", what, (u64)compared, differ, (u64)skipped,
                  why);
    else
        table_row(t, "%s\t%llu\t%s", what, (u64)compared, differ);
}

static void print_counts(const struct replay_result *r, bool judges, FILE *f)
{
    struct table t = {0};

    row(&t, "inputs", r->inputs, r->differing[0], r->inputs_skipped,
        "not: their bytes, or what came before them, are not in the log", judges);
    row(&t, "chunks", r->chunks, r->differing[1], r->chunks_taken, "taken as recorded",
        judges);
    row(&t, "ticks", r->ticks, r->differing[2], r->ticks_skipped,
        "not: before the first state of the loop, or after a gap", judges);
    row(&t, "commands", r->commands, r->differing[3], r->commands_skipped,
        "not: of ticks that were not", judges);
    table_print(&t, f);
}

static void print_lacks(struct logbook *book, const struct replay_result *r, FILE *f)
{
    const char *damage = logbook_damage(book);

    if (r->gaps > 0)
        fprintf(f,
                "Gaps in the log: %llu; gone on from a state of the loop %llu time%s.\n",
                (u64)r->gaps, (u64)r->keyframes, PLURAL(r->keyframes));
    else if (r->keyframes > 0)
        fputs("Begun with a state of the loop: the log does not have its first tick.\n",
              f);
    if (r->unreadable > 0)
        fprintf(
            f,
            "Not readable: %llu records or places; `actd log recover` saves the rest.\n",
            (u64)r->unreadable);
    if (damage && *damage)
        fprintf(f, "%s\n", damage);
    if (r->note[0])
        fprintf(f, "Note: %s\n", r->note);
}

static void print_verdict(const struct replay_result *r, FILE *f)
{
    if (r->first.any)
        fprintf(f, "DIFFERS, first in tick %llu, %s: %s\n", (u64)r->first.tick,
                r->first.stage, r->first.text);
    else if (r->ticks == 0)
        fputs(
            "Nothing could be compared: the log has neither the first tick of the run nor a "
            "state of\nthe loop that this program can use.\n",
            f);
    else
        fprintf(f, "EQUAL: what came out is what was recorded%s%s.\n",
                r->bits ? ", byte for byte" : "",
                r->ticks_skipped > 0 ? ", as far as it could be compared" : "");
    if (r->largest_rad > 0)
        fprintf(f, "Commands are %g rad apart at most.\n", r->largest_rad);
}

void replay_print(struct logbook *book, const struct replay_options *opt,
                  const struct replay_result *r, FILE *f)
{
    bool judges = !opt->config_file && !opt->policy_directory;

    print_head(book, opt, r, f);
    print_counts(r, judges, f);
    fprintf(f, "%.1f s of the run in %.2f s: %.0f times as fast as it was.\n",
            seconds(r->covered_ns), seconds(r->took_ns), times(r));
    print_lacks(book, r, f);
    if (judges)
        print_verdict(r, f);
}

// ---- for programs ----------------------------------------------------------------------------

static json_t *counts(uint64_t compared, uint64_t differing, uint64_t skipped)
{
    return json_pack("{s:I, s:I, s:I}", "compared", (json_int_t)compared, "differing",
                     (json_int_t)differing, "not_compared", (json_int_t)skipped);
}

json_t *replay_json(struct logbook *book, const struct replay_result *r)
{
    json_t *first = json_null();

    if (r->first.any)
        first = json_pack("{s:I, s:s, s:s}", "tick", (json_int_t)r->first.tick, "stage",
                          r->first.stage, "text", r->first.text);
    return json_pack(
        "{s:s, s:b, s:b, s:b, s:f, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:s, s:s, "
        "s:o}",
        "log", logbook_path(book, 0), "equal", replay_equal(r) && r->ticks > 0, "bits",
        r->bits, "other_kernels", r->other_kernels, "tolerance_rad", r->tolerance_rad,
        "inputs", counts(r->inputs, r->differing[0], r->inputs_skipped), "chunks",
        counts(r->chunks, r->differing[1], r->chunks_taken), "ticks",
        counts(r->ticks, r->differing[2], r->ticks_skipped), "commands",
        counts(r->commands, r->differing[3], r->commands_skipped), "gaps",
        (json_int_t)r->gaps, "keyframes", (json_int_t)r->keyframes, "unreadable",
        (json_int_t)r->unreadable, "largest_rad", r->largest_rad, "covered_s",
        seconds(r->covered_ns), "took_s", seconds(r->took_ns), "times_real_time",
        times(r), "note", r->note, "damage", logbook_damage(book), "first_difference",
        first);
}
