/* health and stats: what state the server is in. */
#include "command.h"

/* Without a token where one is needed, the state that needs none is shown: a probe holds no secret. */
int dd_ctl_health(const struct dd_ctl *ctl)
{
    struct dd_reply reply;
    int code = dd_ctl_call(ctl, ctl->data, "GET", "/health", NULL, &reply);
    if (code != DD_CTL_OK) return code;
    bool details = ctl->token || (reply.status != 401 && reply.status != 403);
    dd_reply_reset(&reply);
    return dd_ctl_show(ctl, ctl->data, "GET", details ? "/health" : "/health/ready", NULL);
}

int dd_ctl_stats(const struct dd_ctl *ctl)
{
    return dd_ctl_show(ctl, ctl->data, "GET", "/stats", NULL);
}
