#include "suites.h"

int main(void)
{
    Suite *suites[] = {suite_stats(), suite_histogram()};
    return unit_run(suites, 2);
}
