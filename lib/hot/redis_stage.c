#include "hot/internal.h"
void dd_hot_free_stages(struct dd_hot_loop *hl)
{
    (void)hl;
}
