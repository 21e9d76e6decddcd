#include "config/redis_url.h"

#include <ctype.h>
#include <stdio.h>

#include "base/address.h"

#define REDIS_PORT 6379
#define DB_MAX     65535

struct reader {
    struct dd_redis_url *out;
    char *why;
    size_t why_size;
};

static enum dd_err refuse(const struct reader *r, const char *text)
{
    snprintf(r->why, r->why_size, "%s", text);
    return DD_INVALID;
}

static bool take_prefix(struct dd_slice *s, const char *prefix)
{
    size_t n = strlen(prefix);
    if (s->len < n || memcmp(s->ptr, prefix, n)) return false;
    *s = dd_slice_of(s->ptr + n, s->len - n);
    return true;
}

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX. false: it does not fit, a % without two hexadecimal digits, a blank or control byte, or a NUL.
 */
static bool decode(struct dd_slice in, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < in.len; i++) {
        int c = in.ptr[i];
        if (c <= 0x20 || c == 0x7f) return false;
        if (c == '%') {
            if (in.len - i < 3 || hex(in.ptr[i + 1]) < 0 || hex(in.ptr[i + 2]) < 0) return false;
            c = hex(in.ptr[i + 1]) * 16 + hex(in.ptr[i + 2]);
            i += 2;
        }
        if (c == 0 || n + 1 >= size) return false;
        out[n++] = (char)c;
    }
    out[n] = 0;
    return true;
}

static enum dd_err read_db(const struct reader *r, struct dd_slice text)
{
    int v = 0;
    if (text.len < 1 || text.len > 5) return refuse(r, "the database must be a number, 0..65535");
    for (size_t i = 0; i < text.len; i++) {
        if (!isdigit(text.ptr[i])) return refuse(r, "the database must be a number, 0..65535");
        v = v * 10 + (text.ptr[i] - '0');
    }
    r->out->db = v;
    return v <= DB_MAX ? DD_OK : refuse(r, "the database must be a number, 0..65535");
}

/* Takes "user:password@" or "user@" off the front of an authority. */
static enum dd_err take_login(const struct reader *r, struct dd_slice *authority)
{
    const uint8_t *at = authority->len ? memrchr(authority->ptr, '@', authority->len) : NULL;
    if (!at) return DD_OK;
    struct dd_slice user = dd_slice_of(authority->ptr, (size_t)(at - authority->ptr)), password = {0};
    *authority = dd_slice_of(at + 1, authority->len - user.len - 1);
    if (user.len && memchr(user.ptr, '@', user.len))
        return refuse(r, "an @ in user or password must be written %40");
    const uint8_t *colon = user.len ? memchr(user.ptr, ':', user.len) : NULL;
    if (colon) {
        password = dd_slice_of(colon + 1, (size_t)(at - colon) - 1);
        user.len = (size_t)(colon - user.ptr);
    }
    if (!decode(user, r->out->user, sizeof r->out->user))
        return refuse(r, "the user must be percent-encoded and have at most 128 bytes");
    if (!decode(password, r->out->password, sizeof r->out->password))
        return refuse(r, "the password must be percent-encoded and have at most 512 bytes");
    return DD_OK;
}

/* "[user[:password]@]host[:port][/db]" */
static enum dd_err read_inet(const struct reader *r, struct dd_slice rest)
{
    const uint8_t *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    struct dd_slice authority = dd_slice_of(rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len);
    struct dd_slice db = dd_slice_of(rest.ptr + authority.len, rest.len - authority.len);
    enum dd_err err = take_login(r, &authority);
    if (err != DD_OK) return err;
    if (db.len && memchr(db.ptr, '@', db.len))
        return refuse(r, "a / in user or password must be written %2F");
    err = dd_address_host_port(authority, REDIS_PORT, r->out->host, sizeof r->out->host, &r->out->port,
                               r->why, r->why_size);
    if (err != DD_OK) return err;
    if (r->out->port == 0) return refuse(r, "the port must be a number, 1..65535");
    return db.len <= 1 ? DD_OK : read_db(r, dd_slice_of(db.ptr + 1, db.len - 1));
}

/* "[user[:password]@]/path[?db=N]" */
static enum dd_err read_unix(const struct reader *r, struct dd_slice rest)
{
    const uint8_t *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (!slash) return refuse(r, "the path must begin with /");
    struct dd_slice login = dd_slice_of(rest.ptr, (size_t)(slash - rest.ptr));
    struct dd_slice path = dd_slice_of(slash, rest.len - login.len), query = {0};
    enum dd_err err = take_login(r, &login);
    if (err != DD_OK) return err;
    if (login.len) return refuse(r, "a Unix socket has no host: write unix:///path");
    const uint8_t *mark = memchr(path.ptr, '?', path.len);
    if (mark) {
        query = dd_slice_of(mark, path.len - (size_t)(mark - path.ptr));
        path.len -= query.len;
    }
    if (path.len < 2 || !decode(path, r->out->path, sizeof r->out->path))
        return refuse(r, "the path must be percent-encoded and have 2 to 107 bytes");
    if (!mark) return DD_OK;
    if (!take_prefix(&query, "?db=")) return refuse(r, "only ?db=N may follow the path");
    return read_db(r, query);
}

enum dd_err dd_redis_url_parse(struct dd_slice url, struct dd_redis_url *out, char *why, size_t why_size)
{
    struct reader r = {out, why, why_size};
    *out = (struct dd_redis_url){0};
    if (url.len == 0) return DD_OK;
    if (take_prefix(&url, "redis://")) return read_inet(&r, url);
    if (take_prefix(&url, "unix://")) return read_unix(&r, url);
    if (take_prefix(&url, "rediss://")) return refuse(&r, "TLS (rediss://) is not supported");
    return refuse(&r, "it must begin with redis:// or unix://");
}

void dd_redis_url_mask(struct dd_slice url, struct dd_buf *out)
{
    const uint8_t *at = url.len ? memrchr(url.ptr, '@', url.len) : NULL;
    const uint8_t *scheme = url.len ? memmem(url.ptr, url.len, "://", 3) : NULL;
    const uint8_t *login = scheme ? scheme + 3 : url.ptr;
    if (!at || at < login) {
        dd_buf_add_slice(out, url);
        return;
    }
    const uint8_t *colon = memchr(login, ':', (size_t)(at - login));
    const uint8_t *from = colon ? colon + 1 : login;
    dd_buf_add(out, url.ptr, (size_t)(from - url.ptr));
    if (at > from) dd_buf_add_str(out, "***");
    dd_buf_add(out, at, url.len - (size_t)(at - url.ptr));
}
