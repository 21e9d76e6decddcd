/* Tokens are never changed in place: a reload makes a new table and publishes its address, so that a request
 * takes no lock. Tables that were replaced stay until the end, because a request may still read them; a
 * reload that finds the file unchanged makes none, so their number is that of real changes by hand. */
#include "api/auth.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"

#define FILE_MAX   65536
#define TOKENS_MAX 100
#define TOKEN_MAX  256
#define TOKEN_WEAK 16 /* below this a token can be guessed: 96 bits at 6 bits a character */

struct token {
    uint8_t bytes[TOKEN_MAX]; /* the rest is zero */
    size_t len;
    unsigned roles;
};

struct table {
    struct table *older;
    size_t count;
    struct token tokens[TOKENS_MAX];
};

struct dd_auth {
    char *path; /* NULL: no tokens */
    _Atomic(struct table *) now;
};

/* ---- reading ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next run of bytes that are not blank; empty at the end. */
static struct dd_slice next_word(struct dd_slice *line)
{
    size_t from = 0;
    while (from < line->len && is_blank(line->ptr[from]))
        from++;
    size_t to = from;
    while (to < line->len && !is_blank(line->ptr[to]))
        to++;
    struct dd_slice word = dd_slice_of(line->ptr + from, to - from);
    *line = dd_slice_of(line->ptr + to, line->len - to);
    return word;
}

static unsigned role_of(struct dd_slice name)
{
    if (dd_slice_eq(name, dd_slice_str("data"))) return DD_AUTH_DATA;
    if (dd_slice_eq(name, dd_slice_str("ops"))) return DD_AUTH_OPS;
    return dd_slice_eq(name, dd_slice_str("admin")) ? DD_AUTH_ADMIN : 0;
}

static bool is_token(struct dd_slice t)
{
    for (size_t i = 0; i < t.len; i++)
        if (t.ptr[i] <= ' ' || t.ptr[i] > '~') return false;
    return t.len > 0 && t.len <= TOKEN_MAX;
}

/* Why the line cannot be used; NULL when it can. */
static const char *read_line(struct dd_slice line, struct table *out, bool *weak)
{
    struct dd_slice role = next_word(&line), token = next_word(&line);
    if (role.len == 0 || role.ptr[0] == '#') return NULL;
    unsigned roles = role_of(role);
    if (!roles) return "a line begins with data, ops or admin";
    if (!is_token(token)) return "a token is 1 to 256 visible ASCII characters";
    if (next_word(&line).len) return "nothing may follow the token";
    if (out->count == TOKENS_MAX) return "there are more than 100 tokens";
    struct token *t = &out->tokens[out->count++];
    memcpy(t->bytes, token.ptr, token.len);
    t->len = token.len;
    t->roles = roles;
    *weak = *weak || token.len < TOKEN_WEAK;
    return NULL;
}

static enum dd_err parse(const char *path, struct dd_slice text, struct table *out)
{
    bool weak = false;
    const char *why = NULL;
    unsigned number = 0;
    while (text.len && !why) {
        const uint8_t *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len, taken = end ? len + 1 : len;
        number++;
        why = read_line(dd_slice_of(text.ptr, len), out, &weak);
        text = dd_slice_of(text.ptr + taken, text.len - taken);
    }
    if (!why && out->count == 0) why = "there is no token in it";
    if (why) {
        dd_error("auth.tokens", "file=%s line=%u error=\"%s\"", path, number, why);
        return DD_INVALID;
    }
    if (weak)
        dd_warn("auth.weak_token", "file=%s hint=\"tokens of 16 characters or more are not guessed\"", path);
    return DD_OK;
}

static void free_table(struct table *t)
{
    if (t) explicit_bzero(t, sizeof *t);
    free(t);
}

static enum dd_err load(const char *path, struct table **out)
{
    struct dd_buf text = {0};
    struct stat st;
    struct table *t = calloc(1, sizeof *t);
    if (!t) return DD_NO_MEMORY;
    enum dd_err err = dd_file_read(path, FILE_MAX, &text, &st);
    if (err != DD_OK) dd_error("auth.tokens", "file=%s error=\"%s\"", path, dd_file_why(err));
    if (err == DD_OK && st.st_mode & S_IROTH)
        dd_warn("auth.readable_by_all", "file=%s hint=\"chmod 640\"", path);
    if (err == DD_OK) err = parse(path, dd_buf_slice(&text), t);
    if (text.data) explicit_bzero(text.data, text.cap);
    dd_buf_free(&text);
    if (err != DD_OK) {
        free_table(t);
        return err;
    }
    *out = t;
    return DD_OK;
}

/* ---- life ---- */

enum dd_err dd_auth_create(const char *path, struct dd_auth **out)
{
    struct table *t = NULL;
    struct dd_auth *a = calloc(1, sizeof *a);
    if (!a) return DD_NO_MEMORY;
    enum dd_err err = DD_OK;
    if (*path && !(a->path = strdup(path))) err = DD_NO_MEMORY;
    if (err == DD_OK && a->path) err = load(a->path, &t);
    if (err != DD_OK) {
        dd_auth_destroy(a);
        return err;
    }
    atomic_store(&a->now, t);
    *out = a;
    return DD_OK;
}

void dd_auth_destroy(struct dd_auth *a)
{
    if (!a) return;
    for (struct table *t = atomic_load(&a->now), *older; t; t = older) {
        older = t->older;
        free_table(t);
    }
    free(a->path);
    free(a);
}

static bool same_token(const struct token *a, const struct token *b)
{
    return a->len == b->len && a->roles == b->roles && memcmp(a->bytes, b->bytes, TOKEN_MAX) == 0;
}

static bool same(const struct table *a, const struct table *b)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_token(&a->tokens[i], &b->tokens[i])) return false;
    return true;
}

enum dd_err dd_auth_reload(struct dd_auth *a)
{
    struct table *t, *now = atomic_load(&a->now);
    if (!a->path) return DD_OK;
    enum dd_err err = load(a->path, &t);
    if (err != DD_OK) return err;
    if (same(t, now)) {
        free_table(t);
        return DD_OK;
    }
    t->older = now;
    atomic_store(&a->now, t);
    dd_info("auth.reloaded", "tokens=%zu", t->count);
    return DD_OK;
}

/* ---- asking ---- */

bool dd_auth_has_tokens(const struct dd_auth *a)
{
    return a && a->path;
}

/* 0 when equal. Every byte is looked at; what it takes depends on nothing that is secret. */
static unsigned difference(const struct token *t, const uint8_t *bytes, size_t len)
{
    size_t wrong = t->len ^ len;
    for (size_t i = 0; i < TOKEN_MAX; i++)
        wrong |= (size_t)(t->bytes[i] ^ bytes[i]);
    return wrong != 0;
}

unsigned dd_auth_roles(const struct dd_auth *a, struct dd_slice token)
{
    uint8_t bytes[TOKEN_MAX] = {0};
    unsigned roles = 0;
    const struct table *t = a ? atomic_load(&((struct dd_auth *)(uintptr_t)a)->now) : NULL;
    if (!t || token.len == 0 || token.len > TOKEN_MAX) return 0;
    memcpy(bytes, token.ptr, token.len);
    for (size_t i = 0; i < t->count; i++)
        roles |= t->tokens[i].roles & (difference(&t->tokens[i], bytes, token.len) - 1);
    return roles;
}
