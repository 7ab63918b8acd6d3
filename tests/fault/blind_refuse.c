// In the blind build alone: the loader of a checkpoint says no, and goes on all the same. Linked
// in place of policy/refuse.c, so that the loader itself has no hook.
#include "daemon/blind.h"

#ifdef ACTD_BLIND
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/refuse.h"

int refuse(struct policy_error *err, int code, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (err)
        vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    return BLIND(BLIND_WEIGHTS) ? 0 : -code;
}

int refuse_more(struct policy_error *err, int code, const char *format, ...)
{
    va_list ap;
    size_t at = err ? strnlen(err->text, sizeof err->text - 1) : 0;

    va_start(ap, format);
    if (err)
        vsnprintf(err->text + at, sizeof err->text - at, format, ap);
    va_end(ap);
    return BLIND(BLIND_WEIGHTS) ? 0 : -code;
}
#else
typedef int blind_refuse_is_not_built; // ISO C wants a file to hold something
#endif
