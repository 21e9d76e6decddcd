#include "filters_measure.h"

struct dd_structure_spec dd_spec_kind(const struct dd_filters_args *a, enum dd_filter_kind kind)
{
    return (struct dd_structure_spec){
        .name = dd_filter_kind_name(kind), .form = DD_FORM_SET, .policy = dd_filters_policy(a, kind)};
}

struct dd_structure_spec dd_spec_list(void)
{
    return (struct dd_structure_spec){.name = "list", .form = DD_FORM_LIST};
}

struct dd_structure_spec dd_spec_hash(void)
{
    return (struct dd_structure_spec){.name = "hash set", .form = DD_FORM_HASH};
}

struct dd_structure_spec dd_spec_queue(uint32_t capacity)
{
    return (struct dd_structure_spec){
        .name = "queue", .form = DD_FORM_QUEUE, .capacity = capacity, .forgets = true};
}

/* The policy's rate is that of all blocks together, less what equal fingerprints take (cap / 2^32). */
struct dd_structure_spec dd_spec_blocks(const char *name, unsigned blocks, uint32_t capacity, double fpr)
{
    struct dd_structure_spec s = {.name = name, .form = DD_FORM_SET, .forgets = true};
    s.policy = (struct dd_filter_policy){.kind = DD_FILTER_BLOOM,
                                         .on_full = DD_ON_FULL_ROTATE,
                                         .capacity = capacity,
                                         .cap = blocks * capacity,
                                         .growth = 1,
                                         .max_layers = (uint8_t)blocks};
    s.policy.fpr = blocks * fpr + s.policy.cap / 4294967296.0;
    if (s.policy.fpr > 0.05) s.policy.fpr = 0.05;
    return s;
}
