/* What the files of the old store share. Nothing outside includes it, but its tests. */
#ifndef DD_HOT_LEGACY_IMPL_H
#define DD_HOT_LEGACY_IMPL_H

#include "hot/internal.h"
#include "hot/legacy.h"
#include "hot/sync.h"

/* legacy_state.c */
struct dd_legacy_state {
    pthread_mutex_t lock;                 /* guards all but refused */
    unsigned connections, connections_up; /* own ones */
    int64_t down_since_ms;
    bool up, told;       /* as the log said last, if anything */
    struct dd_mono said; /* when */
    char last_error[128];
    atomic_bool refused; /* the last reply was an error, in refusal */
    char refusal[96];
};

struct dd_legacy {
    enum dd_legacy_type type;
    enum dd_legacy_unit unit;
    char *pattern;              /* holds what follows */
    struct dd_slice head, tail; /* of a key, around the user */
    struct dd_hot *hot;
    struct dd_hot *own; /* the second server's address and deadlines; NULL: the hot tier's */
    struct {
        struct dd_counter *reads, *failures, *wrong_type;
    } count;
    struct dd_legacy_state state;
};

struct dd_legacy_loop {
    struct dd_legacy *l;
    struct dd_hot_loop *hot; /* whose connection is used; NULL: own */
    struct dd_loop *loop;
    struct dd_redis conn; /* own */
    bool was_up;
    struct dd_buf command, key;
};

struct dd_legacy_sync {
    struct dd_legacy *l;
    struct dd_sync sync;
    struct dd_buf key, pattern;
};

/* ---- legacy_state.c; any thread ---- */

void dd_legacy_state_init(struct dd_legacy_state *s);
void dd_legacy_state_reset(struct dd_legacy_state *s);
/* So many own connections more or less are there, and up. */
void dd_legacy_state_count(struct dd_legacy *l, int connections, int up);
/* One of them came up, or failed (again); counted before. Logs what is news. */
void dd_legacy_state_changed(struct dd_legacy *l, bool up, const char *reason);
/* A read was refused by an error reply, or answered. */
void dd_legacy_state_refused(struct dd_legacy *l, const char *words);
void dd_legacy_state_answered(struct dd_legacy *l);

/* ---- legacy_time.c: pure ---- */

/* Scores from here on are milliseconds, in auto. */
#define DD_LEGACY_MS_FROM 1e11

int64_t dd_legacy_time(enum dd_legacy_unit unit, double score);
/* A score as Redis writes it. false: not a number. */
bool dd_legacy_score(struct dd_slice text, double *out);
/* The ranges of scores, as ZRANGEBYSCORE takes them, of entries newer than since_ms: 1 or 2. */
struct dd_legacy_range {
    char min[40], max[40];
};
unsigned dd_legacy_ranges(enum dd_legacy_unit unit, int64_t since_ms, struct dd_legacy_range out[2]);
/* The user in a key. false: it is not a key of the pattern. */
bool dd_legacy_user_of(const struct dd_legacy *l, struct dd_slice key, struct dd_slice *user);
/* The pattern for SCAN MATCH: with * for the user, everything else literal. */
void dd_legacy_glob(const struct dd_legacy *l, struct dd_buf *out);
void dd_legacy_key(const struct dd_legacy *l, struct dd_slice user, struct dd_buf *out);

#endif
