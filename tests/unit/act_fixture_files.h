// The files of an act_fixture: model.safetensors, config.json and, for the 0.4 era, the
// two processor pipelines with their statistics. Included by act_fixture.h alone.
#ifndef ACTD_TESTS_ACT_FIXTURE_FILES_H
#define ACTD_TESTS_ACT_FIXTURE_FILES_H

static inline FILE *act_fixture_create(const char *dir, const char *file)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return fopen(path, "wb");
}

// ---- safetensors ----------------------------------------------------------------------

static inline uint16_t act_fixture_half(float v) // exact for the values made here
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    int e = (int)((u >> 23) & 255) - 127 + 15;
    uint32_t sign = (u >> 16) & 0x8000u, m = (u & 0x7fffffu) | 0x800000u;
    if (v == 0.0f)
        return (uint16_t)sign;
    if (e > 0)
        return (uint16_t)(sign | (uint32_t)e << 10 | ((m >> 13) & 0x3ffu));
    return (uint16_t)(sign | m >> (14 - e));
}

static inline bool act_fixture_put(FILE *fp, const float *v, size_t n,
                                   enum act_fixture_dtype d)
{
    if (d == ACT_FIXTURE_F32)
        return fwrite(v, 4, n, fp) == n;
    uint16_t *h = malloc(2 * n);
    if (!h)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &v[i], sizeof u);
        h[i] = d == ACT_FIXTURE_BF16 ? (uint16_t)(u >> 16) : act_fixture_half(v[i]);
    }
    bool ok = fwrite(h, 2, n, fp) == n;
    free(h);
    return ok;
}

// A table of tensors whose data follow in order: header first, then whoever calls writes
// data.
struct act_fixture_header {
    char *json;
    size_t len, offset;
};

static inline bool act_fixture_header_add(struct act_fixture_header *h, const char *name,
                                          int rank, const int *shape, size_t n,
                                          enum act_fixture_dtype d)
{
    static const char *const dtype[] = {"F32", "F16", "BF16"};
    char entry[640], dims[64] = "";
    size_t nbytes = n * (d == ACT_FIXTURE_F32 ? 4 : 2);
    for (int i = 0, at = 0; i < rank; i++)
        at +=
            snprintf(dims + at, sizeof dims - (size_t)at, "%s%d", i ? "," : "", shape[i]);
    int len =
        snprintf(entry, sizeof entry,
                 "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                 h->len ? "," : "{", name, dtype[d], dims, h->offset, h->offset + nbytes);
    char *json = realloc(h->json, h->len + (size_t)len + 16);
    if (!json) {
        free(h->json);
        h->json = NULL;
        return false;
    }
    memcpy(json + h->len, entry, (size_t)len + 1);
    *h = (struct act_fixture_header){json, h->len + (size_t)len, h->offset + nbytes};
    return true;
}

static inline bool act_fixture_header_write(struct act_fixture_header *h, FILE *fp)
{
    if (!h->json)
        return false;
    h->json[h->len++] = '}';
    while (h->len % 8)
        h->json[h->len++] = ' ';
    uint64_t n = h->len;
    bool ok = fwrite(&n, 8, 1, fp) == 1 && fwrite(h->json, 1, h->len, fp) == h->len;
    free(h->json);
    return ok;
}

// ---- statistics -----------------------------------------------------------------------

struct act_fixture_stat {
    char name[160];
    int rank, shape[3], n;
    float v[64];
};

struct act_fixture_stats {
    int n;
    struct act_fixture_stat s[64];
};

// The statistics of one feature: those its mode needs (0.3) or all (0.4).
static inline void act_fixture_feature_stats(struct act_fixture_stats *out,
                                             const struct act_fixture *f,
                                             const char *prefix, const char *type, int n,
                                             const char *mode)
{
    static const char *const stat[] = {"mean", "std", "min", "max",
                                       "q01",  "q10", "q90", "q99"};
    static const float at[] = {0, 0, -3.0f, 3.0f, -2.25f, -1.25f, 1.25f, 2.25f};
    bool visual = strcmp(type, "VISUAL") == 0, old = f->era == ACT_FIXTURE_V03;
    int from = 0, to = 8;
    if (old) {
        from = strcmp(mode, "MIN_MAX") == 0 ? 2 : 0;
        to = strcmp(mode, "IDENTITY") == 0 ? 0 : from + 2;
    }
    for (int k = from; k < to; k++) {
        struct act_fixture_stat *s = &out->s[out->n++];
        *s =
            (struct act_fixture_stat){.rank = visual ? 3 : 1, .shape = {n, 1, 1}, .n = n};
        snprintf(s->name, sizeof s->name, "%s.%s", prefix, stat[k]);
        for (int i = 0; i < n; i++) {
            float mean = act_fixture_mean(type, i), std = act_fixture_std(f, type, i);
            s->v[i] = k == 1 ? std : mean + at[k] * std;
        }
    }
}

// "observation.images.top" → "observation_images_top"
static inline void act_fixture_stats_name(char *out, size_t size,
                                          const struct act_fixture *f, const char *group,
                                          const char *feature)
{
    if (f->era == ACT_FIXTURE_V04) {
        snprintf(out, size, "%s", feature);
        return;
    }
    int at = snprintf(out, size, "%s.buffer_", group);
    snprintf(out + at, size - (size_t)at, "%s", feature);
    for (char *p = out + at; *p; p++)
        if (*p == '.')
            *p = '_';
}

static inline void act_fixture_stats(struct act_fixture_stats *out,
                                     const struct act_fixture *f)
{
    char name[128];
    out->n = 0;
    for (int c = 0; c < f->n_cameras; c++) {
        act_fixture_stats_name(name, sizeof name, f, "normalize_inputs",
                               f->camera[c].key);
        act_fixture_feature_stats(out, f, name, "VISUAL", 3, f->norm_visual);
    }
    if (f->state_dim) {
        act_fixture_stats_name(name, sizeof name, f, "normalize_inputs",
                               "observation.state");
        act_fixture_feature_stats(out, f, name, "STATE", f->state_dim, f->norm_state);
    }
    act_fixture_stats_name(name, sizeof name, f, "unnormalize_outputs", "action");
    act_fixture_feature_stats(out, f, name, "ACTION", f->action_dim, f->norm_action);
}

static inline bool act_fixture_stats_head(struct act_fixture_header *h,
                                          const struct act_fixture_stats *s)
{
    bool ok = true;
    for (int i = 0; i < s->n; i++)
        ok = ok && act_fixture_header_add(h, s->s[i].name, s->s[i].rank, s->s[i].shape,
                                          (size_t)s->s[i].n, ACT_FIXTURE_F32);
    return ok;
}

static inline bool act_fixture_stats_data(FILE *fp, const struct act_fixture_stats *s)
{
    bool ok = true;
    for (int i = 0; i < s->n; i++)
        ok = ok && act_fixture_put(fp, s->s[i].v, (size_t)s->s[i].n, ACT_FIXTURE_F32);
    return ok;
}

static inline int act_fixture_write_stats(const char *dir, const char *file,
                                          const struct act_fixture_stats *s)
{
    struct act_fixture_header h = {0};
    FILE *fp = act_fixture_create(dir, file);
    if (!fp)
        return -errno;
    bool ok = act_fixture_stats_head(&h, s) && act_fixture_header_write(&h, fp) &&
              act_fixture_stats_data(fp, s);
    return fclose(fp) == 0 && ok ? 0 : -EIO;
}

// ---- weights --------------------------------------------------------------------------

static inline bool act_fixture_weights_data(FILE *fp, const struct act_fixture *f,
                                            const struct act_fixture_list *l)
{
    bool ok = true;
    for (int i = 0; ok && i < l->n; i++) {
        float *v = malloc(l->t[i].n * sizeof *v);
        ok = v != NULL;
        if (v) {
            act_fixture_values(f, &l->t[i], v);
            ok = act_fixture_put(fp, v, l->t[i].n, f->dtype);
        }
        free(v);
    }
    return ok;
}

static inline int act_fixture_write_weights(const char *dir, const struct act_fixture *f)
{
    struct act_fixture_header h = {0};
    struct act_fixture_stats s = {0};
    struct act_fixture_list *l = act_fixture_tensors(f);
    FILE *fp = act_fixture_create(dir, "model.safetensors");
    bool ok = l && fp && l->n < ACT_FIXTURE_MAX_TENSORS;
    if (f->era == ACT_FIXTURE_V03)
        act_fixture_stats(&s, f);
    for (int i = 0; ok && i < l->n; i++)
        ok = act_fixture_header_add(&h, l->t[i].name, l->t[i].rank, l->t[i].shape,
                                    l->t[i].n, f->dtype);
    ok = ok && act_fixture_stats_head(&h, &s) && act_fixture_header_write(&h, fp) &&
         act_fixture_weights_data(fp, f, l) && act_fixture_stats_data(fp, &s);
    free(l);
    if (fp && fclose(fp) != 0)
        ok = false;
    return ok ? 0 : -EIO;
}

// ---- JSON -----------------------------------------------------------------------------

static inline void act_fixture_features(FILE *fp, const struct act_fixture *f, bool in,
                                        bool out)
{
    const char *comma = "";
    if (in && f->state_dim) {
        fprintf(fp, "\"observation.state\":{\"type\":\"STATE\",\"shape\":[%d]}",
                f->state_dim);
        comma = ",";
    }
    if (in && f->env_dim) {
        fprintf(fp,
                "%s\"observation.environment_state\":{\"type\":\"ENV\",\"shape\":[%d]}",
                comma, f->env_dim);
        comma = ",";
    }
    for (int c = 0; in && c < f->n_cameras; c++, comma = ",")
        fprintf(fp, "%s\"%s\":{\"type\":\"VISUAL\",\"shape\":[3,%d,%d]}", comma,
                f->camera[c].key, f->camera[c].height, f->camera[c].width);
    if (out)
        fprintf(fp, "%s\"action\":{\"type\":\"ACTION\",\"shape\":[%d]}", comma,
                f->action_dim);
}

static inline int act_fixture_write_config(const char *dir, const struct act_fixture *f)
{
    FILE *fp = act_fixture_create(dir, "config.json");
    if (!fp)
        return -errno;
    fprintf(fp, "{\"type\":\"act\",\"n_obs_steps\":1,\"input_features\":{");
    act_fixture_features(fp, f, true, false);
    fprintf(fp, "},\"output_features\":{");
    act_fixture_features(fp, f, false, true);
    fprintf(fp,
            "},\n\"device\":\"cpu\",\"use_amp\":false,\"chunk_size\":%d,"
            "\"n_action_steps\":%d,\"normalization_mapping\":{\"VISUAL\":\"%s\","
            "\"STATE\":\"%s\",\"ACTION\":\"%s\"},\n",
            f->chunk_size, f->n_action_steps, f->norm_visual, f->norm_state,
            f->norm_action);
    fprintf(fp,
            "\"vision_backbone\":\"resnet%d\",\"pretrained_backbone_weights\":null,"
            "\"replace_final_stride_with_dilation\":%s,\"pre_norm\":%s,\"dim_model\":%d,"
            "\"n_heads\":%d,\"dim_feedforward\":%d,\n",
            f->depth, f->dilation ? "true" : "false", f->pre_norm ? "true" : "false",
            f->dim_model, f->n_heads, f->dim_feedforward);
    fprintf(fp,
            "\"feedforward_activation\":\"%s\",\"n_encoder_layers\":%d,"
            "\"n_decoder_layers\":%d,\"use_vae\":false,\"latent_dim\":%d,"
            "\"n_vae_encoder_layers\":4,\"temporal_ensemble_coeff\":%s,\"dropout\":0.1,"
            "\"kl_weight\":10.0}\n",
            f->gelu ? "gelu" : "relu", f->n_encoder_layers, f->n_decoder_layers,
            f->latent_dim, f->ensemble_coeff);
    return fclose(fp) == 0 ? 0 : -EIO;
}

static inline void act_fixture_step(FILE *fp, const struct act_fixture *f,
                                    const char *name, bool inputs, const char *state_file)
{
    fprintf(fp, "{\"registry_name\":\"%s\",\"config\":{\"eps\":1e-08,\"features\":{",
            name);
    act_fixture_features(fp, f, inputs, true);
    fprintf(fp,
            "},\"norm_map\":{\"VISUAL\":\"%s\",\"STATE\":\"%s\",\"ACTION\":\"%s\"}},"
            "\"state_file\":\"%s\"}",
            f->norm_visual, f->norm_state, f->norm_action, state_file);
}

#define ACT_FIXTURE_PRE  "policy_preprocessor_step_3_normalizer_processor.safetensors"
#define ACT_FIXTURE_POST "policy_postprocessor_step_0_unnormalizer_processor.safetensors"

static inline int act_fixture_write_pipelines(const char *dir,
                                              const struct act_fixture *f)
{
    const char *device = "{\"registry_name\":\"device_processor\",\"config\":"
                         "{\"device\":\"cpu\",\"float_dtype\":null}}";
    FILE *pre = act_fixture_create(dir, "policy_preprocessor.json");
    FILE *post = act_fixture_create(dir, "policy_postprocessor.json");
    int rc = pre && post ? 0 : -EIO;
    if (pre) {
        fprintf(pre,
                "{\"name\":\"policy_preprocessor\",\"steps\":["
                "{\"registry_name\":\"rename_observations_processor\",\"config\":"
                "{\"rename_map\":{}}},{\"registry_name\":\"to_batch_processor\","
                "\"config\":{}},%s,",
                device);
        act_fixture_step(pre, f, "normalizer_processor", true, ACT_FIXTURE_PRE);
        fprintf(pre, "]}\n");
        rc = fclose(pre) == 0 ? rc : -EIO;
    }
    if (post) {
        fprintf(post, "{\"name\":\"policy_postprocessor\",\"steps\":[");
        act_fixture_step(post, f, "unnormalizer_processor", false, ACT_FIXTURE_POST);
        fprintf(post, ",%s]}\n", device);
        rc = fclose(post) == 0 ? rc : -EIO;
    }
    return rc;
}

// ---- the whole directory --------------------------------------------------------------

// Writes the checkpoint into dir, which must exist. 0 or -errno.
static inline int act_fixture_write(const char *dir, const struct act_fixture *f)
{
    struct act_fixture_stats s;
    int rc = act_fixture_write_config(dir, f);
    if (rc == 0)
        rc = act_fixture_write_weights(dir, f);
    if (rc || f->era == ACT_FIXTURE_V03)
        return rc;
    act_fixture_stats(&s, f);
    rc = act_fixture_write_pipelines(dir, f);
    if (rc == 0)
        rc = act_fixture_write_stats(dir, ACT_FIXTURE_PRE, &s);
    return rc ? rc : act_fixture_write_stats(dir, ACT_FIXTURE_POST, &s);
}

// Makes an empty directory for a checkpoint under $TMPDIR or /tmp; dir has room for 256
// bytes.
static inline int act_fixture_mkdir(char *dir)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, 256, "%s/actd-fixture-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(dir) ? 0 : -errno;
}

// Removes what act_fixture_write wrote, and the directory.
static inline void act_fixture_remove(const char *dir)
{
    static const char *const files[] = {"config.json",
                                        "model.safetensors",
                                        "policy_preprocessor.json",
                                        "policy_postprocessor.json",
                                        ACT_FIXTURE_PRE,
                                        ACT_FIXTURE_POST};
    char path[1024];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

#endif
