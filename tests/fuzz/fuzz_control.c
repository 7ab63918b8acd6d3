// fuzz_control: a request off the wire. What is accepted keeps what the header promises,
// and protobuf-c reads the same from it; what is refused says why, without a byte of it.
// Nothing is allocated.
#include <errno.h>
#include <sanitizer/allocator_interface.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Thread_local bool watched;

static void must(int promise)
{
    if (!promise)
        abort();
}

static void on_malloc(const volatile void *p, size_t size)
{
    (void)p;
    (void)size;
    must(!watched);
}

static void on_free(const volatile void *p)
{
    must(!p || !watched);
}

static void check_values(const struct control_request *r)
{
    bool swaps = r->verb == ACTD__V1__VERB__VERB_SWAP;
    bool back = r->verb == ACTD__V1__VERB__VERB_SWAP_BACK;

    must(strcmp(control_verb_name(r->verb), "?") != 0);
    must(swaps == (r->name[0] != '\0'));
    must(!strchr(r->name, '/') && strcmp(r->name, ".") != 0 &&
         strcmp(r->name, "..") != 0);
    for (const char *p = r->name; *p; p++)
        must(*p >= ' ' && *p <= '~');
    must((r->verb == ACTD__V1__VERB__VERB_INSTRUCT ||
          r->verb == ACTD__V1__VERB__VERB_RECORD_MARK) == (r->text[0] != '\0'));
    for (const char *p = r->text; *p; p++)
        must((unsigned char)*p >= ' ' && *p != 0x7f);
    must(swaps || back || (!r->force && r->allow == 0));
    must(r->allow < 32);
}

static void check_against_protobuf(const struct control_request *r, const uint8_t *data,
                                   size_t size)
{
    Actd__V1__ControlRequest *m = actd__v1__control_request__unpack(NULL, size, data);
    unsigned allow = 0;

    must(m != NULL);
    must(m->id == r->id && m->verb == r->verb && (m->force != 0) == r->force);
    must(strcmp(m->name, r->name) == 0 && strcmp(m->text, r->text) == 0);
    for (size_t i = 0; i < m->n_allow; i++)
        for (int a = 0; control_allow[a]; a++)
            allow |= strcmp(control_allow[a], m->allow[i]) == 0 ? 1u << a : 0;
    must(allow == r->allow && m->base.n_unknown_fields == 0);
    actd__v1__control_request__free_unpacked(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool hooked;
    struct control_request r;
    const char *why;
    int rc;

    if (!hooked)
        must(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
    hooked = true;
    watched = true;
    rc = control_request_parse(&r, data, size, &why);
    watched = false;
    must(rc == (why ? -EINVAL : 0));
    if (rc != 0) {
        must(*why != '\0');
        return 0;
    }
    must(size <= CONTROL_REQUEST_MAX);
    check_values(&r);
    check_against_protobuf(&r, data, size);
    return 0;
}
