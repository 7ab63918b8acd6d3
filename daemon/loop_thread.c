// The start and the end of the thread around loop_tick; loop_run.c is what it does.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/loop_impl.h"
#include "daemon/rt.h"

int loop_thread_start(struct loop_thread **out, struct loop *l,
                      const struct loop_thread_config *cfg, char granted[64])
{
    struct rt_thread_spec spec = {.name = "actd-loop",
                                  .cls = RT_CLASS_RT,
                                  .priority = cfg->priority,
                                  .cpu = cfg->cpu,
                                  .require_rt = cfg->require_rt};
    struct loop_thread *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (t == NULL)
        return -ENOMEM;
    t->loop = l;
    rc = rt_thread_start(&t->thread, &spec, loop_run, t, granted);
    if (rc != 0) {
        free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void loop_thread_stop(struct loop_thread *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->stop, true);
    (void)pthread_join(t->thread, NULL);
    free(t);
}
