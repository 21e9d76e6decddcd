#include "suites.h"

int main(void)
{
    Suite *suites[] = {suite_table(), suite_json(),      suite_environment(), suite_load(), suite_check(),
                       suite_print(), suite_redis_url(), suite_reload(),      suite_args()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
