#include "policy/kernels/activation_body.h"

const struct activation_kernel activation_generic = {CPU_GENERIC, relu_row, gelu_row};
