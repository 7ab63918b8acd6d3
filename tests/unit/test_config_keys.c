// config_keys: the table of keys against its own bounds, and the shipped files and the
// man page against the table.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/config.h"
#include "daemon/config_keys.h"
#include "daemon/ladder.h"

static char file_text[YTREE_MAX_BYTES + 1];

static size_t slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t n;

    if (!f)
        fail_msg("%s: cannot open; run from the top of the tree", path);
    n = fread(file_text, 1, sizeof file_text - 1, f);
    file_text[n] = '\0';
    fclose(f);
    return n;
}

static int parse(struct config *cfg, const char *text, struct config_error *err)
{
    err->text[0] = '\0';
    return config_parse(cfg, "r.yaml", text, strlen(text), err);
}

// ---- the table ------------------------------------------------------------------------

// A whole valid file in which one key of one section has the value `text`.
static const char *file_with(const struct config_key *k, const char *text)
{
    static char out[4096];
    static const char *const rest[] = {
        "joint_state", "rate_hz",      "100",     "policy",  "directory", "/p",
        "cameras",     "key",          "im",      "cameras", "rate_hz",   "30",
        "joints",      "position",     "[-1, 1]", "joints",  "velocity",  "1",
        "joints",      "acceleration", "5",       "",        "runtime",   "/tmp/r"};
    size_t n = 0;

    for (int s = 0; s < config_sections; s++) {
        const char *name = config_section[s].name;
        bool each = config_section[s].scope != SCOPE_CONFIG;
        const char *indent = each ? "    " : *name ? "  " : "";
        if (*name)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s:\n%s", name,
                                  each ? "  x:\n" : "");
        for (size_t i = 0; i < sizeof rest / sizeof *rest; i += 3)
            if (strcmp(rest[i], name) == 0 &&
                !(strcmp(k->section, name) == 0 && strcmp(k->name, rest[i + 1]) == 0))
                n += (size_t)snprintf(out + n, sizeof out - n, "%s%s: %s\n", indent,
                                      rest[i + 1], rest[i + 2]);
        if (strcmp(k->section, name) == 0)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s%s: %s\n", indent, k->name,
                                  text);
    }
    return out;
}

// Refused, and the sentence names the key.
static void refused(const struct config_key *k, const char *text)
{
    struct config_error err;
    struct config cfg;
    char path[100];

    config_key_path(
        k, strcmp(k->section, "cameras") && strcmp(k->section, "joints") ? "" : "x", path,
        sizeof path);
    if (parse(&cfg, file_with(k, text), &err) != -EINVAL || !strstr(err.text, path))
        fail_msg("%s: %s: got '%s'", path, text, err.text);
}

static void accepted(const struct config_key *k, const char *text)
{
    struct config_error err;
    struct config cfg;
    // Values that are right by themselves but contradict the rest of this file are
    // checked in a test of their own.
    static const char *const by_others[] = {"two control periods", "other than 0",
                                            "no effect without", "a pose inside position",
                                            "holds all of position"};

    if (parse(&cfg, file_with(k, text), &err) == 0)
        return;
    for (size_t i = 0; i < sizeof by_others / sizeof *by_others; i++)
        if (strstr(err.text, by_others[i]))
            return;
    fail_msg("%s.%s: %s: %s", k->section, k->name, text, err.text);
}

static void number_bounds(const struct config_key *k)
{
    char text[80];
    bool whole = k->type == KEY_INT;
    double span = k->hi - k->lo;

    for (int i = 0; i < 2; i++) {
        double edge = i ? k->hi : k->lo, step = whole ? 1 : span * 1e-6;
        snprintf(text, sizeof text, "%.12g", edge);
        accepted(k, text);
        snprintf(text, sizeof text, "%.12g", edge + (i ? step : -step));
        refused(k, text);
        snprintf(text, sizeof text, "%.12g", edge + (i ? -step : step));
        accepted(k, text);
    }
    refused(k, "yes");
    refused(k, ".nan");
    refused(k, "0x10");
    refused(k, "\"1\"");
    if (whole)
        refused(k, "1.0");
}

static void range_bounds(const struct config_key *k)
{
    accepted(k, "[-1000, 1000]");
    refused(k, "[-1000.001, 1000]");
    refused(k, "[-1000, 1000.001]");
    refused(k, "[1, 1]");
    refused(k, "[0, .inf]");
}

static void every_key_has_its_bounds(void **state)
{
    (void)state;
    for (int i = 0; i < config_keys; i++) {
        const struct config_key *k = &config_key[i];
        if (k->type == KEY_REAL || k->type == KEY_INT)
            number_bounds(k);
        else if (k->type == KEY_RANGE)
            range_bounds(k);
        for (int w = 0; k->type == KEY_WORD && k->words[w]; w++)
            accepted(k, k->words[w]);
        if (k->type == KEY_BOOL) {
            accepted(k, "true");
            accepted(k, "false");
        }
        if (k->type != KEY_NAME && k->type != KEY_PATH)
            refused(k, "'no such value'");
        refused(k, "EDIT");
        refused(k, "{a: b}");
        refused(k, "");
    }
}

static void texts_have_lengths(void **state)
{
    char text[CONFIG_PATH + 20];

    (void)state;
    for (int i = 0; i < config_keys; i++) {
        const struct config_key *k = &config_key[i];
        if (k->type != KEY_NAME && k->type != KEY_PLACE)
            continue;
        memset(text, 'n', sizeof text);
        text[k->size - 1] = '\0';
        accepted(k, text);
        memset(text, 'n', sizeof text);
        text[k->size] = '\0';
        refused(k, text);
    }
}

static void the_table_is_sound(void **state)
{
    char expected[200], why[400];
    struct config cfg = {0};

    (void)state;
    for (int i = 0; i < config_keys; i++) {
        const struct config_key *k = &config_key[i];
        struct ynode v = {.kind = YNODE_SCALAR, .plain = true};
        char text[64];
        assert_ptr_equal(config_key_find(k->section, k->name), k); // no name twice
        assert_true(*k->doc && k->doc[strlen(k->doc) - 1] == '.');
        assert_true(k->required ? !k->preset && !k->otherwise
                                : !k->preset != !k->otherwise);
        config_key_expected(k, expected, sizeof expected);
        assert_true(*expected);
        if (!k->preset)
            continue;
        snprintf(text, sizeof text, "%s", k->preset);
        v.text = text;
        assert_null(config_key_set(k, &cfg, &v, why, sizeof why));
    }
}

static void numbers_are_decimal_and_finite(void **state)
{
    static const char *const good[] = {"0",      "-0",   "+1",    "1.5",
                                       "-1.5e3", "1e-3", "0.001", "1E+2"};
    static const char *const bad[] = {
        "",    "-",     "+",   ".",     ".5",  "5.",  "1.e3", "01",  "-01",
        "0x1", "0x1p3", "1e",  "1e+",   "inf", "nan", ".inf", "1_0", "1 ",
        " 1",  "1:30",  "1,5", "1e400", "1d3", "--1", "1f"};
    double v;
    int n;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(config_real(good[i], &v));
        assert_true(v == atof(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (config_real(bad[i], &v) || config_int(bad[i], &n))
            fail_msg("'%s' was taken for a number", bad[i]);
    }
    assert_true(config_int("-12", &n) && n == -12);
    assert_false(config_int("1.0", &n));
    assert_false(config_int("1000000001", &n));
    assert_false(config_int("99999999999999999999", &n));
}

static void distances_are_those_of_the_textbook(void **state)
{
    (void)state;
    assert_int_equal(config_distance("kitten", "sitting"), 3);
    assert_int_equal(config_distance("", "abc"), 3);
    assert_int_equal(config_distance("abc", ""), 3);
    assert_int_equal(config_distance("same", "same"), 0);
    assert_int_equal(config_distance("rate_zh", "rate_hz"), 1); // neighbours swapped
    assert_int_equal(config_distance("ca", "abc"), 3); // optimal string alignment
}

// ---- shipped files --------------------------------------------------------------------

static void load_shipped(struct config *cfg, const char *path)
{
    struct config_error err = {""};
    size_t n = slurp(path);

    // An absolute `runtime` keeps these tests apart from the machine they run on.
    setenv("XDG_RUNTIME_DIR", "/tmp", 1);
    if (config_parse(cfg, path, file_text, n, &err))
        fail_msg("%s", err.text);
}

static void shipped_files_load(void **state)
{
    struct config cfg;

    (void)state;
    load_shipped(&cfg, "config/so101.yaml");
    assert_int_equal(cfg.n_joints, 6);
    assert_int_equal(cfg.n_cameras, 2);
    assert_false(cfg.joint[5].blend);
    assert_string_equal(cfg.joint[0].action, "shoulder_pan.pos");
    load_shipped(&cfg, "config/aloha.yaml");
    assert_int_equal(cfg.n_joints, 14);
    assert_int_equal(cfg.n_cameras, 4);
    assert_int_equal(cfg.chunks.mode, CHUNK_ENSEMBLE);
    assert_string_equal(cfg.joint[13].state, "right_gripper");
    load_shipped(&cfg, "config/reach.yaml");
    assert_int_equal(cfg.n_joints, 6);
    load_shipped(&cfg, "config/example.yaml");
    assert_int_equal(cfg.n_joints, 3);
    assert_non_null(strstr(cfg.policy.directory, "/config/policies/mine"));
    assert_true(cfg.policy.directory[0] == '/');
}

// Every key stands in example.yaml, in its section (of cameras and joints: in the first
// entry), and those with a default stand there with it.
static void the_example_shows_every_key_and_its_default(void **state)
{
    struct config_error err = {""};
    struct ytree *t = NULL;
    char hidden[80];
    size_t n = slurp("config/example.yaml");

    (void)state;
    assert_int_equal(ytree_parse(&t, "example.yaml", file_text, n, &err), 0);
    for (int i = 0; i < config_keys; i++) {
        const struct config_key *k = &config_key[i];
        const struct ynode *s = ytree_root(t), *v;
        if (*k->section)
            s = ynode_get(s, k->section);
        if (s &&
            (strcmp(k->section, "cameras") == 0 || strcmp(k->section, "joints") == 0))
            s = s->child;
        v = s ? ynode_get(s, k->name) : NULL;
        snprintf(hidden, sizeof hidden, "  # %s: ", k->name);
        if (!v && (k->preset || !strstr(file_text, hidden))) // shown, but commented out
            fail_msg("example.yaml does not show %s.%s", k->section, k->name);
        if (v && k->preset && strcmp(k->name, "following_error") != 0) // 0 is no example
            assert_string_equal(v->text, k->preset);
    }
    ytree_free(t);
}

// The paragraph of one key as the man page must have it.
static const char *man_block(const struct config_key *k)
{
    static char out[1024];
    char path[120], expected[200], text[800];
    bool each = strcmp(k->section, "cameras") == 0 || strcmp(k->section, "joints") == 0;
    size_t n;

    config_key_path(k, each ? "NAME" : "", path, sizeof path);
    config_key_expected(k, expected, sizeof expected);
    snprintf(text, sizeof text, "%s; %s%s.\n%s\n", expected,
             k->required ? "required" : "default ",
             k->required ? ""
             : k->preset ? k->preset
                         : k->otherwise,
             k->doc);
    n = (size_t)snprintf(out, sizeof out, ".TP\n.B %s\n", path);
    for (const char *p = text; *p && n + 3 < sizeof out; p++) {
        if (*p == '-')
            out[n++] = '\\';
        out[n++] = *p;
    }
    out[n] = '\0';
    return out;
}

static void the_man_page_says_of_every_key_what_the_table_says(void **state)
{
    (void)state;
    slurp("daemon/man/actd.1");
    for (int i = 0; i < config_keys; i++)
        if (!strstr(file_text, man_block(&config_key[i])))
            fail_msg("actd.1 lacks this:\n%s", man_block(&config_key[i]));
}

static void the_man_page_knows_every_state_and_reason(void **state)
{
    char block[80];

    (void)state;
    slurp("daemon/man/actd.1");
    const char *states = strstr(file_text, ".SH STATES\n");
    const char *reasons = strstr(file_text, ".SH REASONS\n");
    assert_true(states && reasons && states < reasons);
    for (int i = LADDER_INIT; i < LADDER_STATES; i++) {
        snprintf(block, sizeof block, ".TP\n.B %s\n",
                 ladder_state_name((enum ladder_state)i));
        const char *at = strstr(states, block);
        if (!at || at > reasons)
            fail_msg("actd.1 lacks the state %s", block);
    }
    for (int i = 0; i < LADDER_REASONS; i++) {
        snprintf(block, sizeof block, ".TP\n.B %s\n",
                 ladder_reason_name((enum ladder_reason)i));
        if (!strstr(reasons, block))
            fail_msg("actd.1 lacks the reason %s", block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_its_bounds),
        cmocka_unit_test(texts_have_lengths),
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(numbers_are_decimal_and_finite),
        cmocka_unit_test(distances_are_those_of_the_textbook),
        cmocka_unit_test(shipped_files_load),
        cmocka_unit_test(the_example_shows_every_key_and_its_default),
        cmocka_unit_test(the_man_page_says_of_every_key_what_the_table_says),
        cmocka_unit_test(the_man_page_knows_every_state_and_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
