// Faults of the weights. No run of the world: what is refused never gets that far. The base is a
// whole checkpoint without cameras, a few kilobytes, that loads; what is wrong is one thing in its
// file of weights.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/matrix.h"
#include "tests/unit/act_fixture.h"

#define MOST_BYTES (512 * 1024)
#define MOST_MS    50 // of CPU, for a refusal

struct checkpoint {
    char dir[WORLD_PATH], file[WORLD_PATH + 32];
    char *bytes;         // (size), as good ones are
    size_t size, header; // header: bytes of the table, after the first 8
    int loads;
};

static char complaint[220];

static bool slurp(struct checkpoint *c)
{
    FILE *f = fopen(c->file, "rb");
    uint64_t n = 0;

    c->bytes = malloc(MOST_BYTES);
    if (!f || !c->bytes)
        return false;
    c->size = fread(c->bytes, 1, MOST_BYTES, f);
    fclose(f);
    memcpy(&n, c->bytes, 8);
    c->header = (size_t)n;
    return c->size > 8 && c->header < c->size;
}

static bool spill(const struct checkpoint *c, const char *bytes, size_t size)
{
    FILE *f = fopen(c->file, "wb");
    bool good;

    if (!f)
        return false;
    good = fwrite(bytes, 1, size, f) == size;
    return fclose(f) == 0 && good;
}

static int load(struct checkpoint *c, struct policy_error *err)
{
    const struct policy_options opt = {.threads = 1};
    struct policy *p = NULL;
    int rc;

    err->text[0] = 0;
    rc = policy_load(&p, c->dir, &opt, err);
    c->loads++;
    if (rc == 0 && !p)
        return -EFAULT; // a blind loader's: nothing was refused, and nothing was loaded
    policy_free(p);
    return rc;
}

static const char *begin(struct probe *p, struct checkpoint *c)
{
    struct act_fixture f = act_fixture_tiny();
    struct policy_error err;

    memset(c, 0, sizeof *c);
    f.dtype = ACT_FIXTURE_F32;
    f.n_cameras = 0;
    f.env_dim = 3;
    if (!world_scratch(c->dir, "weights") || act_fixture_write(c->dir, &f))
        return "no checkpoint to begin with";
    snprintf(c->file, sizeof c->file, "%s/model.safetensors", c->dir);
    if (!slurp(c))
        return "no weights to begin with";
    if (load(c, &err) != 0)
        return "the good one does not load";
    probe_begin(p);
    return NULL;
}

static const char *end(struct checkpoint *c, const char *why)
{
    act_fixture_remove(c->dir);
    free(c->bytes);
    return why;
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// These bytes must be refused, with a sentence that has `word` in it.
static const char *must_refuse(struct checkpoint *c, const char *bytes, size_t size,
                               const char *what, const char *word)
{
    struct policy_error err;
    double before = cpu_ms(), took;
    int rc = spill(c, bytes, size) ? load(c, &err) : -EIO;

    took = cpu_ms() - before;
    if (rc == 0 || rc == -EFAULT)
        snprintf(complaint, sizeof complaint, "%s: it was loaded", what);
    else if (err.text[0] == 0 || (word && !strstr(err.text, word)))
        snprintf(complaint, sizeof complaint, "%s: '%.120s' does not say so", what,
                 err.text);
    else if (took > MOST_MS)
        snprintf(complaint, sizeof complaint, "%s: the refusal took %.0f ms", what, took);
    else
        return NULL;
    return complaint;
}

static void tell(struct probe *p, const struct checkpoint *c)
{
    snprintf(p->action, sizeof p->action, "%d refused", c->loads - 1);
}

// ---- cut short -------------------------------------------------------------------------------

static const char *truncated(struct probe *p)
{
    struct checkpoint c;
    const char *why = begin(p, &c);
    uint64_t random = 5;
    char what[64];

    for (int i = 0; i < 100 && !why; i++) {
        size_t n = 8 + c.header + injector_random32(&random) % (c.size - 8 - c.header);

        snprintf(what, sizeof what, "cut after %zu bytes", n);
        why = must_refuse(&c, c.bytes, n, what, NULL);
    }
    for (size_t n = 0; n <= 8 + c.header && !why; n++) {
        snprintf(what, sizeof what, "cut after %zu bytes", n);
        why = must_refuse(&c, c.bytes, n, what, NULL);
    }
    tell(p, &c);
    return end(&c, why);
}

// ---- hostile tables --------------------------------------------------------------------------

// The good table with the first `find` in it replaced; grown or shrunk, the data follow.
static size_t edited(const struct checkpoint *c, const char *find, const char *put,
                     char *out)
{
    char *table = calloc(1, c->header + 1), *at;
    size_t n = 0, from = strlen(find), to = strlen(put);
    uint64_t header;

    if (!table)
        return 0;
    memcpy(table, c->bytes + 8, c->header);
    at = strstr(table, find);
    if (at && c->size + to < MOST_BYTES) {
        size_t before = (size_t)(at - table);

        header = c->header + to - from;
        memcpy(out, &header, 8);
        memcpy(out + 8, table, before);
        memcpy(out + 8 + before, put, to);
        memcpy(out + 8 + before + to, table + before + from, c->header - before - from);
        memcpy(out + 8 + header, c->bytes + 8 + c->header, c->size - 8 - c->header);
        n = c->size + to - from;
    }
    free(table);
    return n;
}

static const struct edit {
    const char *what, *find, *put, *word;
} hostile[] = {
    {"a key twice", "\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"dtype\":\"F32\"",
     "duplicate"},
    {"dtype unknown", "\"F32\"", "\"F77\"", "dtype"},
    {"shape negative", "\"shape\":[", "\"shape\":[-", "no whole number"},
    {"shape overflows", "\"shape\":[", "\"shape\":[9223372036854775807,", "overflows"},
    {"shape does not fit its bytes", "\"shape\":[", "\"shape\":[2,", "do not match"},
    {"offset negative", "\"data_offsets\":[0,", "\"data_offsets\":[-4,", "data_offsets"},
    {"offset late", "\"data_offsets\":[0,", "\"data_offsets\":[4,", "data_offsets"},
    {"offsets beyond 64 bits", "\"data_offsets\":[0,",
     "\"data_offsets\":[99999999999999999999,", "too big"},
    {"a name twice", "{\"model.encoder_latent_input_proj.weight\":",
     "{\"model.encoder_latent_input_proj.bias\":", "duplicate"},
    {"UTF-8 broken", "{\"model.", "{\"\xff\xfe\xc0.", "UTF-8"},
    {"no object", "{", "[", "JSON object"},
    {"a null in it", "\"dtype\":\"F32\"", "\"dtype\":null", "dtype"},
    {"a number for a name", "{\"model.", "{17,\"model.", "JSON"},
};

// A table of `n` bytes that begins well and goes on with one character, behind a length that
// says `says`.
static size_t monotone(char *out, uint64_t says, char with, size_t n)
{
    static const char opening[] = "{\"a\":";

    memcpy(out, &says, 8);
    memset(out + 8, with, n);
    memcpy(out + 8, opening, sizeof opening - 1);
    return 8 + n;
}

static const char *hostile_tables(struct probe *p)
{
    struct checkpoint c;
    const char *why = begin(p, &c);
    char *out = malloc(MOST_BYTES);
    size_t n = 400 * 1024;

    for (size_t i = 0; i < sizeof hostile / sizeof *hostile && !why; i++) {
        size_t size = edited(&c, hostile[i].find, hostile[i].put, out);

        why = size == 0 ? "an edit found nothing to edit"
                        : must_refuse(&c, out, size, hostile[i].what, hostile[i].word);
    }
    if (!why)
        why = must_refuse(&c, out, monotone(out, UINT64_C(1) << 63, '{', 64),
                          "length 2^63", "claims");
    if (!why)
        why = must_refuse(&c, out, monotone(out, 1000, '{', 64), "length beyond the file",
                          NULL);
    if (!why)
        why = must_refuse(&c, out, monotone(out, n, '[', n), "400 000 brackets", NULL);
    if (!why)
        why = must_refuse(&c, out, monotone(out, n, ' ', n), "nothing but spaces", NULL);
    free(out);
    tell(p, &c);
    return end(&c, why);
}

static const char *wrong_names(struct probe *p)
{
    static const struct edit edit[] = {
        {"transposed", "\"model.action_head.weight\":{\"dtype\":\"F32\",\"shape\":[6,16]",
         "\"model.action_head.weight\":{\"dtype\":\"F32\",\"shape\":[16,6]",
         "action_head"},
        {"a tensor misspelt", "model.action_head.weight", "model.action_hed_.weight",
         "action_h"},
        {"another model's tensor", "model.decoder.norm.bias", "model.decoder.norm.hias",
         "decoder.norm"},
    };
    struct checkpoint c;
    const char *why = begin(p, &c);
    char *out = malloc(MOST_BYTES);

    for (size_t i = 0; i < sizeof edit / sizeof *edit && !why; i++) {
        size_t size = edited(&c, edit[i].find, edit[i].put, out);

        why = size == 0 ? "an edit found nothing to edit"
                        : must_refuse(&c, out, size, edit[i].what, edit[i].word);
    }
    free(out);
    tell(p, &c);
    return end(&c, why);
}

static const char *not_a_number(struct probe *p)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct checkpoint c;
    const char *why = begin(p, &c);
    uint64_t random = 7;

    for (int i = 0; i < 30 && !why; i++) {
        size_t values = (c.size - 8 - c.header) / 4;
        size_t at = 8 + c.header + 4 * (injector_random32(&random) % values);
        char kept[4];

        memcpy(kept, c.bytes + at, 4);
        memcpy(c.bytes + at, &bad[i % 3], 4);
        why = must_refuse(&c, c.bytes, c.size, "a weight that is no number", NULL);
        memcpy(c.bytes + at, kept, 4);
    }
    tell(p, &c);
    return end(&c, why);
}

// ---- changed while it is read ----------------------------------------------------------------

// Every read of the loader comes through here (an executable's own definition is found before
// the library's): at the `race_at`-th one somebody changes the file first.
static struct {
    const struct checkpoint *of;
    int at, seen;
    int how; // 0 cut, 1 longer, 2 other bytes
} race;

static void change_file(void)
{
    int fd = open(race.of->file, O_WRONLY | (race.how == 1 ? O_APPEND : 0));
    off_t half = (off_t)race.of->size / 2;

    if (fd < 0)
        return;
    if (race.how == 0 && ftruncate(fd, half) != 0)
        race.seen = -1;
    if (race.how == 1 && write(fd, "more", 4) != 4)
        race.seen = -1;
    if (race.how == 2 && pwrite(fd, "\0\0\0\0", 4, (off_t)race.of->size - 4) != 4)
        race.seen = -1;
    close(fd);
}

ssize_t pread(int fd, void *buf, size_t n, off_t at);
ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    if (race.of && ++race.seen == race.at)
        change_file();
    return syscall(SYS_pread64, fd, buf, n, at);
}

static const char *changed_in_between(struct probe *p)
{
    static const char *const what[] = {"cut short", "grown", "overwritten"};
    struct checkpoint c;
    struct policy_error err;
    const char *why = begin(p, &c);

    for (int how = 0; how < 3 && !why; how++)
        for (int at = 1; at <= 9 && !why; at += 4) {
            int rc;

            if (!spill(&c, c.bytes, c.size))
                why = "no file to change";
            usleep(20000); // so that the change has another time than the file
            race.of = &c;
            race.at = at;
            race.how = how;
            race.seen = 0;
            rc = load(&c, &err);
            race.of = NULL;
            if (race.seen < at)
                why = "the loader reads less often than that";
            else if (rc == 0 || rc == -EFAULT) {
                snprintf(complaint, sizeof complaint, "%s at read %d: it was loaded",
                         what[how], at);
                why = complaint;
            }
        }
    tell(p, &c);
    return end(&c, why);
}

static const struct scenario of[] = {
    {.name = "weights cut at every byte of the table",
     .bound = "refused in 50 ms",
     .detector = BLIND_WEIGHTS,
     .crashes = true,
     .alone = truncated},
    {.name = "weights with a hostile table",
     .bound = "refused in 50 ms",
     .detector = BLIND_WEIGHTS,
     .crashes = true,
     .alone = hostile_tables},
    {.name = "weights of another model",
     .bound = "refused, tensor named",
     .detector = BLIND_WEIGHTS,
     .alone = wrong_names},
    {.name = "weights with NaN and infinity",
     .bound = "refused",
     .detector = BLIND_WEIGHTS,
     .alone = not_a_number},
    {.name = "weights changed while they are read",
     .bound = "refused",
     .detector = BLIND_WEIGHTS,
     .alone = changed_in_between},
};

const struct scenario_group group_weights = {"weights", of, sizeof of / sizeof *of};
