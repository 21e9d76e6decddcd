#include "unit.h"

Suite *suite_address(void);
Suite *suite_base(void);
Suite *suite_file(void);
Suite *suite_period(void);

int main(void)
{
    Suite *suites[] = {suite_base(), suite_period(), suite_address(), suite_file()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
