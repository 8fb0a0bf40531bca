// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * access_test.c - who may read and write a shadow stack, and its pointer
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "facts.h"
#include "kselftest_harness.h"

#define SIZE 4096UL

/*
 * Returns whether /proc/PID/mem may be written by force. Since 6.12 a kernel option restricts that;
 * the value "always" lifts the restriction.
 */
static bool mem_may_force(void)
{
	char line[4096] = "";
	FILE *file = fopen("/proc/cmdline", "re");

	if (file) {
		if (!fgets(line, sizeof(line), file))
			line[0] = 0;
		fclose(file);
	}
	return strstr(line, "proc_mem.force_override=always") != NULL;
}

/* A shadow stack with a token at its end, whose words are known. */
FIXTURE(words)
{
	unsigned long base;
	unsigned long at; /* address of the token */
	uint64_t word; /* the token */
};

FIXTURE_SETUP(words)
{
	self->base = ss_map(0, SIZE, SS_SET_TOKEN);
	ASSERT_LT(0, (long)self->base);
	self->at = self->base + SIZE - WORD;
	self->word = ss_token(self->at);
}

FIXTURE_TEARDOWN(words)
{
	munmap((void *)self->base, SIZE);
}

/* ---- The test's own shadow stack ---- */

TEST_F(words, an_ordinary_load_reads_them)
{
	EXPECT_EQ(self->word, peek(self->at));
}

TEST_F(words, loads_of_any_size_read_them)
{
	EXPECT_EQ((uint8_t)self->word, *(volatile uint8_t *)self->at);
	EXPECT_EQ((uint16_t)self->word, *(volatile uint16_t *)self->at);
	EXPECT_EQ((uint32_t)self->word, *(volatile uint32_t *)self->at);
}

TEST_F(words, a_system_call_reads_them)
{
	uint64_t got = 0;
	int fds[2];

	ASSERT_EQ(0, pipe(fds));
	EXPECT_EQ(WORD, write(fds[1], (void *)self->at, WORD));
	EXPECT_EQ(WORD, read(fds[0], &got, WORD));
	EXPECT_EQ(self->word, got);
}

/* What a thread needs that has the kernel store to a shadow stack. */
struct store {
	unsigned long at;
	int fd;
	volatile long answer;
	volatile bool returned;
};

static void *kernel_store(void *arg)
{
	struct store *store = arg;

	store->answer = ss_syscall(__NR_read, store->fd, store->at, WORD, 0, 0);
	store->returned = true;
	return NULL;
}

static void wait_returned(struct store *store)
{
	/* Where the call returns, that may take a while on a busy machine. */
	int tries = SS_STORE_NEVER_RETURNS ? 100 : 6000;

	for (int i = 0; i < tries && !store->returned; i++)
		usleep(10000);
}

TEST_F(words, a_system_call_that_stores_to_them_is_efault)
{
	struct store store = { .at = self->at };
	pthread_t thread;

	store.fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, store.fd);
	ASSERT_EQ(0, pthread_create(&thread, NULL, kernel_store, &store));
	wait_returned(&store);
	EXPECT_EQ(self->word, peek(self->at));
	if (!store.returned) {
		TH_LOG("does not return until the page is unmapped");
		EXPECT_TRUE(SS_STORE_NEVER_RETURNS);
		munmap((void *)self->base, SIZE);
		wait_returned(&store);
	}
	ASSERT_TRUE(store.returned);
	EXPECT_EQ(-EFAULT, store.answer);
	pthread_join(thread, NULL);
}

/* ---- Another process ---- */

static long vm_read(pid_t pid, unsigned long addr, uint64_t *word)
{
	struct iovec local = { word, WORD };
	struct iovec remote = { (void *)addr, WORD };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}

static long vm_write(pid_t pid, unsigned long addr, uint64_t word)
{
	struct iovec local = { &word, WORD };
	struct iovec remote = { (void *)addr, WORD };

	return process_vm_writev(pid, &local, 1, &remote, 1, 0);
}

static int open_mem(pid_t pid, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, flags | O_CLOEXEC);
}

/* A traced child, stopped in a system call with a known pointer. */
struct tracee {
	pid_t pid;
	unsigned long ssp; /* its pointer where it stopped */
	uint64_t word; /* the entry there */
	volatile uint64_t after; /* the child's pointer after it went on */
};

static struct tracee *tracee;

/* Pushes entries, then stops by kill(SIGSTOP); when it goes on, it notes its pointer. */
static int noinline stop_deep(int depth)
{
	uint64_t ra = RETURN_ADDRESS();
	int ret = 0;

	ss_enter(ra);
	if (depth) {
		ret = stop_deep(depth - 1) + 1;
	} else {
		tracee->ssp = ss_pointer();
		tracee->word = peek(tracee->ssp);
		ss_syscall(__NR_kill, ss_syscall(__NR_getpid, 0, 0, 0, 0, 0), SIGSTOP, 0, 0, 0);
		tracee->after = ss_pointer();
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
	}
	asm volatile("" : "+r"(ret));
	ss_leave(ra);
	return ret;
}

static bool start_tracee(bool on)
{
	int status;
	pid_t pid;

	tracee = shared_page();
	fflush(NULL);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		if (!on) {
			/* no return from here */
			ss_disable(SS_ENABLE);
			ss_syscall(__NR_kill, ss_syscall(__NR_getpid, 0, 0, 0, 0, 0), SIGSTOP, 0, 0,
				   0);
			ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
		}
		stop_deep(8);
	}
	tracee->pid = pid;
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
	       WSTOPSIG(status) == SIGSTOP;
}

/* Lets the child go on to its end, and returns its wait status. */
static int end_tracee(void)
{
	int status = -1;

	ptrace(PTRACE_CONT, tracee->pid, 0, 0);
	waitpid(tracee->pid, &status, 0);
	if (WIFSTOPPED(status)) {
		kill(tracee->pid, SIGKILL);
		waitpid(tracee->pid, NULL, 0);
	}
	return status;
}

FIXTURE(tracee){};

FIXTURE_SETUP(tracee)
{
	ASSERT_TRUE(start_tracee(true));
}

FIXTURE_TEARDOWN(tracee)
{
	kill(tracee->pid, SIGKILL);
	waitpid(tracee->pid, NULL, 0);
}

TEST_F(tracee, process_vm_readv_reads_its_entries)
{
	uint64_t word = 0;

	EXPECT_EQ(WORD, vm_read(tracee->pid, tracee->ssp, &word));
	EXPECT_EQ(tracee->word, word);
	EXPECT_NE(0, word);
}

TEST_F(tracee, process_vm_writev_is_efault)
{
	EXPECT_EQ(-1, vm_write(tracee->pid, tracee->ssp, 0x123450));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(tracee, proc_mem_reads_its_entries)
{
	int fd = open_mem(tracee->pid, O_RDONLY);
	uint64_t word = 0;

	ASSERT_LE(0, fd);
	EXPECT_EQ(WORD, pread(fd, &word, WORD, tracee->ssp));
	EXPECT_EQ(tracee->word, word);
}

TEST_F(tracee, proc_mem_writes_its_entries_where_it_may_force)
{
	int fd = open_mem(tracee->pid, O_RDWR);
	uint64_t word = 0x123450;

	ASSERT_LE(0, fd);
	if (!mem_may_force())
		SKIP(return, "the kernel was started without proc_mem.force_override=always");
	EXPECT_EQ(WORD, pwrite(fd, &word, WORD, tracee->ssp));
	word = 0;
	EXPECT_EQ(WORD, vm_read(tracee->pid, tracee->ssp, &word));
	EXPECT_EQ(0x123450, word);
}

TEST_F(tracee, peekdata_reads_and_pokedata_writes_its_entries)
{
	errno = 0;
	EXPECT_EQ((long)tracee->word, ptrace(PTRACE_PEEKDATA, tracee->pid, tracee->ssp, 0));
	EXPECT_EQ(0, errno);
	EXPECT_EQ(0, ptrace(PTRACE_POKEDATA, tracee->pid, tracee->ssp, 0x123450));
	EXPECT_EQ(0x123450, ptrace(PTRACE_PEEKDATA, tracee->pid, tracee->ssp, 0));
}

TEST_F(tracee, process_vm_readv_across_the_upper_end_gives_what_is_mapped_there)
{
	struct mapping map;
	uint64_t words[2];
	struct iovec local = { words, sizeof(words) };
	struct iovec remote;
	long got;

	/* the child's mappings are a copy of ours */
	ASSERT_TRUE(find_mapping(tracee->ssp, &map));
	remote = (struct iovec){ (void *)(map.end - WORD), sizeof(words) };
	got = process_vm_readv(tracee->pid, &local, 1, &remote, 1, 0);
	TH_LOG("%ld bytes from the last word of the shadow stack", got);
	EXPECT_EQ(find_mapping(map.end, &map) && map.perms[0] == 'r' ? 2 * WORD : WORD,
		  (unsigned long)got);
}

/* ---- The regset ---- */

static long get_regset(struct ss_regset *set, size_t *size)
{
	char room[64];
	struct iovec iov = { room, sizeof(room) };
	long ret;

	ret = ptrace(PTRACE_GETREGSET, tracee->pid, (void *)SS_REGSET, &iov);
	*size = iov.iov_len;
	memcpy(set, room, sizeof(*set));
	return ret ? -errno : 0;
}

static long set_regset(struct ss_regset *set)
{
	struct iovec iov = { set, sizeof(*set) };

	return ptrace(PTRACE_SETREGSET, tracee->pid, (void *)SS_REGSET, &iov) ? -errno : 0;
}

TEST_F(tracee, the_regset_has_the_pointer)
{
	struct ss_regset set;
	size_t size;

	ASSERT_EQ(0, get_regset(&set, &size));
	EXPECT_EQ(sizeof(set), size);
	EXPECT_EQ(tracee->ssp, ss_regset_pointer(&set));
}

TEST_F(tracee, the_regset_sets_the_pointer)
{
	struct ss_regset set;
	size_t size;

	ASSERT_EQ(0, get_regset(&set, &size));
	ss_regset_set_pointer(&set, tracee->ssp + WORD);
	EXPECT_EQ(0, set_regset(&set));
	EXPECT_EQ(0, end_tracee());
	EXPECT_EQ(tracee->ssp + WORD, tracee->after);
}

TEST_F(tracee, an_odd_pointer_is_einval_on_x86_only)
{
	struct ss_regset set;
	size_t size;

	ASSERT_EQ(0, get_regset(&set, &size));
	ss_regset_set_pointer(&set, tracee->ssp + 1);
	EXPECT_EQ(SS_REGSET_CHECKED ? -EINVAL : 0, set_regset(&set));
}

TEST_F(tracee, a_kernel_pointer_is_einval_on_x86_only)
{
	struct ss_regset set;
	size_t size;

	ASSERT_EQ(0, get_regset(&set, &size));
	ss_regset_set_pointer(&set, -4096UL);
	EXPECT_EQ(SS_REGSET_CHECKED ? -EINVAL : 0, set_regset(&set));
}

TEST(the_regset_when_off)
{
	struct ss_regset set;
	size_t size;

	ASSERT_TRUE(start_tracee(false));
	EXPECT_EQ(SS_REGSET_OFF, get_regset(&set, &size));
	end_tracee();
}

#ifdef __x86_64__
#define PTRACE_ARCH_PRCTL 30

static long remote_prctl(long op, unsigned long arg)
{
	return ptrace(PTRACE_ARCH_PRCTL, tracee->pid, arg, op) ? -errno : 0;
}

static int locked_after(void)
{
	FILE *file;
	char line[256], path[64];
	int locked = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", tracee->pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "x86_Thread_features_locked:", 27))
			locked = strstr(line, "shstk") != NULL;
	if (file)
		fclose(file);
	return locked;
}

TEST_F(tracee, a_tracer_may_ask_lock_and_unlock_but_not_enable_or_disable)
{
	unsigned long bits = 0;

	EXPECT_EQ(0, remote_prctl(SS_ARCH_STATUS, (unsigned long)&bits));
	EXPECT_EQ(SS_ENABLE, bits);
	EXPECT_EQ(0, remote_prctl(SS_ARCH_LOCK, SS_ENABLE));
	EXPECT_EQ(1, locked_after());
	EXPECT_EQ(0, remote_prctl(SS_ARCH_UNLOCK, SS_ENABLE));
	EXPECT_EQ(0, locked_after());
	EXPECT_EQ(-EINVAL, remote_prctl(SS_ARCH_DISABLE, SS_ENABLE));
	EXPECT_EQ(-EINVAL, remote_prctl(SS_ARCH_ENABLE, SS_WRITE));
}

TEST(proc_status_names_the_features_and_the_locked_ones)
{
	char line[256], features[64] = "", locked[64] = "";
	FILE *file;

	EXPECT_EQ(0, ss_enable(SS_WRITE));
	EXPECT_EQ(0, ss_lock(SS_ENABLE));
	file = fopen("/proc/self/status", "re");
	ASSERT_NE(NULL, file);
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "x86_Thread_features: %63[^\n]", features);
		sscanf(line, "x86_Thread_features_locked: %63[^\n]", locked);
	}
	EXPECT_STREQ("shstk wrss ", features);
	EXPECT_STREQ("shstk ", locked);
}
#endif

#ifdef __aarch64__
TEST_F(tracee, the_regset_has_status_and_lock)
{
	struct ss_regset set;
	size_t size;

	ASSERT_EQ(0, get_regset(&set, &size));
	EXPECT_EQ(SS_ENABLE, set.features_enabled);
	EXPECT_EQ(0, set.features_locked);
}

TEST_F(tracee, the_regset_sets_status_and_lock_whatever_is_locked)
{
	struct ss_regset set;
	size_t size;

	ASSERT_EQ(0, get_regset(&set, &size));
	set.features_locked = ~0UL;
	EXPECT_EQ(0, set_regset(&set));
	set.features_enabled |= SS_WRITE;
	EXPECT_EQ(0, set_regset(&set));
	set.features_locked = 0;
	EXPECT_EQ(0, set_regset(&set));
	ASSERT_EQ(0, get_regset(&set, &size));
	EXPECT_EQ(SS_ENABLE | SS_WRITE, set.features_enabled);
	EXPECT_EQ(0, set.features_locked);
	set.features_enabled = 1UL << 3;
	EXPECT_EQ(-EINVAL, set_regset(&set));
}
#endif

#ifdef __riscv
TEST_F(tracee, the_regset_does_not_enable_or_lock)
{
	struct ss_regset set;
	size_t size;

	ASSERT_EQ(0, get_regset(&set, &size));
	EXPECT_EQ(SS_CFI_EN | SS_CFI_PTR, set.state);
	EXPECT_EQ(-EINVAL, set_regset(&set));
}
#endif

int main(int argc, char **argv)
{
	START_SHADOW_STACK(0);
	exit(test_harness_run(argc, argv));
}
