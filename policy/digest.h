// digest: SHA-256 through libcrypto, which uses the processor's own instructions for it: 2 GB/s
// where a plain C loop makes 0.5, and a checkpoint of 207 MB is hashed while an arm moves.
// All functions are plain.
#ifndef ACTD_DIGEST_H
#define ACTD_DIGEST_H

#include <stddef.h>

#include "policy/policy.h"

struct digest; // opaque: libcrypto's context

// *out is the caller's to digest_free. 0 or -ENOMEM with err filled.
int digest_start(struct digest **out, struct policy_error *err);

void digest_add(struct digest *d, const void *bytes, size_t n);

// Ends it: 64 hexadecimal digits and a 0. 0, or -EIO with err filled when libcrypto failed
// anywhere since digest_start.
int digest_end(struct digest *d, char hex[POLICY_DIGEST_HEX], struct policy_error *err);

void digest_free(struct digest *d); // NULL is fine

// All of it for one block of bytes.
int digest_of(const void *bytes, size_t n, char hex[POLICY_DIGEST_HEX],
              struct policy_error *err);

// Of the file of the running program: another build may differ in its last bits. "" = it can not be
// read.
void digest_program(char hex[POLICY_DIGEST_HEX]);

#endif
