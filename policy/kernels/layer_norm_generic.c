#include "policy/kernels/layer_norm_body.h"

const struct layer_norm_kernel layer_norm_generic = {CPU_GENERIC, norm_rows};
