// image: an 8-bit RGB frame to the normalised planes that the network reads, in one pass and
// without memory of its own. A frame of the trained size goes value by value
// (v / 255, then the camera's normalisation); another size is first resampled bilinearly as
// torch.nn.functional.interpolate(mode="bilinear", align_corners=False, antialias=False) does:
// source = (destination + 0.5) * scale - 0.5, clamped below at 0, neighbours clamped to the edge.
//
// Letterbox keeps the aspect ratio and puts the picture at the bottom right: the bars are on
// the left and on top only, as in the one letterbox LeRobot has (SmolVLA's resize_with_pad), so
// that a policy trained through it sees what it was trained on. The bars are 0 (black) before
// normalisation. The picture's size is int(h / r), int(w / r), r = max(w / width, h / height).
#ifndef ACTD_IMAGE_H
#define ACTD_IMAGE_H

#include "policy/normalize.h"
#include "policy/policy.h"

// What each value of 8 bits becomes, per channel: the same float operations in the same order as
// image_to_planes'. Any thread class.
void image_table(const struct norm *norm, float table[3][256]);

// infer. Allocates nothing; 3 KiB (same size) or 9 KiB (resampling) of stack.
//   image  (h, w, 3) any size the resize mode allows
//   norm   3 values (one per channel)
//   chw    (3, height, width) out, RGB planes
// 0, or -EINVAL when the size differs and resize is POLICY_RESIZE_REFUSE, or when a pointer,
// the stride (less than 3 * w), a size or norm->n is impossible; chw is then untouched.
int image_to_planes(const struct policy_image *image, enum policy_resize resize,
                    const struct norm *norm, int height, int width, float *chw);

#endif
