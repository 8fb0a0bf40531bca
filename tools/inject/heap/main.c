// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main.c - the agent joins a process, gets a region for it, and reports which code is mapped.
 *
 * `shstk record` names its memory in the environment (tools/inject/protocol.h). Where the agent
 * cannot get that memory (in another container, with dropped privileges, or if the recorder is
 * gone) it stays out of the way, and the program runs as if the agent were not there.
 *
 * The object is linked with -z initfirst: its constructor is the first of the process, so that the
 * allocations of all others are recorded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/join.h"
#include "../common/limits.h"
#include "../common/loaded.h"
#include "../common/rawcall.h"
#include "../common/sandbox_hook.h"
#include "heap.h"
#include "libshstk/symbol/symbol.h"
#include "python.h"
#include "seal.h"
#include "shstk.h"

struct heap heap;

#define OBJECT_GRANULE 4 /* Python's objects are at least 1 << 4 bytes apart */

static char environment[128];
static uint32_t parent_image;

static bool is_error(long p)
{
	return p < 0 && p >= -4095;
}

static void *map(int fd, uint64_t bytes, int prot, int flags, uint64_t at)
{
	long p = sys6(SYS_mmap, 0, bytes, prot, flags, fd, at);

	return is_error(p) ? NULL : (void *)p;
}

/*
 * The size of a region in valgrind, which preloads objects of its own. valgrind keeps a note of
 * each byte that is mapped: for a whole region it would write for an hour before the program
 * begins.
 */
#define VALGRIND_REGION (64ull << 20)
static bool in_valgrind;

static void find_valgrind(char **envp)
{
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, "LD_PRELOAD=", 11) && strstr(*envp, "/vgpreload_"))
			in_valgrind = true;
}

/*
 * Maps region @i. If the address space is limited, the region is smaller: it takes at most an
 * eighth of the limit.
 */
static struct heap_image *map_region(int fd, uint32_t i)
{
	uint64_t bytes, at = HEAP_FIRST + i * HEAP_REGION, most = soft_limit(RLIMIT_AS) / 8;
	struct heap_image *image;

	if (in_valgrind && most > VALGRIND_REGION)
		most = VALGRIND_REGION;

	for (bytes = HEAP_REGION; bytes >= 1 << 20; bytes /= 4) {
		if (bytes > most)
			continue;
		image = map(fd, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, at);
		if (!image)
			continue;
		sys3(SYS_madvise, image, bytes, MADV_DONTFORK);
		sys3(SYS_madvise, image, bytes, MADV_DONTDUMP);
		heap.size = image->size = bytes;
		return image;
	}
	return NULL;
}

static bool plausible(const struct heap_header *h, uint64_t cookie)
{
	return h->magic == HEAP_MAGIC && h->version == HEAP_VERSION && h->cookie == cookie &&
	       h->max_depth >= REC_MIN_DEPTH && h->max_depth <= REC_MAX_DEPTH &&
	       h->deepest <= HEAP_DEEPEST && !atomic_load(&h->stop);
}

static bool make_own(void)
{
	if (heap.unshared)
		return true;
	heap.unshared = map(-1, sizeof(*heap.unshared), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, 0);
	if (!heap.unshared)
		return false;
	sys3(SYS_madvise, heap.unshared, sizeof(*heap.unshared), MADV_NOHUGEPAGE);
	if (!sys3(SYS_madvise, heap.unshared, sizeof(*heap.unshared), MADV_WIPEONFORK))
		return true;
	sys2(SYS_munmap, heap.unshared, sizeof(*heap.unshared));
	heap.unshared = NULL;
	return false;
}

static void begin_image(int fd, long pid)
{
	uint32_t i = atomic_fetch_add(&heap.header->images, 1);
	struct heap_image *image;

	if (i >= HEAP_MAX_IMAGES)
		return;
	image = map_region(fd, i);
	if (!image)
		return;
	image->parent = parent_image;
	image->foreign = heap.foreign;
	image->objects = heap.objects;
	atomic_store(&heap.used, HEAP_UNIT * ((sizeof(*image) + HEAP_UNIT - 1) / HEAP_UNIT));
	atomic_store(&image->used, heap.used);
	heap.pid = pid;
	atomic_store(&image->peak_state, HEAP_RISING);
	image->began = ticks_now();
	sys2(SYS_prctl, PR_GET_NAME, image->comm);
	atomic_store_explicit(&image->pid, pid, memory_order_release);
	parent_image = i + 1;
	heap.image = image;
	maps_begin();
	python_begin();
	alloc_watch();
	atomic_store(&heap.unshared->on, 1);
}

/*
 * Reads the header once: any program that is recorded may change it from then on. Returns false if it
 * is not a plausible header.
 */
static bool read_header(long fd, uint64_t cookie, struct heap_header *h)
{
	return sys4(SYS_pread64, fd, h, sizeof(*h), 0) == (long)sizeof(*h) && plausible(h, cookie);
}

void heap_attach(const char *env)
{
	struct heap_header *h, is;
	uint64_t cookie;
	long fd = open_memory(env, &cookie, NULL), pid;

	if (fd < 0) {
		if (fd == -EPERM)
			shstk_seal();
		return;
	}
	if (!heap.ticks_end && sandbox_tsc_faults())
		heap.ticks_end = 1;
	pid = sys0(SYS_getpid);
	h = map(fd, sizeof(*h), PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	if (h && read_header(fd, cookie, &is) && !foreign_pid(pid) && make_own()) {
		heap.header = h;
		heap.sample = is.sample;
		heap.max_depth = is.max_depth;
		heap.deepest = is.deepest > is.max_depth ? is.deepest : is.max_depth;
		heap.per_thread = is.per_thread;
		heap.with_mmap = is.with_mmap;
		heap.with_python = is.with_python;
		if (is.with_python && heap.granule > OBJECT_GRANULE)
			heap.granule = OBJECT_GRANULE;
		begin_image(fd, pid);
	} else if (h) {
		sys2(SYS_munmap, h, sizeof(*h));
	}
	sys1(SYS_close, fd);
}

/* Attaches the agent to the child of a fork(). Its tables are already empty. */
static void in_child(void)
{
	if (!heap.header || heap.sandboxed || is_on())
		return;
	local = (struct heap_local){ 0 };
	/* The parent's region is not mapped here, and its counts go on. */
	heap.image = NULL;
	heap_attach(environment);
}

/*
 * glibc gives constructors the arguments of main(), and has no environ before its own constructor
 * has run. Other C libraries pass nothing, but have environ.
 */
__attribute__((constructor(101))) static void start(int argc, char **argv, char **envp)
{
	size_t size;

	(void)argc, (void)argv;
	heap.single = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
	if (!heap.single)
		heap.single = "";
	if (!dlsym(RTLD_DEFAULT, "gnu_get_libc_version"))
		envp = environ;
	find_valgrind(envp);
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, REC_ENV "=", sizeof(REC_ENV)))
			break;
	if (!envp || !*envp)
		return;
	size = strlen(*envp + sizeof(REC_ENV)) + 1;
	if (size > sizeof(environment))
		return;
	memcpy(environment, *envp + sizeof(REC_ENV), size);
	alloc_resolve();
	alloc_prepare();
	pthread_atfork(NULL, NULL, in_child);
	env_resolve();
	limits_resolve();
	sandbox_resolve();
	rawcall_resolve();
	heap_attach(environment);
	if (heap.image)
		env_remember(environment);
}

bool env_may_call(void)
{
	return !heap.filtered && (!heap.sandboxed || env_unfiltered());
}

int env_before_exec(const char *path)
{
	(void)path;
	return 0;
}

int env_before_spawn(void)
{
	return 0;
}

void env_call_returned(int done)
{
	(void)done;
}

void env_after_spawn(int pid, const char *path)
{
	(void)pid, (void)path;
}

/* This agent takes no signal. */
bool rawcall_on_action(int signo, const void *act, void *old, unsigned long size, long *ret)
{
	(void)signo, (void)act, (void)old, (void)size, (void)ret;
	return false;
}

static void unmap(uint64_t at, uint64_t bytes)
{
	if (bytes)
		sys2(SYS_munmap, at, bytes);
}

/*
 * Memory for a sandbox, where no system call may be made: it is mapped before the sandbox begins,
 * and not mapped in children. With locked memory it is smaller, because locked memory takes all its
 * size.
 */
#define SANDBOX_MEMORY (1ull << 30)
#define SANDBOX_LOCKED (32ull << 20)

static struct {
	_Atomic uint64_t used;
	uint64_t bytes;
	uint8_t *start;
} put_aside;

static void put_memory_aside(void)
{
	uint64_t bytes = heap.locked ? SANDBOX_LOCKED : SANDBOX_MEMORY;

	for (; bytes > soft_limit(RLIMIT_AS) / 8;)
		bytes /= 2;
	put_aside.start = heap_map(bytes, false);
	put_aside.bytes = put_aside.start ? bytes : 0;
}

static void *take_aside(uint64_t bytes)
{
	uint64_t used = atomic_load(&put_aside.used);

	do {
		if (bytes > put_aside.bytes - used)
			return NULL;
	} while (!atomic_compare_exchange_weak(&put_aside.used, &used, used + bytes));
	return put_aside.start + used;
}

void heap_unmap(void *p, uint64_t bytes)
{
	if (!heap.sandboxed)
		unmap((uintptr_t)p, bytes);
}

void *heap_map(uint64_t bytes, bool large)
{
	uint64_t more = large ? HEAP_LARGE_PAGE : 0, p, at;
	long ret;

	bytes = (bytes + HEAP_MAX_PAGE - 1) & ~(HEAP_MAX_PAGE - 1);
	if (heap.sandboxed)
		return take_aside(bytes);
	ret = sys6(SYS_mmap, 0, bytes + more, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ret < 0 && ret > -4096)
		return NULL;
	p = at = ret;
	if (large) {
		at = (p + HEAP_LARGE_PAGE - 1) & ~(HEAP_LARGE_PAGE - 1);
		unmap(p, at - p);
		unmap(at + bytes, p + more - at);
	}
	sys3(SYS_madvise, at, bytes, MADV_DONTFORK);
	sys3(SYS_madvise, at, bytes, MADV_DONTDUMP);
	sys3(SYS_madvise, at, bytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return (void *)at;
}

void note_lost(void)
{
	atomic_fetch_add_explicit(&heap.image->lost, 1, memory_order_relaxed);
}

/*
 * Makes the region smaller, to @bytes: the program limits its address space, or locks all its
 * memory. Other threads may reserve by the old size meanwhile, but not more than SPARE.
 */
#define SPARE (4ull << 20)
#define MOST_LOCKED (32ull << 20)

static void shrink_region(uint64_t bytes)
{
	struct heap_image *image = heap.image;
	uint64_t size = heap.size, used = atomic_load(&heap.used) + SPARE;

	bytes = ((bytes < used ? used : bytes) + HEAP_MAX_PAGE - 1) & ~(HEAP_MAX_PAGE - 1);
	if (bytes >= size)
		return;
	heap.size = image->size = bytes;
	unmap((uintptr_t)image + bytes, size - bytes);
}

/* Returns false in a child of vfork(), which shares this memory. */
static bool may_act(void)
{
	return is_on() && !heap.sandboxed && heap.pid == (uint32_t)sys0(SYS_getpid);
}

void limits_changed(pid_t pid)
{
	if (may_act() && (!pid || (uint32_t)pid == heap.pid))
		shrink_region(soft_limit(RLIMIT_AS) / 8);
}

/* A locked region would take all its size. */
void limits_before_lock(void)
{
	uint64_t most = soft_limit(RLIMIT_MEMLOCK) / 8;

	if (!may_act())
		return;
	heap.locked = true;
	shrink_region(most < MOST_LOCKED ? most : MOST_LOCKED);
}

/* Tells the recorder that the region is used up to there. Another thread may have reported more. */
static void publish_used(uint64_t used)
{
	_Atomic uint64_t *told = &heap.image->used;
	uint64_t is = atomic_load(told);

	while (is < used && !atomic_compare_exchange_weak(told, &is, used))
		;
}

void *heap_reserve(uint64_t bytes, uint64_t align)
{
	uint64_t used = atomic_load(&heap.used), at;

	bytes = (bytes + HEAP_UNIT - 1) & ~(uint64_t)(HEAP_UNIT - 1);
	do {
		at = (used + align - 1) & ~(align - 1);
		if (at < used || at > heap.size || bytes > heap.size - at)
			return NULL;
	} while (!atomic_compare_exchange_weak(&heap.used, &used, at + bytes));
	publish_used(at + bytes);
	return (uint8_t *)heap.image + at;
}

void heap_publish(struct heap_record *record, uint32_t kind, uint64_t bytes)
{
	record->units = (bytes + HEAP_UNIT - 1) / HEAP_UNIT;
	atomic_store_explicit(&record->kind, kind, memory_order_release);
}

/*
 * The mapped code. A new stack with an address that is not known makes the agent read the maps
 * again. So whatever a stack shows was reported before it, and later changes of that code do not
 * matter.
 */
#define MAX_CODE 4096
#define MAX_TEXT (1u << 20)
#define OFTEN 256 /* reads without a pause between them */
#define PAUSE (1ull << 26) /* ticks between two later reads */

static struct {
	_Atomic int lock;
	_Atomic bool stale;
	_Atomic uint32_t number;
	uint32_t nr;
	uint32_t looks;
	uint64_t last;
	struct {
		uint64_t start, end;
	} code[MAX_CODE];
} maps;

/*
 * Returns whether @pc is in known code. *@last is the piece of code that was found last, as most
 * addresses of a stack are in one.
 */
static bool is_code(uint64_t pc, uint32_t *last)
{
	uint32_t lo = 0, hi = maps.nr;

	if (likely(pc - maps.code[*last].start < maps.code[*last].end - maps.code[*last].start))
		return true;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (maps.code[mid].end <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == maps.nr || pc < maps.code[lo].start)
		return false;
	*last = lo;
	return true;
}

static uint64_t hex(const char **at)
{
	uint64_t v = 0;

	for (;; (*at)++) {
		unsigned int c = (unsigned char)**at;

		if (c - '0' < 10)
			v = v << 4 | (c - '0');
		else if (c - 'a' < 6)
			v = v << 4 | (c - 'a' + 10);
		else
			return v;
	}
}

/* Adds a line ("start-end rwxp ...") to the known code. Returns false if it cannot be executed. */
static bool take_line(const char *line, size_t n)
{
	const char *space = memchr(line, ' ', n), *at = line;

	if (!space || line + n - space <= 4 || space[3] != 'x')
		return false;
	if (maps.nr < MAX_CODE) {
		maps.code[maps.nr].start = hex(&at);
		at++;
		maps.code[maps.nr++].end = hex(&at);
	}
	return true;
}

/* Removes lines that are not executable from @text. Returns the new length. */
static uint32_t take_lines(char *text, uint32_t size)
{
	char *line = text, *to = text, *end;

	while ((end = memchr(line, '\n', text + size - line))) {
		size_t n = end + 1 - line;

		if (take_line(line, n)) {
			memmove(to, line, n);
			to += n;
		}
		line = end + 1;
	}
	return to - text;
}

/* Reads the maps and writes a record of them. The text is read into a copy of the record. */
static void read_maps(void)
{
	long fd = sys4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	uint32_t size = 0, kept;
	struct heap_maps *m;
	long n;

	if (fd < 0)
		return;
	m = map(-1, sizeof(*m) + MAX_TEXT, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, 0);
	while (m && size < MAX_TEXT &&
	       (n = sys3(SYS_read, fd, m->text + size, MAX_TEXT - size)) > 0)
		size += n;
	sys1(SYS_close, fd);
	if (!m)
		return;
	maps.nr = 0;
	kept = take_lines(m->text, size);
	m->bytes = kept;
	m->number = atomic_load(&maps.number) + 1;
	if (size) {
		struct heap_maps *to = heap_reserve(sizeof(*m) + kept, HEAP_UNIT);

		if (to) {
			memcpy(to, m, sizeof(*m) + kept);
			heap_publish(&to->record, HEAP_MAPS, sizeof(*m) + kept);
			atomic_store(&maps.number, m->number);
		}
	}
	sys2(SYS_munmap, m, sizeof(*m) + MAX_TEXT);
}

static bool worth_reading(void)
{
	uint64_t at = ticks_now();

	if (heap.sandboxed || (maps.looks > OFTEN && at - maps.last < PAUSE))
		return false;
	maps.looks++;
	maps.last = at;
	return true;
}

uint32_t maps_number(const uint64_t *pcs, unsigned int nr)
{
	uint32_t last = 0;
	unsigned int i;

	/*
	 * Another thread reads the maps just now, or this thread does and was interrupted by a
	 * signal handler.
	 */
	if (atomic_exchange_explicit(&maps.lock, 1, memory_order_acquire))
		return atomic_load(&maps.number);
	if (atomic_exchange(&maps.stale, false))
		maps.nr = maps.looks = 0;
	for (i = 0; i < nr && maps.nr; i++)
		if (pcs[i] < SHSTK_FUNCTION_BASE && !is_code(pcs[i] - 1, &last))
			break;
	if ((!maps.nr || i < nr) && worth_reading())
		read_maps();
	atomic_store_explicit(&maps.lock, 0, memory_order_release);
	return atomic_load(&maps.number);
}

/*
 * Forgets all known code because some of it was unmapped: other code may be mapped there. Another
 * thread may be reading the maps just now, so it is only marked.
 */
static void maps_forget(void)
{
	atomic_store(&maps.stale, true);
}

/* Begins in a new process. The thread that had the lock at fork() does not exist here. */
void maps_begin(void)
{
	atomic_store(&maps.lock, 0);
	maps_forget();
	maps_number(NULL, 0);
}

/*
 * Returns whether an object is in another namespace than the program's own: loaded() does not count
 * these.
 */
static bool other_namespace(void *handle)
{
	Lmid_t id = LM_ID_BASE;

	return !dlinfo(handle, RTLD_DI_LMID, &id) && id != LM_ID_BASE;
}

/*
 * The loader looks at the return address to find the caller. So this hook ends in a tail call, and
 * can do nothing afterwards, except where the caller makes no difference (deep.c).
 */
HOOK_API void *dlopen(const char *file, int mode)
{
	static void *(*next_dlopen)(const char *, int);

	if (!next_dlopen)
		*(void **)&next_dlopen = dlsym(RTLD_NEXT, "dlopen");
	if (mode & RTLD_DEEPBIND && is_on()) {
		/* Nothing can be bound if the functions are the program's own. */
		if (!heap.foreign && !heap.sandboxed &&
		    deep_is_same(file, __builtin_return_address(0)))
			return deep_open(file, mode, next_dlopen);
		atomic_store(&heap.image->deepbind, 1);
	}
	return next_dlopen(file, mode);
}

HOOK_API int dlclose(void *handle)
{
	static int (*next_dlclose)(void *);
	bool changed = is_on() && other_namespace(handle);
	uint64_t before = is_on() ? loaded() : 0;
	int ret;

	if (!next_dlclose)
		*(void **)&next_dlclose = dlsym(RTLD_NEXT, "dlclose");
	ret = next_dlclose(handle);
	if (is_on() && (changed || loaded() != before)) {
		atomic_fetch_add(&heap.salt, 1);
		maps_forget();
		shstk_modules_changed();
	}
	return ret;
}

/*
 * A hook is needed because _Fork(), unlike glibc's fork(), does not call the handlers of
 * pthread_atfork().
 */
HOOK_API pid_t _Fork(void)
{
	static pid_t (*next_fork)(void);
	pid_t pid;

	if (!next_fork)
		*(void **)&next_fork = dlsym(RTLD_NEXT, "_Fork");
	pid = next_fork ? next_fork() : fork();
	if (!pid)
		in_child();
	return pid;
}

/* Nothing is to be done: a child that shares this memory allocates from the same heap. */
void rawcall_on_clone(unsigned long flags)
{
	(void)flags;
}

void sandbox_without_tsc(void)
{
	if (!heap.ticks_end)
		heap.ticks_end = heap_ticks();
}

/* Nothing is to be done: no signal of this object interrupts the program. */
bool sandbox_dispatches(void)
{
	return false;
}

void sandbox_dispatch_ended(void)
{
}

/*
 * Prepares for a sandbox: from now on the agent makes no system call but those that the program
 * asks for. A child of vfork() shares this memory, and its parent keeps its rights.
 */
void sandbox_begins(bool filter, const void *program)
{
	(void)program;
	if (!filter && is_on() && !heap.sandboxed && !may_act())
		return;
	if (heap.header && !heap.sandboxed)
		env_expect_filters(seccomp_filters());
	if (is_on() && !heap.sandboxed) {
		put_memory_aside();
		trace_prepare();
		range_prepare();
	}
	if (filter)
		shstk_seal();
	heap.filtered |= filter;
	heap.sandboxed = true;
}
