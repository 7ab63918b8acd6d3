// lerobot_digest: what the statistics in use hash to. Not their files: those of one data set
// come in four eras and several files, and may hold a dozen numbers that nobody uses.
#include <stdint.h>
#include <string.h>

#include "policy/digest.h"
#include "policy/lerobot.h"

static void add_norm(struct digest *d, const struct norm *m)
{
    const float *const part[] = {m->sub, m->div,  m->mul,   m->add,
                                 m->pre, m->half, m->range, m->base};
    uint32_t n = (uint32_t)m->n;
    const char *mode = norm_mode_name(m->mode);

    if (!n)
        return; // the checkpoint has no such feature
    digest_add(d, &n, sizeof n);
    digest_add(d, mode, strlen(mode) + 1);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        digest_add(d, part[i], n * sizeof(float));
}

int lerobot_digest_statistics(const struct lerobot_checkpoint *c,
                              char sha256[POLICY_DIGEST_HEX], struct policy_error *err)
{
    struct digest *d;
    int r = digest_start(&d, err);

    if (r < 0)
        return r;
    add_norm(d, &c->state);
    add_norm(d, &c->env);
    add_norm(d, &c->action);
    for (int i = 0; i < c->n_cameras; i++)
        add_norm(d, &c->camera[i].norm);
    r = digest_end(d, sha256, err);
    digest_free(d);
    return r;
}
