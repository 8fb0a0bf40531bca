/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * service.h - a thread that looks up what other threads and signal handlers ask.
 *
 * Whoever asks takes one of some places, writes the address into it, and sleeps until it is
 * answered. Nobody holds a lock meanwhile, so that a thread that crashes or is
 * interrupted while it asks stops no other one.
 */
#ifndef SHSTK_GO_SYMBOLIZE_SERVICE_H
#define SHSTK_GO_SYMBOLIZE_SERVICE_H

#include <stdint.h>

/* Called by the thread only. */
typedef const void *service_look_up(uintptr_t pc);

/* Start the thread; 0 or a negative errno. Once, and not from a signal handler. */
int service_start(service_look_up *look_up);

/*
 * What @look_up says of @pc. NULL also if there is no thread in this process, or it does not
 * get on. Async-signal-safe.
 */
const void *service_ask(uintptr_t pc);

#endif
