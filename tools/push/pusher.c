// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pusher.c - profiles of a recording go into a spool, and a program of its own sends them from there,
 * as push.h describes.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/symbol/export.h"
#include "tools/push/push.h"
#include "tools/shstk.h"

#define END_MS 5000 /* how long the program may take to end, besides the time for which it sends */
#define LOOK_MS 20

/* Continues FNV-1a's hash of 64 bits with a text and its zero byte. */
static uint64_t hash(uint64_t h, const char *text)
{
	do
		h = (h ^ (unsigned char)(text ? *text : 0)) * 0x100000001b3;
	while (text && *text++);
	return h;
}

/*
 * Names the spool by all that decides who gets a request, and as whom: what waits for one server never
 * goes to another one.
 */
static char *name_spool(const struct push *p)
{
	uint64_t h = 0xcbf29ce484222325;
	char *name;

	h = hash(h, p->to);
	h = hash(h, p->tenant);
	h = hash(h, p->token_file);
	h = hash(h, p->cert);
	return asprintf(&name, "%d-%d-%016llx", p->protocol, p->packing, (unsigned long long)h) <
			       0 ?
		       NULL :
		       name;
}

/* Notes how the program has ended. One that can't work is not started again. */
static void note_end(struct pusher *pusher, int status)
{
	close(pusher->wake);
	pusher->wake = -1;
	pusher->pid = 0;
	if (WIFSIGNALED(status))
		complain("what sends profiles was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != EXIT_OK && WEXITSTATUS(status) != PUSH_LATER)
		pusher->useless = WEXITSTATUS(status);
}

/*
 * Starts the program. Its standard input is one end of a pair of sockets, through which it says that
 * it understood its options; it does not wait for a server before that.
 */
static void start(struct pusher *pusher)
{
	int ends[2], status = 0;
	char ready;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		complain("cannot make a pair of sockets: %s", strerror(errno));
		return;
	}
	pusher->pid = push_start_spooled(pusher->push, pusher->base, pusher->name, ends[0]);
	close(ends[0]);
	pusher->wake = ends[1];
	if (pusher->pid < 0)
		note_end(pusher, W_EXITCODE(EXIT_FAILED, 0));
	else if (read(ends[1], &ready, 1) != 1 && waitpid(pusher->pid, &status, 0) == pusher->pid)
		note_end(pusher, status);
}

int pusher_begin(struct pusher *pusher, const struct push *push)
{
	struct reason why;

	*pusher = (struct pusher){ .push = push, .wake = -1, .spool.dir = -1 };
	pusher->base = push->spool ? strdup(push->spool) : spool_default();
	pusher->name = name_spool(push);
	if (!pusher->base || !pusher->name) {
		complain("--push needs a folder where requests wait: --spool=FOLDER");
		return EXIT_FAILED;
	}
	if (spool_open(&pusher->spool, pusher->base, pusher->name, &why)) {
		complain("%s (--spool=FOLDER)", why.text);
		return EXIT_FAILED;
	}
	start(pusher);
	return pusher->pid > 0 ? EXIT_OK : pusher->useless ? pusher->useless : EXIT_FAILED;
}

void pusher_watch(struct pusher *pusher)
{
	int status;

	if (pusher->pid > 0 && waitpid(pusher->pid, &status, WNOHANG) == pusher->pid) {
		note_end(pusher, status);
		if (pusher->useless)
			complain("profiles are not sent; they wait in '%s'", pusher->spool.path);
	}
	if (pusher->pid <= 0 && !pusher->useless)
		start(pusher);
}

bool pusher_put(const struct pusher *pusher, struct shstk_profile *profile, const char *title)
{
	struct push_bodies bodies = { .spool = &pusher->spool };
	int status;

	if (shstk_profile_empty(profile))
		return true;
	/* With SIGXFSZ ignored, write() fails above the limit of a file's size. */
	signal(SIGXFSZ, SIG_IGN);
	status = push_make_bodies_of(pusher->push, profile, title, &bodies);
	free(bodies.service);
	/* If there is no room, the program has something to do anyway. */
	if (pusher->wake >= 0)
		send(pusher->wake, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	return status == EXIT_OK;
}

void pusher_end(struct pusher *pusher)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000 };
	int status = 0;

	if (!pusher->push)
		return;
	if (pusher->wake >= 0)
		close(pusher->wake);
	for (int ms = 0; pusher->pid > 0; ms += LOOK_MS) {
		if (waitpid(pusher->pid, &status, WNOHANG))
			break;
		if (ms >= END_MS + (int)pusher->push->spool_wait * 1000)
			kill(pusher->pid, SIGKILL);
		nanosleep(&pause, NULL);
	}
}

void pusher_forget(struct pusher *pusher)
{
	if (!pusher->push)
		return;
	if (pusher->spool.dir >= 0)
		spool_close(&pusher->spool);
	free(pusher->base);
	free(pusher->name);
}
