#include "policy/kernels/attention_body.h"

const struct attention_kernel attention_generic = {CPU_GENERIC, block, exp_nonpositive};
