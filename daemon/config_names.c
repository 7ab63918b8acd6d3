// config_names: who may talk to the daemon, and where it may listen. Only the form is
// looked at here: a configuration must load on a machine that does not have the users.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config_keys.h"

#define ID_MAX 4294967294.0 // 2^32 - 1 means "no id" to the kernel

// What useradd, adduser and directory services make; never what could end a line of the
// list, or hide in a message.
static bool is_login(const char *text)
{
    static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789-_.+@\\$";

    return *text && *text != '-' && *text != '@' && text[strspn(text, ok)] == '\0' &&
           strlen(text) < CONFIG_NAME;
}

static bool is_id(const char *text)
{
    double v;

    return strspn(text, "0123456789") == strlen(text) && config_real(text, &v) &&
           v <= ID_MAX;
}

static bool is_name(const char *text)
{
    const char *bare = text + (*text == '@');
    bool number = *bare >= '0' && *bare <= '9';

    return is_login(bare) && (!number || is_id(bare));
}

static bool is_in(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = list; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") == n && strncmp(line, name, n) == 0)
            return true;
    return false;
}

// Each line of the list ends with '\n'.
static bool add(const struct ynode *v, char *out, size_t size)
{
    size_t at = strlen(out);
    int n;

    if (v->kind != YNODE_SCALAR || !is_name(v->text) || is_in(out, v->text))
        return false;
    n = snprintf(out + at, size - at, "%s\n", v->text);
    return n > 0 && (size_t)n < size - at;
}

bool config_names(const struct ynode *v, char *out, size_t size)
{
    char list[CONFIG_LIST] = "";
    bool good =
        v->kind == YNODE_SCALAR || (v->kind == YNODE_LIST && v->n <= CONFIG_NAMES);
    size_t room = size < sizeof list ? size : sizeof list;

    if (v->kind == YNODE_SCALAR)
        good = add(v, list, room);
    for (const struct ynode *c = v->kind == YNODE_LIST ? v->child : NULL; c && good;
         c = c->next)
        good = add(c, list, room);
    if (good)
        memcpy(out, list, room);
    return good;
}

bool config_listen(const char *text)
{
    const char *colon = strrchr(text, ':');
    char host[CONFIG_NAME];
    struct in_addr v4;
    int port;

    if (!colon || (size_t)(colon - text) >= sizeof host || colon[1] == '+' ||
        !config_int(colon + 1, &port) || port < 1 || port > 65535)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    return strcmp(host, "[::1]") == 0 ||
           (strncmp(host, "127.", 4) == 0 && inet_pton(AF_INET, host, &v4) == 1);
}
