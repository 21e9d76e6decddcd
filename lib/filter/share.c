/* The error budget and the sizes that follow from it.
 *
 * A period's share is policy.fpr. Equal 32-bit fingerprints take cap / 2^32 of it; the rest is divided among
 * layers so that the sum over all layers that may ever come never passes it:
 *
 *   growth 2            (1 - r) r^j          each layer doubles the set, so their number is a logarithm
 *   growth 1            (6 / pi^2) / (j+1)^2 a geometric share would cost 89 bits an item at the 50th block;
 * this 22 max_layers N        1 / N each when layers are alike, else the first N geometric shares scaled to
 * sum to 1
 *
 * (Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom Filters", 2007, for the geometric division.) */
#include "filter/internal.h"
#include "filter/probe.h"

#include <math.h>

/* The 64th block of growth 1 and those after it double. */
#define FIXED_BLOCKS 64

static bool layers_alike(const struct dd_filter_policy *p)
{
    return p->growth == 1 || p->on_full == DD_ON_FULL_ROTATE;
}

double dd_filter_layer_rate(const struct dd_filter_policy *p, unsigned j)
{
    double budget = p->fpr - (double)p->cap / 4294967296.0;
    double r = (p->tightening ? p->tightening : DD_FILTER_TIGHTENING) / 100.0;
    if (p->max_layers > 0 && layers_alike(p)) return budget / p->max_layers;
    if (layers_alike(p)) return budget * (6 / (M_PI * M_PI)) / ((j + 1.0) * (j + 1.0));
    double all = p->max_layers > 0 ? 1 - pow(r, p->max_layers) : 1;
    return budget * (1 - r) * pow(r, j) / all;
}

static uint32_t clamp(double v, uint32_t low, uint32_t high)
{
    if (v < low) return low;
    return v > high ? high : (uint32_t)v;
}

/* A Bloom or cuckoo layer that is too large costs its whole rest, one that is too small a list behind it,
 * which takes time to test. Measured over log-normal users whose months vary by 35 %, bytes of Bloom sets
 * over the optimum: 1.43 with 0.85 of the hint, 1.46 with 1.0, 1.50 with 1.15, 1.54 with 1.3; a test of a
 * month that came out like the one before takes 1.25 times as long with 0.85 as with 0.95. Counting stays a
 * list until it fills a layer, and a compact layer pays for room in bits an entry: they are given some. */
static uint32_t first_capacity(const struct dd_filter_policy *p, uint32_t hint)
{
    if (hint == 0 || p->max_layers > 0) return p->capacity;
    bool roomy = p->kind == DD_FILTER_COUNTING || p->kind == DD_FILTER_COMPACT;
    return clamp(hint * (roomy ? 1.25 : 0.95), 16, p->cap);
}

uint32_t dd_filter_next_capacity(const struct dd_filter_view *v)
{
    const struct dd_filter_policy *p = &v->policy;
    if (layers_alike(p) && v->layers >= FIXED_BLOCKS) {
        return clamp(2.0 * v->layer[v->layers - 1].capacity, 16, DD_FILTER_ITEMS_MAX);
    }
    if (v->layers == 0) return first_capacity(p, v->hint);
    if (layers_alike(p)) return p->capacity;
    double total = 0;
    for (unsigned i = 0; i < v->layers; i++) {
        const struct dd_filter_layer *l = &v->layer[i];
        total += l->kind == p->kind ? l->capacity : l->count; /* another kind is closed: the policy changed */
    }
    return clamp(total, 16, DD_FILTER_ITEMS_MAX);
}

/* k probes into m places give (1 - e^(-k n / m))^k; solved for m, with the whole k that needs fewer. The last
 * term pays for the spread of the fill of a small filter, which the formula leaves out: it raises the rate by
 * k (k - 1) / 2 times the relative variance of the fill, 0.31 / m (6 % at 16 items), which 0.22 (k - 1)
 * places buy back. */
void dd_filter_bloom_size(uint32_t capacity, double rate, uint8_t *k, uint32_t *places)
{
    double best = HUGE_VAL, exact = log2(1 / rate);
    double least = fmax(DD_PROBE_FIRST, floor(exact)); /* the highest rate a policy allows, 0.05, wants 4.3 */
    for (double probes = least; probes <= fmax(least, ceil(exact)); probes++) {
        double m = -probes * capacity / log1p(-pow(rate, 1 / probes));
        if (m < best) best = m, *k = (uint8_t)fmin(probes, 64);
    }
    *places = clamp(ceil(best + *k * 0.25 + 1), 8, UINT32_MAX);
}

/* Sixteen steps an octave from 16 on; 255 is 956,000 items, enough for a hint. */
uint8_t dd_filter_hint_code(uint32_t hint)
{
    if (hint == 0) return 0;
    return (uint8_t)clamp(1.5 + 16 * log2(hint / 16.0), 1, 255);
}

uint32_t dd_filter_hint_of(uint8_t code)
{
    return code == 0 ? 0 : (uint32_t)(16 * exp2((code - 1) / 16.0) + 0.5);
}
