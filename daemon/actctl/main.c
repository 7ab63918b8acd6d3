// actctl: one small tool to talk to a running actd. The table of commands is in
// commands.c.
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/actctl/ctl.h"
#include "daemon/actctl/style.h"
#include "daemon/actctl/text.h"

// The letters of struct command's `options` come back from getopt_long, which of them
// were given is checked when the command is known: options may stand before it.
static const struct option longs[] = {{"instance", 1, NULL, 'i'},
                                      {"socket", 1, NULL, 'S'},
                                      {"json", 0, NULL, 'j'},
                                      {"help", 0, NULL, 'h'},
                                      {"version", 0, NULL, 'V'},
                                      {"force", 0, NULL, 'f'},
                                      {"back", 0, NULL, 'b'},
                                      {"allow", 1, NULL, 'a'},
                                      {"hz", 1, NULL, 'z'},
                                      {"names", 0, NULL, 'n'},
                                      {"config", 1, NULL, 'c'},
                                      {"bind", 1, NULL, 'B'},
                                      {0}};

static int usage(const char *what, const char *value)
{
    fprintf(stderr, "actctl: %s%s\n", what, text_safe(value));
    return CTL_USAGE;
}

static bool take_hz(struct ctl *c, const char *s)
{
    char *end;

    c->hz = strtod(s, &end);
    return end != s && !*end && c->hz >= 0.2 && c->hz <= 20; // not NaN either
}

static bool take_option(struct ctl *c, int letter)
{
    switch (letter) {
    case 'i':
        c->instance = optarg;
        return true;
    case 'S':
        c->socket = optarg;
        return true;
    case 'j':
        return c->json = true;
    case 'h':
        return c->help = true;
    case 'V':
        return c->version = true;
    case 'f':
        return c->force = true;
    case 'b':
        return c->back = true;
    case 'n':
        return c->names = true;
    case 'a':
        c->allow = optarg;
        return true;
    case 'c':
        c->config = optarg;
        return true;
    case 'B':
        c->bind = optarg;
        return true;
    case 'z':
        return take_hz(c, optarg);
    default:
        return false;
    }
}

// 0, or CTL_USAGE and told. own receives the letters of options that belong to some
// commands.
static int parse(struct ctl *c, int argc, char **argv, char own[16])
{
    int n = 0;

    for (int letter; (letter = getopt_long(argc, argv, "i:hc:", longs, NULL)) != -1;) {
        if (letter == '?')
            return usage("`actctl --help` lists commands and options", "");
        if (!take_option(c, letter))
            return usage("--hz wants 0.2 to 20 frames per second, not ", optarg);
        if (strchr("fbazncB", letter) && n < 15 && !strchr(own, letter))
            own[n++] = (char)letter;
    }
    c->args = argv + optind;
    c->n_args = argc - optind;
    return 0;
}

static const char *long_name(int letter)
{
    for (const struct option *o = longs; o->name; o++)
        if (o->val == letter)
            return o->name;
    return "";
}

static int check(const struct ctl *c, const char *own)
{
    const struct command *m = c->command;
    char text[256];

    for (; *own; own++) {
        if (strchr(m->options, *own))
            continue;
        snprintf(text, sizeof text, "%s has no option --%s: see actctl %s --help",
                 m->name, long_name(*own), m->name);
        return usage(text, "");
    }
    if (c->n_args >= m->least && c->n_args <= m->most)
        return 0;
    snprintf(text, sizeof text, "%s wants %s: see actctl %s --help", m->name,
             *m->args ? m->args : "no argument", m->name);
    return usage(text, "");
}

static int choose(struct ctl *c, const char *own)
{
    if (c->n_args > 0 && strcmp(c->args[0], "help") == 0) { // what people type
        c->help = true;
        c->args++;
        c->n_args--;
    }
    if (c->n_args > 0) {
        c->command = commands_find(c->args[0]);
        if (!c->command) {
            fprintf(stderr, "actctl: unknown command '%s'; actctl --help lists them\n",
                    text_safe(c->args[0]));
            return CTL_USAGE;
        }
        c->args++;
        c->n_args--;
    }
    if (c->help || !c->command)
        return 0;
    return check(c, own);
}

// What was asked for is done all the same, and a script must be able to tell.
static int unsaid(void)
{
    fputs("actctl: it was done, but standard output could not be written\n", stderr);
    return CTL_UNSAID;
}

int main(int argc, char **argv)
{
    struct ctl c = {.talk.fd = -1};
    char own[16] = "";
    int status = parse(&c, argc, argv, own);

    signal(SIGPIPE, SIG_DFL); // `actctl metrics | head` ends as cat does
    setlocale(LC_CTYPE, "");
    if (status)
        return status;
    if (c.version) {
        printf("actctl %s\n", ACTD_VERSION);
        return CTL_OK;
    }
    status = choose(&c, own);
    if (status)
        return status;
    if (c.help) {
        commands_help(c.command);
        return CTL_OK;
    }
    if (!c.command)
        return usage("say what to do: `actctl --help` lists the commands", "");
    c.colour = !c.json && style_wanted(STDOUT_FILENO);
    status = c.command->run(&c);
    talk_close(&c.talk);
    if (fflush(stdout) != 0 && status == 0)
        status = unsaid();
    return status;
}
