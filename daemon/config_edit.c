// config_edit: every word EDIT that is left. `actd init` leaves a score of them; one
// refusal for each would be a score of rounds.
#include <stdio.h>
#include <string.h>

#include "daemon/config_keys.h"

struct edits {
    char *text;
    size_t size, at;
    int n;
    char section[160]; // of the last one listed
};

static void add(struct edits *e, const char *section, const char *name)
{
    const char *before = "; ", *colon = ": ";

    if (e->n++ == 0)
        before = "";
    else if (strcmp(e->section, section) == 0)
        before = ", ";
    if (*before == ',' || !*section)
        colon = section = "";
    else
        snprintf(e->section, sizeof e->section, "%s", section);
    if (e->at < e->size)
        e->at += (size_t)snprintf(e->text + e->at, e->size - e->at, "%s%s%s%s", before,
                                  section, colon, name);
}

static bool is_edit(const struct ynode *v)
{
    bool found = v->kind == YNODE_SCALAR && config_is_edit(v->text);

    for (const struct ynode *c = v->kind == YNODE_LIST ? v->child : NULL; c && !found;
         c = c->next)
        found = c->kind == YNODE_SCALAR && config_is_edit(c->text);
    return found;
}

static void walk(struct edits *e, const struct ynode *map, const char *section)
{
    char below[160];

    for (const struct ynode *v = map->child; v; v = v->next) {
        if (config_is_edit(v->key))
            add(e, section, v->key);
        if (is_edit(v))
            add(e, section, v->key);
        if (v->kind != YNODE_MAP)
            continue;
        snprintf(below, sizeof below, "%.80s%s%.60s", section, *section ? "." : "",
                 v->key);
        walk(e, v, below); // at most 16 levels deep
    }
}

void config_list_edits(const struct ytree *t, struct config_error *err)
{
    char list[sizeof err->text];
    struct edits e = {.text = list, .size = sizeof list};
    size_t n = strlen(err->text);

    if (!strstr(err->text, ": fill in"))
        return;
    walk(&e, ytree_root(t), "");
    if (e.n < 2)
        return;
    snprintf(err->text + n, sizeof err->text - n, " (%d are still EDIT: %s)", e.n, list);
    for (char *p = err->text + n; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    if (strlen(err->text) == sizeof err->text - 1)
        memcpy(err->text + sizeof err->text - 4, "...", 4);
}
