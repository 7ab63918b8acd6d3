// blackbox: the loop's half (nothing torn, nothing allocated), and what a line says.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/blackbox_impl.h"
#include "tests/unit/count_allocations.h"

static void allocates_nothing(void **state)
{
    (void)state;
    struct blackbox *b;
    long made;

    if (!COUNTS_ALLOCATIONS)
        skip();
    counting = true;
    assert_int_equal(blackbox_new(&b, 14, 3, 100), 0);
    made = allocations;
    assert_true(made > 0); // the counter counts
    for (int i = 0; i < 5000; i++) {
        blackbox_tick(b)->tick = (uint64_t)i;
        blackbox_commit(b, i % 3 ? REASON_NONE : REASON_NO_CHUNK);
        blackbox_trigger(b, REASON_LOOP_STALLED);
    }
    assert_int_equal(allocations, made);
    counting = false;
    blackbox_free(b);
}

// ---- the ring -------------------------------------------------------------------------

static struct blackbox_record *room(const struct blackbox *b)
{
    struct blackbox_record *r = malloc(blackbox_record_bytes(b));

    assert_non_null(r);
    return r;
}

// Every word of a record follows from its number.
static void fill(struct blackbox *b, uint64_t number)
{
    uint64_t *word = (uint64_t *)(void *)blackbox_tick(b);

    for (size_t i = 0; i < b->words; i++)
        word[i] = number * (2 * i + 1);
}

static uint64_t torn_words(const struct blackbox *b, const struct blackbox_record *r,
                           uint64_t number)
{
    const uint64_t *word = (const uint64_t *)(const void *)r;
    uint64_t torn = 0;

    for (size_t i = 0; i < b->words; i++)
        torn += word[i] != number * (2 * i + 1);
    return torn;
}

static void commits_and_reads(void **state)
{
    (void)state;
    struct blackbox *b;
    struct blackbox_record *r;

    assert_int_equal(blackbox_new(&b, 2, 1, 10), 0);
    r = room(b);
    assert_int_equal(blackbox_record_bytes(b),
                     sizeof *r + 2 * sizeof(struct blackbox_joint));
    assert_false(blackbox_read(b, 0, r));
    assert_false(blackbox_at(b, 0, r));
    fill(b, 1);
    assert_false(blackbox_read(b, 0, r)); // not committed yet
    blackbox_commit(b, REASON_NONE);
    assert_true(blackbox_read(b, 0, r));
    assert_int_equal(torn_words(b, r, 1), 0);
    assert_false(blackbox_read(b, 1, r));
    fill(b, 2);
    blackbox_commit(b, REASON_NONE);
    assert_true(blackbox_read(b, 1, r));
    assert_int_equal(torn_words(b, r, 1), 0);
    assert_true(blackbox_at(b, 2, r));
    assert_int_equal(torn_words(b, r, 2), 0);
    assert_false(blackbox_at(b, 3, r));
    assert_false(blackbox_read(b, 2, r));
    assert_false(blackbox_read(b, 3, r));
    assert_false(blackbox_read(b, UINT64_MAX, r));
    assert_int_equal(blackbox_count(b), 2);

    const unsigned char *bytes = (const unsigned char *)blackbox_tick(b);
    for (size_t i = 0; i < blackbox_record_bytes(b); i++)
        assert_int_equal(bytes[i], 0); // nothing of the tick before
    free(r);
    blackbox_free(b);
    blackbox_free(NULL);
}

// Five seconds and one are there, older ones are refused.
static void overtaken(void **state)
{
    (void)state;
    struct blackbox *b;
    struct blackbox_record *r;

    assert_int_equal(blackbox_new(&b, 1, 0, 10), 0);
    r = room(b);
    for (uint64_t n = 1; n <= 1000; n++) {
        fill(b, n);
        blackbox_commit(b, REASON_NONE);
        for (uint64_t k = 1; k <= n; k += 7) {
            bool there = blackbox_at(b, k, r);

            if (n - k <= 60)
                assert_true(there);
            if (n - k >= b->capacity)
                assert_false(there);
            if (there)
                assert_int_equal(torn_words(b, r, k), 0);
        }
    }
    free(r);
    blackbox_free(b);
}

static void bad_sizes(void **state)
{
    (void)state;
    struct blackbox *b;

    assert_int_equal(blackbox_new(&b, 0, 1, 100), -EINVAL);
    assert_int_equal(blackbox_new(&b, ACTD_MAX_JOINTS + 1, 1, 100), -EINVAL);
    assert_int_equal(blackbox_new(&b, 1, -1, 100), -EINVAL);
    assert_int_equal(blackbox_new(&b, 1, POLICY_MAX_CAMERAS + 1, 100), -EINVAL);
    assert_int_equal(blackbox_new(&b, 1, 1, 0), -EINVAL);
    assert_int_equal(blackbox_new(&b, 1, 1, 0.0 / 0.0), -EINVAL);
    assert_int_equal(blackbox_new(&b, 1, 1, 1e9), -EINVAL);
    assert_null(b);
}

#define TORN_WRITES 400000

static void *write_fast(void *arg)
{
    struct blackbox *b = arg;

    for (uint64_t n = 1; n <= TORN_WRITES; n++) {
        fill(b, n);
        blackbox_commit(b, REASON_NONE);
    }
    return NULL;
}

// A loop that laps its reader again and again: what is read is whole, or refused.
static void never_torn(void **state)
{
    (void)state;
    struct blackbox *b;
    struct blackbox_record *r;
    pthread_t t;
    uint64_t read = 0, refused = 0, torn = 0, count = 0;

    assert_int_equal(blackbox_new(&b, 4, 1, 1), 0); // 8 records
    r = room(b);
    assert_int_equal(pthread_create(&t, NULL, write_fast, b), 0);
    while (count < TORN_WRITES) {
        count = blackbox_count(b);
        for (uint64_t back = 0; back < b->capacity && back < count; back++) {
            if (!blackbox_at(b, count - back, r)) {
                refused++;
                continue;
            }
            read++;
            torn += torn_words(b, r, count - back);
        }
    }
    pthread_join(t, NULL);
    assert_true(read > 100);
    assert_true(refused > 100);
    assert_int_equal(torn, 0);
    free(r);
    blackbox_free(b);
}

static void first_fault_waits(void **state)
{
    (void)state;
    struct blackbox *b;

    assert_int_equal(blackbox_new(&b, 1, 0, 10), 0);
    blackbox_commit(b, REASON_NONE);
    assert_int_equal(b->pending, 0);
    blackbox_commit(b, REASON_CAMERA_STALE);
    blackbox_commit(b, REASON_NONE);
    blackbox_commit(b, REASON_ESTOP);
    blackbox_trigger(b, REASON_LOOP_STALLED);
    blackbox_trigger(b, REASON_NONE);
    assert_int_equal(blackbox_fault_reason(b->pending), REASON_CAMERA_STALE);
    assert_int_equal(blackbox_fault_number(b->pending), 2);
    assert_int_equal(b->superseded, 2);
    blackbox_free(b);
}

// ---- a line ---------------------------------------------------------------------------

static char line[1 << 17];

static const char *header(const struct blackbox_columns *c)
{
    struct blackbox_text t = {.data = line, .size = sizeof line - 1};

    blackbox_csv_header(&t, c);
    line[t.n] = 0;
    return line;
}

static const char *text_of(const struct blackbox_columns *c,
                           const struct blackbox_record *r, ns_t zero_ns)
{
    struct blackbox_text t = {.data = line, .size = sizeof line - 1};

    blackbox_csv_row(&t, c, r, zero_ns);
    line[t.n] = 0;
    return line;
}

#define BEFORE                                                                    \
    "tick,time_s,monotonic_s,lateness_us,tick_us,mode,reason,latched,conditions," \
    "degraded,gate,published,sequence,joint_number,joint_age_ms,"
#define AFTER "target_rc,chunk_id,chunk_row,blended"
#define JOINT(n)                                                          \
    "," n ".measured," n ".measured_vel," n ".target," n ".target_vel," n \
    ".commanded," n ".commanded_vel," n ".seam," n ".limit"
#define QUOTED(n)                                                                   \
    ",\"" n ".measured\",\"" n ".measured_vel\",\"" n ".target\",\"" n              \
    ".target_vel\",\"" n ".commanded\",\"" n ".commanded_vel\",\"" n ".seam\",\"" n \
    ".limit\""

static void header_line(void **state)
{
    (void)state;
    const char *const joint[] = {"elbow", "wrist/roll"};
    const char *const camera[] = {"top", "a,b"};
    const char *const strange[] = {"say \"hi\"", " blank", "two\nlines"};
    struct blackbox_columns c = {2, 2, joint, camera};

    assert_string_equal(header(&c), BEFORE "top.age_ms,\"a,b.age_ms\"," AFTER JOINT(
                                        "elbow") JOINT("wrist/roll") "\n");
    c = (struct blackbox_columns){3, 0, strange, NULL};
    assert_string_equal(header(&c), BEFORE AFTER QUOTED("say \"\"hi\"\"") QUOTED(" blank")
                                        QUOTED("two\nlines") "\n");
}

static void row_line(void **state)
{
    (void)state;
    const char *const joint[] = {"elbow"};
    const char *const camera[] = {"top", "wrist"};
    struct blackbox_columns c = {1, 2, joint, camera};
    struct blackbox_record *r = calloc(1, sizeof *r + sizeof(struct blackbox_joint));

    assert_non_null(r);
    *r = (struct blackbox_record){
        .tick = 4711,
        .now_ns = 12 * NS_PER_S + 5,
        .lateness_ns = 1234567,
        .tick_ns = 8500,
        .conditions = LADDER_C_STARTED | LADDER_C_JOINTS_STALE | LADDER_C_REQ_STOP,
        .mode = LADDER_STOPPING,
        .reason = REASON_JOINTS_STALE,
        .latched = 1u << REASON_JOINTS_STALE | 1u << REASON_OPERATOR,
        .degraded = true,
        .sequence = UINT64_MAX,
        .joint_number = 9,
        .joint_age_ns = 100000001,
        .camera_age_ns = {-1500000, BLACKBOX_NO_AGE},
        .target_rc = -61,
        .chunk_id = 3,
        .chunk_row = 7.25,
        .blended = 4};
    r->joint[0] = (struct blackbox_joint){.measured = -0.125,
                                          .measured_vel = 0.0 / 0.0,
                                          .target = 1e300,
                                          .target_vel = -1.0 / 0.0,
                                          .commanded = 0.1,
                                          .commanded_vel = -1e-11,
                                          .seam = 2,
                                          .limit = GUARD_VELOCITY};
    assert_string_equal(
        text_of(&c, r, 12 * NS_PER_S + 15),
        "4711,-0.00000001,12.000000005,1234.567,8.5,STOPPING,JOINTS_STALE,"
        "JOINTS_STALE|OPERATOR,STARTED|JOINTS_STALE|REQ_STOP,1,passed,0,"
        "18446744073709551615,9,100.000001,-1.5,,-61,3,7.25,4,"
        "-0.125,nan,1e+300,-inf,0.1,0,2,VELOCITY\n");

    memset(r, 0, sizeof *r + sizeof(struct blackbox_joint));
    r->conditions = UINT64_C(1) << 63; // no name: its number
    assert_non_null(strstr(text_of(&c, r, 0), ",NONE,,63,0,passed,0,0,0,,0,0,0,0,0,0,"));
    free(r);
}

// Every condition of the ladder has its name: the header is read again, as text.
// The whole file at once: a #define may go on in the next line.
static void every_condition_has_a_name(void **state)
{
    (void)state;
    FILE *f = fopen("daemon/ladder.h", "r");
    static char text[65536];
    char name[64];
    size_t n;
    int bit, seen = 0, uses = 0;

    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    assert_true(n > 0 && n < sizeof text - 1);
    for (char *c = text; (c = strstr(c, "\\\n")) != NULL;)
        c[0] = c[1] = ' ';
    for (char *c = text; (c = strstr(c, "#define LADDER_C_")) != NULL; c++) {
        assert_int_equal(
            sscanf(c, "#define LADDER_C_%63[A-Z0-9_] LADDER_BIT(%d)", name, &bit), 2);
        seen++;
        if (blackbox_condition_name(LADDER_BIT(bit)) == NULL)
            fail_msg("LADDER_C_%s has no name in blackbox_csv.c", name);
        assert_string_equal(blackbox_condition_name(LADDER_BIT(bit)), name);
    }
    for (char *c = text; (c = strstr(c, "LADDER_BIT(")) != NULL; c++)
        uses++;
    assert_int_equal(seen, uses - 1); // but the macro itself: none was overlooked
    assert_null(blackbox_condition_name(LADDER_BIT(63)));
    assert_null(blackbox_condition_name(0));
}

static const char *const many[ACTD_MAX_JOINTS] = {
    "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a",
    "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a"};

// The longest line there can be fits the room that the writer keeps for it, and no line
// writes beyond what it is given.
static void room_for_any_line(void **state)
{
    (void)state;
    struct blackbox_columns c = {ACTD_MAX_JOINTS, POLICY_MAX_CAMERAS, many, many};
    size_t bytes =
        sizeof(struct blackbox_record) + ACTD_MAX_JOINTS * sizeof(struct blackbox_joint);
    struct blackbox_record *r = calloc(1, bytes);
    struct blackbox_text t = {.data = line, .size = sizeof line};

    assert_non_null(r);
    r->tick = r->conditions = r->latched = r->sequence = r->chunk_id = UINT64_MAX;
    r->joint_number = UINT64_MAX;
    r->now_ns = r->lateness_ns = r->tick_ns = r->joint_age_ns = INT64_MIN + 1;
    r->mode = LADDER_APPROACH;
    r->reason = REASON_POLICY_OUT_OF_RANGE;
    r->target_rc = r->blended = INT32_MIN;
    r->chunk_row = -999999999.111111111;
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        r->camera_age_ns[i] = INT64_MIN + 1;
    for (int j = 0; j < ACTD_MAX_JOINTS; j++)
        r->joint[j] = (struct blackbox_joint){.measured = -999999999.111111111,
                                              .measured_vel = -999999999.111111111,
                                              .target = -999999999.111111111,
                                              .target_vel = -1.23456789e-300,
                                              .commanded = -1.23456789e300,
                                              .commanded_vel = -999999999.111111111,
                                              .seam = -999999999.111111111,
                                              .limit = GUARD_ACCELERATION};
    blackbox_csv_row(&t, &c, r, 0);
    assert_true(t.n > 5000);
    assert_true(t.n < BLACKBOX_ROW_MAX);
    for (size_t size = 0; size < t.n; size += 37) {
        struct blackbox_text small = {.data = line, .size = size};

        line[size] = '#';
        blackbox_csv_row(&small, &c, r, 0);
        blackbox_csv_header(&small, &c);
        assert_true(small.n <= size);
        assert_int_equal(line[size], '#');
    }
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocates_nothing),
        cmocka_unit_test(commits_and_reads),
        cmocka_unit_test(overtaken),
        cmocka_unit_test(bad_sizes),
        cmocka_unit_test(never_torn),
        cmocka_unit_test(first_fault_waits),
        cmocka_unit_test(header_line),
        cmocka_unit_test(row_line),
        cmocka_unit_test(every_condition_has_a_name),
        cmocka_unit_test(room_for_any_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
