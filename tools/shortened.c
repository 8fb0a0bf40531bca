// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shortened.c - survive files that are shortened while they are mapped. See shortened.h.
 *
 * All readers of such files expect any bytes in them, so zeros do no harm.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/shortened.h"

static uintptr_t page_size;
static void (*otherwise)(void);

/* Puts a page of zeros in the place of the page that is gone. */
static bool replace_page(const void *addr)
{
	void *page = (void *)((uintptr_t)addr & -page_size);
	int error = errno;
	bool done = mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == page;

	errno = error;
	return done;
}

static void on_bus(int signo, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == BUS_ADRERR && replace_page(info->si_addr))
		return;
	if (otherwise)
		otherwise();
	signal(signo, SIG_DFL);
	raise(signo);
}

void shortened_survive(void)
{
	struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO }, old;

	page_size = sysconf(_SC_PAGESIZE);
	if (!sigaction(SIGBUS, NULL, &old) && old.sa_handler == SIG_DFL)
		sigaction(SIGBUS, &action, NULL);
}

void shortened_otherwise(void (*fn)(void))
{
	otherwise = fn;
}
