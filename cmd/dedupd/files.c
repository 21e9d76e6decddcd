#include "files.h"

#include <sys/resource.h>

#include "base/log.h"

/* RocksDB's logs, Redis, loops, listeners, files that are open for a moment. */
#define OTHER_FILES 64
#define UNBOUNDED   1000 /* files of a store without a bound: gigabytes of data */
#define AT_LEAST    16

static uint64_t store_files(int64_t configured)
{
    return configured < 0 ? UNBOUNDED : (uint64_t)configured;
}

static uint64_t reserved(int64_t store)
{
    return store_files(store) + OTHER_FILES + DD_ADMIN_CONNECTIONS;
}

unsigned dd_files_for_connections(uint64_t limit, int64_t store)
{
    uint64_t keep = reserved(store);
    if (keep > limit / 2) keep = limit / 2; /* a small limit is a small store's: share it */
    uint64_t room = limit - keep;
    return room < AT_LEAST ? AT_LEAST : room > UINT32_MAX ? UINT32_MAX : (unsigned)room;
}

/* The soft limit after raising it towards `needed`. */
static uint64_t raise_limit(uint64_t needed)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return needed; /* cannot happen; assume the best */
    uint64_t had = files.rlim_cur;
    if (had >= needed) return had;
    files.rlim_cur = files.rlim_max < needed ? files.rlim_max : needed;
    return setrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : had;
}

unsigned dd_files_fit(const struct dd_config *c)
{
    unsigned wanted = (unsigned)c->http.max_connections;
    uint64_t needed = wanted + reserved(c->store.max_open_files), limit = raise_limit(needed);
    if (limit >= needed) return wanted;
    unsigned fits = dd_files_for_connections(limit, c->store.max_open_files);
    if (fits > wanted) fits = wanted;
    dd_warn("app.open_files",
            "limit=%llu needed=%llu connections=%u hint=\"raise the hard limit of open files, or "
            "lower http.max_connections\"",
            (unsigned long long)limit, (unsigned long long)needed, fits);
    return fits;
}
