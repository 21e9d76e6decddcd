#include <signal.h>

#include "unit.h"

Suite *suite_keys(void);
Suite *suite_memory(void);

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    Suite *suites[] = {suite_keys(), suite_memory()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
