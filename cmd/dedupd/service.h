/* What the service manager is told: systemd's Type=notify, so that units ordered after dedupd start when it
 * serves, and `systemctl status` says what it does. Without $NOTIFY_SOCKET all of it does nothing.
 *
 * Threads: main thread. */
#ifndef DD_CMD_SERVICE_H
#define DD_CMD_SERVICE_H

/* It serves. status: a line for people. */
void dd_service_ready(const char *status);
void dd_service_reloading(void);
/* From here until its end nothing new should be sent to it. */
void dd_service_stopping(void);

#endif
