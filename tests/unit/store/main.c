#include "fixture.h"

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--crash-child") == 0) return crash_child(argv[2], argv[3][0] == '1');
    if (argc == 3 && strcmp(argv[1], "--lock-child") == 0) return lock_child(argv[2]);
    Suite *suites[] = {suite_change(),    suite_keys(),   suite_marks(),   suite_store(),   suite_order(),
                       suite_ordered(),   suite_update(), suite_expire(),  suite_corrupt(), suite_disk(),
                       suite_failure(),   suite_crash(),  suite_threads(), suite_outdate(), suite_verify(),
                       suite_set_cache(), suite_records()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
