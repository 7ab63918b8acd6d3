// actd-record-rig --build DIR bench|kill|disk [options]: see rules.mk.
#include <stdio.h>
#include <string.h>

#include "tests/record/rig.h"

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[3] : "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 3 && strcmp(argv[1], "--build") == 0) {
        if (strcmp(what, "bench") == 0)
            return rig_bench(argv[2], argc - 4, argv + 4);
        if (strcmp(what, "kill") == 0)
            return rig_kill(argv[2], argc - 4, argv + 4);
        if (strcmp(what, "disk") == 0)
            return rig_disk(argv[2], argc - 4, argv + 4);
    }
    fprintf(stderr, "usage: actd-record-rig --build DIR bench|kill|disk [options]\n");
    return 2;
}
