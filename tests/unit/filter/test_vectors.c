/* Known answers: a change of format, hashing or sizes shows here. Blobs in stores are of this form: when a
 * row must change, the format version must too. */
#include "helper.h"

#include <stdio.h>

#include "filter/internal.h"

static void to_hex(const struct dd_buf *b, char *out)
{
    for (size_t i = 0; i < b->len; i++)
        sprintf(out + 2 * i, "%02x", b->data[i]);
}

/* The two vectors of proto/storage.md, byte for byte. */
START_TEST(an_operand)
{
    static const uint32_t fps[] = {0xdeadbeef, 1, 0x80000000, 1};
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct dd_buf out = {0};
    char hex[200];
    ck_assert_ok(dd_filter_operand(&p, 1000, fps, 4, &out));
    to_hex(&out, hex);
    ck_assert_str_eq(hex, "4446012900000000030000003ec3ae39400d0300000100600100000000000080efbeadde46d69295"
                          "6e1b91e9");
    dd_buf_free(&out);
}
END_TEST

START_TEST(a_bloom_layer)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct dd_buf set = {0};
    uint32_t fps[16];
    char hex[400];
    p.capacity = 16, p.fpr = 0.01;
    for (uint32_t i = 0; i < 16; i++)
        fps[i] = i * 0x10000001;
    set_add(&set, &p, 0, fps, 16);
    to_hex(&set, hex);
    ck_assert_str_eq(hex, "4446012100000001100000000ad7233c400d030010000000010700001000000010000000a9000000"
                          "9f951c9539b2ca4e75355ec408f619684926769636002388e302bb6ec237");
    dd_buf_free(&set);
}
END_TEST

struct vector {
    enum dd_filter_kind kind;
    uint8_t growth;
    uint32_t capacity, hint, items;
    size_t bytes;
    unsigned layers;
    uint64_t checksum;
};

static const struct vector vectors[] = {
    {DD_FILTER_BLOOM, 2, 256, 0, 100, 432, 0, 0xad5e91d9bdf28877},
    {DD_FILTER_BLOOM, 2, 256, 0, 2000, 6000, 4, 0xa241ec6318c90f74},
    {DD_FILTER_BLOOM, 1, 1000, 0, 5000, 13870, 5, 0xc2a9a16aee5ecd40},
    {DD_FILTER_BLOOM, 2, 256, 1200, 1000, 2612, 1, 0x76a087b62d8aa68d},
    {DD_FILTER_COUNTING, 2, 256, 0, 100, 432, 0, 0x558672cae3d6e6ac},
    {DD_FILTER_COUNTING, 2, 256, 1200, 1000, 4032, 0, 0xd3a218eb1e172f67},
    {DD_FILTER_CUCKOO, 2, 256, 0, 2000, 6256, 4, 0xfeec9d369f46f817},
    {DD_FILTER_CUCKOO, 2, 256, 1200, 1000, 2763, 1, 0xcf4c1ba0c2ebc73d},
    {DD_FILTER_COMPACT, 2, 256, 0, 2000, 3863, 1, 0x3fc0da1d6cfa4194},
    {DD_FILTER_COMPACT, 2, 256, 1200, 1000, 1953, 1, 0x3858d14b223563bb},
};

START_TEST(many_sets)
{
    const struct vector *v = &vectors[_i];
    struct dd_filter_policy p = policy_of(v->kind);
    struct rng r = {42};
    uint32_t *fps = random_fps(&r, v->items);
    struct dd_buf set = {0};
    p.growth = v->growth, p.capacity = v->capacity;
    for (size_t i = 0; i < v->items; i += 20)
        set_add(&set, &p, v->hint, fps + i, 20);
    uint64_t checksum = dd_get_le64(set.data + set.len - DD_FILTER_TRAILER);
    unsigned layers = set_info(dd_buf_slice(&set)).layers;
    ck_assert_msg(set.len == v->bytes && layers == v->layers && checksum == v->checksum,
                  "row %d is now %zu, %u, 0x%016llx", _i, set.len, layers, (unsigned long long)checksum);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

Suite *suite_vectors(void)
{
    Suite *s = suite_create("filter vectors");
    TCase *t = tcase_create("vectors");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, an_operand);
    tcase_add_test(t, a_bloom_layer);
    tcase_add_loop_test(t, many_sets, 0, sizeof vectors / sizeof *vectors);
    suite_add_tcase(s, t);
    return s;
}
