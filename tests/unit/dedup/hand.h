/* The wheel's steps done by hand, so that other things happen between them; and what is left of a user. */
#ifndef DD_TESTS_DEDUP_HAND_H
#define DD_TESTS_DEDUP_HAND_H

#include "dedup/user.h"
#include "hot/staging.h"
#include "world.h"

/* One user in one slot. */
struct hand {
    struct world *w;
    struct dd_hot_staging *staging;
    struct dd_hot_slot slot;
    struct dd_hot_walk walk;
    struct dd_hot_user *users;
    unsigned n;
    uint64_t number;       /* the change table's, before pending was read */
    struct dd_store_op op; /* the last commit's */
};

/* A world with Redis, staging, and a paused wheel; policy kind of scene "default". */
void hand_init(struct hand *h, struct world *w, enum dd_filter_kind kind);
void hand_free(struct hand *h);

/* The steps, in the wheel's order. walk takes the first user of the first slot, none is DD_NOT_FOUND. */
enum dd_err hand_walk(struct hand *h);
void hand_read(struct hand *h);
/* The op's result; h->op.stripped. */
enum dd_err hand_commit(struct hand *h);
void hand_remove(struct hand *h);
void hand_unlist(struct hand *h);

/* Stages one exposure of alice. */
void hand_stage(struct hand *h, int item);

/* Runs the call until it is done. */
enum dd_err world_erase(struct world *w, struct dd_admin *a, const char *scene, const char *user,
                        struct dd_erase_call *c);
enum dd_err world_forget(struct world *w, struct dd_admin *a, const char *user, const int *items, unsigned n,
                         unsigned *forgotten);
/* The same in two steps: the loop must be turned in between for it to go on. */
struct world_forgetting {
    bool done;
    struct dd_item item[64];
    char text[64][16];
    struct dd_forget_call call;
};
void world_forget_start(struct world *w, struct dd_admin *a, const char *user, const int *items, unsigned n,
                        struct world_forgetting *f);
enum dd_err world_forget_end(struct world *w, struct world_forgetting *f, unsigned *forgotten);
enum dd_err world_inspect(struct world *w, const char *user, struct dd_inspect_call *c);
/* Frees what the last of these calls left. */
void world_calls_free(void);

/* Sets of the user in the store; keys of Redis that hold his name; entries in slots. */
unsigned left_in_store(struct world *w, const char *user);
bool left_in_redis(struct world *w, const char *user, bool entries);

#endif
