/* A real redis-server in a temporary directory, and a hot tier with loops that the test turns by hand. */
#ifndef DD_TESTS_HOT_WORLD_H
#define DD_TESTS_HOT_WORLD_H

#include <sys/types.h>

#include "hot/hot.h"
#include "unit.h"

#define LOOPS_MAX 4

struct server {
    char *dir;
    char socket[600];
    uint16_t port; /* 0: Unix socket only */
    pid_t pid;
    const char *extra[12]; /* more arguments, NULL-terminated */
};

/* Starts and waits until it answers PING (or, with a password, anything). */
void server_start(struct server *s);
void server_start_unready(struct server *s);
void server_kill(struct server *s); /* SIGKILL, waits for its end */
void server_remove(struct server *s);
uint16_t free_port(void);

/* One command through redis-cli's protocol by hand; words are NULL-terminated. Returns the reply as text
 * ("(nil)",
 * "(error) ...", arrays joined by spaces), valid until the next call. */
const char *ask(struct server *s, const char *word, ...) __attribute__((sentinel));

struct world {
    struct server server;
    struct dd_hot_options options;
    struct dd_clock clock;
    struct dd_stats *stats;
    struct dd_hot *hot;
    unsigned loops;
    struct dd_loop *loop[LOOPS_MAX];
    struct dd_hot_loop *hl[LOOPS_MAX];
};

/* options: socket of the server unless host or path is set; short deadlines. */
void world_open(struct world *w, unsigned loops);
void world_close(struct world *w);

int64_t mono_ms(void);
/* Turns all loops until the condition holds; fails the test after 10 s times patience. */
#define wait_for(w, condition)                                                                               \
    do {                                                                                                     \
        int64_t begun_ = mono_ms();                                                                          \
        while (!(condition)) {                                                                               \
            ck_assert_msg(mono_ms() - begun_ < unit_patience_ms(10000), "waited long for %s", #condition);   \
            world_turn(w);                                                                                   \
        }                                                                                                    \
    } while (0)
void world_turn(struct world *w);
bool world_is_up(struct world *w);

/* A fetch of two pending periods, deliveries and three cached periods that counts how often done ran. */
struct fetched {
    struct dd_hot_fetch f;
    unsigned done;
    bool complete, intact;
    char recent[40000];   /* "i1 i2" */
    char pending[2][200]; /* "1 2 3", sorted */
    char cached[3][64];   /* "incarnation/number/blob" or "-" */
};
struct dd_period month(int back);
void fetch_start(struct world *w, unsigned loop, const char *user, struct fetched *out);
void fetch(struct world *w, unsigned loop, const char *user, struct fetched *out);

struct claimed {
    struct dd_hot_claim c;
    struct dd_slice ids[1000];
    char names[1000][16];
    uint8_t won[1000];
    unsigned done, total;
};
/* The ids first..first+n-1 as "i7", by default with a ttl of 10 minutes and recent_max 100. */
void claim_start(struct world *w, unsigned loop, const char *user, unsigned first, unsigned n,
                 struct claimed *out);
void claim(struct world *w, unsigned loop, const char *user, unsigned first, unsigned n, struct claimed *out);

uint64_t counted(struct world *w, const char *name);

#endif
