/* What a policy may say. The ranges are those of the header's fields and of the error budget: a period's
 * share must leave at least half of itself to the layers after equal 32-bit fingerprints have taken theirs,
 * cap / 2^32. */
#include "filter/internal.h"

#include <math.h>
#include <stdio.h>

static const char *const kind_names[] = {"", "bloom", "counting", "cuckoo", "compact"};

const char *dd_filter_kind_name(enum dd_filter_kind kind)
{
    unsigned k = (unsigned)kind;
    return k >= DD_FILTER_BLOOM && k <= DD_FILTER_COMPACT ? kind_names[k] : "unknown";
}

enum dd_err dd_filter_kind_parse(struct dd_slice text, enum dd_filter_kind *out)
{
    for (unsigned k = DD_FILTER_BLOOM; k <= DD_FILTER_COMPACT; k++) {
        if (dd_slice_eq(text, dd_slice_str(kind_names[k]))) {
            *out = (enum dd_filter_kind)k;
            return DD_OK;
        }
    }
    return DD_INVALID;
}

struct dd_filter_policy dd_filter_policy_default(void)
{
    return (struct dd_filter_policy){
        .kind = DD_FILTER_BLOOM, .fpr = 0.001 / 3, .capacity = 256, .cap = 200000, .growth = 2};
}

uint32_t dd_filter_cap_most(double fpr)
{
    double most = floor(fpr / 2 * 4294967296.0);
    return most < DD_FILTER_ITEMS_MAX ? (uint32_t)most : DD_FILTER_ITEMS_MAX;
}

/* Written so that NaN fails. Compared as floats, which is how the header keeps it. */
static bool fpr_in_range(double fpr)
{
    return (float)fpr >= 1e-7f && (float)fpr <= 0.05f;
}

static bool bits_in_range(const struct dd_filter_policy *p)
{
    if (p->fingerprint_bits == 0) return true;
    if (p->kind == DD_FILTER_CUCKOO) return p->fingerprint_bits >= 4 && p->fingerprint_bits <= 32;
    if (p->kind == DD_FILTER_COMPACT) return p->fingerprint_bits >= 16 && p->fingerprint_bits <= 32;
    return false;
}

static bool layers_in_range(const struct dd_filter_policy *p)
{
    if (p->on_full == DD_ON_FULL_GROW) return p->max_layers == 0;
    return p->max_layers >= (p->on_full == DD_ON_FULL_ROTATE ? 2 : 1) && p->max_layers <= 64;
}

enum rule {
    RULE_OK,
    RULE_KIND,
    RULE_ON_FULL,
    RULE_FPR,
    RULE_CAPACITY,
    RULE_CAP,
    RULE_CAP_SHARE,
    RULE_GROWTH,
    RULE_LAYERS,
    RULE_BITS,
    RULE_TIGHTENING
};

static enum rule broken_rule(const struct dd_filter_policy *p)
{
    if (!dd_filter_ops_of((unsigned)p->kind)) return RULE_KIND;
    if ((unsigned)p->on_full > DD_ON_FULL_SATURATE) return RULE_ON_FULL;
    if (!fpr_in_range(p->fpr)) return RULE_FPR;
    if (p->capacity < 16 || p->capacity > 1000000) return RULE_CAPACITY;
    if (p->cap < p->capacity || p->cap > DD_FILTER_ITEMS_MAX) return RULE_CAP;
    if ((double)p->cap / 4294967296.0 > p->fpr / 2) return RULE_CAP_SHARE;
    if (p->growth != 1 && p->growth != 2) return RULE_GROWTH;
    if (!layers_in_range(p)) return RULE_LAYERS;
    if (!bits_in_range(p)) return RULE_BITS;
    if (p->tightening != 0 && (p->tightening < 10 || p->tightening > 95)) return RULE_TIGHTENING;
    return RULE_OK;
}

bool dd_filter_policy_valid(const struct dd_filter_policy *p)
{
    return broken_rule(p) == RULE_OK;
}

static void explain(const struct dd_filter_policy *p, enum rule rule, char *why, size_t size)
{
    switch (rule) {
    case RULE_KIND:
        snprintf(why, size, "filter: must be one of bloom, counting, cuckoo, compact");
        break;
    case RULE_ON_FULL:
        snprintf(why, size, "on_full: must be one of grow, rotate, saturate");
        break;
    case RULE_FPR:
        snprintf(why, size, "fpr: %g for one period is outside 1e-7 to 0.05", p->fpr);
        break;
    case RULE_CAPACITY:
        snprintf(why, size, "capacity: %u is outside 16 to 1000000", p->capacity);
        break;
    case RULE_CAP:
        snprintf(why, size, "cap: %u is outside capacity (%u) to %u", p->cap, p->capacity,
                 DD_FILTER_ITEMS_MAX);
        break;
    case RULE_CAP_SHARE:
        snprintf(
            why, size,
            "cap: %u is too many items: at most %u with this fpr and window (equal 32-bit fingerprints alone "
            "would take more than half of a period's share, %g)",
            p->cap, dd_filter_cap_most(p->fpr), p->fpr);
        break;
    case RULE_GROWTH:
        snprintf(why, size, "growth: %u is neither 1 nor 2", p->growth);
        break;
    case RULE_LAYERS:
        snprintf(why, size, "max_layers: %u; must be 0 with grow, 2 to 64 with rotate, 1 to 64 with saturate",
                 p->max_layers);
        break;
    case RULE_BITS:
        snprintf(why, size, "fingerprint_bits: %u; must be 0, or 4 to 32 for cuckoo, or 16 to 32 for compact",
                 p->fingerprint_bits);
        break;
    case RULE_TIGHTENING:
        snprintf(why, size, "tightening: %u percent is outside 10 to 95 (0: the default)", p->tightening);
        break;
    case RULE_OK:
        break;
    }
}

enum dd_err dd_filter_policy_check(const struct dd_filter_policy *p, char *why, size_t why_size)
{
    enum rule rule = broken_rule(p);
    if (why_size > 0) why[0] = '\0';
    if (rule == RULE_OK) return DD_OK;
    if (why_size > 0) explain(p, rule, why, why_size);
    return DD_INVALID;
}
