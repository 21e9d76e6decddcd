/* A batch of exposures as a filter set, and its opposite: a set without some of them. */
#include "filter/internal.h"

#include <stdlib.h>

enum dd_err dd_filter_operand(const struct dd_filter_policy *p, uint32_t hint, const uint32_t *fps, size_t n,
                              struct dd_buf *out)
{
    struct dd_filter_set s;
    if (!dd_filter_policy_valid(p)) return DD_INVALID;
    enum dd_err err = dd_filter_set_init(&s, out, n);
    if (err != DD_OK) return err;
    if (n > 0) memcpy(s.tail, fps, n * sizeof *fps);
    dd_list_sort(s.tail, n, s.spare);
    s.tail_n = dd_list_limit_copies(s.tail, n, p->kind == DD_FILTER_COUNTING ? DD_FILTER_COPIES : 1);
    s.v.policy = *p;
    s.v.hint = hint;
    s.v.operand = true;
    err = dd_filter_set_finish(&s);
    dd_filter_set_free(&s);
    return err;
}

/* The fingerprints sorted, each once; twice as many places behind them. NULL: no memory. */
static uint32_t *sorted_once(const uint32_t *fps, size_t *n)
{
    uint32_t *copy = malloc(3 * *n * sizeof *copy + 1);
    if (!copy) return NULL;
    if (*n > 0) memcpy(copy, fps, *n * sizeof *copy);
    dd_list_sort(copy, *n, copy + *n);
    *n = dd_list_limit_copies(copy, *n, 1);
    return copy;
}

static size_t present(const struct dd_filter_view *v, const uint32_t *fps, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += dd_filter_view_count(v, fps[i]) > 0;
    return found;
}

/* The list without the fingerprints: both are sorted. Those that it does not hold go to left. */
static size_t copy_list(struct dd_filter_set *s, const struct dd_filter_view *v, const uint32_t *fps,
                        size_t n, uint32_t *left)
{
    size_t next = 0, left_n = 0;
    for (size_t i = 0; i < v->sparse_n; i++) {
        uint32_t x = dd_get_le32(v->sparse + 4 * i);
        while (next < n && fps[next] < x)
            left[left_n++] = fps[next++];
        if (next < n && fps[next] == x)
            while (i + 1 < v->sparse_n && dd_get_le32(v->sparse + 4 * (i + 1)) == x)
                i++; /* a counting list has it once for each addition */
        else
            s->tail[s->tail_n++] = x;
        if (next < n && fps[next] == x) next++;
    }
    while (next < n)
        left[left_n++] = fps[next++];
    return left_n;
}

/* Moves those of left that the layer holds to here; returns how many. Both stay sorted. */
static size_t take_present(const struct dd_filter_view *one, uint32_t *left, size_t *left_n, uint32_t *here)
{
    size_t here_n = 0, kept = 0;
    for (size_t i = 0; i < *left_n; i++) {
        if (dd_filter_view_count(one, left[i]) > 0)
            here[here_n++] = left[i];
        else
            left[kept++] = left[i];
    }
    *left_n = kept;
    return here_n;
}

/* Layer by layer, oldest first, so that each is the end of the buffer while it shrinks. An item is taken out
 * of one place only: it was added where no list and no older layer held it, and a layer gains nothing once it
 * is full. So the list, which is exact, then the oldest layer that holds it, is where it stands; a newer
 * layer that holds it as well is a false positive, and removing there would harm others (counting: as many as
 * it has probes). */
static void copy_layers(struct dd_filter_set *s, const struct dd_filter_view *v, uint32_t *left,
                        size_t left_n, uint32_t *here)
{
    struct dd_filter_view one = *v;
    one.sparse_n = 0;
    one.layers = 1;
    for (unsigned i = 0; i < v->layers; i++) {
        one.layer[0] = v->layer[i];
        if (!dd_filter_set_take(s, &one) || !dd_buf_ok(s->out)) return;
        struct dd_filter_layer *l = &s->v.layer[i];
        const struct dd_filter_ops *ops = dd_filter_ops_of(l->kind);
        if (!ops->remove) continue;
        size_t here_n = take_present(&one, left, &left_n, here);
        if (here_n) ops->remove(l, s->out, here, here_n);
    }
}

/* A layer that cannot forget is no hindrance while it holds none of them. */
static bool can_forget(const struct dd_filter_view *v, const uint32_t *fps, size_t n)
{
    struct dd_filter_view one = *v;
    one.layers = 1;
    one.sparse_n = 0;
    for (unsigned i = 0; i < v->layers; i++) {
        one.layer[0] = v->layer[i];
        if (!dd_filter_ops_of(v->layer[i].kind)->remove && present(&one, fps, n) > 0) return false;
    }
    return true;
}

/* fps: sorted, with 2 n places behind them. */
static enum dd_err copy_without(const struct dd_filter_view *v, uint32_t *fps, size_t n, struct dd_buf *out,
                                size_t *removed)
{
    struct dd_filter_set s;
    enum dd_err err = dd_filter_set_init(&s, out, v->sparse_n);
    if (err != DD_OK) return err;
    s.v.policy = v->policy;
    s.v.hint = v->hint;
    s.v.damaged = v->damaged;
    s.v.operand = v->operand;
    size_t left_n = copy_list(&s, v, fps, n, fps + n);
    copy_layers(&s, v, fps + n, left_n, fps + 2 * n);
    dd_filter_set_relocate(&s);
    if (dd_buf_ok(out)) *removed = present(v, fps, n) - present(&s.v, fps, n);
    err = dd_filter_set_finish(&s);
    dd_filter_set_free(&s);
    return err;
}

enum dd_err dd_filter_forget(struct dd_slice base, const uint32_t *fps, size_t n, struct dd_buf *out,
                             size_t *removed)
{
    struct dd_filter_view v;
    *removed = 0;
    if (dd_filter_view_open(&v, base) != DD_OK) return DD_CORRUPT;
    if (!can_forget(&v, fps, n)) return DD_UNSUPPORTED;
    if (base.len == 0) return DD_OK;
    uint32_t *sorted = sorted_once(fps, &n);
    if (!sorted) return DD_NO_MEMORY;
    enum dd_err err = copy_without(&v, sorted, n, out, removed);
    free(sorted);
    return err;
}
