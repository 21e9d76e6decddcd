#include "store/writer.h"

#include "base/log.h"
#include "base/wait.h"
#include "store/store_impl.h"

/* Operations in one group: bounds the WriteBatch, and so the longest that a small request waits behind big
 * ones. */
#define GROUP_OPS_MAX 8192

#define HOUSEKEEPING_MS 1000

static const struct dd_clock system_clock; /* zero: the system's own time */

/* Waits until something is queued, the writer stops, or a second has passed; then, if asked to, a little for
 * more. */
static void wait_for_work(struct dd_writer *w, const struct dd_store_options *o)
{
    struct timespec until = dd_until_ms(HOUSEKEEPING_MS);
    while (!w->head && !w->stopping && dd_cond_wait_until(&w->wake, &w->lock, &until)) {
    }
    if (!w->head || o->batch_wait_us == 0) return;
    until = dd_until_us(o->batch_wait_us);
    while (w->queued < o->batch_max && !w->stopping && dd_cond_wait_until(&w->wake, &w->lock, &until)) {
    }
}

/* Cuts a group off the queue. A call of ours (batch->call) is a group of its own. */
static struct dd_store_batch *cut_group(struct dd_writer *w, unsigned batch_max)
{
    struct dd_store_batch *group = w->head, *last = NULL;
    unsigned n = 0;
    uint64_t ops = 0;
    for (struct dd_store_batch *b = group; b && n < batch_max; b = b->next) {
        ops += b->n;
        if (n > 0 && (b->call || ops > GROUP_OPS_MAX)) break;
        last = b;
        n++;
        if (b->call) break;
    }
    if (!last) return NULL;
    w->head = last->next;
    if (!w->head) w->tail = &w->head;
    last->next = NULL;
    w->queued -= n;
    return group;
}

/* A small write to see whether RocksDB takes writes again, so that nobody has to risk a request for it. */
static void probe(struct dd_store *s)
{
    char *text = NULL;
    rocksdb_put_cf(s->rocks.db, s->rocks.write, s->rocks.family[DD_FAMILY_META], "probe", 5, "", 0, &text);
    if (dd_commit_note(s, text) == DD_OK) dd_info("store.writable", "path=\"%s\"", s->path);
}

static void keep_house(struct dd_store *s)
{
    struct dd_mono now = dd_clock_mono(&system_clock);
    if (dd_mono_ms_between(s->writer.housekeeping, now) < HOUSEKEEPING_MS) return;
    s->writer.housekeeping = now;
    dd_guard_check(s);
    if (atomic_load(&s->guard)) return;
    if (atomic_load(&s->last_error) != DD_OK) probe(s);
    dd_repair_aside(s);
}

static void *run(void *arg)
{
    struct dd_store *s = arg;
    struct dd_writer *w = &s->writer;
    for (bool stop = false; !stop;) {
        pthread_mutex_lock(&w->lock);
        wait_for_work(w, &s->options);
        struct dd_store_batch *group = cut_group(w, s->options.batch_max);
        stop = !group && w->stopping;
        dd_gauge_set(w->queue_gauge, w->queued);
        pthread_mutex_unlock(&w->lock);
        if (group) dd_commit_group(s, group);
        keep_house(s);
    }
    return NULL;
}

enum dd_err dd_writer_start(struct dd_store *s)
{
    struct dd_writer *w = &s->writer;
    w->tail = &w->head;
    w->queue_max = s->options.batch_max > 64 ? 16 * s->options.batch_max : 1024;
    w->housekeeping = dd_clock_mono(&system_clock);
    pthread_mutex_init(&w->lock, NULL);
    dd_cond_init(&w->wake);
    w->running = pthread_create(&w->thread, NULL, run, s) == 0;
    if (w->running) return DD_OK;
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    return DD_NO_MEMORY;
}

void dd_writer_stop(struct dd_store *s)
{
    struct dd_writer *w = &s->writer;
    if (!w->running) return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->running = false;
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
}

enum dd_err dd_writer_push(struct dd_store *s, struct dd_store_batch *b, bool internal)
{
    struct dd_writer *w = &s->writer;
    enum dd_err err = DD_PENDING;
    pthread_mutex_lock(&w->lock);
    if (w->stopping) err = DD_SHUTDOWN;
    if (w->queued >= w->queue_max && !internal) err = DD_BUSY;
    if (err == DD_PENDING) {
        b->next = NULL;
        *w->tail = b;
        w->tail = &b->next;
        w->queued++;
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    return err;
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void wake_waiter(void *arg)
{
    struct waiter *wait = arg;
    pthread_mutex_lock(&wait->lock);
    wait->done = true;
    pthread_cond_signal(&wait->wake);
    pthread_mutex_unlock(&wait->lock);
}

enum dd_err dd_writer_push_wait(struct dd_store *s, struct dd_store_batch *b, bool internal)
{
    struct waiter wait = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    b->loop = NULL;
    b->done = wake_waiter;
    b->arg = &wait;
    enum dd_err err = dd_writer_push(s, b, internal);
    if (err != DD_PENDING) return err;
    pthread_mutex_lock(&wait.lock);
    while (!wait.done)
        pthread_cond_wait(&wait.wake, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
    pthread_mutex_destroy(&wait.lock);
    pthread_cond_destroy(&wait.wake);
    return b->err;
}

unsigned dd_writer_queued(struct dd_store *s)
{
    pthread_mutex_lock(&s->writer.lock);
    unsigned queued = s->writer.queued;
    pthread_mutex_unlock(&s->writer.lock);
    return queued;
}
