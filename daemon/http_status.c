// http_status: the server fed with the daemon's own status. Apart from http.c, so that a test
// of the server needs no daemon.
#include <stdlib.h>

#include "daemon/http.h"
#include "daemon/metrics.h"
#include "daemon/status.h"

static size_t write_status(void *arg, char *out, size_t size)
{
    unsigned char *packed = malloc(STATUS_MOST);
    size_t n, written;

    if (!packed)
        return 0;
    n = status_pack(arg, packed, STATUS_MOST);
    written = n ? metrics_write_packed(packed, n, out, size) : 0;
    free(packed);
    return written;
}

int http_start(struct http **out, const char *listen, struct status *status,
               struct config_error *err)
{
    const struct http_source src = {write_status, status};

    return http_start_source(out, listen, &src, err);
}
