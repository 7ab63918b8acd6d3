// image_ops: what a ResNet does to images besides convolving them.
#ifndef ACTD_KERNELS_IMAGE_OPS_H
#define ACTD_KERNELS_IMAGE_OPS_H

#include "policy/pool.h"

// infer. planes (channels, height, width) to pixels (height, width, channels).
void interleave_run(struct pool *pool, const float *planes, int channels, int height,
                    int width, float *pixels);

// Output extent of the pooling below for an input extent: ceil(extent / 2).
int max_pool_extent(int extent);

// infer. Maximum over 3x3 windows, stride 2, padding 1 (padding never wins).
//   x  (height, width, channels)
//   y  (max_pool_extent(height), max_pool_extent(width), channels)
void max_pool_run(struct pool *pool, const float *x, int height, int width, int channels,
                  float *y);

#endif
