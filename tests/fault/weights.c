#include "tests/fault/matrix.h"

const struct scenario_group group_weights = {"weights", NULL, 0};
