// digest: see the header.
#include "policy/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "policy/refuse.h"

struct digest {
    EVP_MD_CTX *context;
    bool failed;
};

int digest_start(struct digest **out, struct policy_error *err)
{
    struct digest *d = calloc(1, sizeof *d);
    *out = d;
    // What a sum is must not depend on a machine's openssl.cnf.
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    if (d && (d->context = EVP_MD_CTX_new()) &&
        EVP_DigestInit_ex(d->context, EVP_sha256(), NULL) == 1)
        return 0;
    digest_free(d);
    *out = NULL;
    (void)refuse(err, ENOMEM, "no memory for a SHA-256");
    return -ENOMEM;
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
    if (EVP_DigestUpdate(d->context, bytes, n) != 1)
        d->failed = true;
}

int digest_end(struct digest *d, char hex[POLICY_DIGEST_HEX], struct policy_error *err)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_DigestFinal_ex(d->context, sum, &n) != 1 || d->failed ||
        2 * n + 1 != POLICY_DIGEST_HEX)
        return refuse(err, EIO, "libcrypto can not compute a SHA-256: check libssl3");
    for (unsigned i = 0; i < n; i++)
        snprintf(hex + (size_t)2 * i, 3, "%02x", sum[i]);
    return 0;
}

void digest_free(struct digest *d)
{
    if (!d)
        return;
    EVP_MD_CTX_free(d->context);
    free(d);
}

int digest_of(const void *bytes, size_t n, char hex[POLICY_DIGEST_HEX],
              struct policy_error *err)
{
    struct digest *d;
    int rc = digest_start(&d, err);
    if (rc)
        return rc;
    digest_add(d, bytes, n);
    rc = digest_end(d, hex, err);
    digest_free(d);
    return rc;
}

void digest_program(char hex[POLICY_DIGEST_HEX])
{
    struct policy_error err;
    struct digest *d = NULL;
    unsigned char block[16384];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    hex[0] = '\0';
    if (fd >= 0 && digest_start(&d, &err) == 0) {
        while ((n = read(fd, block, sizeof block)) > 0)
            digest_add(d, block, (size_t)n);
        if (n < 0 || digest_end(d, hex, &err) != 0)
            hex[0] = '\0';
    }
    digest_free(d);
    if (fd >= 0)
        close(fd);
}
