#include "helper.h"

int main(void)
{
    Suite *suites[] = {suite_laws()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
