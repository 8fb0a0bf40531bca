/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notify.h - tells systemd, or any other starter of a service, the state of the service.
 */
#ifndef TOOLS_RULES_NOTIFY_H
#define TOOLS_RULES_NOTIFY_H

/**
 * notify_state() - send lines in the format of sd_notify(3), if anybody listens
 * @fmt: format as of printf(3), such as "READY=1\nSTATUS=...".
 *
 * The socket is that of $NOTIFY_SOCKET. A message that cannot be sent is lost.
 */
void notify_state(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * notify_interval() - tell how often the service has to send WATCHDOG=1
 *
 * Return: half of $WATCHDOG_USEC, in milliseconds; -1 if never.
 */
int notify_interval(void);

#endif
