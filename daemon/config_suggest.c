// config_suggest: the key that was probably meant.
#include <stdio.h>
#include <string.h>

#include "daemon/config_keys.h"

#define LONGEST 48 // keys have at most 18 letters

static int least(int a, int b)
{
    return a < b ? a : b;
}

// Optimal string alignment; rows i-2, i-1 and i of the usual table.
int config_distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1];
    int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);

    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] =
                least(least(up[j], now[j - 1]) + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], up2[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

// Name i of a section: its keys, and at the top level the sections too. NULL after the
// last.
static const char *name_in(const char *section, int i)
{
    for (int k = 0; k < config_keys; k++)
        if (strcmp(config_key[k].section, section) == 0 && i-- == 0)
            return config_key[k].name;
    if (!*section && i + 1 < config_sections)
        return config_section[i + 1].name;
    return NULL;
}

static const char *nearest_in(const char *section, const char *key, int *distance)
{
    const char *best = NULL, *name;

    for (int i = 0; (name = name_in(section, i)); i++) {
        int d = config_distance(key, name);
        if (d < *distance) {
            *distance = d;
            best = name;
        }
    }
    return best;
}

static void list(const char *section, char *buf, size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "; the keys here are ");
    const char *name;

    for (int i = 0; (name = name_in(section, i)) && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "", name);
}

const char *config_suggest(const char *section, const char *key, char *buf, size_t size)
{
    int n = (int)strnlen(key, LONGEST), distance = least(3, n / 2) + 1;
    const char *best = nearest_in(section, key, &distance);

    if (best) {
        snprintf(buf, size, "; did you mean '%s'?", best);
        return buf;
    }
    for (int i = 0; i < config_keys; i++) // the right key in the wrong place
        if (strcmp(config_key[i].name, key) == 0) {
            const char *s = config_key[i].section;
            bool each = strcmp(s, "cameras") == 0 || strcmp(s, "joints") == 0;
            snprintf(buf, size, "; did you mean '%s%s%s%s'?", s, *s ? "." : "",
                     each ? "NAME." : "", key);
            return buf;
        }
    list(section, buf, size);
    return buf;
}

const char *config_suggest_name(const char *first, size_t stride, int n, const char *name,
                                char *buf, size_t size)
{
    int distance = least(3, (int)strnlen(name, LONGEST) / 2) + 1;
    const char *best = NULL;

    for (int i = 0; i < n; i++) {
        int d = config_distance(first + (size_t)i * stride, name);
        if (d < distance) {
            distance = d;
            best = first + (size_t)i * stride;
        }
    }
    snprintf(buf, size, "%s%.127s%s", best ? "; did you mean '" : "", best ? best : "",
             best ? "'?" : "");
    return buf;
}
