// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread.c - threads: their start, thread-local destructors, pthread_exit() and cancellation
 * through frames, a condition variable, and children from fork(), vfork() and posix_spawn().
 */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static int ready, cleaned;

static void clean(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	cleaned++;
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void leave(int n)
{
	pthread_cleanup_push(clean, NULL);
	if (n)
		leave(n - 1);
	else if (ready)
		pthread_exit(NULL);
	pthread_cleanup_pop(0);
}

static void *worker(void *arg)
{
	pthread_setspecific(key, arg);
	pthread_mutex_lock(&lock);
	ready++;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
	if (arg == &cleaned)
		leave(2);
	return arg;
}

static void *sleeper(void *arg)
{
	pthread_cleanup_push(clean, arg);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return NULL;
}

int main(void)
{
	static char name[] = "true";
	char *argv[] = { name, NULL }, *none[] = { NULL };
	pthread_t t[3];
	int status = 1;
	pid_t pid;

	pthread_key_create(&key, clean);
	pthread_create(&t[0], NULL, worker, &ready);
	pthread_create(&t[1], NULL, worker, &cleaned);
	pthread_mutex_lock(&lock);
	while (ready < 2)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	pthread_create(&t[2], NULL, sleeper, &key);
	pthread_cancel(t[2]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
	pid = vfork();
	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
	if (!posix_spawn(&pid, "/nonexistent", NULL, NULL, argv, none))
		return 1;
	printf("%d %d\n", cleaned, status);
	return cleaned != 6;
}
