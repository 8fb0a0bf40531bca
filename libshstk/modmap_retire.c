// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * modmap_retire.c - frees modules that are in no map any more; see modmap.h.
 *
 * A capture may still be reading a module that was just removed. So the module is put on a list of
 * retired modules, and unmapped when no thread is inside a capture: struct thread.depth marks a
 * read-side critical section, and membarrier(2) supplies the barrier that captures leave out.
 *
 * liburcu is not used: its read side must not be entered in handlers on an alternate signal stack
 * (liburcu README, "Interaction with ... signal handlers"), its registration takes a lock, and a
 * profiler's handlers run in threads that the library has never seen. See Documentation/design.rst.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "modmap.h"
#include "thread.h"
#include "vma.h"

static bool have_membarrier;

void modmap_retire(struct module *m)
{
	struct module *head = load_relaxed(&modmap_watch.retired);

	do {
		m->next = head;
	} while (!__atomic_compare_exchange_n(&modmap_watch.retired, &head, m, true,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void modmap_reclaim(void)
{
	struct module *list, *next;
	int saved = errno;

	if (!have_membarrier || vma_sealed())
		return;
	list = __atomic_exchange_n(&modmap_watch.retired, NULL, __ATOMIC_ACQUIRE);
	if (!list)
		return;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) || thread_any_busy()) {
		for (; list; list = next) {
			next = list->next;
			modmap_retire(list);
		}
	} else {
		for (; list; list = next) {
			next = list->next;
			module_free(list);
		}
	}
	errno = saved;
}

/* Keeps errno, which is 0 when main() begins, also where a filter refuses the call. */
static __attribute__((constructor)) void modmap_retire_init(void)
{
	int saved = errno;

	/* The object that links the library may have called shstk_seal() in its own constructor. */
	if (vma_sealed())
		return;
	have_membarrier = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	errno = saved;
}
