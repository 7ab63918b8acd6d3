// log_tool_cat: `actd log cat`.
#include "daemon/log_tool_impl.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/clock.h"

static const char help[] =
    "usage: actd log cat LOG... [--topic TOPIC]... [--from S] [--to S] [--limit N]\n"
    "\n"
    "Prints messages in the order of time, one line of JSON each:\n"
    "  {\"topic\":…, \"log_time\":ns, \"seconds\":since the beginning, \"publish_time\":ns,\n"
    "   \"sequence\":n, \"message\":{…}}\n"
    "Protobuf is decoded by the schema in the file, images to their sizes; what is something else\n"
    "has \"bytes\" (how many) and, up to 64 KiB, \"base64\" instead of \"message\".\n"
    "\n"
    "      --topic TOPIC   only this one; * and ? match; several can be given\n"
    "      --from S        from S seconds after the beginning of the recording\n"
    "      --to S          up to, and without, S seconds after it\n"
    "      --limit N       end after N messages\n"
    "  -h, --help          this text\n"
    "\n"
    "exit status: 0, 1 something was damaged and passed over (it is said which), 64 usage, 65 no\n"
    "recording, 66 it cannot be read\n";

#define BASE64_MOST ((size_t)64 << 10)

struct cat {
    struct logbook *book;
    char **topic; // patterns
    int n_topics;
    double from, to;
    bool has_to;
    uint64_t limit, printed; // limit 0 = none
    bool damaged, met;       // met: some topic is wanted
    struct log_types *
        *types; // of the file in hand, by place of the schema; NULL: none of it
    int n_types;
};

static bool wanted(const struct cat *c, const char *topic)
{
    for (int i = 0; i < c->n_topics; i++)
        if (fnmatch(c->topic[i], topic, 0) == 0)
            return true;
    return c->n_topics == 0;
}

static const struct log_types *types_of(const struct cat *c, const struct mcap_reader *r,
                                        uint16_t schema)
{
    for (int i = 0; i < c->n_types; i++)
        if (mcap_schema_at(r, i)->id == schema)
            return c->types[i];
    return NULL;
}

static void raw(const struct mcap_message *m)
{
    printf("\"bytes\":%zu", m->size);
    if (m->size > BASE64_MOST)
        return;
    printf(",\"base64\":");
    log_print_base64(stdout, m->data, m->size);
}

static int print(struct cat *c, const struct mcap_reader *r, const struct mcap_message *m)
{
    const struct mcap_channel *channel = mcap_channel_of(r, m->channel);
    const struct log_types *types = types_of(c, r, channel->schema);
    uint64_t start = log_book_start_ns(c->book);
    char *text = NULL;
    size_t n = 0;
    FILE *f = types ? open_memstream(&text, &n) : NULL;
    bool decoded = f && log_types_print(types, m->data, m->size, f);

    if (f && fclose(f) != 0)
        decoded = false;
    printf("{\"topic\":");
    log_print_string(stdout, channel->topic, strlen(channel->topic));
    printf(",\"log_time\":%" PRIu64 ",\"seconds\":%.6f,\"publish_time\":%" PRIu64
           ",\"sequence\":%" PRIu32 ",",
           m->log_ns, m->log_ns >= start ? (double)(m->log_ns - start) / 1e9 : 0.0,
           m->publish_ns, m->sequence);
    if (decoded)
        printf("\"message\":%s", text);
    else
        raw(m);
    printf("}\n");
    free(text);
    c->printed++;
    return ferror(stdout) ? -EPIPE : 0;
}

static int messages(struct cat *c, int file, const uint16_t *id, int n,
                    struct mcap_error *err)
{
    struct mcap_reader *r = logbook_reader(c->book, file);
    uint64_t from = log_at_ns(c->book, c->from),
             to = c->has_to ? log_at_ns(c->book, c->to) : 0;
    struct mcap_cursor *cursor;
    struct mcap_message m;
    int rc;

    if (c->has_to && to <= from)
        return 0;
    rc = mcap_cursor_new(&cursor, r, id, n, MCAP_LOG_ORDER, from, to);
    while (rc == 0 && (c->limit == 0 || c->printed < c->limit)) {
        int more = mcap_next(cursor, &m, err);
        if (more == 0)
            break;
        if (more < 0) {
            fprintf(stderr, "%s: %s\n", logbook_path(c->book, file), err->text);
            c->damaged = true;
        } else {
            rc = print(c, r, &m);
        }
    }
    mcap_cursor_free(cursor);
    return rc;
}

static int one_file(struct cat *c, int file, struct mcap_error *err)
{
    struct mcap_reader *r = logbook_reader(c->book, file);
    uint16_t *id = calloc((size_t)mcap_channels(r) + 1, sizeof *id);
    int n = 0, rc = -ENOMEM;

    c->n_types = mcap_schemas(r);
    // NOLINTNEXTLINE(bugprone-sizeof-expression): it is an array of pointers
    c->types = calloc((size_t)c->n_types + 1, sizeof *c->types);
    if (!id || !c->types)
        goto out;
    for (int i = 0; i < c->n_types; i++)
        c->types[i] = log_types_new(mcap_schema_at(r, i));
    for (int i = 0; i < mcap_channels(r); i++)
        if (wanted(c, mcap_channel_at(r, i)->topic))
            id[n++] = mcap_channel_at(r, i)->id;
    c->met |= n > 0;
    rc = n > 0 ? messages(c, file, id, n, err) : 0;
out:
    for (int i = 0; c->types && i < c->n_types; i++)
        log_types_free(c->types[i]);
    free(c->types);
    free(id);
    return rc;
}

static bool option(struct cat *c, int letter, const char *value)
{
    char *end;

    switch (letter) {
    case 't':
        c->topic[c->n_topics++] = optarg;
        return true;
    case 'f':
        return log_seconds(value, &c->from);
    case 'e':
        c->has_to = true;
        return log_seconds(value, &c->to);
    case 'l':
        c->limit = strtoull(value, &end, 10);
        return *value != '-' && *end == 0 && c->limit > 0;
    default:
        return false;
    }
}

static int run(struct cat *c, char **path, int n)
{
    struct mcap_error err = {""};
    int rc = logbook_open(&c->book, (const char *const *)path, n, &err);
    const char *damage;

    for (int i = 0; rc == 0 && i < logbook_files(c->book); i++)
        rc = one_file(c, i, &err);
    if (rc == 0 && !c->met)
        fprintf(stderr, "there is no such topic in it; `actd log info` lists them\n");
    damage = c->book ? logbook_damage(c->book) : "";
    if (*damage)
        fprintf(stderr, "%s\n", damage);
    c->damaged |= *damage != 0;
    logbook_close(c->book);
    if (rc == -EPIPE) // `| head` wants no more
        return 0;
    return rc < 0 ? log_status(rc, &err) : c->damaged;
}

int log_cat(int argc, char **argv)
{
    static const struct option longs[] = {
        {"topic", 1, NULL, 't'}, {"from", 1, NULL, 'f'}, {"to", 1, NULL, 'e'},
        {"limit", 1, NULL, 'l'}, {"help", 0, NULL, 'h'}, {0}};
    struct cat c = {.topic = calloc((size_t)argc, sizeof *c.topic)};
    int status = c.topic ? 0 : EX_OSERR;

    for (int o; status == 0 && (o = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (o == 'h') {
            fputs(help, stdout);
            free(c.topic);
            return 0;
        }
        if (!option(&c, o, optarg))
            status = log_usage(help);
    }
    if (status == 0 && optind == argc)
        status = log_usage(help);
    if (status == 0)
        status = run(&c, argv + optind, argc - optind);
    free(c.topic);
    return status;
}
