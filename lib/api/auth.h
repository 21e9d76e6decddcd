/* Who may call what: bearer tokens with roles, from a file.
 *
 * A line of the file is a role and a token with blanks between them; empty lines and lines that begin with
 * '#' do not count:
 *
 *   # role  token
 *   data    k3mPq7...
 *   ops     0f1e2d...
 *
 *   data    /filter, /exposed, /delivered, /forget; /health
 *   ops     what tells of no single user: /health, /stats, /metrics, /admin/...
 *   admin   everything
 *
 * A token on several lines has all their roles. A token is 1 to 256 visible ASCII characters; one shorter
 * than 16 is taken with a warning, as is a file that every account of the machine can read. At most 100 lines
 * with tokens and 64 KiB.
 *
 * Tokens are compared in constant time: all of them, all bytes, whatever was presented.
 *
 * Threads: create, reload and destroy by one thread; the rest by any. Ownership: destroy when no thread can
 * ask any more. */
#ifndef DD_API_AUTH_H
#define DD_API_AUTH_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

enum dd_auth_role { DD_AUTH_DATA = 1, DD_AUTH_OPS = 2, DD_AUTH_ADMIN = 4 };

struct dd_auth;

/* path "": no tokens, and none will come. DD_IO: the file cannot be read; DD_INVALID: a line is wrong, or
 * there is no token in it (a file that was emptied must not open the door); DD_TOO_LARGE; DD_NO_MEMORY. The
 * reason was logged, without the token. */
enum dd_err dd_auth_create(const char *path, struct dd_auth **out) DD_MUST_USE;
void dd_auth_destroy(struct dd_auth *a);

/* Reads the file again. Results as of dd_auth_create; except for DD_OK the tokens stay as they were. */
enum dd_err dd_auth_reload(struct dd_auth *a) DD_MUST_USE;

/* Whether tokens are asked for. a may be NULL: no. */
bool dd_auth_has_tokens(const struct dd_auth *a);

/* The roles of a token, a set of enum dd_auth_role; 0: nobody's. */
unsigned dd_auth_roles(const struct dd_auth *a, struct dd_slice token);

#endif
