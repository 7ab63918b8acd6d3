// http_answer: one request, one answer, and the connection closes: a scraper comes back in
// seconds, and what stays open costs a place.
#include <string.h>

#include "daemon/http_impl.h"

static const char front_page[] =
    "<!DOCTYPE html><html lang=\"en\"><title>actd</title>"
    "<h1>actd</h1><p><a href=\"/metrics\">metrics</a> in Prometheus' text format</p></html>\n";

struct page {
    unsigned status;
    const char *type;
    const char *body;
    size_t n;
};

static struct page sentence(unsigned status, const char *text)
{
    return (struct page){status, "text/plain; charset=utf-8", text, strlen(text)};
}

static enum MHD_Result reply(struct MHD_Connection *c, const struct page *page)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        page->n, (void *)(uintptr_t)page->body, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result ok;

    if (!r)
        return MHD_NO;
    if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, page->type) == MHD_NO ||
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_NO ||
        MHD_add_response_header(r, "X-Content-Type-Options", "nosniff") == MHD_NO ||
        (page->status == MHD_HTTP_METHOD_NOT_ALLOWED &&
         MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_NO)) {
        MHD_destroy_response(r);
        return MHD_NO;
    }
    ok = MHD_queue_response(c, page->status, r);
    MHD_destroy_response(r); // the queue has its own hold on it
    return ok;
}

static struct page metrics(struct http *h)
{
    ns_t now = clock_now_ns();

    if (h->made_ns == 0 || now - h->made_ns >= HTTP_FRESH_NS) {
        h->n = h->src.write(h->src.arg, h->text, sizeof h->text);
        h->made_ns = now;
    }
    if (h->n == 0)
        return sentence(MHD_HTTP_SERVICE_UNAVAILABLE, "no status yet: try again\n");
    return (struct page){MHD_HTTP_OK, METRICS_TYPE, h->text, h->n};
}

static struct page choose(struct http *h, const char *url, const char *method)
{
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return sentence(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    if (strcmp(url, "/metrics") == 0)
        return metrics(h);
    if (strcmp(url, "/") == 0)
        return (struct page){MHD_HTTP_OK, "text/html; charset=utf-8", front_page,
                             sizeof front_page - 1};
    return sentence(MHD_HTTP_NOT_FOUND, "only /metrics\n");
}

enum MHD_Result http_answer(void *cls, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version,
                            const char *upload_data, size_t *upload_data_size,
                            void **con_cls)
{
    struct page page = choose(cls, url, method);

    (void)version;
    (void)upload_data;
    (void)upload_data_size; // a body is not waited for: the answer is the same
    (void)con_cls;
    return reply(connection, &page);
}
