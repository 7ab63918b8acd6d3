// init_write: the text of the two files. Every value that nobody but a person can know is
// EDIT.
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "daemon/init.h"

// As YAML: plain where no reader could misunderstand it, else quoted.
static const char *yaml_text(const char *s, char *buf, size_t size)
{
    bool plain = (isalpha((unsigned char)*s) || *s == '_') && strcmp(s, "null") != 0;
    size_t at = 0;

    for (const char *p = s; *p && plain; p++)
        plain = isalnum((unsigned char)*p) || strchr("_.-", *p);
    if (plain) {
        snprintf(buf, size, "%s", s);
        return buf;
    }
    buf[at++] = '"';
    for (const char *p = s; *p && at + 4 < size; p++) {
        if (*p == '"' || *p == '\\')
            buf[at++] = '\\';
        buf[at++] = *p;
    }
    buf[at++] = '"';
    buf[at] = '\0';
    return buf;
}

static void write_names(FILE *f, const char *key, const char *first, int n)
{
    char buf[2 * CONFIG_NAME + 4];

    fprintf(f, "%s:%s\n", key, n ? "" : " []");
    for (int i = 0; i < n; i++)
        fprintf(f, "  - %s\n", yaml_text(first + i * CONFIG_NAME, buf, sizeof buf));
}

// What training went through, divided by scale.
static void write_seen(FILE *f, const struct units_range *r, double scale, int digits)
{
    fprintf(f, "%s %.*f .. %.*f%s",
            r->estimated ? "in training about" : "seen in training:", digits,
            r->lo / scale, digits, r->hi / scale, r->estimated ? " (mean +- 3 std)" : "");
}

static void write_how_to_tell(FILE *f, const struct init_facts *facts)
{
    bool so = units_is_so_arm(facts->robot_type), both = false;

    for (int i = 0; i < facts->side.n_action; i++)
        both = both || strcmp(facts->looks[i], UNITS_ARM_EITHER) == 0;
    if (so || both)
        fprintf(
            f,
            "#\n# deg or m100_100? %s. LeRobot recorded its arms in\n# m100_100 from "
            "mid-2025 to 0.4.3, in degrees since 0.4.4 or where use_degrees was true, "
            "and\n# before mid-2025 in degrees with another zero. To tell: a joint at "
            "its calibrated end reads\n# exactly -100 or 100 in m100_100, and what a "
            "protractor shows in degrees. In the data set, an\n# arm value beyond 100 "
            "means deg; several joints that end at exactly 100 mean m100_100.\n",
            both ? "Both fit these statistics" : "An SO arm has been either");
    if (so)
        fputs("# The gripper of an SO arm is always 0_100.\n", f);
    if (!facts->named)
        fputs("# Without names nothing tells a gripper from an arm joint: a gripper is "
              "often 0_100 or 0_1.\n",
              f);
}

static void write_units(FILE *f, const struct init_facts *facts)
{
    const struct config_sidecar *s = &facts->side;
    char buf[2 * CONFIG_NAME + 4];

    fprintf(f, "\n# What each value was trained in: rad, deg, m100_100 (LeRobot's "
               "-100..100), 0_100, 0_1 or m.\n# Guessed from the statistics. PLEASE "
               "CONFIRM: a wrong unit moves the arm to the wrong place.\n");
    write_how_to_tell(f, facts);
    fprintf(f, "units:\n");
    for (int i = 0; i < s->n_action; i++) {
        const struct units_range *r = &facts->action[i];
        fprintf(f, "  %s: %s", yaml_text(s->action[i], buf, sizeof buf),
                *s->units[i] ? s->units[i] : "EDIT");
        if (r->known && !*s->units[i])
            fprintf(f, "  # looks like %s%s; ", facts->looks[i],
                    facts->named ? "" : ", or a gripper");
        else if (r->known)
            fprintf(f, "  # ");
        if (r->known)
            write_seen(f, r, 1, fmax(fabs(r->lo), fabs(r->hi)) < 10 ? 3 : 1);
        fputc('\n', f);
    }
}

void init_write_sidecar(FILE *f, const struct init_facts *facts)
{
    const struct config_sidecar *s = &facts->side;
    char buf[2 * POLICY_NAME_MAX + 4];

    fprintf(f,
            "# What this checkpoint does not carry itself. Written by `actd init`.\n\n");
    if (s->rate_hz > 0)
        fprintf(f, "rate_hz: %.10g  # from %s\n", s->rate_hz, facts->rate_source);
    else
        fprintf(f, "rate_hz: EDIT  # fps of the data set: how far apart the rows of a "
                   "chunk are\n");
    fprintf(f, "\n# Names of the values, in the order of the checkpoint's vectors.%s\n",
            facts->named ? ""
                         : "\n# Made up, since no data set was given; `actd init "
                           "--dataset meta/info.json` writes the real ones.");
    write_names(f, "state_names", s->state[0], s->n_state);
    write_names(f, "action_names", s->action[0], s->n_action);
    write_units(f, facts);
    fprintf(f, "\ncameras:%s\n", s->n_cameras ? "" : " []");
    for (int i = 0; i < s->n_cameras; i++)
        fprintf(f, "  - %s\n", yaml_text(s->camera[i], buf, sizeof buf));
}

// ---- robot.yaml -----------------------------------------------------------------------

static void write_streams(FILE *f, const struct init_facts *facts)
{
    char buf[2 * CONFIG_PATH];

    fprintf(f, "policy:\n  directory: %s\n",
            yaml_text(facts->directory, buf, sizeof buf));
    if (facts->stats_tag)
        fprintf(f, "  stats_tag: %s\n", yaml_text(facts->stats_tag, buf, sizeof buf));
    fprintf(f, "\ncontrol:\n  rate_hz: 100  # commands per second\n");
    if (facts->has_ensemble_coeff)
        fprintf(
            f,
            "\n# The checkpoint asks for temporal ensembling: a new chunk as often as "
            "possible, all averaged.\ninference:\n  trigger: continuous\n\nchunks:\n"
            "  mode: ensemble\n  ensemble_coeff: %.9g  # the checkpoint's\n"
            "  interpolation: linear\n",
            (double)facts->ensemble_coeff);
    else
        fprintf(f, "\nchunks:\n  mode: crossfade\n  interpolation: linear\n");
    fprintf(f, "\njoint_state:\n  rate_hz: EDIT  # at which your driver publishes joint "
               "states\n");
}

// "observation.images.front" -> "front", made fit for a path.
static void camera_base(const char *key, char out[CONFIG_NAME])
{
    const char *dot = strrchr(key, '.');

    snprintf(out, CONFIG_NAME, "%.40s", dot && dot[1] ? dot + 1 : key);
    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-')
            *p = '_';
}

static void camera_name(const struct init_facts *facts, int i, char out[CONFIG_NAME])
{
    char other[CONFIG_NAME];
    bool twice = false;

    camera_base(facts->side.camera[i], out);
    for (int k = 0; k < facts->side.n_cameras; k++) {
        camera_base(facts->side.camera[k], other);
        twice = twice || (k != i && strcmp(other, out) == 0);
    }
    if (twice)
        snprintf(out + strlen(out), CONFIG_NAME - strlen(out), "_%d", i);
}

static void write_cameras(FILE *f, const struct init_facts *facts)
{
    char name[CONFIG_NAME], buf[2 * POLICY_NAME_MAX + 4];

    if (facts->side.n_cameras)
        fprintf(f, "\ncameras:  # names are yours; they become part of the endpoints\n");
    for (int i = 0; i < facts->side.n_cameras; i++) {
        camera_name(facts, i, name);
        fprintf(f, "  %s:\n    key: %s\n", name,
                yaml_text(facts->side.camera[i], buf, sizeof buf));
        if (facts->side.rate_hz > 0)
            fprintf(f, "    rate_hz: %.10g  # as recorded\n", facts->side.rate_hz);
        else
            fprintf(f, "    rate_hz: EDIT  # frames per second\n");
    }
}

// "shoulder_pan.pos" -> "shoulder_pan"; a made-up name becomes EDIT, which must be filled
// in.
void init_joint_name(const struct init_facts *facts, int action, char *out, size_t size)
{
    const char *name = facts->side.action[action];
    size_t n = strlen(name);

    if (!facts->named) {
        snprintf(out, size, "EDIT_joint_%d", action);
        return;
    }
    if (n > 4 && strcmp(name + n - 4, ".pos") == 0)
        n -= 4;
    snprintf(out, size, "%.*s", (int)n, name);
}

// The state that belongs to action i: of the same name; made-up names pair up by
// position.
static const char *state_of(const struct init_facts *facts, int action)
{
    const struct config_sidecar *s = &facts->side;

    for (int i = 0; i < s->n_state && facts->named; i++)
        if (strcmp(s->state[i], s->action[action]) == 0)
            return s->state[i];
    return facts->named || action >= s->n_state ? "EDIT" : s->state[action];
}

static void write_scale(FILE *f, const char *unit)
{
    if (!isnan(units_scale(unit)))
        return; // follows from the unit
    if (!*unit)
        fprintf(f,
                "    # scale, offset: follow from rad, deg and m; for m100_100 write 200 "
                "/ (max - min)\n    # and (max + min) / 2, for 0_100 write 100 / (open "
                "- closed) and closed, in rad\n");
    else if (strcmp(unit, "m100_100") == 0)
        fprintf(f, "    scale: EDIT  # 200 / (max - min), the calibrated ends in rad\n"
                   "    offset: EDIT  # (max + min) / 2\n");
    else
        fprintf(f,
                "    scale: EDIT  # %s / (open - closed), the ends in rad\n"
                "    offset: EDIT  # closed\n",
                strcmp(unit, "0_1") == 0 ? "1" : "100");
}

static void write_joint(FILE *f, const struct init_facts *facts, int i)
{
    const struct config_sidecar *s = &facts->side;
    const struct units_range *r = &facts->action[i];
    const char *state = state_of(facts, i);
    double scale = units_scale(s->units[i]);
    char name[INIT_JOINT], buf[2 * CONFIG_NAME + 4];

    init_joint_name(facts, i, name, sizeof name);
    fprintf(f, "  %s:%s\n", yaml_text(name, buf, sizeof buf),
            facts->named ? "" : "  # the driver's name for it");
    if (s->n_state)
        fprintf(f, "    state: %s\n", yaml_text(state, buf, sizeof buf));
    fprintf(f, "    action: %s\n", yaml_text(s->action[i], buf, sizeof buf));
    write_scale(f, s->units[i]);
    fprintf(f, "    position: [EDIT, EDIT]");
    if (r->known && !isnan(scale)) {
        fprintf(f, "  # ");
        write_seen(f, r, scale, 3);
    }
    fprintf(f, "\n    velocity: EDIT\n    acceleration: EDIT\n");
    if (units_is_gripper(name))
        fprintf(f, "    blend: false  # a gripper: neither blended nor interpolated\n");
    else
        fprintf(f, "    following_error: 0.5  # rad; more is taken for a collision\n");
}

void init_write_robot(FILE *f, const struct init_facts *facts)
{
    fprintf(f, "# Written by `actd init`. Replace every EDIT, then run `actd check -c` "
               "on this file.\n# config/example.yaml explains every key.\n");
    if (*facts->robot_type)
        fprintf(f, "# Recorded with robot type: %s\n", facts->robot_type);
    fputc('\n', f);
    write_streams(f, facts);
    write_cameras(f, facts);
    fprintf(
        f,
        "\n# Limits are yours to set: rad, rad/s, rad/s^2 (metres for sliding joints). "
        "The arm never\n# leaves them, whatever the policy wants.\njoints:\n");
    for (int i = 0; i < facts->side.n_action; i++)
        write_joint(f, facts, i);
}
