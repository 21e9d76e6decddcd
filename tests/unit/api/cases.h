/* Requests from JSON files: tests/integration/bad_requests.json and proto/examples/.
 *
 * A body is given as one of
 *     "body": text (bad requests) or any JSON value, sent compact (examples)
 *     "body_text": text sent as it is (examples)
 *     "body_base64": bytes
 *     "body_parts": [[text, times], ...]
 * The files are found from the root of the source tree, where make runs the tests. */
#ifndef DD_TESTS_API_CASES_H
#define DD_TESTS_API_CASES_H

#include <jansson.h>

#include "base/bytes.h"

#define BAD_REQUESTS "tests/integration/bad_requests.json"
#define EXAMPLES     "proto/examples"

/* An array; fails the test when the file is missing or is no array. The caller's to json_decref. */
json_t *cases_load(const char *path);
/* Appends the body of a case's request. */
void case_body(const json_t *request, struct dd_buf *out);
const char *case_text(const json_t *object, const char *key);

#endif
