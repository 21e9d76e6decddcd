#include "unit.h"

Suite *suite_blips(void);
Suite *suite_calls(void);
Suite *suite_counting(void);
Suite *suite_durable(void);
Suite *suite_erase(void);
Suite *suite_forget(void);
Suite *suite_hints(void);
Suite *suite_history(void);
Suite *suite_migrate(void);
Suite *suite_model(void);
Suite *suite_orders(void);
Suite *suite_pieces(void);
Suite *suite_staged(void);
Suite *suite_trace(void);

int main(void)
{
    Suite *suites[] = {suite_pieces(), suite_blips(),   suite_calls(), suite_counting(), suite_orders(),
                       suite_staged(), suite_durable(), suite_erase(), suite_forget(),   suite_migrate(),
                       suite_hints(),  suite_history(), suite_trace(), suite_model()};
    return unit_run(suites, sizeof suites / sizeof *suites);
}
