// report_plain: a file without ticks, such as a converted data set: the joint states and the
// actions that are in it, as they are.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"
#include "foxglove/JointStates.pb-c.h"

static int joint_named(struct report *r, const char *name)
{
    for (int i = 0; i < r->joints; i++)
        if (strcmp(r->joint[i].name, name) == 0)
            return i;
    if (r->joints == ACTD_MAX_JOINTS)
        return -1;
    struct report_joint *j = &r->joint[r->joints];
    snprintf(j->name, sizeof j->name, "%.*s", CONFIG_NAME - 1, name);
    j->last_commanded = NAN;
    return r->joints++;
}

static void add(struct report *r, const struct mcap_message *m, bool action)
{
    Foxglove__JointStates *s = foxglove__joint_states__unpack(NULL, m->size, m->data);
    if (!s) {
        r->damaged++;
        return;
    }
    for (size_t i = 0; i < s->n_joints; i++) {
        int j = joint_named(r, s->joints[i]->name);
        if (j >= 0)
            svg_add(action ? &r->joint[j].commanded : &r->joint[j].measured,
                    report_column(r, m->log_ns), s->joints[i]->position);
    }
    foxglove__joint_states__free_unpacked(s, NULL);
}

static int add_all(struct report *r, const char *topic, bool action,
                   struct mcap_error *err)
{
    struct report_cursor c;
    uint64_t last = 0;
    int rc = report_cursor_open(&c, r, topic, err);
    for (; c.there; report_cursor_next(&c, r)) {
        if (last > 0 && c.m.log_ns > last + 1000000000) // another episode
            for (int j = 0; j < r->joints; j++)
                r->joint[j].commanded.broken = r->joint[j].measured.broken = true;
        last = c.m.log_ns;
        add(r, &c.m, action);
    }
    report_cursor_close(&c);
    return rc;
}

int report_scan_plain(struct report *r, struct mcap_error *err)
{
    void *more = realloc(r->joint, ACTD_MAX_JOINTS * sizeof *r->joint);
    if (!more) {
        snprintf(err->text, sizeof err->text, "report: out of memory");
        return -ENOMEM;
    }
    r->joint = more;
    memset(r->joint + r->joints, 0,
           (size_t)(ACTD_MAX_JOINTS - r->joints) * sizeof *r->joint);
    int rc = add_all(r, "/joint_states", false, err);
    return rc ? rc : add_all(r, "/action", true, err);
}
