#include "suites.h"

int main(void)
{
    Suite *suites[] = {suite_json(),   suite_codec(),  suite_bad_requests(), suite_differential(),
                       suite_routes(), suite_golden(), suite_health(),       suite_slots(),
                       suite_auth(),   suite_guard()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
