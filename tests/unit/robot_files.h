// robot_files: a small checkpoint with its data set's description in a temporary
// directory, and the robot.yaml and policy.yaml that init, check and inspect work on. For
// their tests only.
#ifndef ACTD_TESTS_ROBOT_FILES_H
#define ACTD_TESTS_ROBOT_FILES_H

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "daemon/check.h"
#include "daemon/init.h"
#include "daemon/inspect.h"
#include "tests/unit/act_fixture.h"

#define NAMES                                                                \
    "\"pan.pos\", \"lift.pos\", \"elbow.pos\", \"flex.pos\", \"roll.pos\", " \
    "\"gripper.pos\""

static char dir[256], robot[320], sidecar[320], info[320];
static char text[32768];
static struct config_error err;

// ---- helpers --------------------------------------------------------------------------

static inline void put(const char *path, const char *what)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(what, f);
    fclose(f);
    assert_int_equal(chmod(path, 0644), 0);
}

static inline const char *get(const char *path)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

// Every `from` in the file becomes `to`.
static inline void edit(const char *path, const char *from, const char *to)
{
    static char out[32768];
    const char *s = get(path), *hit;
    size_t n = 0;

    assert_non_null(strstr(s, from));
    for (; (hit = strstr(s, from)); s = hit + strlen(from))
        n += (size_t)snprintf(out + n, sizeof out - n, "%.*s%s", (int)(hit - s), s, to);
    snprintf(out + n, sizeof out - n, "%s", s);
    put(path, out);
}

static inline void has(const char *where, const char *what)
{
    if (!strstr(where, what))
        fail_msg("'%s' is not in:\n%s", what, where);
}

static inline int init(const char *dataset, bool force, char **said)
{
    struct init_options opt = {
        .checkpoint = dir, .dataset = dataset, .output = robot, .force = force};
    size_t n;
    FILE *say;
    int rc;

    free(*said);
    *said = NULL;
    say = open_memstream(said, &n);
    assert_non_null(say);
    rc = init_run(&opt, say, &err);
    fclose(say);
    return rc;
}

static inline int check(char **said)
{
    size_t n;
    FILE *out;
    int rc;

    free(*said);
    *said = NULL;
    out = open_memstream(said, &n);
    assert_non_null(out);
    rc = check_run(robot, out, out);
    fclose(out);
    return rc;
}

static inline void clean(void)
{
    unlink(robot);
    unlink(sidecar);
}

// The directory is there.
static inline int make_paths(const struct act_fixture *f)
{
    snprintf(robot, sizeof robot, "%s/robot.yaml", dir);
    snprintf(sidecar, sizeof sidecar, "%s/policy.yaml", dir);
    snprintf(info, sizeof info, "%s/info.json", dir);
    return act_fixture_write(dir, f);
}

static inline int make_checkpoint(float action_scale)
{
    struct act_fixture f = act_fixture_tiny();

    f.action_scale = action_scale;
    if (!*dir && act_fixture_mkdir(dir))
        return -1;
    return make_paths(&f);
}

static inline void make_info(const char *robot_type)
{
    char whole[600];

    snprintf(whole, sizeof whole,
             "{\"robot_type\": \"%s\", \"fps\": 30, \"features\": {\"action\": "
             "{\"names\": [" NAMES "]}, \"observation.state\": {\"names\": "
             "{\"motors\": [" NAMES "]}}}}",
             robot_type);
    put(info, whole);
}

// Another checkpoint in place of this one.
static inline void make_anew(const struct act_fixture *f)
{
    clean();
    unlink(info);
    act_fixture_remove(dir);
    *dir = '\0';
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(make_paths(f), 0);
    make_info("bench");
}

static inline int setup_all(void **state)
{
    (void)state;
    setenv("XDG_RUNTIME_DIR", "/tmp", 1);
    if (make_checkpoint(0.25f))
        return -1;
    make_info("bench");
    return 0;
}

static inline int teardown_all(void **state)
{
    (void)state;
    clean();
    unlink(info);
    act_fixture_remove(dir);
    return 0;
}

static inline int setup(void **state)
{
    (void)state;
    clean();
    return 0;
}

// init with the data set, then every EDIT filled in.
static inline void write_good(void)
{
    char *said = NULL;

    assert_int_equal(init(info, false, &said), 0);
    edit(robot, "rate_hz: EDIT", "rate_hz: 100");
    edit(robot, "[EDIT, EDIT]", "[-1.5, 1.5]");
    edit(robot, "velocity: EDIT", "velocity: 2");
    edit(robot, "acceleration: EDIT", "acceleration: 8");
    free(said);
}

#endif
