// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * asked_test.c - tests which requests for a table are forgotten, so that the next process asks again.
 *
 * The server of tables runs in a child process, with stand-ins for the maps of the BPF program. Prints
 * KTAP.
 */
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bpf/serve_tables.h"

#define RING 4096 /* bytes of the ring buffer */
#define LIMIT 60000 /* ms until the server has heard */
#define TRIES 20

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

/**
 * struct shared - what the server and this test share
 * @served: the state of the server.
 * @waiting: number of files that wait.
 * @forgotten: requests that were forgotten.
 */
struct shared {
	struct served served;
	unsigned int waiting;
	unsigned int forgotten;
};

static struct shared *shared;

static int forget(int fd, const void *key)
{
	(void)fd, (void)key;
	shared->forgotten++;
	return 0;
}

/* No other file of the process is taken. */
static int refuse(int fd, const void *key, const void *value, __u64 flags)
{
	(void)fd, (void)key, (void)value, (void)flags;
	return -1;
}

static void *share(size_t size)
{
	void *ret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (ret == MAP_FAILED)
		exit(1);
	return ret;
}

/* Puts a request into a new ring buffer. */
static struct ring make_ring(const struct walk_asked *asked)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	uint64_t *consumed = share(page), *produced = share(page + 2 * RING);
	uint8_t *record = (uint8_t *)produced + page;
	const uint32_t size = sizeof(*asked);

	memcpy(record, &size, sizeof(size));
	memcpy(record + BPF_RINGBUF_HDR_SZ, asked, sizeof(*asked));
	*produced = BPF_RINGBUF_HDR_SZ + sizeof(*asked);
	return (struct ring){ consumed, produced, RING };
}

/* Has the server hear one request. Returns whether it did. */
static bool serve(const struct walk_asked *asked)
{
	static const struct libbpf lib = { .map_delete_elem = forget, .map_update_elem = refuse };
	struct ring ring = make_ring(asked);
	int ready[2];
	bool heard = false;
	pid_t server;

	memset(shared, 0, sizeof(*shared));
	if (pipe(ready) || write(ready[1], "", 1) != 1)
		exit(1);
	shared->served = (struct served){ .lib = &lib,
					  .asked = ready[0],
					  .ring = ring,
					  .cache = -1,
					  .nr_waiting = &shared->waiting };
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_asked(&shared->served);
		_exit(1);
	}
	for (int i = 0; i < LIMIT && !heard; i++) {
		heard = __atomic_load_n(ring.consumed, __ATOMIC_ACQUIRE) == *ring.produced;
		usleep(heard ? 0 : 1000);
	}
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	ring_unmap(&ring);
	return heard;
}

/*
 * Asks for the table of a file that no process has, as if it were executed at the address. Returns
 * whether the request was heard. On a busy machine the server may find no time to look.
 */
static bool ask(pid_t pid, const void *addr)
{
	const struct walk_asked asked = { .file = { .ino = 1, .sec = 1 },
					  .addr = (uintptr_t)addr,
					  .pid = pid };
	bool heard = false;

	for (int i = 0; i < TRIES && !heard; i++)
		heard = serve(&asked) && !shared->served.users[0].again;
	return heard;
}

int main(void)
{
	pid_t ended = fork();

	if (!ended)
		_exit(0);
	waitpid(ended, NULL, 0);
	puts("KTAP version 1\n1..3");
	fflush(stdout);
	shared = share(sizeof(*shared));
	verdict(ask(getpid(), main) && !shared->forgotten && shared->served.known == 1,
		"a file in whose place there is another one is not asked for again");
	verdict(ask(getpid(), shared) && shared->forgotten == 1 && !shared->served.known,
		"one of a process that executes nothing there any more is");
	verdict(ask(ended, main) && shared->forgotten == 1 && !shared->served.known,
		"and so is one of a process that has ended");
	return !!failed;
}
