#include "suites.h"

int main(void)
{
    Suite *suites[] = {suite_parse(),  suite_uri(),      suite_listen(), suite_server(),
                       suite_limits(), suite_deadline(), suite_drain()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
