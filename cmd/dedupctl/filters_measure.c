#include "filters_measure.h"

/* Costs are measured on so many users (again the same ones when there are fewer); tests stop earlier when
 * they take long. */
enum { TIMED = 5, TEST_CALLS = 64 };
#define TEST_NS_MAX 5e7

/* Items of a user that are looked for again; scanning structures take long for each. */
enum { ASKED_MAX = 2000, ASKED_MAX_SCAN = 200 };

double dd_measure_promise(const struct dd_structure_spec *spec)
{
    return spec->form == DD_FORM_SET ? spec->policy.fpr : 0;
}

static uint64_t seed_of(const struct dd_filters_args *a, uint32_t user)
{
    return dd_random_at(a->seed, user, 0);
}

static enum dd_err create(const struct dd_structure_spec *spec, uint64_t seed, size_t items,
                          struct dd_structure **out)
{
    struct dd_structure_spec of_user = *spec;
    if (spec->hint == UINT32_MAX) of_user.hint = (uint32_t)items;
    return dd_structure_create(&of_user, seed, out);
}

static enum dd_err add_in_batches(struct dd_structure *s, const struct dd_ids *ids)
{
    enum dd_err err = DD_OK;
    for (size_t i = 0; err == DD_OK && i < ids->n; i += DD_MEASURE_BATCH)
        err = dd_structure_add(s, ids->id + i, ids->n - i < DD_MEASURE_BATCH ? ids->n - i : DD_MEASURE_BATCH);
    return err;
}

static uint64_t count_hits(const struct dd_structure *s, const struct dd_ids *ids)
{
    uint64_t hits = 0;
    for (size_t i = 0; i < ids->n; i += DD_MEASURE_CANDIDATES)
        hits += dd_structure_test(s, ids->id + i,
                                  ids->n - i < DD_MEASURE_CANDIDATES ? ids->n - i : DD_MEASURE_CANDIDATES);
    return hits;
}

/* Exact structures need no statistics. */
static uint64_t trials_of(const struct dd_structure *s, const struct dd_workload *w,
                          const struct dd_filters_args *a)
{
    uint64_t all = s->spec.form == DD_FORM_SET || a->probes < 1000 ? a->probes : 1000;
    return (all + w->users - 1) / w->users;
}

static enum dd_err measure_errors(const struct dd_structure *s, const struct dd_workload *w,
                                  const struct dd_filters_args *a, const struct dd_ids *ids,
                                  struct dd_ids *unseen, struct dd_measured *m)
{
    size_t most = s->spec.form == DD_FORM_SET || s->spec.form == DD_FORM_HASH ? ASKED_MAX : ASKED_MAX_SCAN;
    size_t step = ids->n > most ? (ids->n + most - 1) / most : 1;
    for (size_t i = 0; i < ids->n; i += step) {
        m->forgotten += dd_structure_test(s, ids->id + i, 1) == 0;
        m->asked++;
    }
    for (uint64_t left = trials_of(s, w, a); left > 0;) {
        uint64_t n = left < 10000 ? left : 10000;
        enum dd_err err = dd_workload_unseen(w, left, n, unseen);
        if (err != DD_OK) return err;
        m->hits += count_hits(s, unseen);
        m->trials += n;
        left -= n;
    }
    return DD_OK;
}

static double time_tests(const struct dd_structure *s, const struct dd_ids *unseen)
{
    double start = dd_cpu_ns(), now = start;
    unsigned calls = 0;
    for (; calls < TEST_CALLS && now - start < TEST_NS_MAX; calls++) {
        dd_structure_test(s, unseen->id + calls * DD_MEASURE_CANDIDATES, DD_MEASURE_CANDIDATES);
        now = dd_cpu_ns();
    }
    return (now - start) / calls / DD_MEASURE_CANDIDATES;
}

/* Builds the user's whole set at once, then tests, then merges one batch more. */
static enum dd_err time_user(const struct dd_structure_spec *spec, uint64_t seed, const struct dd_ids *ids,
                             const struct dd_ids *unseen, double *add_ns, double *test_ns, double *merge_us)
{
    struct dd_structure *s = NULL;
    enum dd_err err = create(spec, seed, ids->n, &s);
    if (err != DD_OK) return err;
    double start = dd_cpu_ns();
    err = dd_structure_add(s, ids->id, ids->n);
    *add_ns = (dd_cpu_ns() - start) / (double)ids->n;
    *test_ns = time_tests(s, unseen);
    start = dd_cpu_ns();
    if (err == DD_OK) err = dd_structure_add(s, unseen->id, DD_MEASURE_BATCH);
    *merge_us = (dd_cpu_ns() - start) / 1e3;
    dd_structure_destroy(s);
    return err;
}

static enum dd_err measure_costs(const struct dd_structure_spec *spec, const struct dd_workload *w,
                                 const struct dd_filters_args *a, struct dd_ids *ids, struct dd_ids *unseen,
                                 struct dd_measured *m)
{
    double add[TIMED], test[TIMED], merge[TIMED];
    enum dd_err err = dd_workload_unseen(w, 0, TEST_CALLS * DD_MEASURE_CANDIDATES, unseen);
    for (uint32_t i = 0; err == DD_OK && i < TIMED; i++) {
        uint32_t user = i % w->users;
        err = dd_workload_user(w, user, ids);
        if (err == DD_OK) err = time_user(spec, seed_of(a, user), ids, unseen, &add[i], &test[i], &merge[i]);
    }
    if (err != DD_OK) return err;
    m->add_ns = dd_median(add, TIMED);
    m->test_ns = dd_median(test, TIMED);
    m->merge_us = dd_median(merge, TIMED);
    return DD_OK;
}

/* One user grown in batches; *ns: what that took. */
static enum dd_err grow(const struct dd_structure_spec *spec, uint64_t seed, const struct dd_ids *ids,
                        struct dd_structure **out, double *ns)
{
    enum dd_err err = create(spec, seed, ids->n, out);
    if (err != DD_OK) return err;
    double start = dd_cpu_ns();
    err = add_in_batches(*out, ids);
    *ns += dd_cpu_ns() - start;
    if (err == DD_OK) return err;
    dd_structure_destroy(*out);
    return err;
}

static enum dd_err measure_user(const struct dd_structure_spec *spec, const struct dd_workload *w,
                                const struct dd_filters_args *a, uint32_t user, struct dd_ids *ids,
                                struct dd_ids *unseen, struct dd_measured *m)
{
    struct dd_structure *s = NULL;
    enum dd_err err = dd_workload_user(w, user, ids);
    if (err == DD_OK) err = grow(spec, seed_of(a, user), ids, &s, &m->growth_ns);
    if (err != DD_OK) return err;
    m->bytes += (double)dd_structure_bytes(s);
    err = measure_errors(s, w, a, ids, unseen, m);
    dd_structure_destroy(s);
    return err;
}

enum dd_err dd_measure(const struct dd_structure_spec *spec, const struct dd_workload *w,
                       const struct dd_filters_args *a, struct dd_measured *out)
{
    struct dd_ids ids = {0}, unseen = {0};
    enum dd_err err = DD_OK;
    *out = (struct dd_measured){0};
    if (w->users == 0) return DD_INVALID; /* a workload has at least one */
    for (uint32_t user = 0; err == DD_OK && user < w->users; user++)
        err = measure_user(spec, w, a, user, &ids, &unseen, out);
    out->bytes /= w->users;
    out->growth_ns /= (double)dd_workload_items(w);
    if (err == DD_OK) err = measure_costs(spec, w, a, &ids, &unseen, out);
    dd_ids_free(&ids);
    dd_ids_free(&unseen);
    return err;
}

enum dd_err dd_measure_bytes(const struct dd_structure_spec *spec, const struct dd_workload *w,
                             const struct dd_filters_args *a, double *out)
{
    struct dd_ids ids = {0};
    enum dd_err err = DD_OK;
    double sum = 0, ns = 0;
    for (uint32_t user = 0; err == DD_OK && user < w->users; user++) {
        struct dd_structure *s = NULL;
        err = dd_workload_user(w, user, &ids);
        if (err == DD_OK) err = grow(spec, seed_of(a, user), &ids, &s, &ns);
        if (err != DD_OK) break;
        sum += (double)dd_structure_bytes(s);
        dd_structure_destroy(s);
    }
    dd_ids_free(&ids);
    *out = sum / w->users;
    return err;
}

enum dd_err dd_measure_distinct(const struct dd_workload *w, uint64_t *out)
{
    struct dd_structure_spec exact = dd_spec_hash();
    struct dd_ids ids = {0};
    enum dd_err err = DD_OK;
    *out = 0;
    for (uint32_t user = 0; err == DD_OK && user < w->users; user++) {
        struct dd_structure *s = NULL;
        err = dd_workload_user(w, user, &ids);
        if (err == DD_OK) err = dd_structure_create(&exact, user, &s);
        if (err == DD_OK) err = dd_structure_add(s, ids.id, ids.n);
        if (err == DD_OK) *out += s->n;
        dd_structure_destroy(s);
    }
    dd_ids_free(&ids);
    return err;
}
