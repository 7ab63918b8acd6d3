// http: the metrics for a scraper, over HTTP on a loopback address. GET and HEAD of /metrics and
// of /, nothing else, read only; who may connect is whoever may use this machine, so that there
// is nothing here which a local user may not see.
//
//   poll ─> cut those who take too long ─> libmicrohttpd (non-blocking) ─> answer, close
//
// One thread, class plain, ours: libmicrohttpd's own would inherit the class of their maker. A
// connection carries one request and lives 5 s at most, however busily it drips its bytes; when
// 64 are open the oldest are cut, so that a hundred that never finish their request are in
// nobody's way: a scraper sends its whole request at once and is answered before they are looked
// at again. The text is made at most ten times a second whoever asks how often.
#ifndef ACTD_HTTP_H
#define ACTD_HTTP_H

#include <stddef.h>

#include "daemon/config.h"

#define HTTP_CONNECTIONS 64
#define HTTP_LIFE_NS     (5 * NS_PER_S)
#define HTTP_FRESH_NS    (100 * NS_PER_MS) // a text younger than this is given again
#define HTTP_REQUEST     8192              // bytes of a request's head at most

struct http;
struct status;

// Where the text comes from: writes it and a NUL to out (size), returns its bytes, 0 = there
// is none now. Called on the HTTP thread.
struct http_source {
    size_t (*write)(void *arg, char *out, size_t size);
    void *arg;
};

// plain. Serves on `listen`, "127.0.0.1:9464" or "[::1]:9464"; port 0 = any free one. 0 or
// -errno with err filled: -EINVAL not a loopback address, -EADDRINUSE, -EACCES, -EAFNOSUPPORT (a
// service that may use no TCP). What src points to must live until http_stop.
int http_start_source(struct http **out, const char *listen,
                      const struct http_source *src, struct config_error *err);
// plain. The same with the daemon's own status: metrics_write of status_pack.
int http_start(struct http **out, const char *listen, struct status *status,
               struct config_error *err);
// plain. The port that it listens on.
int http_port(const struct http *h);
// plain. Cuts every connection and ends the thread. NULL is fine.
void http_stop(struct http *h);

#endif
