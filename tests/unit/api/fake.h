/* A model in place of lib/dedup: it remembers every exposure and delivery by name, answers at once or when
 * told, and fails on demand. No window, no store, no loss. */
#ifndef DD_TESTS_API_FAKE_H
#define DD_TESTS_API_FAKE_H

#include "api/api.h"

struct fake_entry {
    char scene[DD_SCENE_NAME_MAX + 1], user[DD_USER_MAX_BYTES + 1], item[DD_ITEM_MAX_BYTES + 1];
    bool exposed;
};

struct fake {
    struct dd_clock *clock;
    /* what the next calls say */
    enum dd_err err;
    bool partial;
    unsigned limit_event; /* 1 + the event of a batch that hits a cap; 0: none; UINT_MAX: all */
    bool hold;            /* done waits for fake_answer */
    bool hold_finish;     /* finished waits for fake_finish */
    struct dd_dedup_status status;
    struct dd_wheel_slot_info slot; /* the one that is shown */
    struct dd_wheel_flush *flush;   /* the one that waits */
    enum dd_err flush_start;        /* DD_PENDING when all is well */
    /* what it knows */
    struct fake_entry *entries;
    unsigned n;
    unsigned calls;
    /* of the held call */
    void (*done)(void *arg);
    void (*finished)(void *arg);
    void *arg;
};

extern const struct dd_api_backend fake_backend;

void fake_init(struct fake *f, struct dd_clock *clock);
void fake_free(struct fake *f);
struct dd_dedup_loop *fake_loop(struct fake *f);
struct dd_dedup *fake_dedup(struct fake *f);
struct dd_wheel *fake_wheel(struct fake *f);
/* Lets the held call answer, and end. */
void fake_answer(struct fake *f);
void fake_finish(struct fake *f);

#endif
