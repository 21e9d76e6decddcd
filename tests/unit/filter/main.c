#include "helper.h"

int main(void)
{
    Suite *suites[] = {suite_policy(), suite_list(),     suite_vectors(), suite_laws(),    suite_growth(),
                       suite_rates(),  suite_counting(), suite_forget(),  suite_hostile(), suite_threads()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
