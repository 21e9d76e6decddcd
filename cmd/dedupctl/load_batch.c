#include <string.h>

#include "load.h"

/* Writer thread. The operand was appended to a buffer that no longer moves. */
static enum dd_err merge_into(void *arg, struct dd_slice current, struct dd_buf *out)
{
    struct dd_load_set *set = arg;
    struct dd_loader *l = set->loader;
    const struct dd_load_batch *b = &l->half[set >= l->half[1].set && set < l->half[1].set + DD_LOAD_OPS];
    struct dd_slice operand = dd_slice_of(b->operands.data + set->from, set->to - set->from);
    struct dd_filter_merge_report report;
    enum dd_err err = dd_filter_merge(current, &operand, 1, out, &report);
    return err == DD_OK && report.base_damaged ? DD_CORRUPT : err; /* dedupctl verify is for that */
}

static void land(void *arg)
{
    struct dd_load_batch *b = arg;
    sem_post(&b->landed);
}

void dd_loader_init(struct dd_loader *l, struct dd_store *store)
{
    *l = (struct dd_loader){.store = store};
    for (unsigned h = 0; h < 2; h++)
        sem_init(&l->half[h].landed, 0, 0);
}

/* Waits for what is under way; the half is empty afterwards. */
static enum dd_err settle(struct dd_load_batch *b)
{
    if (!b->flying) return DD_OK;
    while (sem_wait(&b->landed) != 0) /* a signal */
        ;
    b->flying = false;
    enum dd_err err = b->batch.err;
    for (unsigned i = 0; err == DD_OK && i < b->n; i++)
        err = b->op[i].result;
    b->n = 0;
    dd_buf_reset(&b->operands);
    return err;
}

void dd_loader_free(struct dd_loader *l)
{
    for (unsigned h = 0; h < 2; h++) {
        if (settle(&l->half[h]) != DD_OK) l->half[h].n = 0; /* said before, or given up */
        dd_buf_free(&l->half[h].operands);
        sem_destroy(&l->half[h].landed);
    }
}

static enum dd_err launch(struct dd_loader *l)
{
    struct dd_load_batch *b = &l->half[l->filling];
    if (b->n == 0) return DD_OK;
    b->batch = (struct dd_store_batch){.ops = b->op, .n = b->n, .done = land, .arg = b};
    enum dd_err err = dd_store_write(l->store, &b->batch);
    if (err != DD_PENDING) return err == DD_OK ? DD_IO : err;
    b->flying = true;
    l->filling ^= 1;
    return settle(&l->half[l->filling]);
}

enum dd_err dd_loader_add(struct dd_loader *l, struct dd_slice user, struct dd_period period, uint32_t hint,
                          const uint32_t *fps, size_t n)
{
    struct dd_load_batch *b = &l->half[l->filling];
    struct dd_load_set *set = &b->set[b->n % DD_LOAD_OPS];
    if (user.len == 0 || user.len > sizeof set->user) return DD_INVALID;
    if (b->n == DD_LOAD_OPS) return DD_IO; /* it could not be launched */
    memcpy(set->user, user.ptr, user.len);
    set->loader = l;
    set->from = b->operands.len;
    enum dd_err err = dd_filter_operand(&l->policy, hint, fps, n, &b->operands);
    if (err != DD_OK) return err;
    set->to = b->operands.len;
    b->op[b->n++] = (struct dd_store_op){.kind = DD_STORE_UPDATE,
                                         .scene = l->scene,
                                         .user = dd_slice_of(set->user, user.len),
                                         .period = period,
                                         .update = merge_into,
                                         .update_arg = set,
                                         .read_number = UINT64_MAX};
    l->sets++;
    l->items += n;
    return b->n < DD_LOAD_OPS ? DD_OK : launch(l);
}

enum dd_err dd_loader_finish(struct dd_loader *l)
{
    enum dd_err err = launch(l), other = DD_OK;
    for (unsigned h = 0; h < 2; h++) {
        other = settle(&l->half[h]);
        if (err == DD_OK) err = other;
    }
    return err;
}
