/* POST /forget: takes exposures and deliveries of single items back. The body is that of /delivered. */
#include "api/operator.h"

static void forget_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_forget_call *x = &c->u.forget;
    if (x->err == DD_UNSUPPORTED) {
        dd_api_answer_fail(&c->origin, 409, "unsupported", "items",
                           "an item stands in a Bloom filter, which cannot forget; sets of few items and the "
                           "kinds counting, cuckoo and compact can (option filter of the scene)");
    } else if (x->err != DD_OK) {
        dd_api_answer_err(&c->origin, x->err);
    } else {
        struct dd_buf *out = dd_http_request_scratch(c->origin.req);
        dd_buf_reset(out);
        dd_buf_addf(out, "{\"forgotten\":%u,\"unknown\":%u}", x->forgotten, x->n - x->forgotten);
        dd_api_answer_buf(&c->origin, 200, DD_API_JSON, out);
    }
    dd_api_call_release(c);
}

void dd_api_forget(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api_error e;
    struct dd_delivered_call body;
    struct dd_api_call *c = dd_operator_take(al, o);
    if (!c) return;
    enum dd_err err = dd_codec_delivered(&al->api->codec, o->req->body, &c->arena, &body, &e);
    if (err != DD_OK) {
        dd_api_answer_error(o, &e, err == DD_NO_MEMORY ? 1 : 0);
        dd_api_call_release(c);
        return;
    }
    c->u.forget = (struct dd_forget_call){.scene = body.scene,
                                          .user = body.user,
                                          .items = body.items,
                                          .n = body.n,
                                          .arena = &c->arena,
                                          .done = forget_done,
                                          .arg = c};
    dd_user_forget(al->api->options.admin, al->dl, &c->u.forget);
}
