// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target.cc - programs whose allocations are known; the first argument names the program. Each
 * function that allocates has a name of its own.
 */
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define FN extern "C" __attribute__((noinline))

/* Uses a pointer so that the allocation cannot be optimised away. */
static void *volatile sink;

static void *use(void *p)
{
	sink = p;
	return p;
}

static void require(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "target: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* clang-format off */
FN void by_malloc(void) { use(malloc(100)); }
FN void by_calloc(void) { use(calloc(10, 20)); }
FN void by_realloc_null(void) { use(realloc(nullptr, 300)); }
FN void by_reallocarray(void) { use(reallocarray(nullptr, 4, 100)); }
FN void by_aligned_alloc(void) { use(aligned_alloc(64, 512)); }
FN void by_memalign(void) { use(memalign(128, 600)); }
FN void by_valloc(void) { use(valloc(700)); }
FN void by_pvalloc(void) { use(pvalloc(800)); }
FN void by_posix_memalign(void)
{
	void *p;

	require(!posix_memalign(&p, 256, 900), "posix_memalign");
	use(p);
}
FN void by_strdup(void) { use(strdup("0123456789")); }

struct alignas(128) wide {
	char bytes[256];
};

FN void by_new(void) { use(new char); }
FN void by_new_array(void) { use(new char[1001]); }
FN void by_new_nothrow(void) { use(new (std::nothrow) char[1002]); }
FN void by_new_aligned(void) { use(new wide); }
FN void by_new_aligned_nothrow(void) { use(new (std::nothrow) wide[2]); }
FN void by_operator_new(void) { use(operator new(1003)); }
/* clang-format on */

static int kinds(void)
{
	void (*const all[])(void) = {
		by_malloc,	 by_calloc,	   by_realloc_null,
		by_reallocarray, by_aligned_alloc, by_memalign,
		by_valloc,	 by_pvalloc,	   by_posix_memalign,
		by_strdup,	 by_new,	   by_new_array,
		by_new_nothrow,	 by_new_aligned,   by_new_aligned_nothrow,
		by_operator_new,
	};

	for (auto f : all)
		f();
	volatile size_t half = SIZE_MAX / 2;

	errno = 0;
	require(!reallocarray(nullptr, half, 3) && errno == ENOMEM, "reallocarray of too much");
	return 0;
}

FN void *first_half(void)
{
	return malloc(40000);
}
FN void *second_half(void)
{
	return malloc(30000);
}
FN void *kept(void)
{
	return malloc(5000);
}
FN void *grown(void *p, size_t size)
{
	return realloc(p, size);
}

/* Bytes in use: 40000, 70000 (the peak), 30000, 0, 5000, 6000 to 8000, 5000. */
static int peak(void)
{
	void *a = use(first_half()), *b = use(second_half()), *c;

	free(a);
	free(b);
	use(kept());
	c = nullptr;
	for (size_t size = 1000; size <= 3000; size += 1000)
		c = use(grown(c, size));
	free(c);
	return 0;
}

FN void temporary(void)
{
	free(use(malloc(64)));
}
FN void *lasting(void)
{
	return malloc(64);
}

FN void *resized(void)
{
	return malloc(64);
}
FN void *emptied(void)
{
	return malloc(64);
}
static void *empty(void *p)
{
	use(realloc(p, 0));
	return nullptr;
}

/*
 * Frees blocks with realloc(): one at once, which moves; one in a thread that allocates nothing
 * itself.
 */
static void freed_by_realloc(void)
{
	pthread_t thread;
	void *p = use(emptied());

	use(realloc(resized(), 1 << 20));
	require(!pthread_create(&thread, nullptr, empty, p), "pthread_create");
	pthread_join(thread, nullptr);
}

static int lifetimes(void)
{
	void *p[50];
	struct timespec pause = { 0, 20000000 };

	/* Whatever delays a temporary block makes the first lasting one older too. */
	for (int i = 0; i < 50; i++) {
		p[i] = use(lasting());
		temporary();
	}
	nanosleep(&pause, nullptr);
	for (int i = 0; i < 50; i++)
		free(p[i]);
	freed_by_realloc();
	return 0;
}

FN void in_thread(void)
{
	use(malloc(111));
}
FN void in_key_destructor(void *p)
{
	(void)p;
	use(malloc(222));
}
static pthread_key_t key;

struct local {
	~local();
};
FN void in_tls_destructor(void)
{
	use(malloc(333));
}
local::~local()
{
	in_tls_destructor();
}
static thread_local local tls;

static void *work(void *arg)
{
	pthread_setname_np(pthread_self(), (const char *)arg);
	use(&tls);
	pthread_setspecific(key, &key);
	for (int i = 0; i < 1000; i++)
		in_thread();
	return nullptr;
}

static int threads(void)
{
	static char names[8][8];
	pthread_t t[8];

	pthread_key_create(&key, in_key_destructor);
	for (int i = 0; i < 8; i++) {
		snprintf(names[i], sizeof(names[i]), "work%d", i);
		require(!pthread_create(&t[i], nullptr, work, names[i]), "pthread_create");
	}
	for (auto &thread : t)
		pthread_join(thread, nullptr);
	return 0;
}

/* Each block is freed by another thread than the one that allocated it. */
static void *passed[1000];
FN void *pass(void)
{
	return malloc(50);
}
static void *fill(void *)
{
	for (auto &p : passed)
		p = pass();
	return nullptr;
}
static void *drain(void *)
{
	for (auto &p : passed)
		free(p);
	return nullptr;
}

static int handover(void)
{
	for (int round = 0; round < 20; round++) {
		void *(*const both[])(void *) = { fill, drain };

		for (auto f : both) {
			pthread_t t;

			require(!pthread_create(&t, nullptr, f, nullptr), "pthread_create");
			pthread_join(t, nullptr);
		}
	}
	return 0;
}

FN void before_fork(void **p)
{
	*p = malloc(1000);
}
FN void in_child(void)
{
	use(malloc(2000));
}
FN void in_raw_child(void)
{
	use(malloc(3000));
}
FN void in_parent(void)
{
	use(malloc(4000));
}

static int forks(void)
{
	void *p;
	int status;
	pid_t pid;

	before_fork(&p);
	pid = fork();
	if (!pid) {
		free(p);
		in_child();
		return 0;
	}
	require(waitpid(pid, &status, 0) == pid && !status, "child");
	pid = _Fork();
	if (!pid) {
		in_raw_child();
		_exit(0);
	}
	require(waitpid(pid, &status, 0) == pid && !status, "raw child");
	in_parent();
	return 0;
}

FN void on_alarm(int)
{
	free(use(malloc(77)));
}

/* malloc() is not allowed in a handler, except that the interrupted code does not call it. */
static int signals(void)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = {};
	double x = 1;

	action.sa_handler = on_alarm;
	sigaction(SIGVTALRM, &action, nullptr);
	setitimer(ITIMER_VIRTUAL, &every, nullptr);
	for (long i = 0; i < 50000000; i++)
		x = x * 1.0000001 + 1e-9;
	every = {};
	setitimer(ITIMER_VIRTUAL, &every, nullptr);
	return x < 0;
}

FN void small_blocks(void)
{
	for (int i = 0; i < 200000; i++)
		free(use(malloc(48)));
}
FN void large_blocks(void)
{
	for (int i = 0; i < 3000; i++)
		free(use(malloc(5000)));
}

static int samples(void)
{
	small_blocks();
	large_blocks();
	return 0;
}

FN void *mapping(size_t size)
{
	void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(p != MAP_FAILED, "mmap");
	return p;
}
FN void *gone(void)
{
	return mapping(1 << 20);
}
FN void *trimmed(void)
{
	return mapping(64 << 10);
}

/*
 * So many threads hold so many blocks each at the same time, besides the bytes that main() holds.
 */
static const int holders = 8, blocks_of_each = 60;
static pthread_barrier_t all_hold;

FN void *held_in_thread(size_t size)
{
	return use(malloc(size));
}

static void *hold(void *)
{
	void *blocks[blocks_of_each];

	for (void *&p : blocks)
		p = held_in_thread(1000);
	pthread_barrier_wait(&all_hold);
	for (void *p : blocks)
		free(p);
	return nullptr;
}

FN void *in_main(size_t size)
{
	return use(malloc(size));
}

static int hold_together(size_t held_by_main)
{
	void *held = held_by_main ? in_main(held_by_main) : nullptr;
	pthread_t t[holders];

	pthread_barrier_init(&all_hold, nullptr, holders);
	for (pthread_t &i : t)
		require(!pthread_create(&i, nullptr, hold, nullptr), "pthread_create");
	for (pthread_t &i : t)
		pthread_join(i, nullptr);
	free(held);
	return 0;
}

static int together(void)
{
	return hold_together(0);
}

/* The same with a few small blocks, which a thread that waits has while main() allocates. */
static pthread_barrier_t all_have, may_free;

FN void *small_in_thread(size_t size)
{
	return use(malloc(size));
}

static void *have_small(void *)
{
	void *blocks[5];

	for (void *&p : blocks)
		p = small_in_thread(100);
	pthread_barrier_wait(&all_have);
	pthread_barrier_wait(&may_free);
	for (void *p : blocks)
		free(p);
	return nullptr;
}

/*
 * Threads allocate far below a peak of @before bytes, where each may count for itself for a while, and wait. Then
 * main() allocates the @top that makes the last peak, besides the bytes that it holds.
 */
static int top_beside(int threads, size_t held_by_main, size_t before, size_t top)
{
	void *held = held_by_main ? in_main(held_by_main) : nullptr;
	pthread_t t[60];

	require(threads <= 60, "room for the threads");
	free(in_main(before));
	pthread_barrier_init(&all_have, nullptr, threads + 1);
	pthread_barrier_init(&may_free, nullptr, threads + 1);
	for (int i = 0; i < threads; i++)
		require(!pthread_create(&t[i], nullptr, have_small, nullptr), "pthread_create");
	pthread_barrier_wait(&all_have);
	free(in_main(top));
	pthread_barrier_wait(&may_free);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], nullptr);
	free(held);
	return 0;
}

static int top_beside_threads(void)
{
	return top_beside(holders, 0, 100000, 200000);
}

/* Only together with what the threads have it is more than before. */
static int top_with_threads(void)
{
	return top_beside(holders, 0, 200000, 197000);
}

static int top_beside_threads_in_much(void)
{
	return top_beside(60, 4500000, 100000, 200000);
}

/* Loads a library that does not exist: it counts that it is asked for with this flag. */
static int deepbind(void)
{
	dlopen("$ORIGIN/nothing.so", RTLD_NOW | RTLD_DEEPBIND);
	return 0;
}

/* The 500 MiB are never touched, so they take no memory. */
static int together_in_much(void)
{
	return hold_together(500 << 20);
}

static int mappings(void)
{
	char *p = (char *)gone();

	munmap(p, 1 << 20);
	p = (char *)trimmed();
	munmap(p, 16 << 10);
	munmap(p + (48 << 10), 16 << 10);
	munmap(p + (28 << 10), 4 << 10);
	require(munmap(p + (20 << 10) + 1, 4 << 10), "no whole page was refused");
	return 0;
}

FN void uses_reserve(char *at, size_t size)
{
	require(!mprotect(at, size, PROT_READ | PROT_WRITE), "mprotect");
	__asm__ volatile("");
}

/* Reserves 64 MiB and uses 12 MiB, the middle of them twice; 2 MiB become unused again. */
static int reserves(void)
{
	const size_t mib = 1 << 20;
	char *at = (char *)mmap(nullptr, 64 * mib, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	require(at != MAP_FAILED, "mmap");
	uses_reserve(at, 8 * mib);
	uses_reserve(at + 4 * mib, 8 * mib);
	require(!mprotect(at, 2 * mib, PROT_NONE), "mprotect to nothing");
	require(mprotect(at + 1, mib, PROT_NONE) && errno == EINVAL, "mprotect of no page");
	return 0;
}

FN int recursion(int n)
{
	int ret;

	if (!n) {
		use(malloc(123));
		return 0;
	}
	ret = recursion(n - 1);
	return ret + n;
}

static int deep(void)
{
	return recursion(600) == 0;
}

FN void fall(int n);

FN void descend(int n)
{
	if (n)
		fall(n - 1);
	else
		use(malloc(10));
}

FN void fall(int n)
{
	if (n)
		descend(n - 1);
	else
		use(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0));
}

FN void *descend_in_thread(void *)
{
	descend(4000);
	return nullptr;
}

/* Allocates in recursions that differ by their depth, by what is allocated, or by who began them. */
static int deeper(void)
{
	pthread_t thread;
	pid_t pid;

	for (int i = 0; i < 20; i++)
		descend(3000 + 2 * i);
	for (int i = 0; i < 20; i++)
		descend(3001 + 2 * (i % 4));
	require(!pthread_create(&thread, nullptr, descend_in_thread, nullptr), "pthread_create");
	require(!pthread_join(thread, nullptr), "pthread_join");
	pid = fork();
	if (!pid) {
		in_child();
		descend(3000);
		_exit(0);
	}
	require(waitpid(pid, nullptr, 0) == pid, "waitpid");
	return 0;
}

/* A stack that is deeper than there is room for. */
static int deepest(void)
{
	descend(20000);
	return 0;
}

/* Neither is there room to shorten a stack where all memory is locked. */
static int deeper_locked(void)
{
	/* It may be forbidden, but the agent takes notice of it before. */
	mlockall(MCL_CURRENT);
	descend(3000);
	return 0;
}

FN void *behind_failures(void)
{
	return malloc(4000);
}

/* Asks for more memory than there can be, with the functions that do not check the size first. */
static void ask_for(size_t size)
{
	errno = 0;
	require(!malloc(size) && errno == ENOMEM, "malloc of too much");
	require(!realloc(nullptr, size) && errno == ENOMEM, "realloc of too much");
	require(!calloc(size, 2) && errno == ENOMEM, "calloc of too much");
}

static int failures(void)
{
	const int bits = sizeof(size_t) * 8;

	for (int i = 0; i < 100; i++) {
		ask_for(SIZE_MAX / 2 + 1 + i);
		ask_for((size_t)3 << (bits - 2));
		ask_for(-(size_t)70000);
		use(behind_failures());
	}
	return 0;
}

FN void half_of_the_limit(void)
{
	void *p = use(malloc(500 << 20));

	require(p, "malloc within the limit");
	free(p);
}

/*
 * Limits the address space to a gigabyte, and then executes this program, which begins with that
 * limit.
 */
static int limited(void)
{
	struct rlimit limit = { 1 << 30, 1 << 30 }, old;

	require(!getrlimit(RLIMIT_AS, &old), "getrlimit");
	require(!setrlimit(RLIMIT_AS, &limit), "setrlimit");
	half_of_the_limit();
	if (old.rlim_cur != limit.rlim_cur)
		execl("/proc/self/exe", "target", "limited", nullptr);
	return old.rlim_cur != limit.rlim_cur;
}

/* Prints how much memory is locked; the lock takes no memory that is not used. */
static int locks(void)
{
	char line[128];
	FILE *in;

	require(!mlockall(MCL_CURRENT | MCL_ONFAULT), "mlockall");
	by_malloc();
	in = fopen("/proc/self/status", "r");
	require(in, "/proc/self/status");
	while (fgets(line, sizeof(line), in))
		if (!strncmp(line, "VmLck:", 6))
			fputs(line, stderr);
	fclose(in);
	return 0;
}

/* Makes the kernel end the process for calls that the program itself does not make from here on. */
static void forbid_calls(void)
{
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]),
				      (struct sock_filter *)filter };

	require(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
	require(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "PR_SET_SECCOMP");
}

FN void *behind_a_filter(void)
{
	return malloc(1000);
}

/* The memory comes from brk(), which is not forbidden. */
static int sandbox(void)
{
	static void *p[20000];

	forbid_calls();
	for (auto &block : p)
		block = use(behind_a_filter());
	for (auto &block : p)
		free(block);
	return recursion(600) == 0;
}

static void give_up_rights(void)
{
	pid_t pid = vfork();

	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(0);
	}
	require(waitpid(pid, nullptr, 0) == pid, "waitpid");
}

/*
 * Rights that a child of vfork() gives up remain its parent's, whose other children are recorded.
 */
static int vfork_rights(void)
{
	pid_t pid;

	give_up_rights();
	pid = fork();
	if (!pid) {
		in_child();
		_exit(0);
	}
	require(waitpid(pid, nullptr, 0) == pid, "waitpid");
	return 0;
}

typedef void *make(void);

/* Opens the plugin of that name, which is in the program's folder. */
static void *open_plugin(const char *name, int mode = RTLD_NOW)
{
	char self[4096], path[4200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *handle;

	require(n > 0, "/proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(path, sizeof(path), "%s/plugin-%s.so", self, name);
	handle = dlopen(path, mode);
	require(handle, path);
	require(!dlerror(), "what is asked for later is no error of this");
	return handle;
}

FN void *main_makes(void)
{
	return use(malloc(100));
}

/* Frees in the library what the program allocates, and the other way round. */
static int exchange(const char *name, int mode)
{
	void *handle = open_plugin(name, mode | RTLD_DEEPBIND);
	auto frees = (void (*)(void *))dlsym(handle, "deep_frees");
	const char *makers[] = { "deep_makes", "deep_points", "deep_prints" };

	for (int i = 0; i < 100; i++) {
		frees(main_makes());
		for (auto maker : makers)
			free(((make *)dlsym(handle, maker))());
	}
	return 0;
}

static int deep_lazy(void)
{
	return exchange("deep-lazy", RTLD_LAZY);
}

static int deep_now(void)
{
	return exchange("deep-now", RTLD_NOW);
}

static int deep_direct(void)
{
	return exchange("deep-direct", RTLD_NOW);
}

/* Loads the library before without the flag, and loads two libraries with it. */
static int deep_again(void)
{
	open_plugin("deep-now");
	return exchange("deep-now", RTLD_NOW) || exchange("deep-lazy", RTLD_NOW);
}

static int plugins(void)
{
	const char *names[] = { "one", "two" };

	for (auto name : names) {
		void *handle = open_plugin(name);
		char function[32];

		snprintf(function, sizeof(function), "plugin_%s", name);
		use(((make *)dlsym(handle, function))());
		dlclose(handle);
	}
	return 0;
}

static sem_t has_lock, give_it_back;

static int hold_lock(struct dl_phdr_info *, size_t, void *)
{
	sem_post(&has_lock);
	sem_wait(&give_it_back);
	return 1;
}

static void *hold_lock_in_thread(void *)
{
	dl_iterate_phdr(hold_lock, nullptr);
	return nullptr;
}

/* Closes a library in a child while a thread that only the parent has holds the loader's lock. */
static int closes_locked(void)
{
	void *handle = open_plugin("one");
	pthread_t thread;
	int status;
	pid_t pid;

	require(open_plugin("one") == handle, "a second handle");
	require(!pthread_create(&thread, nullptr, hold_lock_in_thread, nullptr), "pthread_create");
	sem_wait(&has_lock);
	pid = fork();
	if (!pid) {
		alarm(400);
		dlclose(handle);
		in_child();
		_exit(0);
	}
	require(waitpid(pid, &status, 0) == pid, "waitpid");
	sem_post(&give_it_back);
	pthread_join(thread, nullptr);
	return status != 0;
}

/* Reports that a stage is over, and waits until the next one is to begin. */
static void stage(char number)
{
	char answer;

	require(write(STDOUT_FILENO, &number, 1) == 1, "write");
	require(read(STDIN_FILENO, &answer, 1) == 1, "read");
}

/* Makes a child that waits until everybody who can write to the pipe has closed it. */
static pid_t child_until(const int ends[2])
{
	pid_t pid = fork();
	char nothing;

	require(pid >= 0, "fork");
	if (pid)
		return pid;
	close(ends[1]);
	in_child();
	require(write(STDOUT_FILENO, "c", 1) == 1, "write");
	require(!read(ends[0], &nothing, 1), "read");
	_exit(0);
}

/* What is in use at the end of each stage is known; a child ends in the second stage. */
static int stages(void)
{
	int ends[2];
	void *a;
	pid_t pid;

	require(!pipe(ends), "pipe");
	a = use(first_half());
	use(kept());
	pid = child_until(ends);
	stage('1');
	free(a);
	use(second_half());
	use(kept());
	close(ends[1]);
	require(waitpid(pid, nullptr, 0) == pid, "waitpid");
	stage('2');
	use(second_half());
	return 0;
}

FN void in_constructor(void)
{
	use(malloc(10));
}
__attribute__((constructor)) static void construct(void)
{
	in_constructor();
}
FN void in_destructor(void)
{
	use(malloc(20));
}
__attribute__((destructor)) static void destruct(void)
{
	in_destructor();
}
FN void in_static_object(void)
{
	use(malloc(30));
}
static struct object {
	object()
	{
		in_static_object();
	}
} object;
FN void at_exit(void)
{
	use(malloc(40));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} programs[] = {
		{ "deepbind", deepbind },
		{ "deep-lazy", deep_lazy },
		{ "deep-now", deep_now },
		{ "deep-direct", deep_direct },
		{ "deep-again", deep_again },
		{ "kinds", kinds },
		{ "peak", peak },
		{ "lifetimes", lifetimes },
		{ "threads", threads },
		{ "handover", handover },
		{ "forks", forks },
		{ "signals", signals },
		{ "samples", samples },
		{ "mappings", mappings },
		{ "reserves", reserves },
		{ "deep", deep },
		{ "deeper", deeper },
		{ "deeper-locked", deeper_locked },
		{ "deepest", deepest },
		{ "plugins", plugins },
		{ "stages", stages },
		{ "failures", failures },
		{ "limited", limited },
		{ "locks", locks },
		{ "closes-locked", closes_locked },
		{ "sandbox", sandbox },
		{ "vfork-rights", vfork_rights },
		{ "together", together },
		{ "together-in-much", together_in_much },
		{ "top-beside-threads", top_beside_threads },
		{ "top-with-threads", top_with_threads },
		{ "top-beside-threads-in-much", top_beside_threads_in_much },
	};

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "exec")) {
		use(malloc(50));
		argv[1] = (char *)"peak";
		execv("/proc/self/exe", argv);
		return 1;
	}
	if (!strcmp(argv[1], "killed")) {
		by_malloc();
		raise(SIGKILL);
	}
	if (!strcmp(argv[1], "exit")) {
		atexit(at_exit);
		return 7;
	}
	for (auto &p : programs)
		if (!strcmp(argv[1], p.name))
			return p.run();
	return 2;
}
