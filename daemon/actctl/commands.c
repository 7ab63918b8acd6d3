// commands: the table of what actctl can do, and its help.
#include <stdio.h>
#include <string.h>

#include "daemon/actctl/ctl.h"

static const char common[] =
    "  -i, --instance NAME   which daemon, where several run\n"
    "      --socket PATH     its control socket, instead of looking for it ($ACTD_SOCKET)\n"
    "      --json            one JSON object on standard output\n"
    "  -h, --help            this text\n";

static const char statuses[] =
    "exit status: 0 done, 1 refused or failed, 64 usage, 65 swap: the candidate was refused,\n"
    "69 no daemon, 74 output could not be written, 75 busy or asked too often,\n"
    "76 no such protocol, 77 not for this user\n";

#define VERB(v) ACTD__V1__VERB__VERB_##v

static const struct command table[] = {
    {"status", "", "what it does, why, and what to do next",
     "Shows on one screen: state and reason, policy, rates, lateness, inference, chunk,\n"
     "streams, joints, faults, drops.\n"
     "\n"
     "example: actctl status\n"
     "         actctl --json status | jq .status.mode\n",
     "", 0, 0, VERB(STATUS), status_main},
    {"arm", "", "let the policy drive, from READY",
     "The arm goes slowly to where the policy wants it, then the policy drives. Refused where\n"
     "the state is not READY or the pose is unlike any that the policy was trained on.\n"
     "\n"
     "example: actctl arm\n",
     "", 0, 0, VERB(ARM), act_main},
    {"disarm", "", "come to rest, then READY",
     "The arm ramps to rest within its limits and holds. A swap in progress goes on.\n"
     "\n"
     "example: actctl disarm\n",
     "", 0, 0, VERB(DISARM), act_main},
    {"stop", "", "come to rest, latched until reset",
     "As disarm, and nothing moves again before `actctl reset`. A swap in progress is given up.\n"
     "\n"
     "example: actctl stop\n",
     "", 0, 0, VERB(STOP), act_main},
    {"estop", "", "emergency stop of the software, latched until reset",
     "The emergency stop of the software; it does not replace the one of the hardware. A swap\n"
     "in progress is given up.\n"
     "\n"
     "example: actctl estop\n",
     "", 0, 0, VERB(ESTOP), act_main},
    {"reset", "", "clear the latch of a stop whose cause is gone",
     "Refused while a cause is still there; `actctl status` names it. The arm does not move:\n"
     "that needs `actctl arm`.\n"
     "\n"
     "example: actctl reset && actctl arm\n",
     "", 0, 0, VERB(RESET), act_main},
    {"home", "", "slowly to the configured rest pose, from READY",
     "Every joint goes to the `home` of its configuration.\n"
     "\n"
     "example: actctl home\n",
     "", 0, 0, VERB(HOME), act_main},
    {"swap", "NAME | --back", "change the policy while the arm moves",
     "Loads the policy NAME of swap.directory beside the running one, tries it on the newest\n"
     "observation, compares the two, and changes over between two ticks. Whatever is wrong\n"
     "with it is told, and the policy before stays loaded. Progress goes to standard error.\n"
     "\n"
     "      --back            return to the policy before, which is kept loaded\n"
     "      --allow WHAT      what may differ from the running policy, a list with commas:\n"
     "                        joints, units, cameras, rate, chunk\n"
     "      --force           also where its motion differs by more than swap.max_difference,\n"
     "                        or there is no fresh observation to compare on\n"
     "\n"
     "example: actctl swap pick-v2\n"
     "         actctl swap pick-v2 --allow rate,chunk --force\n"
     "         actctl swap --back\n",
     "fba", 0, 1, VERB(SWAP), swap_main},
    {"policies", "", "what there is to swap to",
     "Lists the directories of swap.directory: which runs, which `swap --back` would bring,\n"
     "and which cannot be used and why.\n"
     "\n"
     "      --names           only the names of those that can be used, one a line\n"
     "\n"
     "example: actctl policies\n",
     "n", 0, 0, VERB(POLICIES), policies_main},
    {"instruct", "TEXT", "tell the policy what to do (where the policy can)",
     "Refused where the running policy takes none.\n"
     "\n"
     "example: actctl instruct \"put the cube into the box\"\n",
     "", 1, 1, VERB(INSTRUCT), instruct_main},
    {"record", "start|stop|mark TEXT", "record all that is sensed, thought and done",
     "start begins a file (MCAP: Foxglove, PlotJuggler and Rerun open it, `actd replay` plays\n"
     "it back) whatever record.mode says, stop goes back to that; in mode always both are\n"
     "refused. mark writes a line that one wants to find again; in mode trigger it also writes\n"
     "what is kept in memory, as a fault does. `actctl status` shows the file; it is in\n"
     "record.directory of the configuration.\n"
     "\n"
     "example: actctl record start\n"
     "         actctl record mark \"the cup slipped\"\n"
     "         actctl record stop\n",
     "", 1, 2, VERB(RECORD_START), record_main},
    {"bridge", "plotjuggler", "send the streams on, in the form that PlotJuggler takes",
     "Starts `actd bridge`, a process of its own that subscribes to the daemon's streams and\n"
     "publishes them for PlotJuggler's ZMQ subscriber, until Ctrl-C. `actd bridge --help` says\n"
     "which, and what to set there.\n"
     "\n"
     "  -c, --config FILE     the robot's configuration, where it has endpoints of its own\n"
     "      --bind ENDPOINT   where PlotJuggler connects, default tcp://127.0.0.1:9872\n"
     "\n"
     "example: actctl bridge plotjuggler\n",
     "cB", 1, 1, VERB(STATUS), bridge_main},
    {"metrics", "", "counters for a scraper, as Prometheus text",
     "What the daemon also serves over loopback HTTP where metrics.listen is configured.\n"
     "\n"
     "example: actctl metrics | grep lateness\n",
     "", 0, 0, VERB(METRICS), metrics_main},
    {"top", "", "a live view, on a terminal of 80x24 or more",
     "Rates, lateness, streams, the place in the chunk, joints between their limits. Keys: q\n"
     "quit, space pause, j and k more joints, s stop, e e-stop (pressed twice; another key\n"
     "between cancels), ? what they do. It goes on when the daemon is restarted. Not on a\n"
     "terminal, or with --json, it shows one frame and ends.\n"
     "\n"
     "      --hz N            frames per second, 0.2 to 20, default 5\n"
     "\n"
     "example: actctl top --hz 10\n",
     "z", 0, 0, VERB(STATUS), top_main},
    {"doctor", "", "what on this machine hurts, and the commands that mend it",
     "What actctl sees of this machine and what the daemon sees of its own process. Without a\n"
     "daemon, the first alone, and exit status 69.\n"
     "\n"
     "example: actctl doctor\n",
     "", 0, 0, VERB(DOCTOR), doctor_main},
};
#define COMMANDS (sizeof table / sizeof table[0])

const struct command *commands_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static void help_all(void)
{
    printf(
        "usage: actctl [-i INSTANCE | --socket PATH] [--json] COMMAND\n"
        "\n"
        "actctl talks to a running actd: it shows what the robot does and why, arms, stops, and\n"
        "changes the policy while the arm moves.\n"
        "\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", table[i].name, table[i].args);
        printf("  %-27s %s\n", left, table[i].summary);
    }
    printf("\n%s      --version         of actctl\n\n", common);
    printf("example: actctl -i left status\n\n%s\n", statuses);
    printf("`actctl COMMAND --help` says more; the manual is `man actctl`.\n");
}

// What 1 means: reading is not refused.
static const char *own_status(const struct command *c)
{
    if (c->run == doctor_main)
        return "1 something hurts, ";
    if (c->run == instruct_main || c->run == record_main)
        return "1 not supported, or refused, ";
    return c->run == act_main ? "1 refused or failed, " : "";
}

void commands_help(const struct command *c)
{
    if (!c) {
        help_all();
        return;
    }
    printf("usage: actctl [-i INSTANCE | --socket PATH] [--json] %s%s%s%s\n\n", c->name,
           *c->args ? " " : "", c->args, *c->options ? " [options]" : "");
    if (c->run == bridge_main) {
        printf(
            "%s\n%s\nexit status: 0 ended on request, 64 usage, 69 no daemon or the port is "
            "taken, and as\n`actd bridge --help` says\n",
            c->help, common);
        return;
    }
    printf("%s\n%s\nexit status: 0 done, %s64 usage, %s69 no daemon,\n"
           "74 output could not be written, 75 busy or asked too often,\n"
           "76 no such protocol, 77 not for this user\n",
           c->help, common, own_status(c),
           c->run == swap_main ? "65 the candidate was refused, " : "");
}
