#include "base/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>

static enum dd_err refuse(char *why, size_t why_size, const char *text)
{
    snprintf(why, why_size, "%s", text);
    return DD_INVALID;
}

static bool read_port(struct dd_slice text, uint16_t *out)
{
    unsigned v = 0;
    if (text.len < 1 || text.len > 5) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!isdigit(text.ptr[i])) return false;
        v = v * 10 + (text.ptr[i] - '0');
    }
    *out = (uint16_t)v;
    return v <= 65535;
}

static bool copy(struct dd_slice text, char *out, size_t size)
{
    if (text.len >= size || (text.len && memchr(text.ptr, 0, text.len))) return false;
    memcpy(out, text.ptr, text.len);
    out[text.len] = 0;
    return true;
}

/* A name of letters, digits, dots, dashes and underscores; one without letters must be an IPv4 address. */
static bool is_host(const char *host)
{
    struct in_addr v4;
    bool numeric = true;
    for (const char *p = host; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr(".-_", *p)) return false;
        if (!isdigit((unsigned char)*p) && *p != '.') numeric = false;
    }
    return *host && (!numeric || inet_pton(AF_INET, host, &v4) == 1);
}

/* Splits off "[v6]" or "host"; what is left is empty or begins with the colon of the port. */
static bool take_host(struct dd_slice *text, char *host, size_t host_size)
{
    struct in6_addr v6;
    bool bracket = text->len && text->ptr[0] == '[';
    const uint8_t *end = text->len ? memchr(text->ptr, bracket ? ']' : ':', text->len) : NULL;
    if (bracket && !end) return false;
    size_t n = end ? (size_t)(end - text->ptr) : text->len;
    bool ok = copy(dd_slice_of(text->ptr + bracket, n - bracket), host, host_size);
    if (!ok || !(bracket ? inet_pton(AF_INET6, host, &v6) == 1 : is_host(host))) return false;
    *text = dd_slice_of(text->ptr + n + bracket, text->len - n - bracket);
    return text->len == 0 || text->ptr[0] == ':';
}

enum dd_err dd_address_host_port(struct dd_slice text, int default_port, char *host, size_t host_size,
                                 uint16_t *port, char *why, size_t why_size)
{
    if (!take_host(&text, host, host_size))
        return refuse(why, why_size,
                      "the host must be a name, an IPv4 address, or an IPv6 address in brackets");
    if (text.len == 0 && default_port >= 0) {
        *port = (uint16_t)default_port;
        return DD_OK;
    }
    if (text.len == 0) return refuse(why, why_size, "the port is missing");
    if (!read_port(dd_slice_of(text.ptr + 1, text.len - 1), port))
        return refuse(why, why_size, "the port must be a number, 0..65535");
    return DD_OK;
}

static struct dd_slice trim(struct dd_slice s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = dd_slice_of(s.ptr + 1, s.len - 1);
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* One address off a list that is not empty. After a comma there must be another one. */
static struct dd_slice take(struct dd_slice *list, bool *dangling)
{
    const uint8_t *comma = memchr(list->ptr, ',', list->len);
    struct dd_slice one = dd_slice_of(list->ptr, comma ? (size_t)(comma - list->ptr) : list->len);
    size_t used = one.len + (comma != NULL);
    *list = dd_slice_of(list->ptr + used, list->len - used);
    *dangling = comma && trim(*list).len == 0;
    return trim(one);
}

static enum dd_err read_inet(struct dd_slice text, struct dd_address *out, char *why, size_t why_size)
{
    struct in6_addr v6;
    struct in_addr v4;
    enum dd_err err = dd_address_host_port(text, -1, out->host, sizeof out->host, &out->port, why, why_size);
    bool numeric = inet_pton(AF_INET, out->host, &v4) == 1 || inet_pton(AF_INET6, out->host, &v6) == 1;
    if (err == DD_OK && !numeric)
        return refuse(why, why_size,
                      "the host must be an IPv4 address, or an IPv6 address in brackets, not a name");
    return err;
}

enum dd_err dd_address_next(struct dd_slice *list, struct dd_address *out, char *why, size_t why_size)
{
    static const char unix_prefix[] = "unix:";
    const size_t prefix_len = sizeof unix_prefix - 1;
    bool dangling;
    if (trim(*list).len == 0) return DD_NOT_FOUND;
    struct dd_slice one = take(list, &dangling);
    if (one.len == 0 || dangling) return refuse(why, why_size, "there is an empty address");
    *out = (struct dd_address){.kind = DD_ADDRESS_INET};
    if (one.len < prefix_len || memcmp(one.ptr, unix_prefix, prefix_len))
        return read_inet(one, out, why, why_size);
    out->kind = DD_ADDRESS_UNIX;
    one = dd_slice_of(one.ptr + prefix_len, one.len - prefix_len);
    if (one.len < 2 || one.ptr[0] != '/' || !copy(one, out->path, sizeof out->path))
        return refuse(why, why_size,
                      "the path of a Unix socket must begin with / and have at most 107 bytes");
    return DD_OK;
}
