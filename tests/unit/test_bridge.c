// bridge: what it reads of others' bytes, and where it looks for a daemon. Whole processes:
// tests/e2e/bridge.sh.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/bridge.h"
#include "foxglove/JointStates.pb-c.h"

static uint8_t bytes[4096];

static size_t stamped(int64_t seconds, int32_t nanos)
{
    Foxglove__JointStates m;
    Google__Protobuf__Timestamp t;

    foxglove__joint_states__init(&m);
    google__protobuf__timestamp__init(&t);
    t.seconds = seconds;
    t.nanos = nanos;
    m.timestamp = &t;
    return foxglove__joint_states__pack(&m, bytes);
}

static void the_stamp_is_field_1(void **state)
{
    int64_t wall = 0;
    size_t n = stamped(1700000000, 123456789);

    (void)state;
    assert_true(bridge_stamp(bytes, n, &wall));
    assert_int_equal(wall, INT64_C(1700000000123456789));
    for (size_t cut = 0; cut < n;
         cut++) // a message cut off has none, or none that is wrong
        assert_false(bridge_stamp(bytes, cut, &wall));
    n = stamped(1700000000, 0);
    assert_true(bridge_stamp(bytes, n, &wall));
    assert_int_equal(wall, INT64_C(1700000000) * 1000000000);
    assert_false(bridge_stamp(bytes, stamped(0, 5), &wall));
    assert_false(bridge_stamp(bytes, stamped(-1, 5), &wall));
    assert_false(bridge_stamp(bytes, stamped(1, 1000000000), &wall));
    assert_false(bridge_stamp(bytes, stamped(INT64_MAX, 1), &wall));
    assert_false(bridge_stamp("\x12\x02hi", 4, &wall)); // field 2
    assert_false(bridge_stamp("\x0a\x7f\x08\x01", 4, &wall));
    assert_false(bridge_stamp("\x0a\x02\x12\x00", 4, &wall));
}

static void random_bytes_are_read_within_bounds(void **state)
{
    uint32_t seed = 1;
    size_t size;
    int64_t wall;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        size_t n = (size_t)(i % 40);
        uint8_t *own = malloc(n + 1); // the sanitizer sees one byte too many
        for (size_t k = 0; k < n; k++) {
            seed = seed * 1664525u + 1013904223u;
            own[k] = (uint8_t)(k < 2 && i % 3 ? 0x0a + (k ? n : 0) : seed >> 24);
        }
        (void)bridge_stamp(own, n, &wall);
        const uint8_t *s = bridge_status_of(own, n, &size);
        if (s)
            assert_true(s >= own && size <= n && s + size <= own + n);
        free(own);
    }
}

static void the_status_is_found_in_a_reply(void **state)
{
    Actd__V1__ControlReply r;
    Actd__V1__Status s, *again;
    size_t n, size = 0;
    const void *at;

    (void)state;
    actd__v1__control_reply__init(&r);
    actd__v1__status__init(&s);
    s.ticks = 42;
    s.instance = "left";
    r.id = 300;
    r.result = ACTD__V1__RESULT__RESULT_OK;
    r.text = "here";
    r.status = &s;
    n = actd__v1__control_reply__pack(&r, bytes);
    at = bridge_status_of(bytes, n, &size);
    assert_non_null(at);
    again = actd__v1__status__unpack(NULL, size, at);
    assert_non_null(again);
    assert_int_equal(again->ticks, 42);
    assert_string_equal(again->instance, "left");
    actd__v1__status__free_unpacked(again, NULL);
    assert_null(bridge_status_of(bytes, n - 1, &size)); // cut off
    r.status = NULL;
    n = actd__v1__control_reply__pack(&r, bytes);
    assert_null(bridge_status_of(bytes, n, &size));
}

static void seconds_are_decimal(void **state)
{
    char text[32];

    (void)state;
    bridge_seconds(INT64_C(1700000000123456789), text);
    assert_string_equal(text, "1700000000.123456789");
    bridge_seconds(INT64_C(1700000000000000001), text);
    assert_string_equal(text, "1700000000.000000001");
    assert_true(strtod(text, NULL) == 1700000000.0);
}

// ---- where ------------------------------------------------------------------------------------

static void a_daemon_is_found_by_name(void **state)
{
    char dir[] = "/tmp/actd-bridge.XXXXXX", path[128], want[160];
    struct config_error err = {""};
    struct bridge_from from;

    (void)state;
    assert_non_null(mkdtemp(dir));
    setenv("XDG_RUNTIME_DIR", dir, 1);
    assert_int_equal(bridge_find(&from, NULL, "no-such-arm", &err), -ENOENT);
    assert_non_null(strstr(err.text, "no-such-arm"));
    assert_non_null(strstr(err.text, "-c robot.yaml"));
    assert_int_equal(bridge_find(&from, NULL, "../x", &err), -EINVAL);
    assert_int_equal(bridge_find(&from, NULL, "", &err), -EINVAL);
    snprintf(path, sizeof path, "%s/actd", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/actd/test-bridge-arm", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(bridge_find(&from, NULL, "test-bridge-arm", &err), 0);
    snprintf(want, sizeof want, "ipc://%s/joints.command", path);
    assert_string_equal(from.command, want);
    snprintf(want, sizeof want, "ipc://%s/status", path);
    assert_string_equal(from.status, want);
    snprintf(want, sizeof want, "%s/control", path);
    assert_string_equal(from.control, want);
    assert_string_equal(from.joints, ""); // theirs is bound by the daemon
    rmdir(path);
    snprintf(path, sizeof path, "%s/actd", dir);
    rmdir(path);
    rmdir(dir);
}

static void a_configuration_names_its_endpoints(void **state)
{
    static const char text[] =
        "runtime: /tmp/r\npolicy: {directory: /p}\n"
        "joint_state: {rate_hz: 100, bind: false, endpoint: \"ipc:///tmp/driver\"}\n"
        "joint_command: {endpoint: \"tcp://127.0.0.1:7001\"}\n"
        "status: {bind: false, endpoint: \"ipc:///tmp/elsewhere\"}\n"
        "joints: {a: {position: [-1, 1], velocity: 1, acceleration: 1}}\n";
    char file[] = "/tmp/actd-bridge.XXXXXX";
    int fd = mkstemp(file);
    struct config_error err = {""};
    struct bridge_from from;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    if (bridge_find(&from, file, NULL, &err))
        fail_msg("%s", err.text);
    assert_string_equal(from.joints, "ipc:///tmp/driver");
    assert_string_equal(from.command, "tcp://127.0.0.1:7001");
    assert_string_equal(from.status, ""); // actd connects: its peer is another
    assert_string_equal(from.control, "/tmp/r/control");
    unlink(file);
    assert_int_equal(bridge_find(&from, file, NULL, &err), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stamp_is_field_1),
        cmocka_unit_test(random_bytes_are_read_within_bounds),
        cmocka_unit_test(the_status_is_found_in_a_reply),
        cmocka_unit_test(seconds_are_decimal),
        cmocka_unit_test(a_daemon_is_found_by_name),
        cmocka_unit_test(a_configuration_names_its_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
