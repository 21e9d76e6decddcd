/* A whole dedupd without HTTP, in one thread: real store, hot tier embedded or on a real Redis, manual clock.
 * The calls below run the loop until the call is finished, and fail the test when that takes longer than 30
 * s. */
#ifndef DD_TESTS_DEDUP_WORLD_H
#define DD_TESTS_DEDUP_WORLD_H

#include <semaphore.h>
#include <sys/types.h>

#include "dedup/dedup.h"
#include "unit.h"

#define WORLD_START_MS 1790000000000LL /* 2026-09-21T13:33:20Z */

struct world {
    char *dir;
    pid_t redis; /* 0: embedded */
    struct dd_clock clock;
    struct dd_scene scene[8];
    unsigned scene_n;
    struct dd_dedup_options options;
    struct dd_scenes *scenes;
    struct dd_stats *stats;
    struct dd_store *store;
    struct dd_hot *hot;
    struct dd_wheel_options wheel_options; /* stage: a wheel runs */
    struct dd_wheel *wheel;
    bool without_redis; /* opens embedded though there is a Redis */
    struct dd_dedup *dedup;
    struct dd_loop *loop;
    struct dd_dedup_loop *dl;
    enum dd_durability last_durability; /* of the last exposure */
    unsigned max_seen;                  /* of the next calls of world_filter */
    struct dd_wheel_flush flush;        /* the last world_flush */
};

/* Two scenes: "default" and "push", monthly, window 3. */
void world_init(struct world *w, bool with_redis);
void world_free(struct world *w);

/* Opens what is in dir, closes it (clean: as after SIGTERM, with the witness; else as after a crash). */
void world_open(struct world *w);
void world_close(struct world *w, bool clean);

void world_redis_start(struct world *w);
void world_redis_kill(struct world *w);
/* Runs one command on the world's Redis by redis-cli; returns the exit status. */
int world_redis_cli(struct world *w, const char *command);
/* Turns the loop until the hot tier is up, or down. */
void world_wait_hot(struct world *w, bool up);

/* Item ids are "i<number>". Returns the error of the call (or that of the event). */
enum dd_err world_exposed(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                          int64_t ts_ms);

struct world_answer {
    enum dd_err err;
    bool partial;
    unsigned n, filtered;
    int item[4096];
    uint8_t reason[4096]; /* per candidate */
};

void world_filter(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                  unsigned limit, enum dd_claim claim, bool explain, struct world_answer *out);

/* A call that is started and ended in two steps, so that other things happen in between. */
struct world_call {
    struct dd_arena arena;
    bool done, finished;
    unsigned n;
    int items[64];
    struct dd_filter_call filter;
    struct dd_exposed_event event;
    struct dd_exposed_call exposed;
};

void world_filter_start(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                        struct world_call *call);
void world_filter_end(struct world *w, struct world_call *call, struct world_answer *out);
void world_exposed_start(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                         struct world_call *call);
enum dd_err world_exposed_end(struct world *w, struct world_call *call);

/* Turns the loop until exposures are staged (the wheel has listed the slots and judged Redis). */
void world_wait_staging(struct world *w);
/* Waits, without turning the loop, until no slot holds anything. */
void world_wait_no_slots(struct world *w);
/* Waits, without turning the loop, until so many users were flushed since the world was opened. */
void world_wait_flushed(struct world *w, uint64_t users);
/* POST /admin/flush; the result is w->flush. */
void world_flush(struct world *w, bool all);
struct dd_period world_period(struct world *w);

/* The store's writer, standing still from shut to open. What was pushed meanwhile waits in its queue. */
struct world_gate {
    sem_t entered, leave;
    struct dd_store_op op;
    struct dd_store_batch batch;
};
/* Returns once it stands still, with an empty queue, nothing of the wheel's first turn in it. */
void world_gate_shut(struct world *w, struct world_gate *g);
void world_gate_open(struct world_gate *g);
/* Turns the loop until so many batches wait for the writer. */
void world_wait_queued(struct world *w, unsigned n);

/* Removes the data directory of a closed world. */
void world_wipe(struct world *w);

/* Turns the loop once; for tests that start calls themselves. */
void world_turn(struct world *w);

#endif
