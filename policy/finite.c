// finite: see the header.
#include "policy/finite.h"

#include <math.h>

#include "policy/kernels/vec.h"

#define EXPONENT 0x7f800000 // all ones in NaN and infinity only

size_t finite_prefix(const float *x, size_t n)
{
    const v4i all = {EXPONENT, EXPONENT, EXPONENT, EXPONENT};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        v4i a = (v4i)v4_load(x + i), b = (v4i)v4_load(x + i + 4);
        v4i bad = ((a & all) == all) | ((b & all) == all);
        if (bad[0] | bad[1] | bad[2] | bad[3])
            break;
    }
    while (i < n && isfinite(x[i]))
        i++;
    return i;
}
