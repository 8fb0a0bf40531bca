// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_hostile_test.c - tests walks by unwind rules where everything that a walk reads is made to
 * hurt: registers, stacks, mappings, and rules
 *
 *	rules_hostile_test SECONDS SEED SHSTK
 *
 * SHSTK is the command, which compiles this program's own table. One process descends through plain
 * frames and stays there. Another one attacks, SECONDS for each attack, with data that is generated
 * from SEED. Each chain of the first process has to be exact all the time. Each walk has to be
 * counted once, and no chain may have a kernel address. The guest's runner fails the step if the
 * kernel complains.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/shstk_rules.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../kmod/rules_check.h"
#include "kselftest.h"
#include "nmi/source.h"
#include "number.h"
#include "sampler.h"

#include "rules_hostile.h"

#define noinline_ __attribute__((noinline, noclone))
#define FOLDER "/tmp/rules_hostile"
#define COUNTERS "/sys/module/shstk_perf/"
#define DEPTH 30
#define SAMPLES 30
#define PATIENCE 60 /* how many times longer than asked a test may take */
#define PERIOD 200000 /* ns */
#define ROUNDS 20000 /* of wander(), at one stop */
#define FOREVER_BYTES 64 /* size of forever() alone, with no other function's loop */

#define STOPS 1024
#define PAGES 16 /* size of the code for which rules are made up */
#define COPIES 256 /* bytes from one copy of wander_code to the next */
#define RULES 256
#define MOST_ROWS 64 /* most rows of a page */
#define TABLE_ROOM (1 << 16)
#define STACK (1 << 18)
#define STACK_WORDS (STACK / 8)
#define HOLES 8 /* the last of this many pages of the stack is not mapped */
#define CODE_SIZE (PAGES * 4096)
#define CODE ((uint64_t)0x200000000)
#define MOVING (CODE + (1 << 24)) /* memory that is mapped and unmapped */
#define JIT (CODE + (2 << 24))
#define STACK_AT (CODE + (3 << 24))

static int device, code_fd;
static const char *shstk;
static uint64_t rng;

/* xorshift64 */
static uint64_t random64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t rnd(uint64_t below)
{
	return random64(&rng) % below;
}

/* ---- Tables ---- */

/* Loads a table. Returns 0 or an errno. */
static int load(int fd, const void *table, size_t size)
{
	struct shstk_rules_load arg = {
		.table = (uintptr_t)table,
		.size = size,
		.fd = fd,
		.name = "hostile",
	};

	return ioctl(device, SHSTK_RULES_LOAD, &arg) ? errno : 0;
}

static void drop_all(void)
{
	struct shstk_rules_drop arg = { .fd = -1, .flags = SHSTK_RULES_DROP_ALL };

	ioctl(device, SHSTK_RULES_DROP, &arg);
}

static uint64_t some_rule(unsigned int machine)
{
	static const uint64_t all = SHSTK_RULE_KIND_MASK;
	uint64_t rule;

	do {
		rule = rnd(all + 1);
		if (rnd(4))
			rule |= rnd(SHSTK_RULE_REG_MASK + 1) << SHSTK_RULE_REG_SHIFT;
		if (rnd(2))
			rule |= (rnd(32) ? rnd(8) : rnd(SHSTK_RULE_OFF_MASK + 1))
				<< SHSTK_RULE_SAVED_SHIFT;
		if (rnd(2))
			rule |= (rnd(32) ? rnd(8) : rnd(SHSTK_RULE_OFF_MASK + 1))
				<< SHSTK_RULE_FP_SHIFT;
		rule |= (rnd(32) ? rnd(64) : random64(&rng)) << SHSTK_RULE_CFA_SHIFT;
		/* Rules that end a walk are made less frequent. */
	} while (!ushstk_rule_ok(rule, machine) || ((ushstk_rule_kind(rule) == SHSTK_RULE_END ||
						     ushstk_rule_kind(rule) == SHSTK_RULE_CUT) &&
						    rnd(16)));
	return rule;
}

/* Makes a table of random rules, which are valid but not true. Returns its size in bytes. */
static size_t make_up_table(void *table)
{
	struct shstk_rules_info info = { 0 };
	struct shstk_rules_header *h = table;
	uint64_t *rule = (uint64_t *)(h + 1);
	uint32_t *page = (uint32_t *)(rule + RULES), *row = page + PAGES + 1;

	ioctl(device, SHSTK_RULES_INFO, &info);
	*h = (struct shstk_rules_header){
		.magic = SHSTK_RULES_MAGIC,
		.version = SHSTK_RULES_VERSION,
		.machine = (uint16_t)info.machine,
		.nr_rules = RULES,
		.nr_pages = PAGES,
	};
	for (int i = 0; i < RULES; i++)
		rule[i] = some_rule(info.machine);
	for (int i = 0; i < PAGES; i++) {
		page[i] = h->nr_rows;
		for (uint32_t at = 0; at < 4096 && h->nr_rows - page[i] < MOST_ROWS;
		     at += 1 + (uint32_t)rnd(200))
			row[h->nr_rows++] = at << 16 | (uint32_t)rnd(RULES);
	}
	page[PAGES] = h->nr_rows;
	return ushstk_rules_size(h);
}

static void load_made_up(void)
{
	static uint64_t table[TABLE_ROOM / 8];
	int err = load(code_fd, table, make_up_table(table));

	if (err)
		ksft_exit_fail_msg("a made up table: %s\n", strerror(err));
}

/* Returns this program's own table, as the command compiles it, in memory. */
static void *own_table(size_t *size)
{
	const size_t room = 1 << 22;
	char command[512], *t = malloc(room);
	FILE *f;

	snprintf(command, sizeof(command), "%s rules compile -qo " FOLDER "/table /proc/%d/exe",
		 shstk, getpid());
	f = system(command) ? NULL : fopen(FOLDER "/table", "re");
	*size = f && t ? fread(t, 1, room, f) : 0;
	if (!*size)
		ksft_exit_fail_msg("%s: no table\n", command);
	fclose(f);
	return t;
}

static void load_own(const void *table, size_t size)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err = load(fd, table, size);

	close(fd);
	if (err)
		ksft_exit_fail_msg("this program's own table: %s\n", strerror(err));
}

/* ---- Plain frames ---- */

static int ready[2];

static noinline_ void forever(void)
{
	while (ready[1])
		asm volatile("" ::: "memory");
}

static noinline_ void bottom(void)
{
	char byte = 0;

	if (write(ready[1], &byte, 1) != 1)
		_exit(1);
	forever();
	asm volatile(""); /* the asm prevents a tail call */
}

static noinline_ void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		bottom();
	asm volatile("");
}

static void stay_on_first_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/*
 * Starts a process that runs @fn. The process reports that it is ready; an attacker reports it
 * before it attacks.
 */
static pid_t start(void (*fn)(void), bool pinned)
{
	char byte;
	pid_t pid;

	if (pipe(ready))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pinned)
			stay_on_first_cpu();
		fn();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		ksft_exit_fail_msg("a child died\n");
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void descend(void)
{
	recurse(DEPTH);
}

static bool in_wander(uint64_t pc)
{
	return pc >= (uintptr_t)wander_code && pc < (uintptr_t)wander_code_end;
}

/* ---- Chains and counters of walks ---- */

struct verdict {
	pid_t steady;
	unsigned int nr, exact; /* chains of @steady */
	uint64_t repeated; /* the address that they repeat */
	unsigned int others;
	unsigned int longest; /* length of the longest of the others */
	unsigned int by_rules; /* chains that surely come from rules */
	unsigned int foreign; /* chains of @by_rules with an address that is not the user's */
};

/* Returns whether one address is repeated as often as the process recursed. */
static bool is_exact(const struct sample *s, uint64_t *repeated)
{
	unsigned int run = 1;

	for (unsigned int i = 2; i < s->nr; i++) {
		run = s->ip[i] == s->ip[i - 1] ? run + 1 : 1;
		if (run == DEPTH) {
			*repeated = s->ip[i];
			return i + 1 == s->nr || s->ip[i + 1] != s->ip[i];
		}
	}
	return false;
}

/*
 * Counts chains with foreign addresses. It only looks at chains that surely came from rules,
 * because the return address of wander_code can be read. The kernel's own walk gives whatever it
 * finds in a stack.
 */
static void note_foreign(struct verdict *v, const struct sample *s)
{
	if (!s->nr || s->ip[0] - (uintptr_t)wander_stays > 8)
		return;
	v->by_rules++;
	for (unsigned int i = 1; i < s->nr; i++) {
		if (!(s->ip[i] >> 56))
			continue;
		v->foreign++;
		ksft_print_msg("entry %u of %u: %#lx\n", i, s->nr, (long)s->ip[i]);
		return;
	}
}

static void judge(void *arg, const struct sample *s)
{
	struct verdict *v = arg;

	note_foreign(v, s);
	if (s->tid != v->steady) {
		v->others++;
		v->longest = s->nr > v->longest ? s->nr : v->longest;
		return;
	}
	/* The process may still be in write(). */
	if (!s->nr || s->ip[0] - (uintptr_t)forever > FOREVER_BYTES)
		return;
	v->nr++;
	v->exact += is_exact(s, &v->repeated);
}

/* The ends of walks: enum walk_end of the module, except "refused", which serves nothing. */
static const char *const walk_ends[] = {
	"whole",       "zero",	      "room",	     "cut_no_code",   "cut_no_table",
	"cut_no_rule", "cut_no_kind", "cut_bad_cfa", "cut_no_memory",
};

#define ENDS (sizeof(walk_ends) / sizeof(walk_ends[0]))

struct count {
	long end[ENDS], ended, served, steps;
};

static long counter(const char *group, const char *name)
{
	char path[128];
	long n;

	snprintf(path, sizeof(path), COUNTERS "%s/%s", group, name);
	n = read_number(path);
	if (n < 0)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	return n;
}

static struct count read_counts(void)
{
	struct count c = { .served = counter("chains", "served_rules") +
				     counter("chains", "served_deferred") };

	for (size_t i = 0; i < ENDS; i++) {
		c.end[i] = counter("rules", walk_ends[i]);
		c.ended += c.end[i];
	}
	c.steps = counter("rules", "step_record") + counter("rules", "step_signal");
	return c;
}

static bool counts_agree(const struct count *before, const struct count *after)
{
	for (size_t i = 0; i < ENDS; i++)
		if (after->end[i] != before->end[i])
			ksft_print_msg("%s: %ld walks\n", walk_ends[i],
				       after->end[i] - before->end[i]);
	ksft_print_msg("%ld walks were served, %ld frames passed by records and signals\n",
		       after->served - before->served, after->steps - before->steps);
	return after->served > before->served &&
	       after->served - before->served == after->ended - before->ended;
}

/* ---- Data of the attackers ---- */

static uint64_t *const stack = (uint64_t *)STACK_AT;
static struct stop stops[STOPS];

static uint64_t wild(void)
{
	static const uint64_t values[] = {
		0,
		1,
		8,
		15,
		4096,
		0xffffffff,
		(1ULL << 47) - 8192,
		(1ULL << 47) - 4096,
		(1ULL << 47) - 8,
		1ULL << 47,
		1ULL << 48,
		(1ULL << 52) - 8,
		1ULL << 55,
		1ULL << 63,
		-1ULL,
		-8ULL,
		-15ULL,
		-128ULL, /* PERF_CONTEXT_KERNEL */
		-4096ULL,
		0xffff800000000000ULL,
		0xffff888000000000ULL,
		0xffffffff81000000ULL,
		0xffffffffff600000ULL,
	};

	return rnd(4) ? values[rnd(sizeof(values) / sizeof(*values))] : random64(&rng) >> rnd(64);
}

static uint64_t somewhere_in_stack(void)
{
	return STACK_AT + (rnd(16) ? 8 * rnd(STACK_WORDS) : rnd(STACK));
}

/* Returns a word for a stack: mostly return addresses, and pointers that lead on. */
static uint64_t some_word(void)
{
	switch (rnd(32)) {
	case 0:
		return wild();
	case 1:
	case 2:
	case 3:
		return somewhere_in_stack();
	case 4:
	case 5:
	case 6:
		return JIT + rnd(4096);
	case 7:
	case 8:
		return MOVING + rnd(CODE_SIZE);
	case 9:
		return (uintptr_t)wander_code + rnd(64);
	default:
		return CODE + rnd(CODE_SIZE);
	}
}

static uint64_t some_pointer(void)
{
	return rnd(8) ? somewhere_in_stack() : wild();
}

/* Returns an address in the stack before the first page that is not mapped. */
static uint64_t somewhere_readable(void)
{
	return STACK_AT + 8 * rnd(512 * (HOLES - 1));
}

static struct stop some_stop(void)
{
	struct stop s = {
		.sp = some_pointer(),
		.fp = some_pointer(),
		.other = rnd(2) ? some_word() : some_pointer(),
		.code = CODE + COPIES * rnd(CODE_SIZE / COPIES),
	};

	if (!rnd(4)) {
		s.sp = somewhere_readable();
		s.code = (uintptr_t)wander_code;
	}
	return s;
}

/* Fills memory so that every byte is behind a call. */
static void fill_with_calls(void *at, size_t size)
{
#ifdef __x86_64__
	memset(at, 0xe8, size);
#else
	for (size_t i = 0; i < size / 4; i++)
		((uint32_t *)at)[i] = 0x94000000;
#endif
}

static void make_code_file(void)
{
	static char code[CODE_SIZE];
	int fd = open(FOLDER "/code", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	fill_with_calls(code, sizeof(code));
	for (int at = 0; at < CODE_SIZE; at += COPIES)
		memcpy(code + at, wander_code, (size_t)(wander_code_end - wander_code));
	if (fd < 0 || write(fd, code, sizeof(code)) != sizeof(code) || close(fd))
		ksft_exit_fail_msg(FOLDER "/code: %s\n", strerror(errno));
	code_fd = open(FOLDER "/code", O_RDONLY | O_CLOEXEC);
}

static void map_at(uint64_t at, size_t size, int prot, int fd, off_t off)
{
	int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);

	if (mmap((void *)at, size, prot, flags, fd, off) == MAP_FAILED)
		_exit(2);
}

static void set_up(void)
{
	/* Frame records in a circle, and a frame at the end of all addresses. */
	static const struct stop special[] = {
		{ STACK_AT, STACK_AT, JIT + 64, (uintptr_t)wander_code },
		{ 0, -15ULL, 0, CODE },
		{ 0, -16ULL, 0, CODE + COPIES },
		{ -8ULL, -8ULL, -8ULL, CODE + 2 * COPIES },
	};

	map_at(CODE, CODE_SIZE, PROT_READ | PROT_EXEC, code_fd, 0);
	map_at(MOVING, CODE_SIZE, PROT_READ | PROT_EXEC, code_fd, 0);
	map_at(JIT, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, -1, 0);
	fill_with_calls((void *)JIT, 4096);
	/*
	 * The stack is shared memory, so that pages that are removed from the page tables do not
	 * lose their content.
	 */
	if (mmap(stack, STACK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_ANONYMOUS, -1,
		 0) == MAP_FAILED)
		_exit(2);
	for (int i = 0; i < STACK_WORDS; i++)
		stack[i] = some_word();
	/* Some pages behind the readable ones are not mapped. */
	for (int page = HOLES - 1; page < STACK / 4096; page += HOLES)
		mprotect((char *)stack + 4096 * page, 4096, PROT_NONE);
	for (int i = 0; i < STOPS; i++)
		stops[i] = some_stop();
	memcpy(stops, special, sizeof(special));
	stack[0] = JIT + 64;
	stack[1] = STACK_AT + 16;
	stack[2] = STACK_AT;
	stack[3] = JIT + 128;
}

static void report_ready(void)
{
	char byte = 0;

	if (write(ready[1], &byte, 1) != 1)
		_exit(3);
}

static void __attribute__((noreturn)) go(void)
{
	report_ready();
	wander(stops, stops + STOPS, ROUNDS);
}

/* ---- Attacks ---- */

static void attack_alone(void)
{
	set_up();
	go();
}

static void *rewrite(void *arg)
{
	uint64_t state = random64(&rng);

	for (;;) {
		uint64_t at = random64(&state) % STACK_WORDS;

		if (at / 512 % HOLES != HOLES - 1)
			stack[at] = stack[random64(&state) % 512];
	}
	return arg;
}

static void *remap(void *arg)
{
	uint64_t state = random64(&rng);

	for (;;) {
		uint64_t page = random64(&state) % PAGES, at = MOVING + 4096 * page;
		off_t off = 4096 * (off_t)(random64(&state) % (2 * PAGES));

		switch (random64(&state) % 5) {
		case 0:
			munmap((void *)at, 4096);
			break;
		case 1:
			map_at(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, -1, 0);
			break;
		case 2:
			mprotect((void *)at, 4096, PROT_NONE);
			break;
		case 3:
			map_at(at, 4096 * (PAGES - page), PROT_READ | PROT_EXEC, code_fd, off);
			break;
		default:
			map_at(at, 4096, PROT_READ | PROT_EXEC, code_fd, off);
		}
	}
	return arg;
}

static void attack_with(void *(*fn)(void *))
{
	pthread_t thread;

	set_up();
	if (pthread_create(&thread, NULL, fn, NULL))
		_exit(4);
	go();
}

static void *lose(void *arg)
{
	uint64_t state = random64(&rng);

	for (;;) {
		uint64_t page = random64(&state) % (STACK / 4096);

		madvise((char *)stack + 4096 * page, 4096, MADV_DONTNEED);
	}
	return arg;
}

static void attack_by_losing(void)
{
	attack_with(lose);
}

static void attack_by_writing(void)
{
	attack_with(rewrite);
}

static void attack_by_mapping(void)
{
	attack_with(remap);
}

#ifdef __x86_64__
#define pc_of(regs) ((regs).rip)
#else
#define pc_of(regs) ((regs).pc)
#endif

/* Sets registers from another process. The loop keeps them until the next stop. */
static bool set_registers(pid_t pid)
{
	struct user_regs_struct regs;
	struct iovec v = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v))
		return false;
	/* The process is not in the loop yet. */
	if (!in_wander(pc_of(regs)) && pc_of(regs) - CODE >= CODE_SIZE)
		return true;
#ifdef __x86_64__
	regs.rsp = in_wander(pc_of(regs)) ? somewhere_readable() : some_pointer();
	regs.rbp = some_pointer();
	regs.rbx = regs.r11 = some_word();
#else
	regs.sp = in_wander(pc_of(regs)) ? somewhere_readable() : some_pointer();
	regs.regs[29] = some_pointer();
	regs.regs[30] = some_word();
#endif
	return !ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v);
}

static void __attribute__((noreturn)) trace(pid_t pid)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		_exit(5);
	for (;;) {
		if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) || waitpid(pid, NULL, __WALL) != pid ||
		    !set_registers(pid))
			_exit(0);
		ptrace(PTRACE_POKEDATA, pid, stack + rnd(512), some_word());
		ptrace(PTRACE_CONT, pid, 0, 0);
		usleep(5000);
	}
}

static void attack_by_tracing(void)
{
	pid_t pid = getpid();

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	set_up();
	if (!fork())
		trace(pid);
	go();
}

struct attack {
	const char *name;
	void (*fn)(void);
};

static const struct attack attacks[] = {
	{ "any registers and any stack", attack_alone },
	{ "a thread that rewrites the stack", attack_by_writing },
	{ "a thread that maps and unmaps code", attack_by_mapping },
	{ "a tracer that edits registers and stack", attack_by_tracing },
};

#define NR_ATTACKS (sizeof(attacks) / sizeof(attacks[0]))

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/*
 * Returns whether an attack goes on that began then: for @limit seconds, and longer until there are enough
 * chains.
 */
static bool goes_on(const struct verdict *v, double began, double limit)
{
	double now = seconds();

	return now < began + limit || (now < began + PATIENCE * limit &&
				       ((v->steady && v->nr < SAMPLES) || v->by_rules < SAMPLES));
}

/* Samples the attack, with new rules all the time. */
static void sample_attack(struct sampler *s, struct verdict *v, pid_t pid, double limit)
{
	for (double began = seconds(); goes_on(v, began, limit);) {
		load_made_up();
		usleep(20000);
		sampler_drain(s, judge, v);
		if (waitpid(pid, NULL, WNOHANG))
			ksft_exit_fail_msg("the attacker died\n");
	}
}

/* Tests an attack by samples of the CPU's clock, of everything that runs. */
static void test_attack(const struct attack *a, double limit)
{
	struct count before = read_counts(), after;
	struct verdict v = { .steady = start(descend, false) };
	pid_t pid = start(a->fn, false);
	struct sampler s;
	int err = sampler_open(&s, -1, PERIOD, false);

	if (err)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-err));
	sample_attack(&s, &v, pid, limit);
	sampler_close(&s);
	end(pid);
	end(v.steady);
	after = read_counts();
	ksft_print_msg("%u chains of others, up to %u entries, %u surely by rules; "
		       "%u of the steady one, %u exact\n",
		       v.others, v.longest, v.by_rules, v.nr, v.exact);
	ksft_test_result(v.nr >= SAMPLES && v.exact == v.nr,
			 "%s: the other process' chains are exact\n", a->name);
	ksft_test_result(v.by_rules >= SAMPLES && !v.foreign,
			 "%s: no chain has an address that is not the user's\n", a->name);
	ksft_test_result(counts_agree(&before, &after), "%s: each walk is counted once\n", a->name);
}

/* Tests deferred chains, for which pages of the stack are brought in while they are taken away. */
static void test_deferred(double limit)
{
	struct count before = read_counts(), after;
	pid_t pid = start(attack_by_losing, false);
	struct verdict v = { 0 };
	struct sampler s;
	int err = sampler_open(&s, pid, PERIOD, true);

	if (err)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-err));
	sample_attack(&s, &v, pid, limit);
	sampler_close(&s);
	end(pid);
	after = read_counts();
	ksft_print_msg("%u chains, up to %u entries\n", v.others, v.longest);
	ksft_test_result(v.by_rules >= SAMPLES && !v.foreign && counts_agree(&before, &after),
			 "deferred: each trace is counted once, no address is the kernel's\n");
}

#ifdef __x86_64__
/* Tests with a source of NMIs, if there is one: walks interrupt walks. */
static void test_nmi(double limit)
{
	struct count before = read_counts(), after;
	struct verdict v = { .steady = start(descend, false) };
	pid_t pid = start(attack_by_mapping, false);
	struct sampler nmi, clock;

	if (nmi_open(&nmi, NULL) || sampler_open(&clock, -1, PERIOD, false))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	nmi_start(&nmi, "200");
	for (double began = seconds(); goes_on(&v, began, limit);) {
		load_made_up();
		usleep(20000);
		sampler_drain(&nmi, judge, &v);
		sampler_drain(&clock, judge, &v);
	}
	nmi_stop(&nmi);
	sampler_close(&nmi);
	sampler_close(&clock);
	end(pid);
	end(v.steady);
	after = read_counts();
	ksft_print_msg("%u chains of others, %u of the steady one\n", v.others, v.nr);
	ksft_test_result(v.by_rules >= SAMPLES && !v.foreign && counts_agree(&before, &after),
			 "in NMIs: each walk is counted once, no address is the kernel's\n");
}

static bool makes_nmis(void)
{
	return !access(NMI_TICKS, W_OK);
}
#else
static void test_nmi(double limit)
{
	(void)limit;
}

static bool makes_nmis(void)
{
	return false;
}
#endif

/* ---- A file mapped so low that its beginning lies below address 0 ---- */

#define LOW_MAPPING 0x10000000ull
#define LOW_OFFSET 0x40000000ull

static int low_fd;
static uint64_t low_words[2];

static uint64_t table_number(uint64_t ino)
{
	struct shstk_rules_list list = { 0 };

	while (!ioctl(device, SHSTK_RULES_LIST, &list))
		if (list.ino == ino)
			return list.id;
	return 0;
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* Returns the offset of an address in its file. */
static uint64_t offset_of(uint64_t address)
{
	const ElfW(Phdr) *p = (const void *)getauxval(AT_PHDR);

	for (unsigned long n = getauxval(AT_PHNUM); n; n--, p++)
		if (p->p_type == PT_LOAD && address - p->p_vaddr < p->p_filesz)
			return address - p->p_vaddr + p->p_offset;
	return 0;
}

/* Uses by turns a return address in the low mapping, and the one that it could be mistaken for. */
static void attack_from_low_mapping(void)
{
	static struct stop low[2];

	map_at(LOW_MAPPING, 4096, PROT_READ | PROT_EXEC, low_fd, LOW_OFFSET);
	for (int i = 0; i < 2; i++)
		low[i] = (struct stop){ (uintptr_t)&low_words[i], 0, low_words[i],
					(uintptr_t)wander_code };
	report_ready();
	wander(low, low + 2, ROUNDS);
}

static struct verdict sample_pinned(pid_t pid, bool steady)
{
	struct verdict v = { .steady = steady ? pid : 0 };
	struct sampler s;
	int err = sampler_open(&s, pid, PERIOD, false);

	if (err)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-err));
	for (int i = 0; i < 1200 && (steady ? v.nr < SAMPLES : v.others < 10 * SAMPLES); i++) {
		usleep(50000);
		sampler_drain(&s, judge, &v);
	}
	sampler_close(&s);
	end(pid);
	return v;
}

/*
 * Tests that keys of different tables do not collide. A CPU finds remembered rules by the table's
 * number and the offset in the table. The low file has a table whose number is one less than that
 * of this program's table. An address in its mapping must not be taken for code of this program,
 * which would be 4 GiB behind the beginning of the low file.
 */
static void test_low_mapping(const void *own, size_t own_size)
{
	static uint64_t table[TABLE_ROOM / 8];
	uint64_t base = ((const struct shstk_rules_header *)own)->base, repeated;
	size_t size = make_up_table(table);
	struct verdict v;

	repeated = sample_pinned(start(descend, true), true).repeated;
	drop_all();
	low_fd = open(FOLDER "/low", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	close(low_fd);
	low_fd = open(FOLDER "/low", O_RDONLY | O_CLOEXEC);
	if (load(low_fd, table, size))
		ksft_exit_fail_msg(FOLDER "/low: no table\n");
	load_own(own, own_size);
	if (!repeated || table_number(inode_of(low_fd)) + 1 !=
				 table_number(inode_of(open("/proc/self/exe", O_RDONLY))))
		ksft_exit_fail_msg("the tables' numbers do not follow each other\n");
	low_words[0] = LOW_MAPPING + 64;
	low_words[1] = LOW_MAPPING - LOW_OFFSET + (1ull << 32) + offset_of(repeated) - base;
	ksft_print_msg("%#lx is to be taken for %#lx\n", (long)low_words[1], (long)repeated);
	sample_pinned(start(attack_from_low_mapping, true), false);
	v = sample_pinned(start(descend, true), true);
	ksft_print_msg("%u samples, %u exact\n", v.nr, v.exact);
	ksft_test_result(v.nr >= SAMPLES && v.exact == v.nr,
			 "a file mapped low at a large offset leaves others' chains exact\n");
	close(low_fd);
}

int main(int argc, char **argv)
{
	double limit;
	size_t size;
	bool defers;
	void *own;

	ksft_print_header();
	if (argc < 4)
		ksft_exit_fail_msg("rules_hostile_test SECONDS SEED SHSTK\n");
	limit = strtod(argv[1], NULL);
	rng = 0x9e3779b97f4a7c15 ^ strtoul(argv[2], NULL, 0);
	shstk = argv[3];
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip(SHSTK_RULES_DEVICE ": %s\n", strerror(errno));
	defers = sampler_defers();
	ksft_set_plan(1 + 3 * NR_ATTACKS + defers + makes_nmis());
	mkdir("/tmp", 0755);
	if (mkdir(FOLDER, 0755) && errno != EEXIST)
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	drop_all();
	own = own_table(&size);
	load_own(own, size);
	test_low_mapping(own, size);
	make_code_file();
	for (unsigned int i = 0; i < NR_ATTACKS; i++)
		test_attack(&attacks[i], limit);
	if (defers)
		test_deferred(limit);
	if (makes_nmis())
		test_nmi(limit);
	drop_all();
	free(own);
	ksft_finished();
}
