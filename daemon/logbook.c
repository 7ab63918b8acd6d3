// logbook: see the header. Files are opened all at once: a segment's index is some 100 kB.
#include "daemon/logbook.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/logbook_impl.h"

static int __attribute__((format(printf, 3, 4)))
say(struct mcap_error *err, int rc, const char *format, ...)
{
    va_list a;

    if (!err)
        return rc;
    va_start(a, format);
    vsnprintf(err->text, sizeof err->text, format, a);
    va_end(a);
    return rc;
}

void logbook_note(struct logbook *b, const char *path, const char *what)
{
    if (!b->damage.text[0])
        snprintf(b->damage.text, sizeof b->damage.text, "%.100s: %.150s", path, what);
}

// ---- files -----------------------------------------------------------------------------------

static int add(struct logbook *b, const char *path, bool skip_bad, struct mcap_error *err)
{
    struct logbook_file f = {0}, *all;
    struct mcap_error why = {""};
    const char *text;
    int rc = mcap_open(&f.reader, path, NULL, &why);

    if (rc == -EINVAL && skip_bad) { // a segment that was only just begun is empty
        logbook_note(b, path,
                     strstr(why.text, "is ") ? strstr(why.text, "is ") : why.text);
        return 0;
    }
    if (rc != 0)
        return say(err, rc, "%s", why.text);
    f.path = strdup(path);
    all = realloc(b->file, (size_t)(b->n + 1) * sizeof *all);
    if (all)
        b->file = all;
    if (!all || !f.path) {
        free(f.path);
        mcap_close(f.reader);
        return say(err, -ENOMEM, "%s: no memory", path);
    }
    b->file[b->n++] = f;
    if (!mcap_whole(f.reader, &text))
        logbook_note(b, path, text);
    return 0;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n > m && strcmp(s + n - m, end) == 0;
}

static int log_name(const struct dirent *d)
{
    return d->d_name[0] != '.' &&
           (ends_with(d->d_name, ".mcap") || ends_with(d->d_name, ".mcap.part"));
}

// A .part that was recovered beside itself counts once.
static bool recovered(const char *part)
{
    char *whole = strdup(part);
    struct stat st;
    bool there = false;

    if (whole && ends_with(part, ".part")) {
        whole[strlen(whole) - strlen(".part")] = 0;
        there = stat(whole, &st) == 0;
    }
    free(whole);
    return there;
}

static int add_directory(struct logbook *b, const char *dir, struct mcap_error *err)
{
    struct dirent **name = NULL;
    int n = scandir(dir, &name, log_name, alphasort), rc = 0, before = b->n;

    if (n < 0) {
        rc = -errno;
        return say(err, rc, "%s: %s", dir, strerror(-rc));
    }
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (rc == 0 && asprintf(&path, "%s/%s", dir, name[i]->d_name) < 0)
            rc = say(err, -ENOMEM, "%s: no memory", dir);
        else if (rc == 0 && !recovered(path))
            rc = add(b, path, true, err);
        free(path);
        free(name[i]);
    }
    free(name);
    if (rc == 0 && b->n == before)
        rc = say(err, -ENOENT,
                 "%s holds no recording (*.mcap, *.mcap.part)%s; name the directory that "
                 "`record: directory` in the configuration names",
                 dir, n > 0 ? " with anything in it" : "");
    return rc;
}

// ---- what they say of themselves ---------------------------------------------------------------

static int read_facts(struct logbook *b, struct logbook_file *f, struct mcap_error *err)
{
    for (int i = 0; i < mcap_metadata(f->reader); i++) {
        struct mcap_error why = {""};
        const struct mcap_pair *pair;
        const char *name;
        int n, rc = mcap_metadata_at(f->reader, i, &name, &pair, &n, &why);
        if (rc == -ENOMEM)
            return say(err, rc, "%s: %s", f->path, why.text);
        if (rc != 0)
            logbook_note(b, f->path, why.text);
        if (rc != 0 || strcmp(name, "actd") != 0)
            continue;
        f->fact = pair;
        f->n_facts = n;
        return 0;
    }
    return 0;
}

static const char *fact(const struct logbook_file *f, const char *key)
{
    for (int i = 0; i < f->n_facts; i++)
        if (strcmp(f->fact[i].key, key) == 0)
            return f->fact[i].value;
    return NULL;
}

// Files without a message lie behind the others, by name.
static int by_first_message(const void *a, const void *b)
{
    const struct logbook_file *x = a, *y = b;
    bool p = mcap_message_count(x->reader) > 0, q = mcap_message_count(y->reader) > 0;
    uint64_t s = mcap_start_ns(x->reader), t = mcap_start_ns(y->reader);

    if (p != q)
        return p ? -1 : 1;
    if (p && s != t)
        return s < t ? -1 : 1;
    return strcmp(x->path, y->path);
}

static const char *run_of(const struct logbook *b, int i)
{
    const char *id = fact(&b->file[i], "run_id");

    return id ? id : "";
}

// How many runs there are; *newest is the id of the last one.
static int count_runs(const struct logbook *b, const char **newest)
{
    int runs = 0;

    for (int i = 0; i < b->n; i++) {
        bool known = !*run_of(b, i);
        for (int k = 0; k < i && !known; k++)
            known = strcmp(run_of(b, i), run_of(b, k)) == 0;
        runs += !known;
        if (*run_of(b, i) && (i == 0 || mcap_message_count(b->file[i].reader) > 0))
            *newest = run_of(b, i);
    }
    return runs;
}

static void free_file(struct logbook_file *f)
{
    mcap_close(f->reader);
    free(f->path);
}

// A daemon's directory holds what each start of it recorded: who names it means the newest. What
// is wrong with files of the others does not matter.
static void newest_run(struct logbook *b, const char *dir)
{
    const char *newest = "", *text;
    int runs = count_runs(b, &newest), kept = 0;
    char id[64];

    if (runs < 2)
        return;
    snprintf(id, sizeof id, "%s", newest);
    for (int i = 0; i < b->n; i++) {
        struct logbook_file f = b->file[i];
        if (strcmp(run_of(b, i), id) != 0)
            continue;
        b->file[i] = b->file[kept];
        b->file[kept++] = f;
    }
    fprintf(
        stderr,
        "%s holds %d runs; this is the newest, from %s on. For another name its files.\n",
        dir, runs, b->file[0].path);
    while (b->n > kept)
        free_file(&b->file[--b->n]);
    b->damage.text[0] = 0;
    for (int i = 0; i < kept; i++)
        if (!mcap_whole(b->file[i].reader, &text))
            logbook_note(b, b->file[i].path, text);
}

static int one_run(struct logbook *b, struct mcap_error *err)
{
    const struct logbook_file *first = NULL;

    for (int i = 0; i < b->n; i++) {
        const struct logbook_file *f = &b->file[i];
        if (!fact(f, "run_id"))
            continue;
        if (!first)
            first = f;
        if (strcmp(fact(first, "run_id"), fact(f, "run_id")) != 0)
            return say(err, -EINVAL,
                       "%.100s and %.100s are of two runs; name the files of one",
                       first->path, f->path);
    }
    b->facts = first;
    for (int i = 0; !b->facts && i < b->n; i++)
        if (b->file[i].n_facts)
            b->facts = &b->file[i];
    return 0;
}

int logbook_open(struct logbook **out, const char *const *path, int n,
                 struct mcap_error *err)
{
    struct logbook *b = calloc(1, sizeof *b);
    struct stat st;
    int rc = 0;

    *out = NULL;
    if (!b)
        return say(err, -ENOMEM, "no memory");
    for (int i = 0; rc == 0 && i < n; i++)
        rc = stat(path[i], &st) == 0 && S_ISDIR(st.st_mode)
                 ? add_directory(b, path[i], err)
                 : add(b, path[i], false, err);
    if (rc == 0 && b->n == 0) {
        say(err, 0, "no recording was named");
        rc = -EINVAL;
    }
    for (int i = 0; rc == 0 && i < b->n; i++)
        rc = read_facts(b, &b->file[i], err);
    if (rc == 0) {
        qsort(b->file, (size_t)b->n, sizeof *b->file, by_first_message);
        if (n == 1 && b->n > 1 && stat(path[0], &st) == 0 && S_ISDIR(st.st_mode))
            newest_run(b, path[0]);
        rc = one_run(b, err);
    }
    if (rc != 0) {
        logbook_close(b);
        return rc;
    }
    *out = b;
    return 0;
}

void logbook_close(struct logbook *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->n; i++)
        free_file(&b->file[i]);
    free(b->file);
    free(b);
}

// ---- answers ----------------------------------------------------------------------------------

int logbook_files(const struct logbook *b)
{
    return b->n;
}

const char *logbook_path(const struct logbook *b, int file)
{
    return file < 0 || file >= b->n ? NULL : b->file[file].path;
}

struct mcap_reader *logbook_reader(const struct logbook *b, int file)
{
    return file < 0 || file >= b->n ? NULL : b->file[file].reader;
}

const char *logbook_fact(const struct logbook *b, const char *key)
{
    return b->facts ? fact(b->facts, key) : NULL;
}

int64_t logbook_base_ns(const struct logbook *b)
{
    const char *s = logbook_fact(b, "base_ns");

    return s ? strtoll(s, NULL, 10) : 0;
}

bool logbook_ours(const struct logbook *b)
{
    return b->facts != NULL;
}

const char *logbook_damage(const struct logbook *b)
{
    return b->damage.text;
}
