/* Keys are written byte by byte into a caller's buffer: no format strings on the request path, and ids of any
 * bytes. */
#include "hot/keys.h"

#include "base/hash.h"

/* Spelled out rather than isalnum: the locale must not change a key. */
static bool is_plain(uint8_t c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    return c != 0 && strchr("_.~:@+=,-", c) != NULL;
}

static const char hex_digits[] = "0123456789ABCDEF";

void dd_hot_escape(struct dd_buf *out, struct dd_slice bytes)
{
    if (bytes.len > SIZE_MAX / 3) {
        out->failed = true;
        return;
    }
    if (!dd_buf_reserve(out, bytes.len * 3)) return;
    uint8_t *to = out->data + out->len;
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.ptr[i];
        if (is_plain(c)) {
            *to++ = c;
            continue;
        }
        *to++ = '%';
        *to++ = (uint8_t)hex_digits[c >> 4];
        *to++ = (uint8_t)hex_digits[c & 15];
    }
    out->len = (size_t)(to - out->data);
}

/* The value of an upper-case hex digit, or 16. */
static unsigned hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10u;
    return 16;
}

enum dd_err dd_hot_unescape(struct dd_slice text, struct dd_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3) return DD_INVALID;
            unsigned high = hex_value(text.ptr[i + 1]), low = hex_value(text.ptr[i + 2]);
            if (high > 15 || low > 15) return DD_INVALID;
            c = (uint8_t)(high << 4 | low);
            if (is_plain(c)) return DD_INVALID;
            i += 2;
        } else if (!is_plain(c)) {
            return DD_INVALID;
        }
        dd_buf_add_u8(out, c);
    }
    return dd_buf_ok(out) ? DD_OK : DD_NO_MEMORY;
}

void dd_hot_key_user(struct dd_buf *out, struct dd_slice scene, struct dd_slice user)
{
    dd_buf_add_str(out, "dd:{");
    dd_hot_escape(out, scene);
    dd_buf_add_u8(out, '/');
    dd_hot_escape(out, user);
    dd_buf_add_str(out, "}:");
}

void dd_hot_key_add_deliveries(struct dd_buf *out)
{
    dd_buf_add_u8(out, 'd');
}

void dd_hot_key_add_pending(struct dd_buf *out, struct dd_slice store, struct dd_period period)
{
    char text[DD_PERIOD_TEXT];
    dd_buf_add_str(out, "p:");
    dd_hot_escape(out, store);
    dd_buf_add_u8(out, ':');
    dd_buf_add_str(out, dd_period_format(period, text));
}

void dd_hot_key_add_cached(struct dd_buf *out, struct dd_slice store)
{
    dd_buf_add_str(out, "c:");
    dd_hot_escape(out, store);
}

void dd_hot_key_bucket(struct dd_buf *out, struct dd_slice store, int64_t start_s, int64_t end_s,
                       unsigned part)
{
    dd_buf_add_str(out, "dd:a:");
    dd_hot_escape(out, store);
    dd_buf_add_u8(out, ':');
    dd_hot_slot_name(out, start_s, end_s);
    dd_buf_add_u8(out, ':');
    dd_buf_add_i64(out, part);
}

void dd_hot_key_slots(struct dd_buf *out, struct dd_slice store)
{
    dd_buf_add_str(out, "dd:s:");
    dd_hot_escape(out, store);
}

void dd_hot_key_generation(struct dd_buf *out, struct dd_slice store)
{
    dd_buf_add_str(out, "dd:g:");
    dd_hot_escape(out, store);
}

unsigned dd_hot_part_of(struct dd_slice scene, struct dd_slice user)
{
    return (unsigned)(dd_hash64(user, dd_hash64(scene, 0)) % DD_HOT_PARTS);
}

void dd_hot_slot_name(struct dd_buf *out, int64_t start_s, int64_t end_s)
{
    dd_buf_add_i64(out, start_s);
    dd_buf_add_u8(out, '-');
    dd_buf_add_i64(out, end_s);
}

/* A number from 0 to 10^15 without leading zeros; moves *at behind it. */
static enum dd_err parse_seconds(struct dd_slice text, size_t *at, int64_t *out)
{
    size_t begin = *at;
    int64_t v = 0;
    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9' && *at - begin < 15)
        v = v * 10 + (text.ptr[(*at)++] - '0');
    if (*at == begin || (text.ptr[begin] == '0' && *at - begin > 1)) return DD_INVALID;
    *out = v;
    return DD_OK;
}

enum dd_err dd_hot_slot_parse(struct dd_slice text, int64_t *start_s, int64_t *end_s)
{
    size_t at = 0;
    if (parse_seconds(text, &at, start_s)) return DD_INVALID;
    if (at == text.len || text.ptr[at++] != '-') return DD_INVALID;
    if (parse_seconds(text, &at, end_s)) return DD_INVALID;
    return at == text.len && *start_s < *end_s ? DD_OK : DD_INVALID;
}

void dd_hot_member(struct dd_buf *out, struct dd_slice scene, struct dd_slice user, struct dd_period period)
{
    char text[DD_PERIOD_TEXT];
    dd_hot_escape(out, scene);
    dd_buf_add_u8(out, '/');
    dd_hot_escape(out, user);
    dd_buf_add_u8(out, '/');
    dd_buf_add_str(out, dd_period_format(period, text));
}

/* Cuts text at its first '/': *head is what stands before it, *rest what follows. */
static enum dd_err cut(struct dd_slice text, struct dd_slice *head, struct dd_slice *rest)
{
    const uint8_t *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    if (!slash) return DD_INVALID;
    size_t n = (size_t)(slash - text.ptr);
    *head = dd_slice_of(text.ptr, n);
    *rest = dd_slice_of(slash + 1, text.len - n - 1);
    return DD_OK;
}

enum dd_err dd_hot_member_parse(struct dd_slice text, struct dd_buf *bytes, size_t *scene_len,
                                size_t *user_len, struct dd_period *period)
{
    struct dd_slice scene, user, rest;
    if (cut(text, &scene, &rest) || cut(rest, &user, &rest)) return DD_INVALID;
    if (scene.len == 0 || user.len == 0) return DD_INVALID;
    if (dd_period_parse(rest, period)) return DD_INVALID;
    size_t begin = bytes->len;
    enum dd_err err = dd_hot_unescape(scene, bytes);
    if (err) return err;
    *scene_len = bytes->len - begin;
    err = dd_hot_unescape(user, bytes);
    if (err) return err;
    *user_len = bytes->len - begin - *scene_len;
    return DD_OK;
}
