#ifndef DD_TESTS_UNIT_CONFIG_SUITES_H
#define DD_TESTS_UNIT_CONFIG_SUITES_H

#include "unit.h"

Suite *suite_args(void);
Suite *suite_check(void);
Suite *suite_environment(void);
Suite *suite_json(void);
Suite *suite_load(void);
Suite *suite_print(void);
Suite *suite_redis_url(void);
Suite *suite_reload(void);
Suite *suite_table(void);

#endif
