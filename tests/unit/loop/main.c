#include "suites.h"

int main(void)
{
    Suite *suites[] = {suite_loop(), suite_timer(), suite_pool()};
    return unit_run(suites, 3);
}
