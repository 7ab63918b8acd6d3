// config: the corpus of bad files, what is derived from what, the sidecar, and what
// becomes of it all for the loop.
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/config.h"
#include "daemon/config_keys.h"
#include "daemon/config_loop.h"

#define CORPUS "tests/data/config"

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

// ---- the corpus -----------------------------------------------------------------------

// Each file's first line says "# expect LINE:COLUMN: KEY: BEGINNING OF THE SENTENCE".
static bool corpus_case(const char *name)
{
    char path[300], expected[400];
    struct config_error err = {""};
    struct config_sidecar side;
    struct config cfg;
    int rc;

    snprintf(path, sizeof path, CORPUS "/%.200s", name);
    size_t n = slurp(path);
    if (strncmp(file_text, "# expect ", 9) != 0)
        fail_msg("%s: first line must say what to expect", path);
    snprintf(expected, sizeof expected, "%.200s:%.*s", name,
             (int)strcspn(file_text + 9, "\n"), file_text + 9);
    if (strncmp(name, "policy_", 7) == 0)
        rc = config_sidecar_parse(&side, name, file_text, n, &err);
    else
        rc = config_parse(&cfg, name, file_text, n, &err);
    if (rc == -EINVAL && strncmp(err.text, expected, strlen(expected)) == 0)
        return true;
    print_error("%s: got %d '%s'\n  expected '%s'\n", name, rc, err.text, expected);
    return false;
}

static void every_bad_file_is_refused_where_it_is_bad(void **state)
{
    DIR *d = opendir(CORPUS);
    int good = 0, bad = 0;

    (void)state;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0)
            continue;
        if (corpus_case(e->d_name))
            good++;
        else
            bad++;
    }
    closedir(d);
    print_message("%d bad files refused as expected\n", good);
    assert_int_equal(bad, 0);
    assert_true(good >= 60);
}

// ---- what is derived ------------------------------------------------------------------

#define SMALL                                                                 \
    "policy:\n  directory: p/q\njoint_state:\n  rate_hz: 50\njoints:\n  a:\n" \
    "    position: [-1, 2]\n    velocity: 3\n    acceleration: 4\n"

static void defaults_are_those_of_the_table(void **state)
{
    struct config_error err;
    struct config cfg;

    (void)state;
    assert_int_equal(parse(&cfg, "runtime: /tmp/r\n" SMALL, &err), 0);
    assert_string_equal(cfg.instance, "default");
    assert_string_equal(cfg.joint_state.endpoint, "ipc:///tmp/r/joints.state");
    assert_string_equal(cfg.joint_command.endpoint, "ipc:///tmp/r/joints.command");
    assert_string_equal(cfg.status.endpoint, "ipc:///tmp/r/status");
    assert_true(cfg.joint_state.bind && cfg.joint_command.bind && cfg.status.bind);
    assert_true(cfg.control.rate_hz == 100 && cfg.control.cpu == -1);
    assert_true(!cfg.control.require_rt && cfg.control.lock_memory);
    assert_true(cfg.policy.threads >= 1 && cfg.policy.threads <= 8);
    assert_int_equal(cfg.policy.resize, POLICY_RESIZE_REFUSE);
    assert_int_equal(cfg.inference.trigger, TRIGGER_ROWS);
    assert_int_equal(cfg.chunks.mode, CHUNK_CROSSFADE);
    assert_int_equal(cfg.chunks.interpolation, CHUNK_LINEAR);
    assert_true(isnan(cfg.chunks.ensemble_coeff) && isnan(cfg.joint[0].scale));
    assert_true(cfg.safety.hold_ms == 200 && cfg.safety.fresh_ticks == 50 &&
                cfg.safety.approach_speed == 0.25 && cfg.safety.max_stats_z == 6);
    assert_string_equal(cfg.joint[0].state, "a");
    assert_string_equal(cfg.joint[0].action, "a");
    assert_true(cfg.joint[0].stop_acceleration == 4 && cfg.joint[0].jerk == 0);
    assert_true(cfg.joint[0].min == -1 && cfg.joint[0].max == 2 && cfg.joint[0].blend);
}

static void words_mean_what_they_say(void **state)
{
    static const struct {
        const char *word;
        int mode;
    } mode[] = {
        {"replace", CHUNK_REPLACE},          {"crossfade", CHUNK_CROSSFADE},
        {"ensemble", CHUNK_ENSEMBLE},        {"weighted_average", CHUNK_WEIGHTED_AVERAGE},
        {"latest_only", CHUNK_LATEST_ONLY},  {"average", CHUNK_AVERAGE},
        {"conservative", CHUNK_CONSERVATIVE}};
    struct config_error err;
    struct config cfg;
    char text[600];

    (void)state;
    for (size_t i = 0; i < sizeof mode / sizeof *mode; i++) {
        snprintf(text, sizeof text, "runtime: /tmp/r\nchunks:\n  mode: %s\n" SMALL,
                 mode[i].word);
        assert_int_equal(parse(&cfg, text, &err), 0);
        assert_int_equal(cfg.chunks.mode, mode[i].mode);
    }
    assert_int_equal(parse(&cfg,
                           "runtime: /tmp/r\nchunks:\n  interpolation: cubic\n"
                           "inference:\n  trigger: rows\n" SMALL,
                           &err),
                     0);
    assert_int_equal(cfg.chunks.interpolation, CHUNK_CUBIC);
    assert_int_equal(cfg.inference.trigger, TRIGGER_ROWS);
    snprintf(text, sizeof text,
             "runtime: /tmp/r\npolicy:\n  resize: letterbox\n  precision: int8\n"
             "  directory: /d\n%s",
             strstr(SMALL, "joint_state:"));
    assert_int_equal(parse(&cfg, text, &err), 0);
    assert_int_equal(cfg.policy.resize, POLICY_RESIZE_LETTERBOX);
    assert_int_equal(cfg.policy.precision, PRECISION_INT8);
    assert_string_equal(cfg.policy.directory, "/d");
}

static void sockets_live_where_they_may(void **state)
{
    struct config_error err;
    struct config cfg;

    (void)state;
    setenv("RUNTIME_DIRECTORY", "/run/actd/right:/run/other", 1); // by a service manager
    assert_int_equal(parse(&cfg, "instance: left\n" SMALL, &err), 0);
    assert_string_equal(cfg.runtime, "/run/actd/right");
    assert_string_equal(cfg.instance, "left");
    assert_int_equal(parse(&cfg, SMALL, &err), 0);
    assert_string_equal(cfg.instance, "right");
    unsetenv("RUNTIME_DIRECTORY");
    setenv("XDG_RUNTIME_DIR", "/tmp/user", 1);
    assert_int_equal(parse(&cfg, "instance: left\n" SMALL, &err), 0);
    bool ours =
        access("/run/actd", W_OK) == 0 ||
        (geteuid() == 0 && access("/run/actd", F_OK) != 0 && access("/run", W_OK) == 0);
    assert_string_equal(cfg.runtime, ours ? "/run/actd/left" : "/tmp/user/actd/left");
    unsetenv("XDG_RUNTIME_DIR");
    if (!ours) {
        assert_int_equal(parse(&cfg, SMALL, &err), -EINVAL);
        assert_non_null(strstr(err.text, "runtime: "));
    }
}

static void an_empty_section_is_no_error(void **state)
{
    struct config_error err;
    struct config cfg;

    (void)state;
    assert_int_equal(
        parse(&cfg, "runtime: /tmp/r\ncontrol:\n  # rate_hz: 5\n" SMALL, &err), 0);
    assert_true(cfg.control.rate_hz == 100);
}

static void counts_are_bounded(void **state)
{
    static char text[8192];
    struct config_error err;
    struct config cfg;
    size_t n;

    (void)state;
    for (int joints = ACTD_MAX_JOINTS; joints <= ACTD_MAX_JOINTS + 1; joints++) {
        n = (size_t)snprintf(text, sizeof text,
                             "runtime: /tmp/r\npolicy: {directory: /p}\n"
                             "joint_state: {rate_hz: 50}\njoints:\n");
        for (int i = 0; i < joints; i++)
            n += (size_t)snprintf(
                text + n, sizeof text - n,
                "  j%d: {position: [-1, 1], velocity: 1, acceleration: 1}\n", i);
        assert_int_equal(parse(&cfg, text, &err), joints > ACTD_MAX_JOINTS ? -EINVAL : 0);
    }
    assert_non_null(strstr(err.text, "r.yaml:37:3: joints: more than 32 joints"));
    n = (size_t)snprintf(text, sizeof text, "runtime: /tmp/r\n" SMALL "cameras:\n");
    for (int i = 0; i < 17; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "  c%d: {key: k%d, rate_hz: 5}\n", i, i);
    assert_int_equal(parse(&cfg, text, &err), -EINVAL);
    assert_non_null(strstr(err.text, "cameras: more than 16 cameras"));
}

// ---- control socket, swap, metrics ----------------------------------------------------

static void operators_swap_and_metrics_have_defaults(void **state)
{
    struct config_error err;
    struct config cfg;
    char here[CONFIG_PATH], want[2 * CONFIG_PATH];

    (void)state;
    assert_int_equal(parse(&cfg, "runtime: /tmp/r\n" SMALL, &err), 0);
    assert_string_equal(cfg.operators.socket, "/tmp/r/control");
    assert_string_equal(cfg.operators.act, "@actd-operators\n");
    assert_string_equal(cfg.operators.read, "@actd-clients\n");
    assert_string_equal(cfg.swap.directory, "");
    assert_true(cfg.swap.max_difference == 0.3 && cfg.swap.fade_ms == 500);
    assert_int_equal(cfg.swap.trials, 5);
    assert_int_equal(cfg.policy.precision, PRECISION_FLOAT32);
    assert_true(cfg.policy.max_deviation == 0.02);
    assert_string_equal(cfg.metrics.listen, "");
    assert_int_equal(parse(&cfg,
                           "runtime: /tmp/r\nswap: {directory: no/such}\n"
                           "operators: {socket: /tmp/c}\n" SMALL,
                           &err),
                     0);
    assert_non_null(getcwd(here, sizeof here));
    snprintf(want, sizeof want, "%s/no/such", here); // absolute, and nobody has looked
    assert_string_equal(cfg.swap.directory, want);
    assert_string_equal(cfg.operators.socket, "/tmp/c");
}

static void nothing_is_recorded_by_default(void **state)
{
    struct config_error err;
    struct config cfg;

    (void)state;
    assert_int_equal(parse(&cfg, "runtime: /tmp/r\n" SMALL, &err), 0);
    assert_int_equal(cfg.record.mode, RECORD_OFF);
    assert_int_equal(cfg.record.compression, COMPRESSION_ZSTD);
    assert_string_equal(cfg.record.directory, "");
    assert_true(cfg.record.frames && cfg.record.segment_mb == 512 &&
                cfg.record.segment_minutes == 10 && cfg.record.keep_free_mb == 1024 &&
                cfg.record.most_mb == 0 && cfg.record.before_s == 10 &&
                cfg.record.after_s == 5 && cfg.record.memory_mb == 256);
    assert_int_equal(parse(&cfg,
                           "runtime: /tmp/r\nrecord: {mode: trigger, directory: /d, "
                           "compression: lz4, frames: false, before_s: 2.5}\n" SMALL,
                           &err),
                     0);
    assert_int_equal(cfg.record.mode, RECORD_TRIGGER);
    assert_int_equal(cfg.record.compression, COMPRESSION_LZ4);
    assert_string_equal(cfg.record.directory, "/d");
    assert_true(!cfg.record.frames && cfg.record.before_s == 2.5);
}

static void names_are_kept_in_lines(void **state)
{
    static const struct {
        const char *value, *lines; // NULL = refused
    } cases[] = {
        {"anna", "anna\n"},
        {"\"@lab\"", "@lab\n"},
        {"[anna, \"@lab\", 1000, \"@4294967294\"]", "anna\n@lab\n1000\n@4294967294\n"},
        {"[]", ""},
        {"'LAB\\anna'", "LAB\\anna\n"},
        {"[anna@lab.org, svc_1$, _x-y.z]", "anna@lab.org\nsvc_1$\n_x-y.z\n"},
        {"\"@\"", NULL},
        {"[anna, anna]", NULL},
        {"[[anna]]", NULL},
        {"{anna: x}", NULL},
        {"4294967295", NULL},
        {"\"@4294967295\"", NULL},
        {"0123", NULL},
        {"1x", NULL},
        {"-1", NULL},
        {"'a b'", NULL},
        {"'a,b'", NULL},
        {"\"a\\nb\"", NULL},
        {"\"@@lab\"", NULL},
        {"'/etc'", NULL},
        {"EDIT", NULL},
        {"[anna, EDIT]", NULL},
    };
    struct config_error err;
    struct config cfg;
    char text[600];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "runtime: /tmp/r\noperators:\n  act: %s\n" SMALL,
                 cases[i].value);
        int rc = parse(&cfg, text, &err);
        if (rc != (cases[i].lines ? 0 : -EINVAL))
            fail_msg("%s: %d '%s'", cases[i].value, rc, err.text);
        if (cases[i].lines)
            assert_string_equal(cfg.operators.act, cases[i].lines);
        else
            assert_non_null(strstr(err.text, "r.yaml:3:"));
    }
}

static void a_list_of_names_is_bounded(void **state)
{
    static char text[4096];
    struct config_error err;
    struct config cfg;

    (void)state;
    for (int names = CONFIG_NAMES; names <= CONFIG_NAMES + 1; names++) {
        size_t n = (size_t)snprintf(text, sizeof text,
                                    "runtime: /tmp/r\n" SMALL "operators:\n  read: [");
        for (int i = 0; i < names; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%su%d", i ? ", " : "", i);
        snprintf(text + n, sizeof text - n, "]\n");
        assert_int_equal(parse(&cfg, text, &err), names > CONFIG_NAMES ? -EINVAL : 0);
    }
    size_t n = (size_t)snprintf(text, sizeof text,
                                "runtime: /tmp/r\n" SMALL "operators:\n  read: [");
    for (int i = 0; i < 17; i++) // 17 times 61 bytes are more than CONFIG_LIST
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%c%059d", i ? ", " : "",
                              'a' + i, 0);
    snprintf(text + n, sizeof text - n, "]\n");
    assert_int_equal(parse(&cfg, text, &err), -EINVAL);
}

static void metrics_are_served_on_this_machine_only(void **state)
{
    static const char *const good[] = {"127.0.0.1:9464", "127.255.0.9:1", "[::1]:65535"};
    static const char *const bad[] = {
        "0.0.0.0:9464",  "localhost:9464",   "127.0.0.1",     "127.0.0.1:0",
        "[::]:9464",     "127.0.0.1:65536",  "127.1:9464",    "127.0.0.1.x:9464",
        "::1:9464",      "128.0.0.1:9464",   "127.0.0.1:-1",  "127.0.0.1:+1",
        "127.0.0.1:094", "127.0.0.1:9464/x", "127.0.0.256:1", "9464"};
    struct config_error err;
    struct config cfg;
    char text[600];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "runtime: /tmp/r\nmetrics:\n  listen: '%s'\n" SMALL,
                 good[i]);
        assert_int_equal(parse(&cfg, text, &err), 0);
        assert_string_equal(cfg.metrics.listen, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "runtime: /tmp/r\nmetrics:\n  listen: '%s'\n" SMALL,
                 bad[i]);
        if (parse(&cfg, text, &err) != -EINVAL)
            fail_msg("%s: taken", bad[i]);
        assert_non_null(strstr(err.text, "metrics.listen: expected 127.x.x.x:PORT"));
    }
}

static void the_control_socket_has_a_place_of_its_own(void **state)
{
    struct config_error err;
    struct config cfg;
    char text[600], path[120];

    (void)state;
    assert_int_equal(
        parse(&cfg, "runtime: /tmp/r\noperators: {socket: control}\n" SMALL, &err),
        -EINVAL);
    assert_non_null(strstr(err.text, "operators.socket: expected an absolute path"));
    assert_int_equal(
        parse(&cfg, "runtime: /tmp/r\noperators: {socket: /tmp/r/status}\n" SMALL, &err),
        -EINVAL);
    assert_non_null(strstr(err.text, "status.endpoint: same as operators; each socket"));
    for (int n = 107; n <= 108; n++) {
        memset(path, 'x', sizeof path);
        path[0] = '/';
        path[n] = '\0';
        snprintf(text, sizeof text, "runtime: /tmp/r\noperators: {socket: %s}\n" SMALL,
                 path);
        assert_int_equal(parse(&cfg, text, &err), n > 107 ? -EINVAL : 0);
    }
    assert_non_null(strstr(err.text, "longer than 107 bytes"));
    assert_int_equal(parse(&cfg, "runtime: /tmp/r\nswap: {directory: ~/p}\n" SMALL, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "swap.directory: '~' is not expanded"));
}

// ---- the sidecar ----------------------------------------------------------------------

static void the_sidecar_gives_names_rate_and_units(void **state)
{
    static const char text[] =
        "rate_hz: 12.5\nstate_names: [s0, s1]\naction_names: [a0, a1]\n"
        "units: {a1: 0_100, a0: deg}\ncameras: [observation.images.x]\n";
    struct config_error err = {""};
    struct config_sidecar s;

    (void)state;
    assert_int_equal(config_sidecar_parse(&s, "policy.yaml", text, sizeof text - 1, &err),
                     0);
    assert_true(s.rate_hz == 12.5);
    assert_int_equal(s.n_state, 2);
    assert_string_equal(s.state[1], "s1");
    assert_string_equal(s.action[0], "a0");
    assert_string_equal(s.units[0], "deg");
    assert_string_equal(s.units[1], "0_100");
    assert_int_equal(s.n_cameras, 1);
    assert_string_equal(s.camera[0], "observation.images.x");
}

static void a_lacking_sidecar_names_the_remedy(void **state)
{
    struct config_error err = {""};
    struct config_sidecar s;

    (void)state;
    assert_int_equal(config_sidecar_load(&s, CORPUS, &err), -ENOENT);
    assert_non_null(strstr(err.text, "`actd init " CORPUS "` writes it"));
    assert_int_equal(config_sidecar_load(&s, "/no/such/place", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no/such/place: no such directory"));
    assert_null(strstr(err.text, "actd init"));
}

static void every_word_EDIT_is_listed_at_once(void **state)
{
    static const char sidecar[] =
        "rate_hz: EDIT\nstate_names: [a, b]\naction_names: [a, b]\n"
        "units: {a: EDIT, b: rad}\n";
    struct config_error err;
    struct config_sidecar s;
    struct config cfg;

    (void)state;
    assert_int_equal(
        parse(&cfg,
              "runtime: /tmp/r\npolicy: {directory: /d}\njoint_state: {rate_hz: EDIT}\n"
              "joints:\n  a:\n    position: [EDIT, 1]\n    velocity: EDIT\n"
              "    acceleration: 1\n  EDIT_b: {position: [0, 1], velocity: 1, "
              "acceleration: EDIT}\n",
              &err),
        -EINVAL);
    assert_non_null(strstr(err.text, "r.yaml:3:24: joint_state.rate_hz: fill in"));
    assert_non_null(
        strstr(err.text, " (5 are still EDIT: joint_state: rate_hz; joints.a: position, "
                         "velocity; joints: EDIT_b; joints.EDIT_b: acceleration)"));
    assert_int_equal(
        config_sidecar_parse(&s, "policy.yaml", sidecar, sizeof sidecar - 1, &err),
        -EINVAL);
    assert_non_null(strstr(err.text, "(2 are still EDIT: rate_hz; units: a)"));
    // Another error is not lengthened.
    assert_int_equal(
        parse(&cfg, "rate: 1\npolicy: {threads: EDIT, directory: EDIT}\n", &err),
        -EINVAL);
    assert_null(strstr(err.text, "EDIT"));
}

static void a_long_list_of_EDIT_is_cut_with_dots(void **state)
{
    static char text[8192];
    struct config_error err;
    struct config cfg;
    size_t n = (size_t)snprintf(text, sizeof text,
                                "runtime: /tmp/r\npolicy: {directory: /d}\n"
                                "joint_state: {rate_hz: 50}\njoints:\n");

    (void)state;
    for (int i = 0; i < ACTD_MAX_JOINTS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "  a_rather_long_name_of_a_joint_%d: {position: [EDIT, "
                              "EDIT], velocity: EDIT, acceleration: EDIT}\n",
                              i);
    assert_int_equal(parse(&cfg, text, &err), -EINVAL);
    assert_non_null(strstr(err.text, "(96 are still EDIT: "));
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 4, "...");
}

static void names_know_their_places(void **state)
{
    struct config_error err;
    struct config cfg;

    (void)state;
    assert_int_equal(parse(&cfg,
                           "runtime: /tmp/r\npolicy: {directory: /d}\n"
                           "joint_state: {rate_hz: 50}\ncameras:\n  c:\n    key: k\n"
                           "    rate_hz: 30\njoints:\n"
                           "  a: {position: [0, 1], velocity: 1, acceleration: 1}\n"
                           "  b: {position: [0, 1], velocity: 1, acceleration: 1, "
                           "state: s}\n",
                           &err),
                     0);
    assert_true(cfg.camera[0].key_at.line == 6 && cfg.camera[0].key_at.column == 10);
    assert_true(cfg.camera[0].endpoint_at.line == 5 &&
                cfg.camera[0].endpoint_at.column == 3);
    assert_true(cfg.joint[0].state_at.line == 9 && cfg.joint[0].state_at.column == 3);
    assert_true(cfg.joint[0].action_at.line == 9 && cfg.joint[0].action_at.column == 3);
    assert_true(cfg.joint[1].action_at.line == 10 && cfg.joint[1].action_at.column > 50);
    assert_true(cfg.joint[1].action_at.column == cfg.joint[1].state_at.column);
}

// ---- the loop's configuration ---------------------------------------------------------

static void defaults_become_numbers_for_the_loop(void **state)
{
    struct policy_info p = {.chunk_size = 100, .n_action_steps = 50, .action_dim = 1};
    struct config_sidecar side = {.rate_hz = 25, .n_state = 1, .n_action = 1};
    struct config_error err = {""};
    struct loop_config l;
    struct config cfg;

    (void)state;
    assert_int_equal(parse(&cfg,
                           "runtime: /tmp/r\ninference: {trigger: continuous}\n"
                           "cameras:\n  c: {key: k, rate_hz: 40}\n" SMALL,
                           &err),
                     0);
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_int_equal(l.chunks.rows, 100);
    assert_int_equal(l.chunks.step_ns, 40 * NS_PER_MS);
    assert_int_equal(l.chunks.max_age_ns, 4 * NS_PER_S); // the chunk's own duration
    assert_int_equal(l.chunks.fade_ns, 150 * NS_PER_MS);
    assert_int_equal(l.chunks.capacity, 102); // one inference per row may cover
    assert_true(l.chunks.ensemble_coeff == 0.01);
    assert_int_equal(l.ttl_ns, 30 * NS_PER_MS); // 3 periods of 100 Hz
    assert_int_equal(l.hold_ns, 200 * NS_PER_MS);
    assert_int_equal(l.joints_period_ns, 20 * NS_PER_MS);
    assert_int_equal(l.camera_period_ns[0], 25 * NS_PER_MS);
    assert_true(l.limits.n == 1 && l.limits.max[0] == 2 && l.limits.velocity[0] == 3 &&
                l.limits.stop_acceleration[0] == 4);
    assert_true(l.approach_scale == 0.25 && l.control_hz == 100);
    cfg.control.rate_hz = 500;
    cfg.chunks.horizon_rows = 10;
    p.has_ensemble_coeff = true;
    p.ensemble_coeff = 0.5f;
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_int_equal(l.ttl_ns, 20 * NS_PER_MS); // never under 20 ms
    assert_int_equal(l.chunks.max_age_ns, 400 * NS_PER_MS);
    assert_true(l.chunks.ensemble_coeff == 0.5);
    cfg.chunks.ensemble_coeff = -1;
    cfg.joint_command.ttl_ms = 77;
    cfg.inference.max_age_ms = 123;
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_true(l.chunks.ensemble_coeff == -1 && l.ttl_ns == 77 * NS_PER_MS &&
                l.chunks.max_age_ns == 123 * NS_PER_MS);
}

static void rows_must_fit_the_chunk(void **state)
{
    struct policy_info p = {.chunk_size = 20, .n_action_steps = 20, .action_dim = 1};
    struct config_sidecar side = {.rate_hz = 25, .n_state = 1, .n_action = 1};
    struct config_error err = {""};
    struct loop_config l;
    struct config cfg;

    (void)state;
    assert_int_equal(
        parse(&cfg, "runtime: /tmp/r\ninference: {trigger: rows}\n" SMALL, &err), 0);
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_int_equal(config_every_rows(&cfg, &p), 20);
    cfg.chunks.horizon_rows = 21;
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), -EINVAL);
    assert_non_null(strstr(err.text, "chunks.horizon_rows"));
    cfg.chunks.horizon_rows = 10; // the default follows the rows in use
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_int_equal(config_every_rows(&cfg, &p), 10);
    cfg.inference.every_rows = 11;
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), -EINVAL);
    assert_non_null(strstr(err.text, "inference.every_rows"));
    cfg.inference.every_rows = 10;
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_file_is_refused_where_it_is_bad),
        cmocka_unit_test(defaults_are_those_of_the_table),
        cmocka_unit_test(words_mean_what_they_say),
        cmocka_unit_test(sockets_live_where_they_may),
        cmocka_unit_test(an_empty_section_is_no_error),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(operators_swap_and_metrics_have_defaults),
        cmocka_unit_test(nothing_is_recorded_by_default),
        cmocka_unit_test(names_are_kept_in_lines),
        cmocka_unit_test(a_list_of_names_is_bounded),
        cmocka_unit_test(metrics_are_served_on_this_machine_only),
        cmocka_unit_test(the_control_socket_has_a_place_of_its_own),
        cmocka_unit_test(the_sidecar_gives_names_rate_and_units),
        cmocka_unit_test(a_lacking_sidecar_names_the_remedy),
        cmocka_unit_test(every_word_EDIT_is_listed_at_once),
        cmocka_unit_test(a_long_list_of_EDIT_is_cut_with_dots),
        cmocka_unit_test(names_know_their_places),
        cmocka_unit_test(defaults_become_numbers_for_the_loop),
        cmocka_unit_test(rows_must_fit_the_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
