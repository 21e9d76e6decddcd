#ifndef DD_TESTS_API_SUITES_H
#define DD_TESTS_API_SUITES_H

#include "unit.h"

Suite *suite_json(void);
Suite *suite_codec(void);
Suite *suite_bad_requests(void);
Suite *suite_differential(void);
Suite *suite_routes(void);
Suite *suite_golden(void);
Suite *suite_health(void);
Suite *suite_slots(void);
Suite *suite_auth(void);
Suite *suite_guard(void);

#endif
