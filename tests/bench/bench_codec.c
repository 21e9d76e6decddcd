/* What reading a request costs: the codec of lib/api beside jansson's tree, for bodies of POST /filter.
 *
 *   cc -std=c11 -D_GNU_SOURCE -O2 -Ilib -o bench_codec tests/bench/bench_codec.c lib/api/json.c
 * lib/api/codec.c \ lib/api/fields.c lib/api/reader.c lib/dedup/scene.c lib/base/[abceh]*.c -lxxhash
 * -ljansson
 *
 * Prints microseconds and megabytes a second, the best of several rounds (shared machines are noisy). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/codec.h"

#define ROUNDS 7

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* kind 0: strings of 20 to 22 bytes; 1: integers; 2: strings that hold an escape and a character of two bytes
 */
static void make_body(struct dd_buf *out, unsigned n, int kind)
{
    dd_buf_reset(out);
    dd_buf_add_str(out, "{\"user\":\"user-12345678\",\"candidates\":[");
    for (unsigned i = 0; i < n; i++) {
        if (i) dd_buf_add_u8(out, ',');
        unsigned a = i * 2654435761u, b = i * 7919u % 100000;
        if (kind == 1) a %= 100000000;
        if (kind == 0) dd_buf_addf(out, "\"video:%08x-%06u\"", a, b);
        if (kind == 1) dd_buf_addf(out, "1%08u%05u", a, b);
        if (kind == 2) dd_buf_addf(out, "\"caf\\u00e9:%08x-\xc3\xa9%u\"", a, b);
    }
    dd_buf_add_str(out, "],\"limit\":20,\"claim\":true}");
}

static void by_codec(struct dd_slice body, void *arg)
{
    static struct dd_arena arena; /* the loop's, as in the server */
    struct dd_filter_call call;
    struct dd_api_error err;
    if (dd_codec_filter(arg, body, &arena, &call, &err) != DD_OK) {
        fprintf(stderr, "refused: %s %s\n", err.field, err.message);
        exit(1);
    }
    dd_arena_reset(&arena);
}

static void by_jansson(struct dd_slice body, void *arg)
{
    (void)arg;
    json_t *v = json_loadb((const char *)body.ptr, body.len, JSON_REJECT_DUPLICATES, NULL);
    if (!v) exit(1);
    json_decref(v);
}

static double measure(void (*read)(struct dd_slice, void *), struct dd_slice body, void *arg)
{
    double best = 1e9;
    unsigned times = (unsigned)(20000000 / (body.len + 200)) / 4;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us();
        for (unsigned i = 0; i < times; i++)
            read(body, arg);
        double each = (now_us() - start) / times;
        if (each < best) best = each;
    }
    return best;
}

int main(void)
{
    static const struct dd_scene scene = {.name = "default", .window = 3, .recent_max = 100};
    static const char *const kinds[] = {"strings", "integers", "escapes"};
    static const unsigned counts[] = {10, 100, 1000};
    struct dd_scenes *scenes = NULL;
    struct dd_buf body = {0};
    if (dd_scenes_create(&scene, 1, &scenes) != DD_OK) return 1;
    struct dd_codec codec = {
        .scenes = scenes, .max_candidates = 10000, .max_items = 10000, .max_events = 1000};
    printf("%-10s %5s %7s %12s %12s %10s\n", "ids", "n", "bytes", "codec us", "jansson us", "codec MB/s");
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            make_body(&body, counts[i], kind);
            double codec_us = measure(by_codec, dd_buf_slice(&body), &codec);
            double jansson_us = measure(by_jansson, dd_buf_slice(&body), NULL);
            printf("%-10s %5u %7zu %12.2f %12.2f %10.0f\n", kinds[kind], counts[i], body.len, codec_us,
                   jansson_us, (double)body.len / codec_us);
        }
    dd_buf_free(&body);
    dd_scenes_destroy(scenes);
    return 0;
}
