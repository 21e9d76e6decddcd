#ifndef DD_TESTS_UNIT_HTTP_SUITES_H
#define DD_TESTS_UNIT_HTTP_SUITES_H

#include "unit.h"

Suite *suite_parse(void);
Suite *suite_uri(void);
Suite *suite_listen(void);
Suite *suite_server(void);
Suite *suite_limits(void);
Suite *suite_deadline(void);
Suite *suite_drain(void);

#endif
