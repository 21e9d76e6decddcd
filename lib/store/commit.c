/* One group, one number, one WriteBatch and at most one fsync.
 *
 * The order of the last steps carries the promise that an acknowledged item is never shown again (change.h):
 * RocksDB has the commit, then the number is published, then the cells are raised, then done runs.
 *
 * An update has to see everything before it, so what the group gathered so far is written (not synced) before
 * the read. The number stays the group's: nobody was promised anything yet, and a set cached in between
 * carries a lower number.
 *
 * When a write fails nobody knows what reached the log. So number and cells are raised all the same: at worst
 * a cached set is read again. */
#include "base/log.h"
#include "store/store_impl.h"

static const struct dd_clock system_clock;

enum dd_err dd_commit_note(struct dd_store *s, char *text)
{
    enum dd_err err = dd_rocks_err(text);
    if (err != DD_OK && err != DD_DISK_FULL) err = DD_IO;
    atomic_store(&s->last_error, err);
    if (err == DD_OK) return DD_OK;
    dd_count(s->write_errors, 1);
    struct dd_mono now = dd_clock_mono(&system_clock);
    if (dd_mono_ms_between(s->writer.complained, now) >= 1000) {
        s->writer.complained = now;
        dd_error("store.write_failed",
                 "error=\"%s\" note=\"retried every second; RocksDB may need a restart\"", text);
    }
    rocksdb_free(text);
    return err;
}

static void write_out(struct dd_commit *c, bool sync)
{
    struct dd_rocks *r = &c->store->rocks;
    if (c->err != DD_OK) return;
    char *text = NULL;
    if (rocksdb_writebatch_count(c->batch) > 0) {
        c->wrote = true;
        rocksdb_write(r->db, sync ? r->write_sync : r->write, c->batch, &text);
        rocksdb_writebatch_clear(c->batch);
    } else if (sync && c->wrote) {
        rocksdb_flush_wal(r->db, 1, &text); /* the last op wrote nothing, but those before it did */
    } else {
        return;
    }
    c->err = dd_commit_note(c->store, text);
}

static void put_set(struct dd_commit *c, struct dd_slice key, struct dd_slice value)
{
    rocksdb_column_family_handle_t *sets = c->store->rocks.family[DD_FAMILY_SETS];
    const char *k = (const char *)key.ptr;
    if (value.len > 0)
        rocksdb_writebatch_put_cf(c->batch, sets, k, key.len, (const char *)value.ptr, value.len);
    else
        rocksdb_writebatch_delete_cf(c->batch, sets, k, key.len);
}

static enum dd_err update(struct dd_commit *c, struct dd_store_op *op, struct dd_slice key)
{
    write_out(c, false);
    if (c->err != DD_OK) return c->err;
    dd_buf_reset(&c->current);
    dd_buf_reset(&c->value);
    enum dd_err err = dd_rocks_get(&c->store->rocks, DD_FAMILY_SETS, key, &c->current);
    if (err == DD_CORRUPT && op->record) { /* a rebuild replaces also what RocksDB cannot read */
        dd_buf_reset(&c->current);
        dd_buf_add_u8(&c->current, 0); /* no set: a union with it is flagged damaged */
        err = DD_OK;
    }
    if (err != DD_OK && err != DD_NOT_FOUND) return err;
    if (op->record && (err = dd_history_feed(c, op, key)) != DD_OK) return err;
    err = op->update(op->update_arg, dd_buf_slice(&c->current), &c->value);
    if (err == DD_OK && !dd_buf_ok(&c->value)) err = DD_NO_MEMORY;
    if (err == DD_OK) put_set(c, key, dd_buf_slice(&c->value));
    return err;
}

static void erase(struct dd_commit *c, struct dd_store_op *op, struct dd_slice key, uint64_t key_hash)
{
    struct dd_repair_key meta;
    if (atomic_load(&c->store->has_records)) {
        write_out(c, false); /* the records of this group must be found */
        if (c->err == DD_OK) op->result = dd_history_erase(c, key, &op->records);
        if (c->err != DD_OK || op->result != DD_OK) return;
    }
    dd_marks_add(c->store->marks, key_hash, c->number);
    put_set(c, key, dd_slice_of(NULL, 0));
    dd_repair_meta_key(&meta, key);
    rocksdb_writebatch_delete_cf(c->batch, c->store->rocks.family[DD_FAMILY_META], (const char *)meta.bytes,
                                 meta.len);
}

static void merge(struct dd_commit *c, const struct dd_store_op *op, struct dd_slice key)
{
    if (op->operand.len == 0) return;
    rocksdb_writebatch_merge_cf(c->batch, c->store->rocks.family[DD_FAMILY_SETS], (const char *)key.ptr,
                                key.len, (const char *)op->operand.ptr, op->operand.len);
}

/* Marks of ops that outdate what was read stand beside those of erases, under a hash of their own. */
static uint64_t outdated_hash(uint64_t key_hash)
{
    return dd_mix64(key_hash ^ 0x6f75746461746564);
}

/* What becomes of an op whose content was read elsewhere at read_number. */
static enum dd_mark_verdict judge(const struct dd_commit *c, const struct dd_store_op *op, uint64_t key_hash)
{
    const struct dd_erase_marks *marks = c->store->marks;
    enum dd_mark_verdict verdict = dd_marks_judge(marks, key_hash, op->read_number);
    if (verdict != DD_MARK_KEEP) return verdict;
    verdict = dd_marks_judge(marks, outdated_hash(key_hash), op->read_number);
    return verdict == DD_MARK_KEEP ? DD_MARK_KEEP : DD_MARK_READ_AGAIN;
}

/* The number of a mark must be published even if nothing is written, or a read could never be young enough.
 */
static void outdate(struct dd_commit *c, uint64_t key_hash)
{
    dd_marks_add(c->store->marks, outdated_hash(key_hash), c->number);
    c->wrote = true;
}

/* Ops that leave the sets as they are. */
static bool is_beside(const struct dd_store_op *op)
{
    return op->kind == DD_STORE_RECORD || op->kind == DD_STORE_PUT;
}

static void apply(struct dd_commit *c, struct dd_store_op *op)
{
    struct dd_key key;
    op->stripped = false;
    op->records = 0;
    op->result = is_beside(op) && (!op->suffix.len || op->suffix.len > DD_STORE_NAME_MAX) ? DD_INVALID
                                                                                          : DD_OK;
    if (op->kind == DD_STORE_PUT && op->result == DD_OK)
        dd_history_put(c, op->family, dd_slice_of(NULL, 0), op);
    if (op->kind == DD_STORE_PUT || op->result != DD_OK) return;
    op->result = dd_key_encode(&key, op->period, op->scene, op->user);
    if (op->result != DD_OK) return;
    struct dd_slice k = dd_key_slice(&key);
    uint64_t key_hash = dd_hash64(k, dd_get_le64(c->store->secret.bytes));
    if (op->kind == DD_STORE_ERASE) {
        erase(c, op, k, key_hash);
        return;
    }
    enum dd_mark_verdict verdict = judge(c, op, key_hash);
    if (verdict == DD_MARK_READ_AGAIN) op->result = DD_BUSY;
    if (verdict == DD_MARK_STRIP) {
        op->stripped = true;
        dd_count(c->store->stripped, 1);
    }
    if (verdict != DD_MARK_KEEP) return;
    if (op->kind == DD_STORE_UPDATE && op->outdates) outdate(c, key_hash);
    if (op->kind == DD_STORE_MERGE)
        merge(c, op, k);
    else if (op->kind == DD_STORE_RECORD)
        dd_history_put(c, DD_STORE_HISTORY, k, op);
    else
        op->result = update(c, op, k);
}

static void apply_batch(struct dd_commit *c, struct dd_store_batch *b)
{
    c->sync |= b->sync;
    dd_count(c->store->requests, 1);
    dd_count(c->store->operations, b->n);
    if (b->call) {
        write_out(c, false); /* it reads, and has to see everything before it */
        if (c->err == DD_OK) b->err = b->call(c, b);
        return;
    }
    b->err = DD_OK;
    for (unsigned i = 0; i < b->n && c->err == DD_OK; i++)
        apply(c, &b->ops[i]);
}

static void publish(struct dd_commit *c, const struct dd_store_batch *group)
{
    struct dd_store *s = c->store;
    dd_change_publish_number(s->change, c->number);
    for (const struct dd_store_batch *b = group; b; b = b->next) {
        for (unsigned i = 0; i < b->n; i++) {
            const struct dd_store_op *op = &b->ops[i];
            if (is_beside(op)) continue;
            uint64_t user_hash = dd_hash_user_seed(&s->secret, op->scene, op->user);
            dd_change_raise(s->change, op->period, user_hash, c->number);
        }
    }
}

static void complete(struct dd_store_batch *group, enum dd_err err, uint64_t number)
{
    for (struct dd_store_batch *b = group, *next; b; b = next) {
        next = b->next; /* b is its owner's again from here on */
        if (err != DD_OK) b->err = err;
        b->number = number;
        if (!b->loop) {
            b->done(b->arg);
            continue;
        }
        b->task.run = b->done;
        b->task.arg = b->arg;
        dd_loop_post(b->loop, &b->task);
    }
}

static void commit(struct dd_commit *c, struct dd_store_batch *group)
{
    struct dd_mono start = dd_clock_mono(&system_clock);
    c->batch = rocksdb_writebatch_create();
    for (struct dd_store_batch *b = group; b && c->err == DD_OK; b = b->next)
        apply_batch(c, b);
    write_out(c, c->sync);
    rocksdb_writebatch_destroy(c->batch);
    dd_buf_free(&c->current);
    dd_buf_free(&c->value);
    if (!c->wrote) {
        c->number--; /* the number before is still the last one */
        return;
    }
    publish(c, group);
    dd_count(c->store->commits, 1);
    struct dd_mono end = dd_clock_mono(&system_clock);
    dd_histogram_record(c->store->commit_time, (end.ns - start.ns) / 1000);
}

void dd_commit_group(struct dd_store *s, struct dd_store_batch *group)
{
    dd_change_destroy(s->saved); /* see dd_store_resume: too late for it now */
    s->saved = NULL;
    dd_guard_check(s);
    if (atomic_load(&s->guard)) {
        complete(group, DD_DISK_FULL, dd_change_number(s->change));
        return;
    }
    dd_repair_aside(s); /* so that an erase in this group also removes what waits aside */
    struct dd_commit c = {.store = s, .number = dd_change_number(s->change) + 1, .sync = s->options.sync};
    commit(&c, group);
    complete(group, c.err, c.number);
}

enum dd_err dd_store_write(struct dd_store *s, struct dd_store_batch *b)
{
    if (atomic_load(&s->guard)) return DD_DISK_FULL;
    b->call = NULL;
    return dd_writer_push(s, b, false);
}

enum dd_err dd_store_write_wait(struct dd_store *s, struct dd_store_batch *b)
{
    if (atomic_load(&s->guard)) return DD_DISK_FULL;
    b->call = NULL;
    return dd_writer_push_wait(s, b, false);
}
