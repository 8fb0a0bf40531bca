/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * service.h - a thread that looks up addresses for other threads and signal handlers.
 *
 * A caller takes one of a fixed number of places, writes the address into it, and sleeps
 * until the thread has answered. It holds no lock meanwhile, so a caller that crashes or is
 * interrupted does not stop the others.
 */
#ifndef SHSTK_GO_SYMBOLIZE_SERVICE_H
#define SHSTK_GO_SYMBOLIZE_SERVICE_H

#include <stdint.h>

/* Looks up an address; only the thread calls it. Returns the answer, or NULL. */
typedef const void *service_look_up(uintptr_t pc);

/*
 * Starts the thread. Returns 0 or a negative errno. To be called once, and not from a signal
 * handler.
 */
int service_start(service_look_up *look_up);

/*
 * Returns what @look_up returns for @pc. Also returns NULL if there is no such thread in this
 * process, or the thread makes no progress. Async-signal-safe.
 */
const void *service_ask(uintptr_t pc);

#endif
