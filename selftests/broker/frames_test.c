// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * frames_test.c - tests what `shstk broker` lends for frames of interpreters, as users see it, and as
 * attackers do. The interpreter is this program's own, and so is the table that says how its
 * frames are found. That table may say anything.
 *
 *   frames_test [SHSTK]
 *
 * It starts the broker and becomes several ordinary users. Prints KTAP.
 */
#include <dirent.h>
#include <stddef.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ptrace.h>

#include "frames.h"

#define FRAMES 3
#define TYPE 0x7470f0e1d2c3b4a5ull
#define SECRET 0x5ec4e7aa11223344ull /* nothing else has it */

/* ---- An interpreter ---- */

/* What the target below says of frames and functions. */
struct frame {
	uint64_t next;
	uint64_t code;
	uint64_t instruction;
	uint64_t flags;
	uint64_t more[11];
};

struct text {
	uint64_t length;
	char bytes[64];
};

struct code {
	uint64_t type;
	uint64_t number;
	uint64_t text;
	uint64_t more[LANGUAGE_CODE_WORDS];
};

static struct frame frames[FRAMES];
static struct code codes[FRAMES];
static struct text text;
static uint64_t innermost;

/* Makes an interpreter whose functions have that name. Everything else in it is @filler. */
static void make_interpreter(const char *called, uint64_t filler)
{
	text.length = strlen(called);
	strcpy(text.bytes, called);
	for (int i = 0; i < FRAMES; i++) {
		for (size_t k = 0; k < sizeof(frames[i].more) / 8; k++)
			frames[i].more[k] = filler;
		for (size_t k = 0; k < LANGUAGE_CODE_WORDS; k++)
			codes[i].more[k] = filler;
		codes[i].type = TYPE;
		codes[i].number = i;
		codes[i].text = (uintptr_t)&text;
		frames[i].code = (uintptr_t)&codes[i];
		frames[i].instruction = frames[i].code + 8 * i;
		frames[i].next = i + 1 < FRAMES ? (uintptr_t)&frames[i + 1] : 0;
	}
	innermost = (uintptr_t)frames;
}

/* Returns how its frames are found. */
static struct language_target true_target(void)
{
	const struct language_text it = { .word = 2,
					  .head = offsetof(struct text, bytes),
					  .unit = 1 };

	return (struct language_target){
		.base = (uintptr_t)&innermost,
		.frames = { 1, { 0 }, offsetof(struct frame, next) },
		.frame_bytes = LANGUAGE_FRAME_BYTES - 8,
		.code_at = offsetof(struct frame, code),
		.instruction_at = offsetof(struct frame, instruction),
		.flags_at = offsetof(struct frame, flags),
		.code_mask = UINT64_MAX,
		.type_mask = UINT64_MAX,
		.type = TYPE,
		.key_words = 1,
		.texts = { it, it, it },
	};
}

/* ---- Requests ---- */

static struct broker_process process_of(pid_t pid, uint32_t lease,
					const struct language_target *target)
{
	const struct lent_process it = { .number = NUMBER, .target = *target };

	return packet_of(pid, lease, &it);
}

static int tell(pid_t pid, uint32_t lease, const struct language_target *target)
{
	const struct broker_process p = process_of(pid, lease, target);

	return ask_bytes(&p, sizeof(p));
}

static int wrong_fields(void *arg)
{
	const struct language_target target = true_target();
	uint32_t lease = 0;
	const int token = ask_lease(0, &lease);
	const struct broker_process good = process_of(getpid(), lease, &target);
	const struct {
		size_t at;
		uint32_t value;
		int error;
	} cases[] = {
		{ offsetof(struct broker_request, flags), 1, EINVAL },
		{ offsetof(struct broker_request, tid), 0, EINVAL },
		{ offsetof(struct broker_request, proof), 1, EINVAL },
		{ offsetof(struct broker_request, cpu), 1, EINVAL },
		{ offsetof(struct broker_request, freq), 1, EINVAL },
		{ offsetof(struct broker_request, copy), 8, EINVAL },
		{ offsetof(struct broker_request, max_stack), 1, EINVAL },
		{ offsetof(struct broker_request, lease), 0, EINVAL },
		{ offsetof(struct broker_request, lease), lease + LEASES, EPERM },
		{ offsetof(struct broker_request, lease), lease ^ 1, EPERM },
		{ offsetof(struct broker_process, layout), LANGUAGE_LAYOUT + 1, EPROTO },
		{ offsetof(struct broker_process, reserved), 1, EINVAL },
		{ offsetof(struct broker_process, process.reserved), 1, EINVAL },
		{ offsetof(struct broker_process, process.contexts.reserved), 1, EINVAL },
	};
	int wrong = token < 0;

	(void)arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct broker_process bad = good;
		int got;

		memcpy((char *)&bad + cases[i].at, &cases[i].value, sizeof(uint32_t));
		got = ask_bytes(&bad, sizeof(bad));
		if (got != -cases[i].error) {
			printf("# case %zu: %d\n", i, got);
			wrong++;
		}
	}
	return wrong || ask_bytes(&good, sizeof(good));
}

static int wrong_sizes(void *arg)
{
	const struct language_target target = true_target();
	uint32_t lease = 0;
	const int token = ask_lease(0, &lease);
	struct broker_process p = process_of(getpid(), lease, &target);
	struct {
		struct broker_process p;
		char more[8];
	} large = { .p = p };
	int wrong = token < 0;

	(void)arg;
	wrong += ask_bytes(&p, sizeof(p.request)) != -EPIPE;
	wrong += ask_bytes(&p, sizeof(p) - 8) != -EPIPE;
	wrong += ask_bytes(&large, sizeof(large)) != -EPIPE;
	p.request.kind = BROKER_LEASE;
	wrong += ask_bytes(&p, sizeof(p)) != -EPIPE;
	return wrong;
}

/* ---- Records ---- */

/* Has this process watched, and its interpreter told. */
static bool watch_frames(struct watch *w, const struct language_target *target)
{
	const struct lent_process it = { .number = NUMBER, .target = *target };

	return watch_process(w, &it);
}

/* Returns whether a moment has the frames that there are. */
static bool is_true(const struct language_moment *m)
{
	const struct language_entry *e = (const void *)(m + 1);
	bool ret = m->nr_frames == FRAMES && !m->nr_marks && m->target == NUMBER &&
		   m->end == LANGUAGE_WHOLE;

	for (int i = 0; ret && i < FRAMES; i++)
		ret = e[i].addr == (uintptr_t)&frames[i] && e[i].at == 8 * i &&
		      e[i].id > LANGUAGE_NO_FUNCTION;
	return ret;
}

/* Returns whether no other function that this process saw had that number. */
static bool is_new(uint64_t id)
{
	static uint64_t ids[2 * FRAMES];
	static int nr;

	for (int i = 0; i < nr; i++)
		if (ids[i] == id)
			return false;
	if (nr < 2 * FRAMES)
		ids[nr++] = id;
	return id > LANGUAGE_NO_FUNCTION;
}

/* ---- What is given ---- */

static int is_read(void *arg)
{
	const struct language_target target = true_target();
	const struct perf_event_header *at = NULL;
	const struct language_moment *m;
	const struct language_code *c;
	struct watch w = { 0 };
	int right = 0, wrong = 0, functions = 0;

	(void)arg;
	make_interpreter("inner", 0);
	if (!watch_frames(&w, &target) || !work(&w, ENOUGH, ENOUGH))
		return 1;
	while ((m = next_of(w.chains, &at, LANGUAGE_MOMENT))) {
		right += is_true(m);
		wrong += !is_true(m) && m->end != LANGUAGE_DEEP;
	}
	at = NULL;
	while ((c = next_of(w.chains, &at, LANGUAGE_CODE))) {
		functions++;
		wrong += !is_new(c->id);
		wrong += memcmp(c->shorts[0], &text, sizeof(uint64_t) + strlen("inner")) != 0;
	}
	printf("# %d moments, %d functions, %d wrong\n", count(w.chains, LANGUAGE_MOMENT),
	       functions, wrong);
	fflush(stdout);
	return !are_right(right, wrong) || functions != FRAMES;
}

/* Two leases of a process get each function, by numbers that the other one has not. */
static int is_read_twice(void *arg)
{
	return is_read(arg) || is_read(arg);
}

/* It is walked as others are from when it is told that there is no interpreter. */
static int ends_with_none(void *arg)
{
	const struct language_target target = true_target();
	struct watch w = { 0 };
	struct broker_process none;
	int before;

	(void)arg;
	make_interpreter("inner", 0);
	if (!watch_frames(&w, &target) || !work(&w, ENOUGH, 0))
		return 1;
	none = process_of(getpid(), w.lease, &target);
	none.process.number = 0;
	if (ask_bytes(&none, sizeof(none)) || ask_bytes(&none, sizeof(none)))
		return 1;
	before = count(w.chains, LANGUAGE_MOMENT);
	while (count_samples(w.samples) + count_samples(w.chains) < 4 * ENOUGH + before)
		if (!work(&w, 0, 0))
			return 1;
	return count(w.chains, LANGUAGE_MOMENT) != before;
}

/* ---- What is not ---- */

/* FIRST's lease, of which another process is told. */
struct kept {
	uint32_t lease;
	pid_t pid;
	int go[2], told[2], done[2];
};

/* Has a lease, says that the process has an interpreter, and returns how many moments came then. */
static int keeps(void *arg)
{
	const struct language_target target = true_target();
	struct kept *k = arg;
	struct watch w = { 0 };
	char c;

	make_interpreter("inner", 0);
	stay_on_cpu();
	if (!watch(&w, 0) || tell(k->pid, w.lease, &target) ||
	    write(k->told[1], &w.lease, sizeof(w.lease)) != sizeof(w.lease) ||
	    read(k->done[0], &c, 1) != 1)
		return 100;
	return count(w.chains, LANGUAGE_MOMENT);
}

/* Works under another user's lease, once there is one. */
static int works_for_another(void *arg)
{
	const struct language_target target = true_target();
	struct kept *k = arg;
	struct watch w = { 0 };

	make_interpreter("inner", 0);
	stay_on_cpu();
	if (read(k->told[0], &w.lease, sizeof(w.lease)) != sizeof(w.lease) ||
	    tell(getpid(), w.lease, &target) != -EPERM)
		return 1;
	w.event = ask_walked(getpid(), 0, w.lease);
	w.samples = w.event < 0 ? NULL : map_ring(w.event);
	w.chains = empty_ring();
	return !w.samples || !work(&w, 0, ENOUGH);
}

static void test_others(void)
{
	struct kept k = { 0 };
	int other = 1, keeper = 1, status;
	pid_t pid;

	if (pipe2(k.told, O_CLOEXEC) || pipe2(k.done, O_CLOEXEC))
		return;
	k.pid = fork();
	if (!k.pid) {
		become(SECOND);
		alarm(PATIENCE);
		_exit(works_for_another(&k));
	}
	pid = fork();
	if (!pid) {
		become(FIRST);
		alarm(PATIENCE);
		_exit(keeps(&k));
	}
	if (waitpid(k.pid, &status, 0) == k.pid)
		other = status;
	if (write(k.done[1], "", 1) == 1 && waitpid(pid, &status, 0) == pid)
		keeper = status;
	verdict(!other, "who has no such lease can tell nothing of a process");
	verdict(!keeper,
		"of another user's process nothing is read, also if it has events of the lease");
}

/* Leaves in the memory of the CPU what others must not see. */
static int leaves_secret(void *arg)
{
	struct language_target target = true_target();
	struct watch w = { 0 };

	(void)arg;
	make_interpreter(SECRET_NAME, SECRET);
	/* A table of lines has the same words. */
	return !watch_frames(&w, &target) || !work(&w, ENOUGH, 0);
}

/*
 * Has words be passed on that its table does not have read: all of a frame but the first one, which
 * leads to no other frame.
 */
static int looks_for_secret(void *arg)
{
	const uint32_t low = (uint32_t)SECRET, high = SECRET >> 32;
	struct language_target target = true_target();
	struct watch w = { 0 };
	bool found = false;

	(void)arg;
	make_interpreter("", 0);
	frames[0] = (struct frame){ 0 };
	target.frame_bytes = 8;
	target.frames.link = 0;
	target.code_at = 8 * 15;
	target.instruction_at = offsetof(struct frame, more);
	target.flags_at = offsetof(struct frame, more) + 12;
	if (!watch_frames(&w, &target) || !work(&w, ENOUGH, 0))
		return 1;
	found |= has_bytes(w.chains, &low, sizeof(low)) || has_bytes(w.chains, &high, sizeof(high));
	/* And what is behind a shorter text. */
	make_interpreter("", 0);
	target = true_target();
	if (tell(getpid(), w.lease, &target) || !work(&w, 2 * ENOUGH, 0))
		return 1;
	found |= has_bytes(w.chains, SECRET_NAME + 1, strlen(SECRET_NAME) - 1);
	return found || !count(w.chains, LANGUAGE_CODE);
}

/* A process that nobody may trace any more, with events of before. */
static int is_undumpable(void *arg)
{
	const struct language_target target = true_target();
	struct watch w = { 0 };
	int before;

	(void)arg;
	make_interpreter("inner", 0);
	if (!watch_frames(&w, &target) || !work(&w, ENOUGH, 0) || prctl(PR_SET_DUMPABLE, 0))
		return 1;
	before = count(w.chains, LANGUAGE_MOMENT);
	for (int all = count_samples(w.samples) + count_samples(w.chains);
	     count_samples(w.samples) + count_samples(w.chains) < all + ENOUGH;)
		if (!work(&w, 0, 0))
			return 1;
	return count(w.chains, LANGUAGE_MOMENT) != before;
}

static void test_secrets(void)
{
	verdict(!as(FIRST, leaves_secret, NULL) && !as(SECOND, looks_for_secret, NULL),
		"what is read of one user's process is in no record of another's");
	verdict(!as(FIRST, is_undumpable, NULL),
		"of a process that has made itself undumpable nothing is read");
}

/* ---- The end ---- */

/* Returns how many maps of leases the broker has. */
static int count_maps(void)
{
	char path[PATH_MAX], line[256];
	struct dirent *entry;
	DIR *all;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)broker);
	all = opendir(path);
	while (all && (entry = readdir(all))) {
		unsigned int type;
		FILE *info;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)broker, entry->d_name);
		info = fopen(path, "r");
		/* BPF_MAP_TYPE_LRU_HASH: the program has no other map of this type. */
		while (info && fgets(line, sizeof(line), info))
			n += sscanf(line, "map_type: %u", &type) == 1 && type == 9;
		if (info)
			fclose(info);
	}
	if (all)
		closedir(all);
	return n;
}

/* Has a lease with maps. Tells that by the second descriptor at @arg, and ends when told by the first one. */
static int has_maps(void *arg)
{
	const struct language_target target = true_target();
	uint32_t lease = 0;
	const int token = ask_lease(0, &lease), *way = arg;
	char c;

	make_interpreter("inner", 0);
	return token < 0 || tell(getpid(), lease, &target) || write(way[1], "", 1) != 1 ||
	       read(way[0], &c, 1) != 1;
}

/* Makes a process of FIRST's that has a lease with maps. Sets what can be read when it has them. */
static pid_t make_owner(int *told)
{
	int back[2], go[2];
	pid_t pid;

	if (pipe2(back, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		become(FIRST);
		alarm(PATIENCE);
		close(go[1]);
		_exit(has_maps((int[]){ go[0], back[1] }));
	}
	close(back[1]);
	close(go[0]);
	*told = back[0];
	return pid;
}

/* Waits until the broker has as many maps of leases as that. Returns how many it has. */
static int await_maps(int nr)
{
	const double until = now() + PATIENCE;

	while (count_maps() != nr && now() < until)
		nap();
	return count_maps();
}

static void test_end(void)
{
	int told = -1, had = 0, left = await_maps(0);
	pid_t pid = make_owner(&told);
	char c;

	if (!left && read(told, &c, 1) == 1)
		had = count_maps();
	end(pid);
	close(told);
	left = await_maps(0);
	printf("# %d maps, then %d\n", had, left);
	fflush(stdout);
	verdict(had == 2 && !left, "the maps of a user who leaves are freed");
}

/* ---- What waits for the kernel ---- */

/* Returns the broker's thread that waits for walks, or 0. */
static pid_t find_thread(void)
{
	char path[PATH_MAX], called[32];
	struct dirent *entry;
	pid_t ret = 0;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)broker);
	all = opendir(path);
	while (all && !ret && (entry = readdir(all))) {
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)broker, entry->d_name);
		comm = fopen(path, "r");
		if (comm && fgets(called, sizeof(called), comm) &&
		    !strcmp(called, "shstk places\n"))
			ret = atoi(entry->d_name);
		if (comm)
			fclose(comm);
	}
	if (all)
		closedir(all);
	return ret;
}

/* Stops a thread. It goes on with PTRACE_DETACH. */
static bool stop_thread(pid_t tid)
{
	int status;

	return tid && !ptrace(PTRACE_SEIZE, tid, 0, 0) && !ptrace(PTRACE_INTERRUPT, tid, 0, 0) &&
	       waitpid(tid, &status, __WALL) == tid;
}

static int has_all(void *arg)
{
	struct watch w = { 0 };

	(void)arg;
	return !watch(&w, 0);
}

/* Whatever a user has the kernel wait for, another user is answered. */
static void test_waits(void)
{
	const bool none = !await_maps(0);
	const pid_t thread = find_thread();
	const bool stopped = none && stop_thread(thread);
	int told = -1;
	pid_t pid = make_owner(&told);
	struct pollfd p = { .fd = told, .events = POLLIN };
	bool waits, other;
	char c;

	waits = stopped && await_maps(2) == 2;
	other = waits && !as(SECOND, has_all, NULL);
	waits = waits && !poll(&p, 1, 0);
	if (stopped)
		ptrace(PTRACE_DETACH, thread, 0, 0);
	verdict(other,
		"while maps of one user are being shown to the program, another user gets all he asks for");
	verdict(waits && read(told, &c, 1) == 1, "and the first one is answered when they are");
	end(pid);
	close(told);
}

int main(int argc, char **argv)
{
	prepare(argc, argv);
	puts("1..12");
	start(NULL);
	verdict(!as(FIRST, wrong_fields, NULL),
		"each field of requests about processes has its bounds");
	verdict(!as(FIRST, wrong_sizes, NULL), "a request of another size ends the connection");
	verdict(!as(FIRST, is_read, NULL), "frames and functions are read as the user says");
	verdict(!as(FIRST, is_read_twice, NULL),
		"each lease gets each function, by a number of its own");
	verdict(!as(FIRST, ends_with_none, NULL),
		"none is read of a process that has none any more");
	test_others();
	test_secrets();
	test_end();
	test_waits();
	return !!failed;
}
