// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fail_test.c - the n-th allocation fails, for every n: alone, or with all that
 * follow. No crash, no leak, an honest answer; and all is well again afterwards.
 *
 * The linker's --wrap leads the library's calls here; in a static program also
 * those that the C library makes itself, which do not count.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "shstk.h"

#define MAX 64
#define MOST 5000 /* more allocations than anything here makes */

static struct {
	int left; /* calls until one fails; 0: none does */
	bool sticky;
	bool failed; /* one did */
	int inside; /* of a function of the C library that is wrapped itself */
	long live; /* of malloc() and its like */
	long mapped; /* bytes */
} alloc;

static bool fails(void)
{
	if (alloc.inside)
		return false;
	if (alloc.failed && alloc.sticky)
		return true;
	if (!alloc.left || --alloc.left)
		return false;
	alloc.failed = true;
	return true;
}

static void arm(int n, bool sticky)
{
	alloc.left = n;
	alloc.sticky = sticky;
	alloc.failed = false;
}

static void *counted(void *p)
{
	alloc.live += p && !alloc.inside;
	return p;
}

#define FAIL_WITH(value)                \
	do {                            \
		if (fails()) {          \
			errno = ENOMEM; \
			return value;   \
		}                       \
	} while (0)

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	FAIL_WITH(NULL);
	return counted(__real_malloc(size));
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	FAIL_WITH(NULL);
	return counted(__real_calloc(n, size));
}

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
	char *copy;

	FAIL_WITH(NULL);
	alloc.inside++;
	copy = __real_strdup(s);
	alloc.inside--;
	return counted(copy);
}

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	void *q;

	FAIL_WITH(NULL);
	q = __real_reallocarray(p, n, size);
	alloc.live += q && !p && !alloc.inside;
	return q;
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
	alloc.live -= p && !alloc.inside;
	__real_free(p);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	FILE *f;

	FAIL_WITH(NULL);
	alloc.inside++;
	f = __real_fopen(path, mode);
	alloc.inside--;
	return counted(f);
}

int __real_fclose(FILE *f);
int __wrap_fclose(FILE *f);
int __wrap_fclose(FILE *f)
{
	int err;

	alloc.inside++;
	err = __real_fclose(f);
	alloc.inside--;
	alloc.live--;
	return err;
}

ssize_t __real___getdelim(char **line, size_t *room, int end, FILE *f);
ssize_t __wrap___getdelim(char **line, size_t *room, int end, FILE *f);
ssize_t __wrap___getdelim(char **line, size_t *room, int end, FILE *f)
{
	bool had = *line;
	ssize_t n;

	FAIL_WITH(-1);
	alloc.inside++;
	n = __real___getdelim(line, room, end, f);
	alloc.inside--;
	alloc.live += *line && !had;
	return n;
}

/* Without optimisation the C library's header does not make __getdelim() of it. */
ssize_t __wrap_getline(char **line, size_t *room, FILE *f);
ssize_t __wrap_getline(char **line, size_t *room, FILE *f)
{
	return __wrap___getdelim(line, room, '\n', f);
}

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	void *p;

	FAIL_WITH(MAP_FAILED);
	p = __real_mmap(at, len, prot, flags, fd, off);
	if (p != MAP_FAILED)
		alloc.mapped += (len + 4095) & -4096l;
	return p;
}

int __real_munmap(void *p, size_t len);
int __wrap_munmap(void *p, size_t len);
int __wrap_munmap(void *p, size_t len)
{
	alloc.mapped -= (len + 4095) & -4096l;
	return __real_munmap(p, len);
}

/* An unwinding that adds to the information it has. */
static int find_nothing(void *arg, const char *path, const void *image, size_t size,
			struct shstk_debug *ret)
{
	(void)arg;
	(void)path;
	(void)image;
	(void)size;
	(void)ret;
	return -ENOENT;
}

#ifdef __aarch64__
#define ARCH SHSTK_ARCH_ARM64

static void set_regs(struct shstk_regs *regs, const ucontext_t *uc)
{
	regs->pc = uc->uc_mcontext.pc;
	for (int i = 19; i < 31; i++)
		regs->r[i] = uc->uc_mcontext.regs[i];
	regs->r[31] = uc->uc_mcontext.sp;
	regs->known = 0xfff80000;
}
#else
#define ARCH SHSTK_ARCH_X86

static void set_regs(struct shstk_regs *regs, const ucontext_t *uc)
{
	regs->pc = uc->uc_mcontext.gregs[REG_RIP];
	regs->r[3] = uc->uc_mcontext.gregs[REG_RBX];
	regs->r[6] = uc->uc_mcontext.gregs[REG_RBP];
	regs->r[7] = uc->uc_mcontext.gregs[REG_RSP];
	regs->r[12] = uc->uc_mcontext.gregs[REG_R12];
	regs->r[13] = uc->uc_mcontext.gregs[REG_R13];
	regs->r[14] = uc->uc_mcontext.gregs[REG_R14];
	regs->r[15] = uc->uc_mcontext.gregs[REG_R15];
	regs->known = 0xf0c8;
}
#endif

/* Emulators have no process_vm_readv(); a pipe knows too what can be read. */
static int read_own(void *arg, uint64_t addr, void *buf, size_t len)
{
	const int *pipe = arg;

	if (write(pipe[1], (void *)(uintptr_t)addr, len) != (ssize_t)len)
		return -EFAULT;
	return read(pipe[0], buf, len) == (ssize_t)len ? 0 : -EIO;
}

/* Everything a space can do. Returns frames, or a negative errno. */
static __attribute__((noinline)) int use_space(struct shstk_info *info)
{
	struct shstk_regs regs = { .size = sizeof(regs) };
	struct shstk_space *space;
	uint64_t pcs[MAX];
	int fds[2], n;
	ucontext_t uc;

	if (pipe(fds))
		return -errno;
	getcontext(&uc);
	set_regs(&regs, &uc);
	n = shstk_space_create(ARCH, &space);
	if (!n) {
		shstk_space_set_debug(space, find_nothing, NULL);
		n = shstk_space_add_pid(space, getpid());
		if (n >= 0)
			n = shstk_unwind(space, &regs, read_own, fds, pcs, MAX, NULL, info);
		shstk_space_destroy(space);
	}
	close(fds[0]);
	close(fds[1]);
	return n;
}

static void spaces(struct __test_metadata *_metadata, bool sticky)
{
	struct shstk_info info = { .size = sizeof(info) };
	bool failed = true;
	int whole, i, n;

	whole = use_space(&info);
	ASSERT_GT(whole, 2);
	ASSERT_EQ(SHSTK_END_COMPLETE, info.end);
	for (i = 1; i < MOST && failed; i++) {
		long live = alloc.live, mapped = alloc.mapped;

		arm(i, sticky);
		n = use_space(&info);
		failed = alloc.failed;
		arm(0, false);
		EXPECT_EQ(live, alloc.live) TH_LOG("allocation %d", i);
		EXPECT_EQ(mapped, alloc.mapped) TH_LOG("allocation %d", i);
		EXPECT_TRUE(n == -ENOMEM || (n >= 0 && n <= whole)) TH_LOG("%d", n);
	}
	TH_LOG("%d allocations", i - 1);
	ASSERT_GT(i, 10);
	ASSERT_LT(i, MOST);
	EXPECT_EQ(whole, use_space(&info));
	EXPECT_EQ(SHSTK_END_COMPLETE, info.end);
}

TEST(spaces_without_one_allocation)
{
	spaces(_metadata, false);
}

TEST(spaces_without_all_further_allocations)
{
	spaces(_metadata, true);
}

static __attribute__((noinline)) int down(int n, uint64_t *pcs, struct shstk_info *info)
{
	volatile int r;

	if (n)
		r = down(n - 1, pcs, info);
	else
		r = shstk_capture(pcs, MAX, NULL, info);
	return r;
}

static bool good(void)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[MAX];
	int n = down(10, pcs, &info);

	return n > 12 && info.end == SHSTK_END_COMPLETE && !info.guessed && pcs[2] == pcs[9];
}

/* Short, but what there is is right, or marked. */
static bool honest(void)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[MAX];
	int i, n = down(10, pcs, &info);

	if (n < 0 || (n < 12 && info.end == SHSTK_END_COMPLETE))
		return false;
	for (i = 2; i < n && i < 10 && !info.guessed; i++) {
		if (pcs[i] != pcs[2])
			return false;
	}
	return true;
}

static void *in_thread(void *arg)
{
	*(bool *)arg = honest() && honest();
	return NULL;
}

/* Everything a capture does first, in a fresh process. Exit code: 0 it is well,
 * 1 it is not, 2 nothing failed any more.
 */
static int child(int n, bool sticky)
{
	bool ok, thread_ok = true, failed;
	pthread_t thread;

	arm(n, sticky);
	ok = honest() && honest();
	shstk_modules_changed();
	ok = honest() && ok;
	if (!pthread_create(&thread, NULL, in_thread, &thread_ok))
		pthread_join(thread, NULL);
	failed = alloc.failed;
	arm(0, false);
	shstk_modules_changed();
	ok = good() && good() && ok && thread_ok;
	return !ok ? 1 : failed ? 0 : 2;
}

static void captures(struct __test_metadata *_metadata, bool sticky)
{
	int i, status;
	pid_t pid;

	for (i = 1; i < MOST; i++) {
		pid = fork();
		if (!pid)
			_exit(child(i, sticky));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFEXITED(status))
		TH_LOG("allocation %d: signal %d", i, WTERMSIG(status));
		if (WEXITSTATUS(status) == 2)
			break;
		EXPECT_EQ(0, WEXITSTATUS(status)) TH_LOG("allocation %d", i);
	}
	TH_LOG("%d allocations", i - 1);
	ASSERT_GT(i, 5);
	ASSERT_LT(i, MOST);
}

TEST(captures_without_one_allocation)
{
	captures(_metadata, false);
}

TEST(captures_without_all_further_allocations)
{
	captures(_metadata, true);
}

TEST_HARNESS_MAIN
