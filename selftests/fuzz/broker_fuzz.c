// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * broker_fuzz.c - any packets between a recorder and the broker. An event that is opened tells nothing of the kernel;
 * what belongs to a lease is given to the user who has it alone; and no descriptor is left behind, whatever comes.
 *
 * Input: for each packet a struct step and its bytes. Packets of users are answered by the broker's own functions;
 * for the kernel, BPF programs and the thread that waits for walks there are stand-ins. Other packets are answers that a
 * recorder receives, with so many descriptors.
 */
#include <stdarg.h>

#include "tools/broker/lend.c"
#include "tools/broker/leases.h"
#include "tools/perf/borrow_reply.h"

#define CLOCK_STEP 10000000000 /* ns */
#include "clock.h"

#define USERS 4
#define MOST_STEPS 64
#define MOST_SENT 3 /* descriptors that come with an answer */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
long __wrap_syscall(long nr, ...);

/* What a step is, in its lowest bits. */
enum { ASKS, ASKS_AND_LEAVES, ANSWERS, KINDS_OF_STEPS };

/**
 * struct step - a packet
 * @what: what it is, and in higher bits the user, or the number of descriptors.
 * @kernel: what the stand-ins for the kernel do; see fails() and places_result().
 * @size: its bytes.
 */
struct step {
	uint8_t what;
	uint8_t kernel;
	uint16_t size;
};

/* A lease that was given. */
struct given {
	uint32_t number;
	uid_t uid;
	int token;
};

static struct given given[LEASES];
static uint8_t kernel;
static int ends[2]; /* of a socket */

/* ---- Stand-ins ---- */

static struct bpf_loaded loaded;
static char walker, places;

/* Returns whether something that may fail does. */
static bool fails(int bit)
{
	return kernel >> bit & 1;
}

bool walker_possible(void)
{
	return true;
}

int walker_create(const struct walker_opts *opts, struct walker **ret, struct reason *why)
{
	(void)opts;
	(void)why;
	*ret = (void *)&walker;
	return 0;
}

void walker_destroy(struct walker *w)
{
	(void)w;
}

bool walker_ended(struct walker *w, pid_t pid)
{
	(void)w;
	(void)pid;
	return false;
}

const struct bpf_loaded *walker_loaded(const struct walker *w)
{
	if (w != (void *)&walker)
		abort();
	return &loaded;
}

int bpf_loaded_map(const struct bpf_loaded *l, const char *name)
{
	(void)l;
	(void)name;
	return fails(0) ? -1 : 3;
}

/* Keys lie within their maps. */
int bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key, const void *value)
{
	const uint32_t at = *(const uint32_t *)key;
	const bool output = !strcmp(map, "output");

	(void)l;
	if (at >= (output ? LEASES * LEASE_CPUS : LEASES))
		abort();
	return value && fails(1) ? -ENOMEM : 0;
}

int bpf_loaded_get(const struct bpf_loaded *l, const char *map, const void *key, void *value)
{
	(void)l;
	(void)map;
	(void)key;
	(void)value;
	return fails(2) ? -ENOENT : 0;
}

int bpf_loaded_set_in(const struct bpf_loaded *l, int map, const void *key, const void *value)
{
	(void)l;
	(void)key;
	(void)value;
	if (map < 0)
		abort();
	return fails(3) ? -ENOENT : 0;
}

int bpf_loaded_create(const struct bpf_loaded *l, const char *name,
		      const struct bpf_loaded_shape *shape)
{
	(void)l;
	(void)name;
	(void)shape;
	return fails(4) ? -ENOMEM : dup(ends[0]);
}

struct places *places_begin(const struct bpf_loaded *program)
{
	(void)program;
	return (void *)&places;
}

void places_end(struct places *p)
{
	(void)p;
}

void places_show(struct places *p, uint32_t slot, int processes, int functions)
{
	if (p != (void *)&places || slot >= LEASES || processes < 0 || functions < 0)
		abort();
}

void places_rest(struct places *p, uint32_t slot)
{
	if (p != (void *)&places || slot >= LEASES)
		abort();
}

int places_result(struct places *p, uint32_t slot)
{
	static const int results[] = { 0, 0, -EINPROGRESS, -EINVAL };

	if (p != (void *)&places || slot >= LEASES)
		abort();
	return results[kernel >> 5 & 3];
}

/* Replaces perf_event_open(), which is all that the broker's own process calls by this. */
long __wrap_syscall(long nr, ...)
{
	if (nr != SYS_perf_event_open)
		abort();
	errno = EACCES;
	return fails(7) ? -1 : dup(ends[0]);
}

/* ---- Judges ---- */

/* Judges the event that a request gets. */
static void judge_event(const struct broker_request *r, bool kernel_time)
{
	const struct lend_opts opts = { .events = 1, .kernel_time = kernel_time };
	const struct lender l = { .opts = &opts };
	struct perf_event_attr attr;

	make_attr(&l, r, &attr);
	if (attr.type != PERF_TYPE_SOFTWARE || attr.sample_type & ~(uint64_t)SAMPLE_TYPES ||
	    !attr.exclude_callchain_kernel || !attr.exclude_hv || !attr.disabled ||
	    attr.exclude_user || attr.sample_stack_user > BROKER_MAX_COPY)
		abort();
	/* Switches are the only event of the kernel's. */
	if (attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES)
		return;
	if (attr.config != PERF_COUNT_SW_CPU_CLOCK && attr.config != PERF_COUNT_SW_TASK_CLOCK)
		abort();
	if (!attr.exclude_kernel && !kernel_time)
		abort();
	if (attr.freq || attr.sample_period < 1000000000 / BROKER_MAX_FREQ)
		abort();
}

static bool has_lease(uid_t uid, uint32_t number)
{
	for (int i = 0; i < LEASES; i++)
		if (number && given[i].number == number && given[i].uid == uid)
			return true;
	return false;
}

/* Two ids each count as one user. */
static struct shstk_rules_range ranges[USERS / 2] = { { 1, 1, 2 }, { 3, 1, 4 } };
static const struct subordinate ids = { .ranges = ranges, .nr = USERS / 2 };

static uid_t counts_as(uid_t uid)
{
	return (uid + 1) & ~1u;
}

/* Keeps a lease that was given, of which no user has more than half as many as there are places. */
static void keep_lease(uid_t uid, uint32_t number, int token)
{
	struct given *place = NULL;
	int own = 0;

	for (int i = 0; i < LEASES; i++) {
		if (given[i].number == number)
			abort();
		own += given[i].number && counts_as(given[i].uid) == counts_as(uid);
		if (!given[i].number)
			place = &given[i];
	}
	if (!number || !place || own >= LEASES / 2)
		abort();
	*place = (struct given){ number, uid, token };
}

/* Judges what was answered to a user. Keeps a lease, and closes what else was handed over. */
static void judge_answer(uid_t uid, const struct broker_request *r,
			 const struct broker_reply *reply, int fd)
{
	if (fd == -EINPROGRESS && r->kind == BROKER_PROCESS)
		return;
	if (reply->flags & BROKER_DONE && (r->kind != BROKER_PROCESS || !has_lease(uid, r->lease)))
		abort();
	if (fd < 0 || reply->flags & BROKER_DONE)
		return;
	if (r->kind == BROKER_LEASE) {
		keep_lease(uid, reply->lease, fd);
		return;
	}
	if (r->kind != BROKER_OUTPUT || !has_lease(uid, r->lease))
		abort();
	close(fd);
}

/* ---- Steps ---- */

/* Gives back the leases of a user. */
static void leave(struct leases *l, uid_t uid)
{
	for (int i = 0; i < LEASES; i++) {
		if (!given[i].number || given[i].uid != uid)
			continue;
		close(given[i].token);
		given[i] = (struct given){ .number = 0 };
	}
	leases_tidy(l);
}

/* A user sends a packet, which may be none. */
static void ask(struct leases *l, uid_t uid, const uint8_t *data, size_t size)
{
	struct broker_reply reply = { .version = BROKER_VERSION };
	union broker_packet *packet = malloc(sizeof(*packet));
	int err, fd;

	if (!packet)
		abort();
	memset(packet, 0, sizeof(*packet));
	memcpy(packet, data, size < sizeof(*packet) ? size : sizeof(*packet));
	if (broker_is_whole(packet, (ssize_t)size)) {
		err = check_request(&packet->request);
		if (!err && !is_about_lease(&packet->request)) {
			judge_event(&packet->request, false);
			judge_event(&packet->request, true);
		}
		/* The process that checks is not trusted: what it passes on may be anything. */
		fd = leases_answer(l, &ids, uid, packet, &reply);
		judge_answer(uid, &packet->request, &reply, fd);
	}
	free(packet);
}

/* Sends an answer with some descriptors. Returns whether there was one. */
static bool send_answer(const uint8_t *data, size_t size, int nr)
{
	struct iovec vec = { .iov_base = (void *)data, .iov_len = size };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(MOST_SENT * sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };

	control.head = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(nr * sizeof(int)),
	};
	for (int i = 0; i < nr; i++)
		memcpy(CMSG_DATA(&control.head) + i * sizeof(int), &ends[0], sizeof(int));
	if (nr) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
	}
	return sendmsg(ends[0], &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

/* A recorder receives an answer. It has a descriptor if it says so, and nothing else stays open. */
static void receive_answer(const uint8_t *data, size_t size, int nr)
{
	struct broker_reply reply;
	const int next = dup(ends[0]);
	int fd;

	close(next);
	if (!size || !send_answer(data, size, nr))
		return;
	fd = broker_receive(ends[1], &reply);
	if (fd > 0 && (nr != 1 || reply.error || reply.flags & BROKER_DONE))
		abort();
	if (fd > 0)
		close(fd);
	fd = dup(ends[0]);
	if (fd != next)
		abort();
	close(fd);
}

static void take_step(struct leases *l, const struct step *s, const uint8_t *data)
{
	const unsigned int more = s->what / KINDS_OF_STEPS;

	kernel = s->kernel;
	switch (s->what % KINDS_OF_STEPS) {
	case ASKS_AND_LEAVES:
		ask(l, 1 + more % USERS, data, s->size);
		leave(l, 1 + more % USERS);
		break;
	case ANSWERS:
		receive_answer(data, s->size, (int)(more % (MOST_SENT + 1)));
		break;
	default:
		ask(l, 1 + more % USERS, data, s->size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct leases leases;
	struct reason why;
	struct step s;

	if (!ends[1] && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	if (leases_begin(&leases, &why))
		abort();
	for (int i = 0; i < MOST_STEPS && size > sizeof(s); i++) {
		memcpy(&s, data, sizeof(s));
		data += sizeof(s);
		size -= sizeof(s);
		if (s.size > size)
			s.size = (uint16_t)size;
		take_step(&leases, &s, data);
		data += s.size;
		size -= s.size;
	}
	for (uid_t uid = 1; uid <= USERS; uid++)
		leave(&leases, uid);
	leases_end(&leases);
	return 0;
}
