#include "daemon/sim/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sim/record.h"

const char options_help[] =
    "usage: actd-sim [options]            a simulated arm that speaks actd's wire\n"
    "       actd-sim --record DIR --episodes N --seed S\n"
    "\n"
    "The task: bring the tip to the top of the red cube and stay there for 0.4 s, within "
    "6 s.\n"
    "When an episode ends only the cubes move. The first one waits until somebody "
    "drives.\n"
    "\n"
    "  --runtime DIR      directory of the ipc sockets joints.state, joints.command,\n"
    "                     camera.NAME and sim.status\n"
    "                     (default $XDG_RUNTIME_DIR/actd/default or /run/actd/default)\n"
    "  --bind             bind all sockets, so that a client can connect without actd\n"
    "  --joint-hz HZ      rate of joint states (default 100)\n"
    "  --camera-hz HZ     rate of each camera (default 25)\n"
    "  --control-hz HZ    rate of the commands expected: each is reached in a straight "
    "line\n"
    "                     within one period (default 100, with --lockstep 25)\n"
    "  --camera NAME=WxH  picture size of front (96x96) or wrist (64x64); NAME=off: "
    "none\n"
    "  --raw              RawImage rgb8 instead of JPEG\n"
    "  --episodes N       stop after N episodes (default 10; 0: never)\n"
    "  --seed S           places of the cubes (default 1)\n"
    "  --speed X          X times as fast as real time (default 1)\n"
    "  --lockstep         one control period per command: publish state and frames, wait "
    "for\n"
    "                     one command, move on; repeats what it published every 50 ms\n"
    "  --sheet FILE.png   draw the first episode: pictures, the tip's path, the goal\n"
    "  --fault WHAT@S[+D] front, wrist or joints falls silent at S seconds, for D "
    "seconds\n"
    "  --record DIR       write demonstrations of the scripted expert and exit\n"
    "  --noise RAD        error of the executed action in a recording (default 0.03)\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 all episodes are over or stopped by a signal, 1 trouble, 64 usage.\n";

static int number(const char *text, double lo, double hi, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= lo && v <= hi))
        return -EINVAL;
    *out = v;
    return 0;
}

static int whole(const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (end == text || *end || errno || *text == '-' || v > most)
        return -EINVAL;
    *out = v;
    return 0;
}

static int stream_index(const char *name, size_t len)
{
    for (int c = 0; c < SCENE_CAMERAS; c++)
        if (strlen(scene_camera_name[c]) == len &&
            !memcmp(scene_camera_name[c], name, len))
            return c;
    return len == 6 && !memcmp(name, "joints", 6) ? SCENE_CAMERAS : -1;
}

static int camera(struct options *o, const char *text)
{
    const char *eq = strchr(text, '=');
    int c = eq ? stream_index(text, (size_t)(eq - text)) : -1, w = 0, h = 0, used = 0;

    if (c < 0 || c >= SCENE_CAMERAS)
        return -EINVAL;
    if (strcmp(eq + 1, "off") != 0 &&
        (sscanf(eq + 1, "%4dx%4d%n", &w, &h, &used) != 2 || eq[1 + used] || w < 16 ||
         h < 16 || w > 1024 || h > 1024))
        return -EINVAL;
    o->width[c] = w;
    o->height[c] = h;
    return 0;
}

static int fault(struct options *o, const char *text)
{
    const char *at = strchr(text, '@');
    char *end;

    if (!at || o->faults == OPTIONS_FAULTS_MAX)
        return -EINVAL;
    struct options_fault *f = &o->fault[o->faults];
    f->stream = stream_index(text, (size_t)(at - text));
    f->start_s = strtod(at + 1, &end);
    f->length_s = *end == '+' ? strtod(end + 1, &end) : INFINITY;
    if (f->stream < 0 || *end || !(f->start_s >= 0) || !(f->length_s > 0))
        return -EINVAL;
    o->faults++;
    return 0;
}

unsigned options_muted(const struct options *o, double time_s)
{
    unsigned mask = 0;
    for (int i = 0; i < o->faults; i++)
        if (time_s >= o->fault[i].start_s &&
            time_s < o->fault[i].start_s + o->fault[i].length_s)
            mask |= 1u << o->fault[i].stream;
    return mask;
}

enum which {
    RUNTIME = 256,
    BIND,
    JOINT_HZ,
    CAMERA_HZ,
    CONTROL_HZ,
    CAMERA,
    RAW,
    EPISODES,
    SEED,
    SPEED,
    LOCKSTEP,
    SHEET,
    FAULT,
    RECORD,
    NOISE,
    HELP,
    VERSION,
};

static const struct option table[] = {{"runtime", 1, 0, RUNTIME},
                                      {"bind", 0, 0, BIND},
                                      {"joint-hz", 1, 0, JOINT_HZ},
                                      {"camera-hz", 1, 0, CAMERA_HZ},
                                      {"control-hz", 1, 0, CONTROL_HZ},
                                      {"camera", 1, 0, CAMERA},
                                      {"raw", 0, 0, RAW},
                                      {"episodes", 1, 0, EPISODES},
                                      {"seed", 1, 0, SEED},
                                      {"speed", 1, 0, SPEED},
                                      {"lockstep", 0, 0, LOCKSTEP},
                                      {"sheet", 1, 0, SHEET},
                                      {"fault", 1, 0, FAULT},
                                      {"record", 1, 0, RECORD},
                                      {"noise", 1, 0, NOISE},
                                      {"help", 0, 0, HELP},
                                      {"version", 0, 0, VERSION},
                                      {0, 0, 0, 0}};

static int set_text(char *to, size_t size, const char *text)
{
    return snprintf(to, size, "%s", text) >= (int)size || !*text ? -EINVAL : 0;
}

// Options with a value that has to be understood. 0 or -EINVAL.
static int set_value(struct options *o, int which, const char *text)
{
    uint64_t n = 0;
    int rc = 0;

    switch (which) {
    case RUNTIME:
        return set_text(o->runtime, sizeof o->runtime, text);
    case JOINT_HZ:
        return number(text, 1, 500, &o->joint_hz);
    case CAMERA_HZ:
        return number(text, 0.1, 250, &o->camera_hz);
    case CONTROL_HZ:
        return number(text, 5, 500, &o->control_hz);
    case CAMERA:
        return camera(o, text);
    case EPISODES:
        rc = whole(text, TASK_EPISODES_MAX, &n);
        o->episodes = (unsigned)n;
        return rc;
    case SEED:
        return whole(text, UINT64_MAX, &o->seed);
    case SPEED:
        return number(text, 0.05, 20, &o->speed);
    case FAULT:
        return fault(o, text);
    case NOISE:
        return number(text, 0, 0.2, &o->noise_rad);
    }
    return -EINVAL;
}

static int set(struct options *o, int which, const char *text)
{
    switch (which) {
    case BIND:
        o->role = WIRE_BIND;
        return 0;
    case RAW:
        o->raw = true;
        return 0;
    case LOCKSTEP:
        o->lockstep = true;
        return 0;
    case HELP:
        o->help = true;
        return 0;
    case VERSION:
        o->version = true;
        return 0;
    case SHEET:
        o->sheet = text;
        return 0;
    case RECORD:
        o->record = text;
        return 0;
    }
    return set_value(o, which, text);
}

static void defaults(struct options *o)
{
    const char *base = getenv("XDG_RUNTIME_DIR");

    memset(o, 0, sizeof *o);
    o->joint_hz = 100;
    o->camera_hz = 25;
    o->speed = 1;
    o->episodes = 10;
    o->seed = 1;
    o->noise_rad = 0.03;
    o->width[0] = o->height[0] = RECORD_FRONT_PX;
    o->width[1] = o->height[1] = RECORD_WRIST_PX;
    if (base && *base)
        snprintf(o->runtime, sizeof o->runtime, "%s/actd/default", base);
    else
        snprintf(o->runtime, sizeof o->runtime, "/run/actd/default");
}

int options_parse(struct options *o, int argc, char **argv, char *err, size_t err_len)
{
    int which, at = 0;

    defaults(o);
    optind = 1;
    opterr = 0;
    while ((which = getopt_long(argc, argv, "", table, &at)) != -1) {
        if (which == '?') {
            snprintf(err, err_len,
                     "%s: no such option, or its value is missing; see --help",
                     argv[optind - 1]);
            return -EINVAL;
        }
        if (set(o, which, optarg) < 0) {
            snprintf(err, err_len, "--%s %s: not a value for this; see --help",
                     table[at].name, optarg ? optarg : "");
            return -EINVAL;
        }
    }
    if (optind < argc) {
        snprintf(err, err_len, "%s: actd-sim takes options only; see --help",
                 argv[optind]);
        return -EINVAL;
    }
    if (o->control_hz == 0)
        o->control_hz = o->lockstep ? 25 : 100;
    return 0;
}
