/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notify.h - telling systemd, or whoever else started a service, how it is.
 */
#ifndef TOOLS_RULES_NOTIFY_H
#define TOOLS_RULES_NOTIFY_H

/**
 * notify_state() - send lines as sd_notify(3) has them, if anybody listens
 * @fmt: as of printf(3): "READY=1\nSTATUS=..." and the like.
 *
 * The socket is that of $NOTIFY_SOCKET. What cannot be sent is lost.
 */
void notify_state(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * notify_interval() - how often the service has to say WATCHDOG=1
 *
 * Return: half of $WATCHDOG_USEC in milliseconds; -1: never.
 */
int notify_interval(void);

#endif
