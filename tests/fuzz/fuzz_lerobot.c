// fuzz_lerobot: arbitrary bytes as config.json, policy_preprocessor.json and
// policy_postprocessor.json. Whatever is accepted keeps the bounds that the network is sized by.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/jscan.h"
#include "policy/lerobot_manifest.h"
#include "policy/lerobot_processor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A false claim is a finding: abort is how libFuzzer hears of it.
static void must(int truth)
{
    if (!truth)
        abort();
}

static int visit(void *context, const char *name, int rank, const int *shape)
{
    long values = 1;

    (void)context;
    must(strncmp(name, "model.", 6) == 0 && rank >= 1 && rank <= 4);
    for (int i = 0; i < rank; i++) {
        must(shape[i] > 0);
        values *= shape[i];
    }
    must(values <= INT32_MAX);
    return 0;
}

static void check_config(const json_t *root)
{
    struct policy_error err;
    struct lr_config c;

    if (lr_config_parse(&c, root, &err) < 0) {
        must(err.text[0] != 0);
        return;
    }
    must(c.act.n_action_steps <= c.act.chunk_size &&
         c.act.dim_model % c.act.n_heads == 0);
    must(c.n_cameras > 0 || c.env.rank == 1);
    lr_manifest(&c, visit, NULL);
}

static void check_processor(const char *dir, bool post)
{
    static const struct lr_feature features[] = {
        {"observation.state", LR_STATE, 1, {6}, NORM_MEAN_STD},
        {"action", LR_ACTION, 1, {6}, NORM_MEAN_STD},
    };
    struct lr_config config = {.state = features[0], .action = features[1]};
    struct lr_processor p;
    struct policy_error err;
    enum norm_mode mode;

    if (lr_processor_read(&p, &(struct place){.dir = dir}, post, &config, &err) == 0) {
        must(p.present && p.eps >= 0 && !strchr(p.state_file, '/'));
        lr_processor_mode(&p, &features[post], &mode, &err);
    }
    lr_processor_close(&p);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    must(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char dir[64];
    char path[128];
    struct policy_error err;
    json_t *root =
        jscan_parse((const char *)data, size, JSCAN_CONFIG_DEPTH, "input", &err);

    if (!root)
        return 0;
    check_config(root);
    json_decref(root);
    if (!dir[0])
        must(mkdtemp(strcpy(dir, "/dev/shm/actd-fuzz-XXXXXX")) != NULL);
    for (int post = 0; post < 2; post++) {
        snprintf(path, sizeof path, "%s/policy_%sprocessor.json", dir,
                 post ? "post" : "pre");
        write_file(path, data, size);
        check_processor(dir, post);
        unlink(path);
    }
    return 0;
}
