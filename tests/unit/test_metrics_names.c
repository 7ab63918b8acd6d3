// The words of metrics: names are escaped, causes are few and stay, helps are sentences, and the
// manual has them all.
#include "tests/unit/metrics_scene.h"

static void names_are_escaped(void **state)
{
    static const char *const name[][2] = {
        {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xc3", "??"},
        {"\xc0\x80\xed\xa0\x80", "?????"},
        {"\xf4\x90\x80\x80\xe0\x80\x80", "???????"},
        {"\x1b[31m\t\x7f", "?[31m??"},
        {"\xe2\x82", "??"},
        {"} 1", "} 1"},
        {"", ""},
    };
    char series[256];

    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        scene((char *)(uintptr_t)name[i][0]);
        write_and_check();
        snprintf(series, sizeof series, "actd_stream_received_total" IN "stream=\"%s\",",
                 name[i][1]);
        assert_true(value_of(series) == 8);
    }
}

// Words for people become a stream and a short cause, whatever they say of the last one.
static void drops_are_bounded_series(void **state)
{
    static const struct {
        char *name;
        const char *stream, *cause;
        double value; // of the series, all that go into it
    } drop[] = {
        {"front frames refused (width 3)", "front", "refused", 11},
        {"front frames refused (format x) (y)", "front", "refused", 11},
        {"front frames 50 ms late, or the sender's clock moved", "front", "late", 12},
        {"front frames out of order", "front", "out_of_order", 13},
        {"front frames bitten by \"ferrets\"\n (x)", "front", "bitten_by_ferrets", 14},
        {"joint states 50 ms late, or the sender's clock moved", "joints", "late", 15},
        {"joint states refused ()", "joints", "refused", 16},
        {"joint statesrefused", "", "joint_statesrefused", 17},
        {"front frames", "", "front_frames", 18},
        {"chunk too old", "", "chunk_too_old", 19},
        {"inference cameras too far apart", "", "inference_skew", 20},
        {"inference failed (no \xff)", "", "inference_failed", 21},
        {"sets of this machine's wall clock", "", "wall_clock_set", 22},
        {" \xe2\x82\xac -- ", "", "other", 23},
        {"Abc  D__9 ", "", "abc_d_9", 24},
        {"a cause with a very, very long name that somebody made up one day", "",
         "a_cause_with_a_very_very_long_name_that_somebod", 25},
    };
    enum { N = sizeof drop / sizeof *drop };
    char series[256];

    (void)state;
    scene("front");
    FILL(drop, drops, N, actd__v1__counter__init,
         (w.drop[i].name = drop[i].name, w.drop[i].value = 10 + i));
    w.drop[0].value = 0;
    write_and_check();
    for (int i = 0; i < N; i++) {
        snprintf(series, sizeof series,
                 "actd_drops_total" IN "stream=\"%s\",cause=\"%s\",", drop[i].stream,
                 drop[i].cause);
        if (value_of(series) != drop[i].value)
            fail_msg("%s is %g", series, value_of(series));
    }
    for (int i = 0; i < n_samples; i++) // nothing but letters, digits and '_'
        if (strcmp(sample[i].name, "actd_drops_total") == 0) {
            const char *cause = strstr(sample[i].series, "cause=\"") + strlen("cause=\"");
            size_t n = strspn(cause, "abcdefghijklmnopqrstuvwxyz0123456789_");

            assert_true(n > 0 && n < 48 && strcmp(cause + n, "\",") == 0);
        }
}

// A series that begins at 1 hides its first event from rate().
static void drops_are_there_before_the_first(void **state)
{
    static const char *const none[] = {"duplicate", "late", "out_of_order", "refused"};
    int n = 0;

    (void)state;
    scene("front");
    write_and_check();
    for (int i = 0; i < n_samples; i++)
        if (strcmp(sample[i].name, "actd_drops_total") == 0) {
            assert_true(sample[i].value == 0);
            n++;
        }
    assert_int_equal(n, 4 + 6 + 20);
    for (int i = 0; i < 4; i++) {
        char series[128];

        snprintf(series, sizeof series,
                 "actd_drops_total" IN "stream=\"joints\",cause=\"%s\",", none[i]);
        assert_true(value_of(series) == 0);
    }
    assert_true(
        value_of("actd_drops_total" IN "stream=\"front\",cause=\"superseded\",") == 0);
}

// A camera may be called so. Two series of one name would spoil the whole scrape.
static void a_camera_called_joints_is_another_stream(void **state)
{
    (void)state;
    scene("joints");
    w.m.n_joints = w.m.n_seams = 1;
    FILL(drop, drops, 2, actd__v1__counter__init,
         (w.drop[i].name = i ? "joints frames corrupt" : "joint states duplicate",
          w.drop[i].value = 5 + i));
    write_and_check();
    assert_true(value_of("actd_stream_received_total" IN "stream=\"joints\",") == 7);
    assert_true(value_of("actd_stream_received_total" IN "stream=\"joints (camera)\",") ==
                8);
    assert_true(
        value_of("actd_drops_total" IN "stream=\"joints\",cause=\"duplicate\",") == 5);
    assert_true(value_of("actd_drops_total" IN
                         "stream=\"joints (camera)\",cause=\"corrupt\",") == 6);
}

// Every family, label and cause is in the manual, and the manual has no family that is not there.
static void the_manual_has_them_all(void **state)
{
    static char manual[256 * 1024];
    FILE *f = fopen("daemon/man/actd.1", "r");
    char word[128], *at;
    int told = 0;

    (void)state;
    assert_non_null(f);
    manual[fread(manual, 1, sizeof manual - 1, f)] = '\0';
    fclose(f);
    at = strstr(manual, ".SH METRICS\n");
    assert_non_null(at);
    strstr(at + 1, "\n.SH ")[1] = '\0';
    scene("front");
    write_and_check();
    for (int i = 0; i < n_families; i++) {
        snprintf(word, sizeof word, "\n.B %s\n", family[i]);
        if (!strstr(at, word))
            fail_msg("no %s in the manual", family[i]);
    }
    for (char *p = at; (p = strstr(p, "\n.B actd_")) != NULL; p++)
        told++;
    assert_int_equal(told, n_families);
    for (int i = 0; i < n_samples; i++) {
        const char *cause = strstr(sample[i].series, "cause=\"");

        if (!cause)
            continue;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(cause + 7, "\""), cause + 7);
        if (!strstr(at, word))
            fail_msg("no cause %s in the manual", word);
    }
    assert_non_null(strstr(at, "honor_labels: true"));
}

// Who reads it sees this in a menu: a sentence, and the words of the manual.
static void help_is_a_sentence(void **state)
{
    (void)state;
    scene("front");
    write_and_check();
    for (const char *p = text; (p = strstr(p, "# HELP ")) != NULL;) {
        const char *help = strchr(p + strlen("# HELP "), ' ') + 1;
        size_t n = strcspn(help, "\n");

        if (n < 10 || help[n - 1] != '.' ||
            !(isupper((unsigned char)*help) || *help == '1'))
            fail_msg("%.*s", (int)n, help);
        p = help + n;
    }
    assert_non_null(strstr(text, "# HELP actd_policy_info The policy in use; "));
    assert_null(strstr(text, "thinks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(drops_are_bounded_series),
        cmocka_unit_test(drops_are_there_before_the_first),
        cmocka_unit_test(a_camera_called_joints_is_another_stream),
        cmocka_unit_test(the_manual_has_them_all),
        cmocka_unit_test(help_is_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
