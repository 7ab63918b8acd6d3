// refuse: see the header.
#include "policy/refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 0))) static void
write_from(struct policy_error *err, size_t at, const char *format, va_list ap)
{
    vsnprintf(err->text + at, sizeof err->text - at, format, ap);
    for (char *p = err->text + at; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
}

int refuse(struct policy_error *err, int code, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (err)
        write_from(err, 0, format, ap);
    va_end(ap);
    return -code;
}

int refuse_more(struct policy_error *err, int code, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (err)
        write_from(err, strnlen(err->text, sizeof err->text - 1), format, ap);
    va_end(ap);
    return -code;
}
