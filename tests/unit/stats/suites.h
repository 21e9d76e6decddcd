#ifndef DD_TESTS_UNIT_STATS_SUITES_H
#define DD_TESTS_UNIT_STATS_SUITES_H

#include "unit.h"

Suite *suite_stats(void);
Suite *suite_histogram(void);

#endif
