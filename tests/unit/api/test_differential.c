/* The codec and the reference reader over a generated corpus: the same verdict, and the same content.
 *
 * Where jansson refuses the text, the codec must refuse it too; it may name another fault that stands earlier
 * in the body. Where jansson accepts the text, code and field must be equal, and what was read must be equal.
 */
#include <stdio.h>
#include <stdlib.h>

#include "corpus.h"
#include "scenes.h"
#include "suites.h"

#define BODIES 30000

struct tally {
    unsigned accepted, refused, not_json;
};

/* Any bytes, readable in a message. */
static void show(struct dd_buf *out, struct dd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] >= 0x20 && s.ptr[i] < 0x7f)
            dd_buf_add_u8(out, s.ptr[i]);
        else
            dd_buf_addf(out, "\\x%02x", s.ptr[i]);
}

static void show_verdict(struct dd_buf *out, const char *who, const struct verdict *v)
{
    dd_buf_addf(out, "\n  %s: %s %s ", who, v->good ? "accepts" : v->code, v->field);
    show(out, dd_buf_slice(&v->said));
}

static bool same_verdict(const struct verdict *ours, const struct verdict *theirs, bool json)
{
    if (ours->good != theirs->good) return false;
    if (ours->good) return dd_slice_eq(dd_buf_slice(&ours->said), dd_buf_slice(&theirs->said));
    return !json || (strcmp(ours->code, theirs->code) == 0 && strcmp(ours->field, theirs->field) == 0);
}

static void compare(const struct dd_codec *c, enum shape shape, struct dd_slice body, struct tally *t)
{
    struct verdict ours, theirs;
    read_codec(c, shape, body, &ours);
    read_reference(c, shape, body, &theirs);
    bool json = theirs.good || strcmp(theirs.code, "invalid_json") != 0;
    if (!same_verdict(&ours, &theirs, json)) {
        struct dd_buf text = {0};
        dd_buf_addf(&text, "shape %d: ", (int)shape);
        show(&text, body);
        show_verdict(&text, "codec", &ours);
        show_verdict(&text, "reference", &theirs);
        ck_abort_msg("%.*s", (int)text.len, (const char *)text.data);
    }
    t->accepted += ours.good;
    t->refused += !ours.good && json;
    t->not_json += !json;
    verdict_free(&ours);
    verdict_free(&theirs);
}

/* Another seed: DEDUPD_TEST_SEED=n. */
START_TEST(same_verdicts)
{
    const char *env = getenv("DEDUPD_TEST_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 10) : 1;
    struct dd_codec codec = {.scenes = test_scenes(), .max_candidates = 6, .max_items = 8, .max_events = 4};
    struct corpus corpus;
    struct dd_buf body = {0};
    struct tally t = {0};
    corpus_init(&corpus, seed);
    for (unsigned i = 0; i < BODIES; i++) {
        enum shape shape = i % SHAPE_COUNT;
        corpus_next(&corpus, shape, &body);
        compare(&codec, shape, dd_buf_slice(&body), &t);
    }
    printf("codec and reference agree on %d bodies: %u accepted, %u refused, %u not JSON\n", BODIES,
           t.accepted, t.refused, t.not_json);
    /* Each kind is there in numbers, or the corpus says nothing. */
    ck_assert(t.accepted > BODIES / 20 && t.refused > BODIES / 20 && t.not_json > BODIES / 20);
    corpus_free(&corpus);
    dd_buf_free(&body);
    dd_scenes_destroy((struct dd_scenes *)codec.scenes);
}
END_TEST

Suite *suite_differential(void)
{
    Suite *s = suite_create("differential");
    TCase *t = tcase_create("codec and jansson");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, same_verdicts);
    suite_add_tcase(s, t);
    return s;
}
