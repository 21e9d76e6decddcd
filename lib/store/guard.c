/* The disk guard. Debian's RocksDB keeps its assertions: a log append that meets a full disk aborts the
 * process. So writes stop while there is still room for what RocksDB does by itself (flushes, compactions).
 *
 * The free space is read before every commit (statvfs costs about a microsecond, a commit a hundred) and
 * every second, so a burst cannot run past it. An eighth of hysteresis keeps it from flapping. */
#include "base/log.h"
#include "store/files.h"
#include "store/store_impl.h"

void dd_guard_check(struct dd_store *s)
{
    uint64_t min = s->options.min_free_bytes, have = dd_disk_free(s->path);
    bool was = atomic_load(&s->guard);
    bool on = have < (was ? min + min / 8 : min);
    atomic_store(&s->free_bytes, have);
    atomic_store(&s->guard, on);
    dd_gauge_set(s->free_gauge, (int64_t)have);
    dd_gauge_set(s->guard_gauge, on);
    if (on && !was)
        dd_error("store.disk_guard_on", "free_bytes=%llu min_free_bytes=%llu", (unsigned long long)have,
                 (unsigned long long)min);
    if (!on && was) dd_info("store.disk_guard_off", "free_bytes=%llu", (unsigned long long)have);
}
