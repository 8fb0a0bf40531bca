// SPDX-License-Identifier: LGPL-2.1-or-later

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

extern void shstkTestBack(uintptr_t number);

// From C code that a goroutine has called.
void shstk_test_back(uintptr_t number)
{
	shstkTestBack(number);
}

static void *thread(void *number)
{
	shstkTestBack((uintptr_t)number);
	return NULL;
}

// From a thread that Go has not made. Returns an error number.
int shstk_test_thread(uintptr_t number)
{
	pthread_t id;
	int err = pthread_create(&id, NULL, thread, (void *)number);

	return err ? err : pthread_join(id, NULL);
}

static uintptr_t handled;

static void handler(int sig)
{
	(void)sig;
	shstkTestBack(handled);
}

// From a signal handler of C code, on the stack of that. Returns 0 if it could be set up.
int shstk_test_handler(uintptr_t number)
{
	struct sigaction action = { .sa_handler = handler }, old;

	handled = number;
	if (sigaction(SIGUSR2, &action, &old))
		return -1;
	raise(SIGUSR2);
	return sigaction(SIGUSR2, &old, NULL);
}
