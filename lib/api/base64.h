/* Base64 (RFC 4648, with padding). Pure. */
#ifndef DD_API_BASE64_H
#define DD_API_BASE64_H

#include "base/bytes.h"

void dd_base64_add(struct dd_buf *out, struct dd_slice bytes);

#endif
