#define STEM_POOL stem_pool_generic
#include "policy/kernels/stem_body.h"
