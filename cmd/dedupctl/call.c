#include "command.h"

#include <stdio.h>

int dd_ctl_call(const struct dd_ctl *ctl, const char *base, const char *method, const char *path,
                const char *body, struct dd_reply *out)
{
    struct dd_client *client;
    enum dd_err err = dd_client_create(base, ctl->token, ctl->timeout_s, &client);
    if (err != DD_OK) {
        fprintf(stderr, "dedupctl: %s: not an address of the form http://host:port or unix:///path\n", base);
        return DD_CTL_USAGE;
    }
    err = dd_client_call(client, method, path, body, out);
    if (err != DD_OK) {
        fprintf(stderr, "dedupctl: no answer from %s: %s\n", base, dd_client_error(client));
        dd_reply_reset(out);
    }
    dd_client_destroy(client);
    return err == DD_OK ? DD_CTL_OK : DD_CTL_NO_ANSWER;
}

int dd_ctl_print(const struct dd_reply *reply)
{
    bool good = reply->status >= 200 && reply->status < 300;
    if (!good && !reply->body.len) return dd_ctl_complain(reply);
    FILE *to = good ? stdout : stderr;
    int code = good ? DD_CTL_OK : DD_CTL_FAILED;
    const struct dd_buf *body = &reply->body;
    if (body->len && fwrite(body->data, 1, body->len, to) != body->len) code = DD_CTL_FAILED;
    if (body->len && body->data[body->len - 1] != '\n') fputc('\n', to);
    return code;
}

int dd_ctl_show(const struct dd_ctl *ctl, const char *base, const char *method, const char *path,
                const char *body)
{
    struct dd_reply reply;
    int code = dd_ctl_call(ctl, base, method, path, body, &reply);
    if (code != DD_CTL_OK) return code;
    code = dd_ctl_print(&reply);
    dd_reply_reset(&reply);
    return code;
}

void dd_ctl_print_id(const char *id)
{
    for (const unsigned char *p = (const unsigned char *)id; *p; p++) {
        bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0; /* U+0080..U+009F */
        if (*p < 0x20 || *p == 0x7f || c1)
            printf("\\x%02x", c1 ? *++p : *p);
        else
            putchar(*p);
    }
}

int dd_ctl_complain(const struct dd_reply *reply)
{
    fprintf(stderr, "dedupctl: the server said %ld: %.*s\n", reply->status, (int)reply->body.len,
            reply->body.len ? (const char *)reply->body.data : "");
    return DD_CTL_FAILED;
}

json_t *dd_ctl_ask(const struct dd_ctl *ctl, const char *method, const char *path, const char *body,
                   int *code)
{
    struct dd_reply reply;
    json_error_t e;
    json_t *v = NULL;
    *code = dd_ctl_call(ctl, ctl->admin, method, path, body, &reply);
    if (*code != DD_CTL_OK) return NULL;
    if (reply.status < 300) v = json_loadb((const char *)reply.body.data, reply.body.len, 0, &e);
    if (!v) *code = dd_ctl_complain(&reply);
    dd_reply_reset(&reply);
    return v;
}
