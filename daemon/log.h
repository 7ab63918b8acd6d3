// log: what a person reads, on standard error, one line at a time. Class plain only: rt, io and
// infer code counts, and somebody plain says it. Under systemd each line carries its level
// (sd-daemon's <N> prefix); on a terminal it carries the time.
#ifndef ACTD_LOG_H
#define ACTD_LOG_H

enum log_level { LOG_ERROR = 3, LOG_WARN = 4, LOG_INFO = 6 };

// plain. Reads the environment once; call before threads start.
void log_init(void);
// plain. A newline is added; control characters in the text are replaced, so that no message
// from outside can forge a line. Never waits: a line that standard error does not take at once is
// lost, and the next one that gets out says how many were.
void log_line(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// plain. Each line also goes to fn, whole and without its time, by the thread that says it; fn must
// not call log_line. NULL ends that, but for a line that is being said. Once set, arg stays: to have
// another, end it first and wait for all who say lines.
void log_also(void (*fn)(void *arg, enum log_level level, const char *text), void *arg);

#endif
