#include "policy/kernels/precision.h"

const char *precision_name(enum precision p)
{
    static const char *const name[PRECISIONS] = {"float32", "bf16", "int8"};

    return (unsigned)p < PRECISIONS ? name[p] : "?";
}
