// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main.c - the agent enters a process, follows it through fork, and leaves.
 *
 * `shstk record` names its memory in the environment (ring.h). Where it cannot
 * be had (another container, dropped privileges, a recorder that is gone) the
 * agent stays out of the way and the program runs as if it were not there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent.h"
#include "join.h"
#include "shstk.h"

struct agent agent;

static bool plausible(const struct rec_header *h, uint64_t cookie, off_t size)
{
	return h->magic == REC_MAGIC && h->version == REC_VERSION &&
	       h->cookie == cookie && h->nr_slots &&
	       h->nr_slots <= REC_MAX_SLOTS &&
	       h->max_depth >= REC_MIN_DEPTH && h->max_depth <= REC_MAX_DEPTH &&
	       h->ring_size >= rec_min_ring(h->max_depth) &&
	       !(h->ring_size & (h->ring_size - 1)) && h->period &&
	       h->slots_offset >= sizeof(*h) &&
	       h->slots_offset + h->nr_slots * sizeof(struct rec_slot) <=
		       h->rings_offset &&
	       h->rings_offset + (uint64_t)h->nr_slots * h->ring_size <=
		       (uint64_t)size;
}

/* Maps as many rings as the address space limit allows. */
static int map_memory(int fd, uint64_t cookie)
{
	off_t size = lseek(fd, 0, SEEK_END);
	struct rec_header *h;
	uint32_t nr;
	void *p;

	if (size < (off_t)sizeof(*h))
		return -EINVAL;
	h = mmap(NULL, sizeof(*h), PROT_READ, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return -ENOMEM;
	if (!plausible(h, cookie, size)) {
		munmap(h, sizeof(*h));
		return -EINVAL;
	}
	for (nr = h->nr_slots;; nr /= 2) {
		uint64_t bytes = h->rings_offset + (uint64_t)nr * h->ring_size;

		if (!nr) {
			munmap(h, sizeof(*h));
			return -ENOMEM;
		}
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, fd, 0);
		if (p == MAP_FAILED)
			continue;
		madvise(p, bytes, MADV_DONTDUMP);
		break;
	}
	agent.threads = mmap(NULL, nr * sizeof(*agent.threads),
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (agent.threads == MAP_FAILED) {
		munmap(p, h->rings_offset + (uint64_t)nr * h->ring_size);
		munmap(h, sizeof(*h));
		return -ENOMEM;
	}
	agent.nr_slots = nr;
	agent.slots = (void *)((uint8_t *)p + h->slots_offset);
	agent.rings = (uint8_t *)p + h->rings_offset;
	munmap(h, sizeof(*h));
	agent.header = p;
	return 0;
}

/* exec ended all other threads of the last image without a word. */
static void bury_last_image(void)
{
	uint32_t high = atomic_load(&agent.header->slot_high);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++) {
		_Atomic uint64_t *owner = &agent.slots[i].owner;
		uint64_t active = REC_OWNER(agent.pid, REC_ACTIVE);
		uint64_t taken = REC_OWNER(agent.pid, REC_TAKEN);

		if (!atomic_compare_exchange_strong(
			    owner, &active, REC_OWNER(agent.pid, REC_DYING)))
			atomic_compare_exchange_strong(owner, &taken, REC_FREE);
	}
}

/* The calling thread is the first one of a new instance. */
static struct thread *start_instance(uint32_t parent)
{
	struct rec_start *start;
	struct thread *t;

	agent.parent = parent;
	agent.parent_slot = agent.start_slot;
	agent.instance = atomic_fetch_add(&agent.header->instances, 1) + 1;
	t = agent_take(sys0(SYS_gettid), true);
	if (!t)
		return NULL;
	agent.start_slot = t->slot->start_slot = t->slot - agent.slots;
	start = ring_reserve(t, sizeof(*start));
	*start = (struct rec_start){
		.record = { .size = sizeof(*start), .type = REC_START },
		.pid = agent.pid,
		.parent = parent,
	};
	ring_commit(t, sizeof(*start));
	return t;
}

/* The only thread of the child of a fork. */
void agent_fork_child(void)
{
	uint32_t parent = agent.instance;
	struct thread *t;

	if (agent.sandboxed) {
		atomic_fetch_add(&agent.header->sandboxed, 1);
		agent.on = false;
		return;
	}
	atomic_store(&agent.lock, 0);
	agent.pid = sys0(SYS_getpid);
	if (atomic_load(&agent.header->stop) || foreign_pid(agent.pid)) {
		agent.on = false;
		return;
	}
	t = start_instance(parent);
	if (t)
		agent_begin(t);
	else
		pthread_setspecific(agent.key, NULL);
}

/* exit() or _exit(): the last chance to name what was loaded late. */
void agent_leave(void)
{
	struct thread *t = agent_self();

	maps_send_if_changed();
	if (t)
		agent_settle(t);
}

static void on_thread_end(void *arg)
{
	struct thread *t = arg;

	if (t->pid != agent.pid)
		return;
	/* Last among the destructors: their work is sampled too. */
	if (++t->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(agent.key, t);
		return;
	}
	agent_end_thread(t);
}

static bool other_threads(void)
{
	char buf[512];
	long fd = sys4(SYS_openat, AT_FDCWD, "/proc/self/stat",
		       O_RDONLY | O_CLOEXEC, 0);
	const char *at;
	long n;

	if (fd < 0)
		return false;
	n = sys3(SYS_read, fd, buf, sizeof(buf) - 1);
	sys1(SYS_close, fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	/* num_threads is the 18th field behind the name in parentheses. */
	at = strrchr(buf, ')');
	for (int i = 0; at && i < 18; i++)
		at = strchr(at + 1, ' ');
	return at && atoi(at) > 1;
}

__attribute__((constructor)) static void agent_start(void)
{
	const char *env = getenv(REC_ENV);
	struct thread *t;
	uint64_t cookie;
	int fd;

	hooks_resolve();
	sleep_resolve();
	env_resolve();
	sandbox_resolve();
	if (!env)
		return;
	fd = open_memory(env, &cookie);
	if (fd < 0)
		return;
	agent.pid = sys0(SYS_getpid);
	if (foreign_pid(agent.pid) || map_memory(fd, cookie)) {
		sys1(SYS_close, fd);
		return;
	}
	sys1(SYS_close, fd);
	if (atomic_load(&agent.header->stop))
		return;
	agent.wall = agent.header->clock == REC_CLOCK_WALL;
	bury_last_image();
	if (pthread_key_create(&agent.key, on_thread_end) ||
	    handler_install() ||
	    pthread_atfork(NULL, NULL, agent_fork_child))
		return;
	t = start_instance(0);
	if (!t)
		return;
	env_remember(env);
	agent.on = true;
	maps_send(t);
	agent_begin(t);
	if (other_threads())
		scan_threads();
}

__attribute__((destructor)) static void agent_end(void)
{
	if (agent.on && !agent.sandboxed &&
	    agent.pid == (int)sys0(SYS_getpid))
		agent_leave();
}
