// resnet: torchvision's ResNet-18/34 (basic blocks) and 50/101/152 (bottlenecks) up to
// and including layer4, batch norm folded into the convolutions. Deep Residual Learning
// for Image Recognition, He et al. 2015; strides as in torchvision (on the 3x3 of a
// bottleneck).
//
//   image (H, W, 3) -> conv 7x7/2 -> max pool 3x3/2 -> layer1 -> layer2/2 -> layer3/2
//         -> layer4/2 -> features (ceil(H/32), ceil(W/32), 512 or 2048)
//
// With dilation layer4 keeps its resolution: stride 1, and from its second block on 3x3
// kernels with dilation 2 (features at 1/16).
#ifndef ACTD_MODELS_RESNET_H
#define ACTD_MODELS_RESNET_H

#include "policy/models/build.h"

#define RESNET_MAX_BLOCKS 50 // ResNet-152

struct resnet_block {
    int n_convs;         // 2 basic, 3 bottleneck
    struct conv conv[3]; // the last one is added to the shortcut
    bool has_shortcut;   // else the shortcut is the block's input
    struct conv shortcut;
};

struct resnet {
    int depth; // 18, 34, 50, 101, 152
    struct conv stem;
    int n_blocks;
    struct resnet_block block[RESNET_MAX_BLOCKS];
    int channels; // of the features: 512 or 2048
};

// Working memory for one image at a time of any size up to what it was planned for.
struct resnet_state {
    float *pixels; // (H, W, 3)
    float *map[4]; // feature maps: each (map_floats), map[1] also (stem_floats)
    float *tiles;  // (workers, tile_floats): shared with others
    size_t pixel_floats, map_floats, tile_floats;
    size_t stem_floats; // the stem's output is four times the largest other map
};

// Describes the tensors `prefix`conv1.weight … `prefix`layer4.N.… and where they go.
// Refuses a depth that is none of the five.
void resnet_build(struct resnet *r, struct build *b, int depth, bool dilation,
                  const char *prefix);

// Size of the feature map for an image size.
void resnet_feature_size(const struct resnet *r, int height, int width,
                         int *feature_height, int *feature_width);

// Raises the needs in s (floats only, no pointers) to those of an image of this size.
void resnet_plan(const struct resnet *r, int height, int width, struct resnet_state *s);

// infer.
//   planes    (3, height, width) normalised
//   features  (feature_height, feature_width, channels)
void resnet_forward(const struct resnet *r, struct resnet_state *s, struct pool *pool,
                    const float *planes, int height, int width, float *features);

#endif
