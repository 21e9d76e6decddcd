#include "service.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/log.h"

/* A manager that cannot be reached is not a reason to stop serving. */
static void tell(int sent)
{
    if (sent < 0) dd_warn("service.notify", "error=%d", -sent);
}

void dd_service_ready(const char *status)
{
    tell(sd_notifyf(0, "READY=1\nSTATUS=%s", status));
}

void dd_service_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    tell(sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
                    (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000));
}

void dd_service_stopping(void)
{
    tell(sd_notify(0, "STOPPING=1\nSTATUS=draining"));
}
