#include "filters_workload.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX_BYTES ((size_t)1 << 30)
#define USER_MAX_BYTES 128
#define ITEM_MAX_BYTES 256

void dd_ids_free(struct dd_ids *ids)
{
    free(ids->id);
    dd_buf_free(&ids->bytes);
}

static enum dd_err reserve(struct dd_ids *ids, size_t n, size_t id_bytes)
{
    ids->n = 0;
    dd_buf_reset(&ids->bytes);
    if (n > ids->room) {
        free(ids->id);
        ids->id = malloc(n * sizeof *ids->id);
        ids->room = ids->id ? n : 0;
    }
    return (n == 0 || ids->id) && dd_buf_reserve(&ids->bytes, n * id_bytes) ? DD_OK : DD_NO_MEMORY;
}

/* Decimal numbers of a fixed width, as catalogues have them. The room is there: slices stay valid. */
static enum dd_err make_numbers(uint64_t from, size_t n, uint32_t id_bytes, struct dd_ids *out)
{
    enum dd_err err = reserve(out, n, id_bytes);
    for (size_t i = 0; err == DD_OK && i < n; i++) {
        uint8_t *at = dd_buf_extend(&out->bytes, id_bytes);
        if (!at) return DD_NO_MEMORY;
        uint64_t number = from + i;
        for (uint32_t digit = id_bytes; digit-- > 0; number /= 10)
            at[digit] = (uint8_t)('0' + number % 10);
        out->id[out->n++] = dd_slice_of(at, id_bytes);
    }
    return err;
}

enum dd_err dd_workload_user(const struct dd_workload *w, uint32_t user, struct dd_ids *out)
{
    if (w->items > 0) return make_numbers(0, w->items, w->id_bytes, out);
    size_t from = w->first[user], n = w->first[user + 1] - from;
    enum dd_err err = reserve(out, n, 0);
    for (size_t i = 0; err == DD_OK && i < n; i++)
        out->id[out->n++] = w->line[from + i].item;
    return err;
}

/* A file's ids have no byte 0, a made-up user's have smaller numbers. */
enum dd_err dd_workload_unseen(const struct dd_workload *w, uint64_t from, size_t n, struct dd_ids *out)
{
    enum dd_err err = make_numbers(5 * (uint64_t)DD_WORKLOAD_ITEMS_MAX + from, n, w->id_bytes, out);
    for (size_t i = 0; err == DD_OK && w->items == 0 && i < n; i++)
        out->bytes.data[i * w->id_bytes] = 0;
    return err;
}

uint64_t dd_workload_items(const struct dd_workload *w)
{
    return w->items > 0 ? (uint64_t)w->items * w->users : w->lines;
}

/* ---- files ---- */

static enum dd_err read_all(const char *path, struct dd_buf *out, char *why, size_t why_size)
{
    FILE *f = fopen(path, "re");
    size_t n = 1;
    enum dd_err err = DD_OK;
    if (!f) {
        snprintf(why, why_size, "%s: %m", path);
        return DD_IO;
    }
    while (err == DD_OK && n > 0) {
        if (!dd_buf_reserve(out, 1 << 16)) {
            err = DD_NO_MEMORY;
            break;
        }
        n = fread(out->data + out->len, 1, 1 << 16, f);
        out->len += n;
        if (out->len > FILE_MAX_BYTES) err = DD_TOO_LARGE;
    }
    if (ferror(f)) err = DD_IO;
    (void)fclose(f); /* it was only read */
    if (err != DD_OK) snprintf(why, why_size, "%s: %s", path, dd_err_text(err));
    return err;
}

/* Takes the next line off *rest; true: it is user<TAB>item. Of CR LF both go. */
static bool take_line(struct dd_slice *rest, struct dd_workload_line *out)
{
    const uint8_t *end = memchr(rest->ptr, '\n', rest->len);
    struct dd_slice line = dd_slice_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    size_t used = line.len + (end ? 1 : 0);
    *rest = dd_slice_of(rest->ptr + used, rest->len - used);
    if (line.len > 0 && line.ptr[line.len - 1] == '\r') line.len--;
    const uint8_t *tab = line.len > 0 ? memchr(line.ptr, '\t', line.len) : NULL;
    if (!tab || memchr(line.ptr, 0, line.len)) return false;
    size_t user_len = (size_t)(tab - line.ptr);
    out->user = dd_slice_of(line.ptr, user_len);
    out->item = dd_slice_of(tab + 1, line.len - user_len - 1);
    return user_len >= 1 && user_len <= USER_MAX_BYTES && out->item.len >= 1 &&
           out->item.len <= ITEM_MAX_BYTES && !memchr(out->item.ptr, '\t', out->item.len);
}

static size_t count_lines(struct dd_slice text)
{
    size_t n = text.len > 0 && text.ptr[text.len - 1] != '\n';
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '\n';
    return n;
}

static enum dd_err split(struct dd_workload *w, const char *path, char *why, size_t why_size)
{
    struct dd_slice rest = dd_buf_slice(&w->text);
    size_t n = count_lines(rest);
    snprintf(why, why_size, "%s: no lines", path);
    if (n == 0) return DD_INVALID;
    w->line = malloc(n * sizeof *w->line);
    if (!w->line) return DD_NO_MEMORY;
    for (w->lines = 0; rest.len > 0; w->lines++) {
        w->line[w->lines].number = w->lines;
        if (take_line(&rest, &w->line[w->lines])) continue;
        snprintf(why, why_size, "%s:%zu: not a line of user (1 to %d bytes), tab, item (1 to %d bytes)", path,
                 w->lines + 1, USER_MAX_BYTES, ITEM_MAX_BYTES);
        return DD_INVALID;
    }
    return DD_OK;
}

static int by_user(const void *a, const void *b)
{
    const struct dd_workload_line *x = a, *y = b;
    int order = dd_slice_cmp(x->user, y->user);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static enum dd_err group(struct dd_workload *w)
{
    qsort(w->line, w->lines, sizeof *w->line, by_user);
    w->first = malloc((w->lines + 1) * sizeof *w->first);
    if (!w->first) return DD_NO_MEMORY;
    for (size_t i = 0; i < w->lines; i++)
        if (i == 0 || !dd_slice_eq(w->line[i].user, w->line[i - 1].user)) w->first[w->users++] = i;
    w->first[w->users] = w->lines;
    return DD_OK;
}

enum dd_err dd_workload_read(struct dd_workload *w, const char *path, char *why, size_t why_size)
{
    *w = (struct dd_workload){.id_bytes = 16};
    enum dd_err err = read_all(path, &w->text, why, why_size);
    if (err == DD_OK) err = split(w, path, why, why_size);
    if (err == DD_OK) err = group(w);
    if (err == DD_NO_MEMORY) snprintf(why, why_size, "%s: %s", path, dd_err_text(err));
    if (err != DD_OK) dd_workload_free(w);
    return err;
}

void dd_workload_free(struct dd_workload *w)
{
    free(w->line);
    free(w->first);
    dd_buf_free(&w->text);
    *w = (struct dd_workload){0};
}
