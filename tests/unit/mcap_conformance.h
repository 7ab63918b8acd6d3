// The files of the public MCAP conformance suite, made from their names by our writer: what is in
// them follows from the name's first part, which records there are from the letters behind it. The
// files themselves are not here, but their names, sizes and SHA-256 are (tests/data/mcap).
#ifndef TEST_MCAP_CONFORMANCE_H
#define TEST_MCAP_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "daemon/mcap_write.h"

#define CONFORMANCE_TABLE "tests/data/mcap/conformance.tsv"
#define CONFORMANCE_FILES 416

struct conformance {
    char name[96]; // "OneMessage/OneMessage-ch-chx"
    size_t bytes;
    char sha256[65];
};

static struct conformance conformance[CONFORMANCE_FILES + 1];

static int conformance_read(void)
{
    FILE *f = fopen(CONFORMANCE_TABLE, "r");
    char line[256];
    int n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        struct conformance *c = &conformance[n];

        if (line[0] == '#')
            continue;
        assert_true(n < CONFORMANCE_FILES);
        assert_int_equal(sscanf(line, "%95s %zu %64s", c->name, &c->bytes, c->sha256), 3);
        n++;
    }
    fclose(f);
    return n;
}

static void conformance_sha256(const void *data, size_t n, char hex[65])
{
    unsigned char digest[32];

    assert_int_equal(EVP_Digest(data, n, digest, NULL, EVP_sha256(), NULL), 1);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

// Is "-letters" one of those behind the name's first part?
static bool conformance_has(const char *name, const char *letters)
{
    size_t n = strlen(letters);

    for (const char *p = strchr(name, '-'); p; p = strchr(p + 1, '-'))
        if (strncmp(p + 1, letters, n) == 0 && (p[1 + n] == '-' || p[1 + n] == 0))
            return true;
    return false;
}

static int conformance_append(void *arg, const struct iovec *v, int n)
{
    for (int i = 0; i < n; i++)
        mcap_put(arg, v[i].iov_base, v[i].iov_len);
    return 0;
}

static void conformance_messages(struct mcap_writer *w, struct mcap_build *b,
                                 const char *name)
{
    static const struct mcap_pair pair = {"foo", "bar"};
    static const unsigned char three[] = {4, 5, 6};
    static const uint64_t times[] = {0, 2, 1, 3, 3, 5, 4, 7, 8, 9};
    bool without = strncmp(name, "OneSchemaless", 13) == 0;
    const struct mcap_schema s = {1, "Example", "c", three, sizeof three};
    const struct mcap_channel c =
        without ? (struct mcap_channel){1, 0, "example", "text", NULL, 0}
                : (struct mcap_channel){1, 1, "example", "a", &pair, 1};
    int n = strncmp(name, "Ten", 3) == 0 ? 10 : 1;

    if (!without)
        assert_int_equal(mcap_writer_schema(w, &s, b == NULL), 0);
    assert_int_equal(mcap_writer_channel(w, &c, b == NULL), 0);
    if (b && !without)
        assert_int_equal(mcap_build_schema(b, &s), 0);
    if (b)
        assert_int_equal(mcap_build_channel(b, &c), 0);
    for (int i = 0; i < n; i++) {
        struct mcap_message m = {1,
                                 n == 1 ? 10 : (uint32_t)i,
                                 n == 1 ? 2 : times[i],
                                 n == 1 ? 1 : times[i],
                                 "\1\2\3",
                                 3};

        assert_int_equal(b ? mcap_build_message(b, &m) : mcap_writer_message(w, &m), 0);
    }
}

static void conformance_chunk(struct mcap_writer *w, const char *name)
{
    struct mcap_build_options opt = {.no_message_index = !conformance_has(name, "mx"),
                                     .pad = conformance_has(name, "pad")};
    struct mcap_build *b;
    struct mcap_chunk *c;

    assert_int_equal(mcap_build_new(&b, &opt), 0);
    conformance_messages(w, b, name);
    assert_int_equal(mcap_build_finish(b, &c), 0);
    assert_int_equal(mcap_writer_chunk(w, c), 0);
    mcap_chunk_free(c);
    mcap_build_free(b);
}

// The whole file into *out.
static void conformance_make(const struct conformance *variant, struct mcap_bytes *out)
{
    const char *name = strchr(variant->name, '/') + 1;
    static const struct mcap_pair pair = {"foo", "bar"};
    struct mcap_writer_options opt = {
        .profile = "",
        .library = "",
        .write = conformance_append,
        .arg = out,
        .no_statistics = !conformance_has(name, "st"),
        .no_repeat_schemas = !conformance_has(name, "rsh"),
        .no_repeat_channels = !conformance_has(name, "rch"),
        .no_attachment_index = !conformance_has(name, "ax"),
        .no_metadata_index = !conformance_has(name, "mdx"),
        .no_chunk_index = !conformance_has(name, "chx"),
        .no_summary_offsets = !conformance_has(name, "sum"),
        .pad = conformance_has(name, "pad"),
    };
    struct mcap_writer *w;

    assert_int_equal(mcap_writer_new(&w, &opt), 0);
    if (strncmp(name, "OneAttachment", 13) == 0)
        assert_int_equal(mcap_writer_attachment(w, 2, 1, "myFile",
                                                "application/octet-stream", "\1\2\3", 3),
                         0);
    else if (strncmp(name, "OneMetadata", 11) == 0)
        assert_int_equal(mcap_writer_metadata(w, "myMetadata", &pair, 1), 0);
    else if (conformance_has(name, "ch"))
        conformance_chunk(w, name);
    else if (strncmp(name, "NoData", 6) != 0)
        conformance_messages(w, NULL, name);
    assert_int_equal(mcap_writer_finish(w), 0);
    assert_false(out->failed);
    mcap_writer_free(w);
}

#endif
