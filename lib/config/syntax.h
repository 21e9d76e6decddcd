/* An error of JSON syntax, told with its line and with the option it was probably about. Internal to
 * lib/config. */
#ifndef DD_CONFIG_SYNTAX_H
#define DD_CONFIG_SYNTAX_H

#include <jansson.h>

#include "base/bytes.h"
#include "config/report.h"

/* text: what was parsed. */
void dd_report_syntax(const json_error_t *e, struct dd_slice text, struct dd_report *report);

#endif
