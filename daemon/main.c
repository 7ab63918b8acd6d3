// actd: one program, several commands. What each does is in the file of its name.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/blas_env.h"
#include "daemon/bridge.h"
#include "daemon/check.h"
#include "daemon/golden.h"
#include "daemon/init.h"
#include "daemon/inspect.h"
#include "daemon/log_tool.h"
#include "daemon/replay.h"
#include "daemon/run.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

static const char help[] =
    "usage: actd COMMAND [options]\n"
    "\n"
    "actd drives a robot with a LeRobot ACT policy: cameras and joint states in, joint\n"
    "commands out at a fixed rate, every limit kept.\n"
    "\n"
    "  inspect CHECKPOINT_DIR    what is in a checkpoint, and whether it can be trusted\n"
    "  golden CHECKPOINT_DIR     record what it answers, so that every load can check it\n"
    "  init CHECKPOINT_DIR       write policy.yaml and robot.yaml with what can be known\n"
    "  check -c robot.yaml       load all as run would, print every resolved fact\n"
    "  check --system            what on this PC would hurt, and what mends it\n"
    "  run -c robot.yaml --arm   drive the robot (without --arm or --home: watch)\n"
    "  log info|recover|cut|cat  what is in a recording, and getting it out\n"
    "  replay USE LOG...         a recording once more: verify, what-if, eval, publish, report\n"
    "  bridge plotjuggler        a running daemon's streams, sent on to PlotJuggler\n"
    "\n"
    "`actd COMMAND --help` says more; the manual is `man actd`; `actd --version`.\n";

static const char run_help[] =
    "usage: actd run -c robot.yaml [--arm | --home] [--seconds N]\n"
    "\n"
    "Drives the robot. A start never moves it: the measured pose is published and held.\n"
    "With --arm it waits until the ladder is READY, goes slowly to where the policy\n"
    "wants the arm, and then runs; without, it only watches. A stop after a fault is\n"
    "latched: mend the cause, then `actctl reset`. Ctrl-C and SIGTERM ramp to rest first.\n"
    "\n"
    "  -c, --config FILE   the robot's configuration (`actd init` writes one)\n"
    "      --arm           arm once, as soon as READY; refused under a service manager\n"
    "      --home          go slowly to the rest pose (joints' home), then end; refused likewise\n"
    "      --seconds N     end by itself after N seconds\n"
    "  -h, --help          this text\n"
    "\n"
    "exit status: 0 ended on request with the arm at rest, 64 usage, 69 a socket is in\n"
    "use, 70 the policy failed, 71 the system refused something, 75 ended before the arm\n"
    "was at rest, 78 the configuration or checkpoint was refused\n";

static int usage(const char *text)
{
    fputs(text, stderr);
    return EX_USAGE;
}

static int run_main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"config", 1, NULL, 'c'},  {"arm", 0, NULL, 'a'},  {"home", 0, NULL, 'H'},
        {"seconds", 1, NULL, 's'}, {"help", 0, NULL, 'h'}, {0}};
    struct run_options opt = {0};
    char *end = NULL;
    for (int c; (c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;) {
        switch (c) {
        case 'c':
            opt.config = optarg;
            break;
        case 'a':
            opt.arm = true;
            break;
        case 'H':
            opt.home = true;
            break;
        case 's':
            opt.seconds = strtod(optarg, &end);
            if (*end || !(opt.seconds > 0 && opt.seconds < 1e9))
                return usage("run: --seconds wants a positive number\n");
            break;
        case 'h':
            fputs(run_help, stdout);
            return 0;
        default:
            return usage(run_help);
        }
    }
    if (opt.arm && opt.home)
        return usage("run: --arm and --home exclude each other: give one\n");
    if (optind != argc || !opt.config)
        return usage(run_help);
    return run(&opt);
}

static const char check_help[] =
    "usage: actd check -c robot.yaml\n"
    "       actd check --system [-c robot.yaml]\n"
    "\n"
    "Loads everything exactly as `actd run` would, prints every resolved fact (joints,\n"
    "cameras, units, rates, limits, stopping times, memory, a timed inference) and refuses\n"
    "what would be refused at run time. Opens no socket and moves nothing.\n"
    "\n"
    "  -c, --config FILE   the robot's configuration\n"
    "      --system        instead, what on this PC would hurt a real-time loop (scheduling,\n"
    "                      limits, governor, kernel, time, disk), each with its remedy\n"
    "  -h, --help          this text\n"
    "\n"
    "exit status: 0 it would run, 1 something hurts (--system), 64 usage, 78 refused\n";

static int check_command(int argc, char **argv)
{
    static const struct option longs[] = {
        {"config", 1, NULL, 'c'}, {"system", 0, NULL, 's'}, {"help", 0, NULL, 'h'}, {0}};
    const char *config = NULL;
    bool machine = false;
    for (int c; (c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;) {
        switch (c) {
        case 'c':
            config = optarg;
            break;
        case 's':
            machine = true;
            break;
        case 'h':
            fputs(check_help, stdout);
            return 0;
        default:
            return usage(check_help);
        }
    }
    if (!config && optind == argc - 1)
        config = argv[optind++]; // what people type
    if (optind != argc || (!config && !machine))
        return usage(check_help);
    return machine ? check_system(config, stdout, stderr) : check_main(config);
}

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
} commands[] = {{"run", run_main},         {"check", check_command}, {"init", init_main},
                {"inspect", inspect_main}, {"golden", golden_main},  {"log", log_main},
                {"replay", replay_main},   {"bridge", bridge_main}};

// Started with `2>&-`, the next file opened would be number 2, and log lines would be written
// into a socket or the lock file.
static void fill_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

// What could not be printed must not look like success to a script.
static int flushed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fputs("actd: standard output could not be written\n", stderr);
    return status ? status : EX_IOERR;
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    int r = blas_env_fix(argv);
    if (r)
        fprintf(stderr, "warning: the environment of OpenBLAS could not be fixed: %s\n",
                strerror(-r));
    prctl(PR_SET_NAME, "actd"); // executed again as /proc/self/exe, ps would show "exe"
    if (argc < 2)
        return usage(help);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("actd " ACTD_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return flushed(commands[i].main(argc - 1, argv + 1));
    fprintf(stderr, "actd: no command '%s'\n\n", argv[1]);
    return usage(help);
}
