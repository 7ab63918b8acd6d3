#include "daemon/blind.h"

#ifdef ACTD_BLIND
#include <stdlib.h>

uint64_t blind_mask;

// Whole processes get the mask from their environment, as a number of strtoull's.
__attribute__((constructor)) static void blind_from_environment(void)
{
    const char *given = getenv("ACTD_BLIND");

    if (given)
        blind_mask = strtoull(given, NULL, 0);
}
#else
typedef int blind_is_not_built; // ISO C wants a file to hold something
#endif
