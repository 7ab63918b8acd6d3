// Sentences about refusals. A sender's words may be anything: they end up in a log line
// and in a protobuf string, which must be UTF-8, so they are quoted in ASCII and cut.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/codec_impl.h"

enum codec_verdict codec_refuse(struct codec *c, enum codec_verdict v, const char *format,
                                ...)
{
    char *text = codec_why_text(c);
    va_list args;

    if (!text)
        return v;
    va_start(args, format);
    vsnprintf(text, CODEC_WHY_MAX, format, args);
    va_end(args);
    return v;
}

const char *codec_quote(char out[CODEC_QUOTE], const void *word, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *w = word;
    size_t at = 0, i = 0;

    for (; i < n && at <= CODEC_QUOTE - 8; i++) { // 8: one escape, "..." and the end
        if (w[i] >= ' ' && w[i] <= '~' && w[i] != '\\' && w[i] != '\'') {
            out[at++] = (char)w[i];
            continue;
        }
        out[at++] = '\\';
        out[at++] = 'x';
        out[at++] = hex[w[i] >> 4];
        out[at++] = hex[w[i] & 15];
    }
    memcpy(out + at, i < n ? "..." : "", i < n ? 4 : 1);
    return out;
}

enum codec_verdict codec_refuse_stamp(struct codec *c, const struct codec_stamp *s,
                                      int64_t stamp_wall_ns, ns_t received_ns)
{
    long long back_ms = (s->stamp_wall_ns - stamp_wall_ns) / NS_PER_MS;
    long long late_ms = (received_ns - stamp_wall_ns - s->offset_ns) / NS_PER_MS;

    bool alone = late_ms < 0 && -late_ms <= CODEC_JUMP_MS;

    if (stamp_wall_ns < s->stamp_wall_ns)
        return codec_refuse(c, CODEC_BAD_STAMP,
                            "its stamp is %lld ms before the last one: stamps must go "
                            "forward",
                            back_ms);
    return codec_refuse(c, CODEC_BAD_STAMP,
                        "its stamp is %lld ms %s what earlier stamps of this sender lead "
                        "to, %d ms at most: keep its clock from jumping",
                        late_ms < 0 ? -late_ms : late_ms,
                        late_ms < 0 ? "ahead of" : "behind",
                        alone ? CODEC_STEP_MS : CODEC_JUMP_MS);
}
