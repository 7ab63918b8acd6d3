// The inside of http: the thread (http.c), what is answered (http_answer.c), the address
// (http_listen.c).
#ifndef ACTD_HTTP_IMPL_H
#define ACTD_HTTP_IMPL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "daemon/clock.h"
#include "daemon/http.h"
#include "daemon/metrics.h"

struct http_guest {
    struct MHD_Connection *connection; // NULL = a free place
    int fd;
    ns_t since_ns;
    bool cut; // shut down, not yet gone
};

struct http {
    struct http_source src;
    struct MHD_Daemon *mhd;
    int listen_fd, epoll_fd, wake_fd, port;
    pthread_t thread;
    atomic_bool stop;
    struct http_guest guest[HTTP_CONNECTIONS];
    ns_t made_ns; // when text was made, 0 = never
    size_t n;
    char text[METRICS_MAX];
};

// http_listen.c, plain. A listening socket, or -errno with err filled; port: which it got.
int http_listen(const char *listen, int *port, struct config_error *err);

// http_answer.c, plain, on the HTTP thread. libmicrohttpd's access handler; cls is the http.
enum MHD_Result http_answer(void *cls, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version,
                            const char *upload_data, size_t *upload_data_size,
                            void **con_cls);

#endif
