#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int under_journal;

void log_init(void)
{
    under_journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_line(enum log_level level, const char *format, ...)
{
    char text[1024], stamp[16] = "";
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    if (under_journal) {
        fprintf(stderr, "<%d>%s\n", (int)level, text);
        return;
    }
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm))
        strftime(stamp, sizeof stamp, "%H:%M:%S ", &tm);
    const char *word = level == LOG_ERROR  ? "error: "
                       : level == LOG_WARN ? "warning: "
                                           : "";
    fprintf(stderr, "%s%s%s\n", stamp, word, text);
}
