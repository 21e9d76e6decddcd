#ifndef DD_TESTS_UNIT_LOOP_SUITES_H
#define DD_TESTS_UNIT_LOOP_SUITES_H

#include "unit.h"

Suite *suite_loop(void);
Suite *suite_timer(void);
Suite *suite_pool(void);

#endif
