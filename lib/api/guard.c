/* The door of every path. With tokens configured everybody needs one, from this machine too: a proxy beside
 * dedupd makes every client local. Without tokens only this machine is served, as long as http.protected is
 * on, so that a server started in a hurry is not open to the network. */
#include <strings.h>

#include "api/internal.h"

#define REALM "Bearer realm=\"dedupd\""

static bool refuse(const struct dd_api_origin *o, unsigned status, const char *challenge, const char *code,
                   const char *message)
{
    if (challenge) dd_http_reply_header(o->req, "WWW-Authenticate", dd_slice_str(challenge));
    dd_api_answer_fail(o, status, code, NULL, "%s", message);
    return false;
}

/* What follows "Bearer " (RFC 6750 section 2.1); empty for anything else. */
static struct dd_slice bearer(struct dd_slice header)
{
    static const char scheme[] = "bearer ";
    size_t n = sizeof scheme - 1;
    if (header.len < n || strncasecmp((const char *)header.ptr, scheme, n) != 0) return dd_slice_of(NULL, 0);
    while (n < header.len && header.ptr[n] == ' ')
        n++;
    return dd_slice_of(header.ptr + n, header.len - n);
}

/* RFC 6750 section 3: a request without a token is told how, one with a wrong token what is wrong with it. */
static bool check_token(const struct dd_api_origin *o, unsigned allowed)
{
    struct dd_slice header = dd_http_request_header(o->req, "authorization");
    if (!header.ptr)
        return refuse(o, 401, REALM, "unauthorized",
                      "send Authorization: Bearer and a token of auth.tokens_file");
    unsigned roles = dd_auth_roles(o->api->options.auth, bearer(header));
    if (!roles)
        return refuse(o, 401, REALM ", error=\"invalid_token\"", "unauthorized",
                      "this token is not known here");
    if (!(roles & (allowed | DD_AUTH_ADMIN)))
        return refuse(o, 403, REALM ", error=\"insufficient_scope\"", "forbidden",
                      "this token's role may not call this path");
    return true;
}

bool dd_api_admit(const struct dd_api_origin *o, unsigned allowed)
{
    const struct dd_api_options *options = &o->api->options;
    if (allowed & DD_API_OPEN) return true;
    if (dd_auth_has_tokens(options->auth)) return check_token(o, allowed);
    if (!options->protect || dd_http_request_local(o->req)) return true;
    return refuse(
        o, 403, NULL, "protected",
        "clients from other hosts are refused while no tokens are configured: name a file of tokens in "
        "auth.tokens_file, or set http.protected to false where everybody who reaches this port may "
        "call it");
}
