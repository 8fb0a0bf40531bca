// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * full_test.c - tests each function of the heap agent in each state in which it cannot record: its
 * region is full, somebody has written nonsense over all of it, the recorder has stopped, no memory
 * can be mapped, there is little address space, or there is no region.
 *
 * The agent is linked into this program, unchanged and with undefined behaviour ending the program.
 * The program makes what the agent would find from a recorder, and executes itself again. A
 * function that writes where it must not ends the child that called it. The functions must be those
 * of the agent that is preloaded, AGENT. Prints KTAP.
 */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/hooks.h"
#include "tools/inject/heap/heap.h"

#define COOKIE 0x1234567890abcdefull
#define REGIONS 4096 /* one for each child that is made here */
#define BLOCKS 64
#define FAR_BYTES (8ull << 20) /* more than what is kept of a region that gets smaller */
#define FEW_ADDRESSES (512ull << 20)

/* C++ operators, by their names in the object. */
void *_Znwm(size_t size);
void *_Znam(size_t size);
void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag);
void *_ZnamRKSt9nothrow_t(size_t size, const void *tag);
void *_ZnwmSt11align_val_t(size_t size, size_t align);
void *_ZnamSt11align_val_t(size_t size, size_t align);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *tag);
void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void *tag);
void *_Znwm_by_malloc(size_t size);
void *_ZnwmSt11align_val_t_by_malloc(size_t size, size_t align);
void _ZdlPv(void *p);
void _ZdaPv(void *p);
void _ZdlPvm(void *p, size_t size);
void _ZdaPvm(void *p, size_t size);
void _ZdlPvRKSt9nothrow_t(void *p, const void *tag);
void _ZdaPvRKSt9nothrow_t(void *p, const void *tag);
void _ZdlPvSt11align_val_t(void *p, size_t align);
void _ZdaPvSt11align_val_t(void *p, size_t align);
void _ZdlPvmSt11align_val_t(void *p, size_t size, size_t align);
void _ZdaPvmSt11align_val_t(void *p, size_t size, size_t align);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const void *tag);
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const void *tag);

enum state { FULL, WRITTEN, EMPTIED, STOPPED, NO_MEMORY, FEW, NO_REGION, STATES };

static const char *const state_names[] = {
	[FULL] = "the region is full",
	[WRITTEN] = "nonsense was written over the region",
	[EMPTIED] = "the region was written over with zeros",
	[STOPPED] = "the recorder has stopped",
	[NO_MEMORY] = "no memory can be mapped",
	[FEW] = "addresses are few, and some blocks are sampled",
	[NO_REGION] = "the recorder's file may be made smaller, and is not joined",
};

static enum state state;

/* ---- The program's allocations ---- */

static void *volatile blocks[BLOCKS];

/* Allocates a block; each depth gives another stack. */
static __attribute__((noinline)) void *allocate(int depth)
{
	void *volatile p = depth ? allocate(depth - 1) : malloc(40);

	return p;
}

static void take_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = allocate(i);
}

static void change_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *p = realloc(blocks[i], 40 + 16 * i);

		if (p)
			blocks[i] = p;
	}
}

static void give_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

/* ---- States ---- */

/*
 * Moves the use of the region far behind its start: a smaller region must still have all counters.
 */
static void go_far(void)
{
	heap_reserve(FAR_BYTES, HEAP_UNIT);
	atomic_store(&heap.unshared->counts, 0);
}

/* Writes over all used bytes of the region, including its header. */
static void write_over(int byte)
{
	uint64_t used = atomic_load(&heap.image->used);

	memset(heap.image, byte, used);
}

static void enter_state(void)
{
	const struct rlimit little = { 1, 1 };

	if (state == FULL)
		atomic_store(&heap.used, heap.size);
	else if (state == WRITTEN)
		write_over(0xff);
	else if (state == EMPTIED)
		write_over(0);
	else if (state == STOPPED)
		atomic_store(&heap.header->stop, 1);
	else if (state == NO_MEMORY)
		sys4(SYS_prlimit64, 0, RLIMIT_AS, &little, NULL);
}

/* ---- The functions ---- */

static char *const words[] = { "true", NULL };
static char *const variables[] = { "A=b", NULL };
static const struct rlimit no_core;
static const struct rlimit64 no_core64;

/*
 * Returns a program to execute, or a name that does not exist where there would be no memory for
 * it. Its loader's messages are discarded.
 */
static const char *program(void)
{
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	return state == NO_MEMORY ? "/nowhere/true" : "/bin/true";
}

static void spawn(bool by_path)
{
	pid_t pid = 0;

	if (by_path)
		posix_spawnp(&pid, program(), NULL, NULL, words, variables);
	else
		posix_spawn(&pid, program(), NULL, NULL, words, variables);
	if (pid)
		waitpid(pid, NULL, 0);
}

static void *thread(void *arg)
{
	give_blocks();
	take_blocks();
	return arg;
}

static void run_thread(void)
{
	pthread_t id;

	if (pthread_create(&id, NULL, thread, NULL))
		return;
	pthread_join(id, NULL);
}

static void raw_fork(void)
{
	pid_t pid = _Fork();
	int how = 0;

	if (!pid) {
		give_blocks();
		take_blocks();
		_exit(0);
	}
	waitpid(pid, &how, 0);
	if (how)
		_exit(100);
}

static void load(void *handle)
{
	if (handle)
		dlclose(handle);
}

/* Maps memory and unmaps parts of it, so that pieces remain in front of and behind them. */
static void map_and_unmap(void *(*map)(void *, size_t, int, int, int, off_t))
{
	char *p = map(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *q;

	if (p == MAP_FAILED)
		return;
	munmap(p + 16384, 4096);
	map(p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	q = mremap(p + 32768, 32768, 131072, MREMAP_MAYMOVE);
	if (q != MAP_FAILED)
		munmap(q, 131072);
	munmap(p, 32768);
}

/* Uses some of the reserved memory, and gives it up again. */
static void use_reserved(void)
{
	char *p = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	mprotect(p + 16384, 16384, PROT_READ | PROT_WRITE);
	mprotect(p + 20480, 4096, PROT_NONE);
	munmap(p, 65536);
}

/* Limits the address space, so that the region gets smaller: all counters must still be there. */
static void limit_addresses(void)
{
	const struct rlimit limit = { 16 << 20, RLIM_INFINITY };

	if (state != NO_MEMORY)
		setrlimit(RLIMIT_AS, &limit);
}

/* Locks memory. A full region would be locked as a whole, as root may lock more than the limit. */
static void lock_memory(void)
{
	const struct rlimit limit = { 1 << 20, 1 << 20 };

	if (state == FULL)
		return;
	prlimit(0, RLIMIT_MEMLOCK, &limit, NULL);
	mlockall(MCL_CURRENT);
	munlockall();
}

static void align(void)
{
	void *p;

	if (!posix_memalign(&p, 64, 100))
		free(p);
}

/* The functions: name, and statements that call it. */
#define EACH_HOOK(HOOK)                                                                     \
	HOOK(_Fork, raw_fork())                                                             \
	HOOK(_ZdaPv, _ZdaPv(malloc(9)))                                                     \
	HOOK(_ZdaPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t(malloc(9), NULL))                   \
	HOOK(_ZdaPvSt11align_val_t, _ZdaPvSt11align_val_t(aligned_alloc(64, 64), 64))       \
	HOOK(_ZdaPvSt11align_val_tRKSt9nothrow_t,                                           \
	     _ZdaPvSt11align_val_tRKSt9nothrow_t(aligned_alloc(64, 64), 64, NULL))          \
	HOOK(_ZdaPvm, _ZdaPvm(malloc(9), 9))                                                \
	HOOK(_ZdaPvmSt11align_val_t, _ZdaPvmSt11align_val_t(aligned_alloc(64, 64), 64, 64)) \
	HOOK(_ZdlPv, _ZdlPv(malloc(9)))                                                     \
	HOOK(_ZdlPvRKSt9nothrow_t, _ZdlPvRKSt9nothrow_t(malloc(9), NULL))                   \
	HOOK(_ZdlPvSt11align_val_t, _ZdlPvSt11align_val_t(aligned_alloc(64, 64), 64))       \
	HOOK(_ZdlPvSt11align_val_tRKSt9nothrow_t,                                           \
	     _ZdlPvSt11align_val_tRKSt9nothrow_t(aligned_alloc(64, 64), 64, NULL))          \
	HOOK(_ZdlPvm, _ZdlPvm(malloc(9), 9))                                                \
	HOOK(_ZdlPvmSt11align_val_t, _ZdlPvmSt11align_val_t(aligned_alloc(64, 64), 64, 64)) \
	HOOK(_Znam, free(_Znam(10)))                                                        \
	HOOK(_ZnamRKSt9nothrow_t, free(_ZnamRKSt9nothrow_t(10, NULL)))                      \
	HOOK(_ZnamSt11align_val_t, free(_ZnamSt11align_val_t(10, 64)))                      \
	HOOK(_ZnamSt11align_val_tRKSt9nothrow_t,                                            \
	     free(_ZnamSt11align_val_tRKSt9nothrow_t(10, 64, NULL)))                        \
	HOOK(_Znwm, free(_Znwm(10)))                                                        \
	HOOK(_ZnwmRKSt9nothrow_t, free(_ZnwmRKSt9nothrow_t(10, NULL)))                      \
	HOOK(_ZnwmSt11align_val_t, free(_ZnwmSt11align_val_t(10, 64)))                      \
	HOOK(_ZnwmSt11align_val_tRKSt9nothrow_t,                                            \
	     free(_ZnwmSt11align_val_tRKSt9nothrow_t(10, 64, NULL)))                        \
	HOOK(_ZnwmSt11align_val_t_by_malloc, free(_ZnwmSt11align_val_t_by_malloc(10, 64)))  \
	HOOK(_Znwm_by_malloc, free(_Znwm_by_malloc(10)))                                    \
	HOOK(__libc_start_main, (void)0) /* it has called main() */                         \
	HOOK(aligned_alloc, free(aligned_alloc(64, 640)))                                   \
	HOOK(calloc, free(calloc(7, 11)))                                                   \
	HOOK(dlclose, load(dlopen("libm.so.6", RTLD_NOW)))                                  \
	HOOK(dlopen, load(dlopen("libutil.so.1", RTLD_NOW | RTLD_DEEPBIND)))                \
	HOOK(execl, execl(program(), "true", "a", NULL))                                    \
	HOOK(execle, execle(program(), "true", "a", NULL, variables))                       \
	HOOK(execlp, execlp(program(), "true", "a", NULL))                                  \
	HOOK(execv, execv(program(), words))                                                \
	HOOK(execve, execve(program(), words, variables))                                   \
	HOOK(execveat, execveat(AT_FDCWD, program(), words, variables, 0))                  \
	HOOK(execvp, execvp(program(), words))                                              \
	HOOK(execvpe, execvpe(program(), words, variables))                                 \
	HOOK(fexecve, fexecve(open(program(), O_RDONLY), words, variables))                 \
	HOOK(free, free(blocks[7]); blocks[7] = NULL)                                       \
	HOOK(malloc, free(malloc(12)))                                                      \
	HOOK(memalign, free(memalign(256, 12)))                                             \
	HOOK(mlockall, lock_memory())                                                       \
	HOOK(mmap, map_and_unmap(mmap))                                                     \
	HOOK(mmap64, map_and_unmap(mmap64))                                                 \
	HOOK(mprotect, use_reserved())                                                      \
	HOOK(mremap, map_and_unmap(mmap))                                                   \
	HOOK(munmap, map_and_unmap(mmap))                                                   \
	HOOK(pidfd_spawn, hooks_spawn(pidfd_spawn, program(), words, variables))            \
	HOOK(pidfd_spawnp, hooks_spawn(pidfd_spawnp, program(), words, variables))          \
	HOOK(popen, program(); hooks_popen())                                               \
	HOOK(posix_memalign, align())                                                       \
	HOOK(posix_spawn, spawn(false))                                                     \
	HOOK(posix_spawnp, spawn(true))                                                     \
	HOOK(prctl, prctl(PR_SET_NAME, "a name"); prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))   \
	HOOK(prlimit, prlimit(0, RLIMIT_CORE, &no_core, NULL))                              \
	HOOK(prlimit64, prlimit64(0, RLIMIT_CORE, &no_core64, NULL))                        \
	HOOK(pthread_create, run_thread())                                                  \
	HOOK(pvalloc, free(pvalloc(12)))                                                    \
	HOOK(realloc, free(realloc(malloc(3), 300)))                                        \
	HOOK(reallocarray, free(reallocarray(malloc(3), 3, 300)))                           \
	HOOK(setrlimit, limit_addresses())                                                  \
	HOOK(setrlimit64, setrlimit64(RLIMIT_CORE, &no_core64))                             \
	HOOK(syscall, syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))                  \
	HOOK(system, program(); if (system("true") < 0) _exit(107))                         \
	HOOK(valloc, free(valloc(12)))                                                      \
	HOOK(wordexp, program(); hooks_wordexp())

/* clang-format off */
#define FUNCTION(name, ...) static void call_##name(void) { __VA_ARGS__; }
#define ENTRY(name, ...) { #name, call_##name },
/* clang-format on */

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
EACH_HOOK(FUNCTION)
static const struct hook hooks[] = { EACH_HOOK(ENTRY) };

#define NR_HOOKS (sizeof(hooks) / sizeof(*hooks))

/*
 * Calls a function in a child, in its state. What follows must not fail, whatever the function
 * does.
 */
static void run(const struct hook *hook)
{
	if (state != NO_REGION) {
		if (!is_on())
			_exit(101);
		go_far();
	}
	take_blocks();
	enter_state();
	change_blocks();
	hook->call();
	change_blocks();
	run_thread();
	give_blocks();
	_exit(0);
}

static int point(int number, bool good, const char *text)
{
	printf("%sok %d - %s\n", good ? "" : "not ", number, text);
	return !good;
}

/* Tests all functions in one state, in a program that was executed for it. */
static int all_survive(void)
{
	bool good = is_on() == (state != NO_REGION);

	if (!good)
		printf("# the agent %s\n", is_on() ? "began" : "did not begin");
	for (size_t i = 0; good && i < NR_HOOKS; i++) {
		if (!hook_survives(&hooks[i], run))
			good = false;
		/* Undo what the state STOPPED did. */
		if (heap.header)
			atomic_store(&heap.header->stop, 0);
	}
	return point(state + 2, good, state_names[state]);
}

/* Makes what a recorder makes, and names it in the environment. Returns false on failure. */
static bool be_recorder(void)
{
	const struct heap_header h = {
		.magic = HEAP_MAGIC,
		.version = HEAP_VERSION,
		.max_depth = REC_MIN_DEPTH,
		.deepest = 2 * REC_MIN_DEPTH,
		.cookie = COOKIE,
		.sample = state == FEW ? 64 : 0,
		.with_mmap = state != FEW,
		.per_thread = state != FEW,
		.recorder = getpid(),
	};
	int fd = memfd_create("regions", MFD_ALLOW_SEALING);
	char value[64];

	if (fd < 0 || ftruncate(fd, HEAP_FIRST + REGIONS * HEAP_REGION) ||
	    pwrite(fd, &h, sizeof(h), 0) != sizeof(h))
		return false;
	if (state != NO_REGION && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return false;
	snprintf(value, sizeof(value), "/proc/%d/fd/%d %llx 1000", getpid(), fd, COOKIE);
	return !setenv(REC_ENV, value, 1);
}

/* Executes this program again, with a recorder. */
static int with_recorder(void)
{
	char number[16];
	char *const args[] = { "full_test", number, NULL };
	const struct rlimit few = { FEW_ADDRESSES, FEW_ADDRESSES };

	snprintf(number, sizeof(number), "%d", state);
	if (!be_recorder())
		printf("Bail out! no recorder\n");
	else if (state == FEW && setrlimit(RLIMIT_AS, &few))
		printf("Bail out! no limit of addresses\n");
	else
		execv("/proc/self/exe", args);
	return 1;
}

int main(int argc, char **argv)
{
	int failed, how = 0;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1) {
		state = atoi(argv[1]);
		return all_survive();
	}
	printf("KTAP version 1\n1..%d\n", 1 + STATES);
	failed = point(1, hooks_are_all(hooks, NR_HOOKS, AGENT), "all functions are called here");
	for (state = 0; state < STATES; state++) {
		pid = fork();
		if (!pid)
			_exit(with_recorder());
		failed |= waitpid(pid, &how, 0) != pid || how;
	}
	return failed;
}
