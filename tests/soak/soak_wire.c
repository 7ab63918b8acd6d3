// The robot's messages, good and spoilt, and the pictures they are made of.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"
#include "tests/soak/soak_impl.h"

// ---- messages --------------------------------------------------------------------------------

static void stamp_now(const struct soak_robot *r, ns_t now,
                      Google__Protobuf__Timestamp *t)
{
    int64_t wall = clock_wall_ns() + (now < r->clock_until ? 3600 * NS_PER_S : 0);

    google__protobuf__timestamp__init(t);
    t->seconds = wall / NS_PER_S;
    t->nanos = (int32_t)(wall % NS_PER_S);
}

size_t soak_pack_states(struct soak_robot *r, ns_t now, int joints, bool nan, bool swap)
{
    Google__Protobuf__Timestamp stamp;
    Foxglove__JointStates m = FOXGLOVE__JOINT_STATES__INIT;
    Foxglove__JointState joint[SOAK_JOINTS], *list[SOAK_JOINTS];

    stamp_now(r, now, &stamp);
    for (int j = 0; j < SOAK_JOINTS; j++) {
        foxglove__joint_state__init(&joint[j]);
        joint[j].name = (char *)(uintptr_t)soak_joint[swap && j == 0 ? 1 : j];
        joint[j].position = r->pose[j];
        list[j] = &joint[j];
    }
    if (nan)
        joint[soak_dice(r, SOAK_JOINTS)].position = soak_dice(r, 2) ? NAN : INFINITY;
    m.timestamp = &stamp;
    m.joints = list;
    m.n_joints = (size_t)joints;
    return foxglove__joint_states__pack(&m, r->message);
}

size_t soak_pack_raw(struct soak_robot *r, int c, uint8_t *rgb, ns_t now)
{
    static char encoding[] = "rgb8";
    const struct soak_picture *p = &r->picture[c];
    Google__Protobuf__Timestamp stamp;
    Foxglove__RawImage m;

    foxglove__raw_image__init(&m);
    stamp_now(r, now, &stamp);
    m.timestamp = &stamp;
    m.width = (uint32_t)p->width;
    m.height = (uint32_t)p->height;
    m.step = 3 * m.width;
    m.encoding = encoding;
    m.data = (ProtobufCBinaryData){3 * (size_t)p->width * (size_t)p->height, rgb};
    return foxglove__raw_image__pack(&m, r->message);
}

size_t soak_pack_jpeg(struct soak_robot *r, int c, uint8_t *rgb, ns_t now, bool corrupt)
{
    static char format[] = "jpeg";
    const struct soak_picture *p = &r->picture[c];
    Google__Protobuf__Timestamp stamp;
    Foxglove__CompressedImage m;
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    size_t n;

    if (tjCompress2(r->jpeg, rgb, p->width, 0, p->height, TJPF_RGB, &bytes, &size,
                    TJSAMP_444, 90, 0) != 0)
        return 0;
    foxglove__compressed_image__init(&m);
    stamp_now(r, now, &stamp);
    m.timestamp = &stamp;
    m.format = format;
    if (corrupt && soak_dice(r, 2))
        size /= 2;
    else if (corrupt)
        for (int i = 0; i < 4; i++)
            bytes[soak_dice(r, size)] ^= (uint8_t)(1 + soak_dice(r, 255));
    m.data = (ProtobufCBinaryData){size, bytes};
    n = foxglove__compressed_image__pack(&m, r->message);
    tjFree(bytes);
    return n;
}

// ---- pictures --------------------------------------------------------------------------------

static int keep_picture(struct soak_picture *p, int i, const uint8_t *bytes, size_t size)
{
    Foxglove__RawImage *m = foxglove__raw_image__unpack(NULL, size, bytes);
    int rc = -EPROTO;

    if (m && (p->rgb[i] = malloc(m->data.len))) {
        memcpy(p->rgb[i], m->data.data, m->data.len);
        p->width = (int)m->width;
        p->height = (int)m->height;
        rc = 0;
    }
    if (m)
        foxglove__raw_image__free_unpacked(m, NULL);
    return rc;
}

static int take_pictures(struct soak_robot *r, const char *directory)
{
    void *context = zmq_ctx_new();
    const int ms = 20000, none = 0;
    int rc = 0;

    for (int c = 0; c < SOAK_CAMERAS && rc == 0; c++) {
        static uint8_t buf[SOAK_MESSAGE];
        char endpoint[PATH_MAX + 64];
        void *s = zmq_socket(context, ZMQ_SUB);

        snprintf(endpoint, sizeof endpoint, "ipc://%s/camera.%s", directory,
                 soak_camera[c]);
        zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
        zmq_setsockopt(s, ZMQ_RCVTIMEO, &ms, sizeof ms);
        zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
        zmq_connect(s, endpoint);
        for (int i = 0; i < SOAK_PICTURES && rc == 0; i++) {
            int n = zmq_recv(s, buf, sizeof buf, 0);
            rc = n < 0 ? -errno : keep_picture(&r->picture[c], i, buf, (size_t)n);
        }
        zmq_close(s);
    }
    zmq_ctx_term(context);
    return rc;
}

// The simulator's own view, so that the policy sees what it was trained on.
int soak_photograph(struct soak_robot *r, const char *build)
{
    extern char **environ;
    char program[PATH_MAX], directory[] = "/tmp/actd-soak-XXXXXX", command[128];
    char *argv[] = {"actd-sim", "--runtime",  directory, "--bind",
                    "--raw",    "--episodes", "0",       NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int rc;

    snprintf(program, sizeof program, "%s/actd-sim", build);
    if (!mkdtemp(directory))
        return -errno;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    rc = -posix_spawn(&pid, program, &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc == 0) {
        rc = take_pictures(r, directory);
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command) != 0)
        fprintf(stderr, "soak: %s is left over\n", directory);
    return rc;
}
