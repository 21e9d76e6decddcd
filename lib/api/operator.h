/* What the operator endpoints share: a user in the path, parameters in the query, small bodies. Private to
 * lib/api. Every reader answers what is wrong itself and says so by NULL or false. */
#ifndef DD_API_OPERATOR_H
#define DD_API_OPERATOR_H

#include <jansson.h>

#include "api/internal.h"

enum {
    DD_PARAM_SCENE = 1,
    DD_PARAM_PERIOD = 2,
    DD_PARAM_LEGACY = 4,
    DD_PARAM_PAGE = 8
}; /* page: limit, before */

/* Slices lie in the call's arena. */
struct dd_operator_params {
    struct dd_slice user;         /* 1..128 bytes, of the path's second segment */
    struct dd_slice scene_name;   /* empty: not given */
    const struct dd_scene *scene; /* NULL: not given, or not configured */
    bool has_period;
    struct dd_period period;
    bool legacy;
    unsigned limit;         /* 0: not given; 1..1000 */
    struct dd_slice before; /* text; empty: not given */
};

/* A call for the request, or NULL. */
struct dd_api_call *dd_operator_take(struct dd_api_loop *al, const struct dd_api_origin *o);

/* allowed: which parameters the query may have. false: answered, and the call is released. */
bool dd_operator_params(struct dd_api_call *c, unsigned allowed, struct dd_operator_params *out);
/* The request, which has been answered, names a scene that is not configured. */
void dd_operator_no_scene(struct dd_api_call *c);

/* The body as an object with no other members than these (NULL-terminated); the caller drops the reference.
 * An empty body is an empty object. */
json_t *dd_operator_body(const struct dd_api_origin *o, const char *const *allowed);

#endif
