// bench_kernels: the kernels one by one, on one thread, against what the processor can do at all.
//
//   bench_kernels [--isa NAME] [--only BENCH] [--seconds S] [--need PERCENT]
//
// --isa: generic, avx2, avx512, neon (default: the best that runs here); --seconds: per line (0.3).
// --need: exit status 1 when a product of a layer's size stays below this share of the peak, or
// none ran. A compiler's idea of a better loop costs a third, and nothing else would tell.
#include "tests/bench/bench_kernels.h"

#include <cblas.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bench {
    const char *name;
    bench_fn *run;
} benches[] = {
    {"gemm", bench_gemm},         {"conv", bench_conv},           {"int8", bench_int8},
    {"winograd", bench_winograd}, {"attention", bench_attention},
    // Further ones: a line here, a declaration in the header, a bench_kernels_NAME.c.
};

static double least_share = INFINITY;

void bench_share(enum cpu_isa isa, double gflops)
{
    least_share = fmin(least_share, gflops / bench_peak(isa));
}

static int judge(double need)
{
    if (need == 0)
        return 0;
    if (isinf(least_share)) {
        fprintf(stderr,
                "bench_kernels: nothing that --need is asked of ran: it is of the "
                "products of gemm\n");
        return 1;
    }
    printf("least share of the peak: %.0f %%, needed %.0f %%\n", 100 * least_share,
           100 * need);
    return least_share >= need ? 0 : 1;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_kernels [--isa NAME] [--only BENCH] [--seconds S] [--need "
            "PERCENT]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"isa", required_argument, NULL, 'i'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"need", required_argument, NULL, 'n'},
                                            {NULL, 0, NULL, 0}};
    enum cpu_isa isa = cpu_best();
    const char *only = NULL;
    double seconds = 0.3, need = 0;

    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'i')
            isa = cpu_isa_of(optarg);
        else if (o == 'o')
            only = optarg;
        else if (o == 's')
            seconds = strtod(optarg, NULL);
        else if (o == 'n')
            need = strtod(optarg, NULL) / 100;
        else
            return usage();
    }
    if (optind < argc || isa == CPU_ISAS)
        return usage();
    if (cpu_choose(isa) != 0) {
        fprintf(stderr, "bench_kernels: this machine does not run %s\n",
                cpu_isa_name(isa));
        return 1;
    }
    openblas_set_num_threads(1);
    printf("%s; OpenBLAS' kernels: %s\n", cpu_isa_name(isa), openblas_get_corename());
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        if (!only || strcmp(only, benches[i].name) == 0)
            benches[i].run(isa, seconds);
    printf("peak of %s, multiply-adds on registers: %.1f GFLOP/s\n", cpu_isa_name(isa),
           bench_peak(isa));
    return judge(need);
}
