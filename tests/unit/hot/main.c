#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "unit.h"

Suite *suite_keys(void);
Suite *suite_memory(void);
Suite *suite_fetch(void);
Suite *suite_claim(void);
Suite *suite_outage(void);
Suite *suite_server(void);
Suite *suite_staging(void);
Suite *suite_boot(void);
Suite *suite_threads(void);
Suite *suite_legacy(void);

int main(void)
{
    dd_log_set_level(getenv("DD_TEST_LOG") ? DD_LOG_DEBUG : DD_LOG_ERROR);
    signal(SIGPIPE, SIG_IGN);
    Suite *suites[] = {suite_keys(),   suite_memory(),  suite_fetch(), suite_claim(),   suite_outage(),
                       suite_server(), suite_staging(), suite_boot(),  suite_threads(), suite_legacy()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
