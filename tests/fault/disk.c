#include "tests/fault/matrix.h"

const struct scenario_group group_disk = {"disk", NULL, 0};
