#include "client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#define REPLY_MAX_BYTES ((size_t)64 << 20)

struct dd_client {
    CURL *curl;
    struct curl_slist *headers;
    char *base;
    char error[CURL_ERROR_SIZE];
    bool too_large;
    struct dd_buf *body;
};

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct dd_client *c = arg;
    if (c->body->len + size * n > REPLY_MAX_BYTES) {
        c->too_large = true;
        return 0;
    }
    dd_buf_add(c->body, data, size * n);
    return size * n;
}

static enum dd_err set_address(struct dd_client *c, const char *url)
{
    if (!strncmp(url, "unix://", 7)) {
        curl_easy_setopt(c->curl, CURLOPT_UNIX_SOCKET_PATH, url + 7);
        c->base = strdup("http://localhost");
    } else if (!strncmp(url, "http://", 7)) {
        c->base = strdup(url);
    } else {
        return DD_INVALID;
    }
    if (!c->base) return DD_NO_MEMORY;
    size_t len = strlen(c->base);
    if (c->base[len - 1] == '/') c->base[len - 1] = 0;
    return DD_OK;
}

static enum dd_err set_headers(struct dd_client *c, const char *token)
{
    c->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!c->headers) return DD_NO_MEMORY;
    struct curl_slist *all = curl_slist_append(c->headers, "Expect:"); /* no wait for 100-continue */
    if (!all) return DD_NO_MEMORY;
    if (token) {
        struct dd_buf line = {0};
        dd_buf_addf(&line, "Authorization: Bearer %s", token);
        dd_buf_add_u8(&line, 0);
        if (dd_buf_ok(&line)) all = curl_slist_append(c->headers, (char *)line.data);
        dd_buf_free(&line);
        if (!all) return DD_NO_MEMORY;
    }
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    return DD_OK;
}

enum dd_err dd_client_create(const char *url, const char *token, long timeout_s, struct dd_client **out)
{
    struct dd_client *c = calloc(1, sizeof *c);
    if (!c) return DD_NO_MEMORY;
    enum dd_err err = (c->curl = curl_easy_init()) ? DD_OK : DD_NO_MEMORY;
    if (err == DD_OK) err = set_address(c, url);
    if (err == DD_OK) err = set_headers(c, token);
    if (err != DD_OK) {
        dd_client_destroy(c);
        return err;
    }
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->error);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, timeout_s);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_PATH_AS_IS, 1L); /* a user may be called "." */
    curl_easy_setopt(c->curl, CURLOPT_NOPROXY,
                     "*"); /* an operator's tool talks to the address it was given */
    *out = c;
    return DD_OK;
}

void dd_client_destroy(struct dd_client *c)
{
    if (!c) return;
    curl_slist_free_all(c->headers);
    if (c->curl) curl_easy_cleanup(c->curl);
    free(c->base);
    free(c);
}

enum dd_err dd_client_call(struct dd_client *c, const char *method, const char *path, const char *body,
                           struct dd_reply *out)
{
    struct dd_buf url = {0};
    *out = (struct dd_reply){0};
    dd_buf_addf(&url, "%s%s", c->base, path);
    dd_buf_add_u8(&url, 0);
    if (!dd_buf_ok(&url)) return DD_NO_MEMORY;
    c->error[0] = 0;
    c->too_large = false;
    c->body = &out->body;
    curl_easy_setopt(c->curl, CURLOPT_URL, (char *)url.data);
    curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L);
    if (body) curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, method);
    CURLcode rc = curl_easy_perform(c->curl);
    if (rc != CURLE_OK && !c->error[0]) snprintf(c->error, sizeof c->error, "%s", curl_easy_strerror(rc));
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &out->status);
    curl_off_t length = -1; /* ours always say it: without, the answer was cut off or is somebody else's */
    if (rc == CURLE_OK) curl_easy_getinfo(c->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (rc == CURLE_OK && length < 0) {
        snprintf(c->error, sizeof c->error, "the answer is not whole, or not dedupd's");
        rc = CURLE_WEIRD_SERVER_REPLY;
    }
    dd_buf_free(&url);
    if (c->too_large) return DD_TOO_LARGE;
    if (rc == CURLE_OPERATION_TIMEDOUT) return DD_TIMEOUT;
    if (rc == CURLE_OUT_OF_MEMORY || !dd_buf_ok(&out->body)) return DD_NO_MEMORY;
    return rc == CURLE_OK ? DD_OK : DD_UNAVAILABLE;
}

const char *dd_client_error(const struct dd_client *c)
{
    return c->error;
}

void dd_reply_reset(struct dd_reply *r)
{
    dd_buf_free(&r->body);
}
