/* health and stats: what state the server is in. */
#include "command.h"

int dd_ctl_health(const struct dd_ctl *ctl)
{
    return dd_ctl_show(ctl, ctl->data, "GET", "/health", NULL);
}

int dd_ctl_stats(const struct dd_ctl *ctl)
{
    return dd_ctl_show(ctl, ctl->data, "GET", "/stats", NULL);
}
