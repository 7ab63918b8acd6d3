// ytree: see the header. libyaml delivers events; each becomes a node of the tree.
//
// Deep nesting is quadratic in libyaml (200 000 '[' take half a minute), but events come
// out one by one and it looks ahead 1024 characters at most, so stopping at the
// seventeenth level costs 1.1 ms on the worst file of 64 KiB.
#include "daemon/ytree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct ytree {
    char *file;
    struct ynode *root;
};

struct builder {
    struct ytree *tree;
    struct config_error *err;
    struct ynode *open[YTREE_MAX_DEPTH]; // mappings and lists not yet closed
    int depth;
    char *key; // read, its value still to come
    int key_line, key_column;
    bool in_document, done;
};

int ytree_refuse(const char *file, int line, int column, struct config_error *err,
                 const char *format, ...)
{
    va_list ap;
    int at = snprintf(err->text, sizeof err->text, "%s:%d:%d: ", file, line, column);

    if (at < 0 || at >= (int)sizeof err->text)
        return -EINVAL;
    va_start(ap, format);
    vsnprintf(err->text + at, sizeof err->text - (size_t)at, format, ap);
    va_end(ap);
    for (char *p = err->text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return -EINVAL;
}

const char *ynode_shown(const struct ynode *n, char *buf, size_t size)
{
    if (n->kind == YNODE_MAP)
        snprintf(buf, size, "a mapping");
    else if (n->kind == YNODE_LIST)
        snprintf(buf, size, "a list");
    else if (!*n->text)
        snprintf(buf, size, "nothing");
    else
        snprintf(buf, size, "%s'%.40s'%s", n->plain ? "" : "the quoted text ", n->text,
                 strlen(n->text) > 40 ? "..." : "");
    return buf;
}

static int refuse_at(const struct builder *b, yaml_mark_t at, const char *what)
{
    return ytree_refuse(b->tree->file, (int)at.line + 1, (int)at.column + 1, b->err, "%s",
                        what);
}

// ---- bytes ----------------------------------------------------------------------------

// Length of the UTF-8 sequence at s (n > 0 bytes left), 0 when it is not one.
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80           ? 1
                 : (s[0] >> 5) == 0x06 ? 2
                 : (s[0] >> 4) == 0x0e ? 3
                 : (s[0] >> 3) == 0x1e ? 4
                                       : 0;
    if (len < 2 || len > n)
        return len == 1;
    unsigned c = s[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return c < least[len] || c > 0x10ffff || surrogate ? 0 : len;
}

static int check_bytes(const struct builder *b, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    yaml_mark_t at = {0};

    if (n > YTREE_MAX_BYTES)
        return refuse_at(b, at,
                         "the file is larger than 64 KiB; no robot needs that much");
    if (n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
        return refuse_at(
            b, at,
            "the file starts with a byte order mark; save it as UTF-8 without one");
    for (size_t i = 0, len; i < n; i += len) {
        len = utf8_length(s + i, n - i);
        if (!len || (s[i] < 0x20 && s[i] != '\n' && s[i] != '\t' && s[i] != '\r'))
            return refuse_at(b, at,
                             len ? "control character; remove it"
                                 : "not UTF-8; save the file as UTF-8");
        at.column = s[i] == '\n' ? 0 : at.column + 1;
        at.line += s[i] == '\n';
    }
    return 0;
}

// ---- events to nodes ------------------------------------------------------------------

static struct ynode *node_new(struct builder *b, enum ynode_kind kind, yaml_mark_t at)
{
    struct ynode *n = calloc(1, sizeof *n);
    struct ynode *parent = b->depth ? b->open[b->depth - 1] : NULL;

    if (!n)
        return NULL;
    *n = (struct ynode){.kind = kind,
                        .line = (int)at.line + 1,
                        .column = (int)at.column + 1,
                        .key = b->key,
                        .key_line = b->key_line,
                        .key_column = b->key_column};
    b->key = NULL;
    if (!parent)
        b->tree->root = n;
    else if (parent->last)
        parent->last->next = n;
    else
        parent->child = n;
    if (parent) {
        parent->last = n;
        parent->n++;
    }
    return n;
}

static bool expects_key(const struct builder *b)
{
    return b->depth && b->open[b->depth - 1]->kind == YNODE_MAP && !b->key;
}

static int take_key(struct builder *b, const char *text, bool plain, yaml_mark_t at)
{
    const struct ynode *same = ynode_get(b->open[b->depth - 1], text);

    if (plain && strcmp(text, "<<") == 0)
        return refuse_at(b, at, "merge keys (<<) are not allowed; write the keys out");
    if (!*text)
        return refuse_at(b, at, "expected a key before ':'");
    if (same)
        return ytree_refuse(b->tree->file, (int)at.line + 1, (int)at.column + 1, b->err,
                            "%.60s: duplicate key, first written in line %d; remove one",
                            text, same->key_line);
    b->key = strdup(text);
    b->key_line = (int)at.line + 1;
    b->key_column = (int)at.column + 1;
    return b->key ? 0 : -ENOMEM;
}

static int take_scalar(struct builder *b, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    yaml_scalar_style_t style = e->data.scalar.style;
    struct ynode *n;

    if (style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE)
        return refuse_at(
            b, e->start_mark,
            "block text (| or >) is not allowed; write the value on one line");
    for (size_t i = 0; i < e->data.scalar.length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return refuse_at(
                b, e->start_mark,
                "control character or line break inside a text; write it on one line");
    if (e->start_mark.line != e->end_mark.line)
        return refuse_at(b, e->start_mark,
                         "the text runs over several lines; write it on one");
    if (expects_key(b))
        return take_key(b, text, style == YAML_PLAIN_SCALAR_STYLE, e->start_mark);
    n = node_new(b, YNODE_SCALAR, e->start_mark);
    if (!n || !(n->text = strdup(text)))
        return -ENOMEM;
    n->plain = style == YAML_PLAIN_SCALAR_STYLE;
    return 0;
}

static int open_node(struct builder *b, enum ynode_kind kind, yaml_mark_t at)
{
    struct ynode *n;

    if (b->depth == YTREE_MAX_DEPTH)
        return refuse_at(b, at, "nested more than 16 levels deep");
    if (expects_key(b))
        return refuse_at(b, at, "expected a key, found a mapping or a list");
    n = node_new(b, kind, at);
    if (!n)
        return -ENOMEM;
    b->open[b->depth++] = n;
    return 0;
}

// What YAML can do and a configuration must not.
static const char *forbidden(const struct builder *b, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return "aliases (*name) are not allowed; write the value out";
    case YAML_DOCUMENT_START_EVENT:
        if (b->in_document)
            return "several documents in one file are not allowed; remove what follows";
        if (e->data.document_start.version_directive ||
            e->data.document_start.tag_directives.start !=
                e->data.document_start.tag_directives.end)
            return "directives (%YAML, %TAG) are not allowed; remove the line";
        return NULL;
    case YAML_SCALAR_EVENT:
        return e->data.scalar.anchor ? "anchors (&name) are not allowed; remove it"
               : e->data.scalar.tag  ? "tags (!name) are not allowed; remove it"
                                     : NULL;
    case YAML_MAPPING_START_EVENT:
        return e->data.mapping_start.anchor ? "anchors (&name) are not allowed; remove it"
               : e->data.mapping_start.tag  ? "tags (!name) are not allowed; remove it"
                                            : NULL;
    case YAML_SEQUENCE_START_EVENT:
        return e->data.sequence_start.anchor
                   ? "anchors (&name) are not allowed; remove it"
               : e->data.sequence_start.tag ? "tags (!name) are not allowed; remove it"
                                            : NULL;
    default:
        return NULL;
    }
}

static int take(struct builder *b, const yaml_event_t *e)
{
    const char *no = forbidden(b, e);

    if (no)
        return refuse_at(b, e->start_mark, no);
    if (b->depth && !b->key && b->open[b->depth - 1]->n == YTREE_MAX_ENTRIES &&
        e->type != YAML_MAPPING_END_EVENT && e->type != YAML_SEQUENCE_END_EVENT)
        return refuse_at(b, e->start_mark, "more than 256 entries");
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        b->in_document = true;
        return 0;
    case YAML_SCALAR_EVENT:
        return take_scalar(b, e);
    case YAML_MAPPING_START_EVENT:
        return open_node(b, YNODE_MAP, e->start_mark);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(b, YNODE_LIST, e->start_mark);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        return 0;
    case YAML_STREAM_END_EVENT:
        b->done = true;
        return 0;
    default:
        return 0;
    }
}

// Is there a tab among the blanks at the start of this line (0-based)? Then *at is it.
static bool tab_indents(const char *text, size_t n, size_t line, yaml_mark_t *at)
{
    size_t i = 0;

    for (; line > 0 && i < n; i++)
        line -= text[i] == '\n';
    for (size_t begin = i; i < n && (text[i] == ' ' || text[i] == '\t'); i++)
        if (text[i] == '\t') {
            at->column = i - begin;
            return true;
        }
    return false;
}

// YAML keeps '@' for itself, which somebody who names a group cannot guess.
static bool at_sign(const char *text, size_t n, yaml_mark_t at)
{
    size_t i = 0;

    for (; at.line > 0 && i < n; i++)
        at.line -= text[i] == '\n';
    return i + at.column < n && text[i + at.column] == '@';
}

static int parser_error(const struct builder *b, const yaml_parser_t *p, const char *text,
                        size_t n)
{
    yaml_mark_t tab = p->problem_mark;
    char what[200];

    if (p->error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    if (tab_indents(text, n, tab.line, &tab))
        return refuse_at(b, tab, "a tab; indent with spaces");
    if (at_sign(text, n, p->problem_mark))
        return refuse_at(b, p->problem_mark, "'@' needs quotes; write \"@group\"");
    snprintf(what, sizeof what, "not valid YAML: %s%s%s", p->context ? p->context : "",
             p->context ? ", " : "", p->problem ? p->problem : "unreadable");
    return refuse_at(b, p->problem_mark, what);
}

static int run(struct builder *b, const char *text, size_t n)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int rc = 0;

    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    while (!rc && !b->done) {
        if (!yaml_parser_parse(&parser, &event)) {
            rc = parser_error(b, &parser, text, n);
            break;
        }
        rc = take(b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

// ---- the tree -------------------------------------------------------------------------

int ytree_parse(struct ytree **out, const char *file, const char *text, size_t n,
                struct config_error *err)
{
    struct builder b = {.err = err, .tree = calloc(1, sizeof *b.tree)};
    int rc = -ENOMEM;

    if (b.tree)
        b.tree->file = strdup(file);
    if (b.tree && b.tree->file)
        rc = check_bytes(&b, text, n);
    if (!rc)
        rc = run(&b, text, n);
    free(b.key);
    if (!rc && !b.tree->root)
        rc = ytree_refuse(file, 1, 1, err, "the file is empty; `actd init` writes one");
    else if (!rc && b.tree->root->kind != YNODE_MAP)
        rc = ytree_refuse(file, b.tree->root->line, b.tree->root->column, err,
                          "expected keys and values (`key: value`)");
    if (rc == -ENOMEM)
        snprintf(err->text, sizeof err->text, "%s: out of memory", file);
    if (rc) {
        ytree_free(b.tree);
        return rc;
    }
    *out = b.tree;
    return 0;
}

static void node_free(struct ynode *n) // at most 16 levels deep
{
    while (n) {
        struct ynode *next = n->next;
        node_free(n->child);
        free(n->text);
        free(n->key);
        free(n);
        n = next;
    }
}

void ytree_free(struct ytree *t)
{
    if (!t)
        return;
    node_free(t->root);
    free(t->file); // NOLINT(clang-analyzer-unix.Malloc): it takes strdup for a constant
    free(t);
}

const struct ynode *ytree_root(const struct ytree *t)
{
    return t->root;
}

const char *ytree_file(const struct ytree *t)
{
    return t->file;
}

const struct ynode *ynode_get(const struct ynode *map, const char *key)
{
    for (const struct ynode *n = map->child; n; n = n->next)
        if (n->key && strcmp(n->key, key) == 0)
            return n;
    return NULL;
}
