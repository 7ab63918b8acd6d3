// resnet: torchvision's ResNet-18/34 (basic blocks) and 50/101/152 (bottlenecks) up to
// and including layer4, batch norm folded into the convolutions. Deep Residual Learning
// for Image Recognition, He et al. 2015; strides as in torchvision (on the 3x3 of a
// bottleneck).
//
//   image (H, W, 3) -> stem: conv 7x7/2, max pool 3x3/2 -> layer1 -> layer2/2 -> layer3/2
//         -> layer4/2 -> features (ceil(H/32), ceil(W/32), 512 or 2048)
//
// With dilation layer4 keeps its resolution: stride 1, and from its second block on 3x3
// kernels with dilation 2 (features at 1/16).
//
// Order: resnet_build (what tensors there are), resnet_plan (how each convolution is done, for
// the images there will be), resnet_take (places for the packed weights), and once the tensors
// are read and folded, resnet_pack.
#ifndef ACTD_MODELS_RESNET_H
#define ACTD_MODELS_RESNET_H

#include "policy/kernels/stem.h"
#include "policy/models/build.h"
#include "policy/profile.h"

#define RESNET_MAX_BLOCKS 50 // ResNet-152

struct resnet_block {
    int n_convs;         // 2 basic, 3 bottleneck
    struct conv conv[3]; // the last one is added to the shortcut
    bool has_shortcut;   // else the shortcut is the block's input
    struct conv shortcut;
};

struct resnet {
    int depth; // 18, 34, 50, 101, 152
    struct stem stem;
    int n_blocks;
    int layer_end[4]; // of layer1 to layer4: the block behind its last
    struct resnet_block block[RESNET_MAX_BLOCKS];
    int channels; // of the features: 512 or 2048
};

struct resnet_size { // of an image
    int height, width;
};

// Working memory for one image at a time of any size up to what it was planned for.
struct resnet_state {
    float *map[4];  // feature maps: each (map_floats), aligned to 64 bytes
    float *scratch; // (workers, scratch_floats): shared; aligned, a multiple of 16 floats
    size_t map_floats, scratch_floats;
    struct profile *profile; // a step per convolution; usually NULL
};

// Describes the tensors `prefix`conv1.weight … `prefix`layer4.N.… and where they go, packed for
// the kernels of cpu_chosen() and for the largest of the n > 0 images that will come. Refuses a
// depth that is none of the five.
void resnet_build(struct resnet *r, struct build *b, int depth, bool dilation,
                  const struct resnet_size *image, int n, const char *prefix);

// Size of the feature map for an image size.
void resnet_feature_size(const struct resnet *r, int height, int width,
                         int *feature_height, int *feature_width);

// Raises the needs in s (floats only, no pointers) to those of all n images. plain.
void resnet_plan(const struct resnet *r, const struct resnet_size *image, int n,
                 struct resnet_state *s);

// infer. Of an image of one of the sizes in resnet_plan.
//   features  (feature_height, feature_width, channels)
void resnet_forward(const struct resnet *r, struct resnet_state *s, struct pool *pool,
                    const struct stem_image *image, float *features);

#endif
