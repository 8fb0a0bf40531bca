// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `shstk trace -p`: the stacks of all threads of a running process, now.
 *
 * The process is stopped for as short as possible: everything that takes time
 * (reading maps, finding unwind tables, memory for the copies) comes before,
 * unwinding and naming come after. While it is stopped only the registers are
 * read and the used parts of each stack and shadow stack are copied, all in one
 * system call if there are no more than IOV_MAX of them. Where a shadow stack is
 * on, the other stack is only wanted for what a signal interrupted: little of it
 * is copied.
 *
 * Traces of Go programs lead over several stacks, which are not known before: they are
 * taken while the process is stopped.
 *
 * A stack that cannot be unwound from its copy (a handler on an alternate
 * stack, more than MAX_COPY in use) is unwound once more while that one thread
 * is stopped again.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/address_space.h"
#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"
#include "tools/proc/detach.h"
#include "tools/proc/live.h"
#include "tools/proc/maps.h"
#include "tools/proc/tasks.h"
#include "tools/shstk.h"
#include "tools/trace/goroutines.h"
#include "tools/trace/trace.h"
#include "tools/unwind/jit.h"

#define MAX_THREADS 32768
#define MAX_COPY (1u << 20) /* bytes of a stack */
#define MAX_SHADOW (64u << 10) /* bytes of a shadow stack */
#define TOUCHED 16384 /* bytes of a copy faulted in before */
#define RED_ZONE 128

#if defined(__x86_64__)
#define OWN_ARCH SHSTK_ARCH_X86
#elif defined(__aarch64__)
#define OWN_ARCH SHSTK_ARCH_ARM64
#else
#define OWN_ARCH 0 /* none that can be unwound */
#endif

/* Memory as it was while the process was stopped. */
struct copy {
	uint64_t start;
	uint64_t end;
	uint8_t *data;
};

struct thread {
	struct trace_thread pub;
	bool seized;
	bool stopped;
	int signo; /* to be delivered on release */
	struct copy stack;
	struct copy shadow;
};

struct range {
	uint64_t start;
	uint64_t end;
	bool writable;
};

struct trace {
	const struct trace_opts *opts;
	int pid;
	struct thread *threads;
	unsigned int nr;
	struct range *ranges;
	unsigned int nr_ranges;
	uint8_t *arena;
	size_t arena_size;
	struct shstk_space *space;
	struct shstk_symbols *symbols;
	struct shstk_symproc *proc;
	struct jit *jit; /* who knows code made at run time, or NULL */
	struct goroutine_source source;
	struct goroutines *goroutines;
	uint64_t pause; /* ns */
};

#define PF_KTHREAD 0x00200000 /* of the kernel's task flags, in stat */

/* Return: the letter of its state, or 0; @flags as in proc_pid_stat(5). */
static char read_stat(int pid, int tid, char *comm, size_t size, unsigned int *flags)
{
	char path[64], line[512], *open, *close, state;
	FILE *in;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	in = fopen(path, "r");
	if (!in)
		return 0;
	n = fread(line, 1, sizeof(line) - 1, in);
	fclose(in);
	line[n] = '\0';
	open = strchr(line, '(');
	close = strrchr(line, ')');
	if (!open || !close || close < open || !close[1])
		return 0;
	*close = '\0';
	snprintf(comm, size, "%s", open + 1);
	printable(comm);
	if (sscanf(close + 1, " %c %*d %*d %*d %*d %*d %u", &state, flags) != 2)
		return 0;
	return state;
}

char trace_read_stat(int pid, int tid, char *comm, size_t size)
{
	unsigned int flags;

	return read_stat(pid, tid, comm, size, &flags);
}

static int refuse(const struct trace *t, int err)
{
	char value[16];
	int tracer = task_field(t->pid, t->pid, "TracerPid", value, sizeof(value)) ? atoi(value) :
										     0;

	if (err == -ESRCH)
		complain("process %d has ended", t->pid);
	else if ((err == -EPERM || err == -EACCES) && tracer)
		complain("process %d is already traced by process %d", t->pid, tracer);
	else if (err == -EPERM || err == -EACCES)
		complain(
			"no permission to trace process %d: it needs the same user and ptrace_scope 0, or CAP_SYS_PTRACE",
			t->pid);
	else
		complain("cannot trace process %d: %s", t->pid, strerror(-err));
	return EXIT_FAILED;
}

int trace_check(int pid)
{
	char comm[64];
	unsigned int flags = 0;
	char state = read_stat(pid, pid, comm, sizeof(comm), &flags);

	if (!state) {
		complain("there is no process %d", pid);
		return EXIT_FAILED;
	}
	if (flags & PF_KTHREAD) {
		complain(
			"process %d (%s) is a thread of the kernel: it has no stack of a program (its own is in /proc/%d/stack)",
			pid, comm, pid);
		return EXIT_FAILED;
	}
	if (state == 'Z' || state == 'X') {
		DIR *dir = tasks_open(pid);
		int nr = 0;

		/* The first thread may have ended before the others. */
		while (dir && tasks_next(dir))
			nr++;
		if (dir)
			closedir(dir);
		if (nr > 1)
			return 0;
		complain("process %d (%s) is a zombie: it has ended", pid, comm);
		return EXIT_FAILED;
	}
	if (pid == getpid()) {
		complain("process %d is this command", pid);
		return EXIT_FAILED;
	}
	return 0;
}

static int read_ranges(struct trace *t)
{
	struct mapping m;
	struct maps maps;
	int err = maps_open(t->pid, "maps", &maps);

	if (err)
		return err;
	while (maps_next(&maps, &m)) {
		struct range *grown;

		if (!(t->nr_ranges & (t->nr_ranges - 1))) {
			grown = realloc(t->ranges,
					(t->nr_ranges ? t->nr_ranges * 2 : 1) * sizeof(*grown));
			if (!grown)
				break;
			t->ranges = grown;
		}
		t->ranges[t->nr_ranges++] = (struct range){
			.start = m.start,
			.end = m.end,
			.writable = m.write,
		};
	}
	maps_close(&maps);
	return t->nr_ranges ? 0 : -EPERM;
}

static const struct range *find_range(const struct trace *t, uint64_t addr)
{
	unsigned int low = 0, high = t->nr_ranges;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (addr >= t->ranges[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->nr_ranges && addr >= t->ranges[low].start ? &t->ranges[low] : NULL;
}

static struct thread *find_thread(struct trace *t, int tid)
{
	for (unsigned int i = 0; i < t->nr; i++)
		if (t->threads[i].pub.tid == tid)
			return &t->threads[i];
	return NULL;
}

/* Seizing does not stop a thread. Returns how many were new, or -errno. */
static int seize_new(struct trace *t)
{
	DIR *dir = tasks_open(t->pid);
	int found = 0, err = 0;
	char comm[8];
	pid_t tid;

	if (!dir)
		return -errno;
	while (t->nr < MAX_THREADS && (tid = tasks_next(dir))) {
		struct thread *thread = &t->threads[t->nr];

		if (find_thread(t, tid))
			continue;
		/* Seized, one that was stopped is "traced". */
		thread->pub.note = trace_state_name(
			trace_read_stat(t->pid, tid, thread->pub.comm, sizeof(thread->pub.comm)));
		if (ptrace(PTRACE_SEIZE, tid, 0, 0)) {
			/* A thread that ends meanwhile is no failure. */
			if (errno != ESRCH && !err &&
			    trace_read_stat(t->pid, tid, comm, sizeof(comm)) != 'Z')
				err = -errno;
			continue;
		}
		thread->pub.tid = tid;
		thread->seized = true;
		t->nr++;
		found++;
	}
	closedir(dir);
	return err ? err : found;
}

static int seize_all(struct trace *t)
{
	int found;

	/* New threads may appear as long as none is stopped. */
	for (int tries = 0; tries < 10; tries++) {
		found = seize_new(t);
		if (found <= 0)
			break;
	}
	if (found < 0)
		return found;
	return t->nr ? 0 : -ESRCH;
}

const char *trace_state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in disk sleep";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a tracer";
	case 'Z':
		return "ended";
	default:
		return "in another state";
	}
}

static int prepare_copies(struct trace *t)
{
	const size_t each = MAX_COPY + MAX_SHADOW;

	t->arena_size = t->nr * each;
	t->arena = mmap(NULL, t->arena_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->arena == MAP_FAILED) {
		t->arena = NULL;
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < t->nr; i++) {
		struct thread *thread = &t->threads[i];

		thread->stack.data = t->arena + i * each;
		thread->shadow.data = thread->stack.data + MAX_COPY;
		memset(thread->stack.data, 0, TOUCHED);
	}
	return 0;
}

static void wait_stop(struct thread *thread)
{
	int status;

	if (waitpid(thread->pub.tid, &status, __WALL) != thread->pub.tid)
		return;
	if (!WIFSTOPPED(status)) {
		thread->seized = false; /* it ended */
		return;
	}
	thread->stopped = true;
	/* Without an event it is a signal on its way: deliver it later. */
	if (!(status >> 16))
		thread->signo = WSTOPSIG(status);
}

#if defined(__x86_64__)
static int take_registers(struct thread *thread)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };
	struct shstk_regs *r = &thread->pub.regs;

	if (ptrace(PTRACE_GETREGSET, thread->pub.tid, NT_PRSTATUS, &iov))
		return -errno;
	*r = (struct shstk_regs){
		.size = sizeof(*r),
		.known = 0xffff,
		.pc = u.rip,
		.r = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9, u.r10,
		       u.r11, u.r12, u.r13, u.r14, u.r15 },
		.thread_pointer = u.fs_base,
	};
	thread->stack.start = u.rsp - RED_ZONE;
	return 0;
}
#elif defined(__aarch64__)
static int take_registers(struct thread *thread)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };
	struct user_pac_mask {
		uint64_t data, insn;
	} mask;
	uint64_t tls;
	struct shstk_regs *r = &thread->pub.regs;

	if (ptrace(PTRACE_GETREGSET, thread->pub.tid, NT_PRSTATUS, &iov))
		return -errno;
	*r = (struct shstk_regs){
		.size = sizeof(*r),
		.known = 0xffffffff,
		.pc = u.pc,
	};
	for (int i = 0; i < 31; i++)
		r->r[i] = u.regs[i];
	r->r[31] = u.sp;
	thread->stack.start = u.sp;
	iov = (struct iovec){ &mask, sizeof(mask) };
	if (!ptrace(PTRACE_GETREGSET, thread->pub.tid, NT_ARM_PAC_MASK, &iov))
		r->pac_mask = mask.insn;
	iov = (struct iovec){ &tls, sizeof(tls) };
	if (!ptrace(PTRACE_GETREGSET, thread->pub.tid, NT_ARM_TLS, &iov))
		r->thread_pointer = tls;
	return 0;
}
#else
static int take_registers(struct thread *thread)
{
	(void)thread;
	return -EOPNOTSUPP;
}
#endif

static void plan(struct copy *copy, uint64_t end, uint64_t max)
{
	copy->end = end - copy->start > max ? copy->start + max : end;
}

static void plan_stack(const struct trace *t, struct thread *thread)
{
	bool little = thread->pub.shadow_on && !t->opts->compare;
	struct copy *copy = &thread->stack;
	const struct range *range = find_range(t, copy->start + RED_ZONE);

	copy->end = copy->start;
	if (!range)
		return;
	if (copy->start < range->start)
		copy->start = range->start;
	plan(copy, range->end, little ? TOUCHED : MAX_COPY);
}

/* Where the shadow stack ends is known from the maps that were read before. */
static void plan_shadow(const struct trace *t, struct thread *thread)
{
	struct shstk_shadow *s = &thread->pub.shadow;
	const struct range *range;

	*s = (struct shstk_shadow){ .size = sizeof(*s) };
	if (t->opts->source == TRACE_UNWIND || shstk_shadow_pointer(thread->pub.tid, s))
		return;
	range = find_range(t, s->ssp);
	if (range) {
		s->end = range->end;
	} else if (find_range(t, s->ssp - 8)) {
		s->end = s->ssp; /* x86, with nothing on it */
	} else if (shstk_shadow_get(thread->pub.tid, s) || !s->end) {
		return;
	}
	thread->pub.shadow_on = true;
	thread->shadow.start = s->ssp;
	plan(&thread->shadow, s->end, MAX_SHADOW);
}

/* One call for up to IOV_MAX copies; alone those that did not come. */
static void copy_memory(struct trace *t)
{
	struct iovec local[IOV_MAX], remote[IOV_MAX];
	struct copy *which[IOV_MAX];

	for (unsigned int i = 0; i < 2 * t->nr;) {
		unsigned int n = 0;
		size_t want = 0;
		ssize_t got;

		for (; i < 2 * t->nr && n < IOV_MAX; i++) {
			struct thread *thread = &t->threads[i / 2];
			struct copy *copy = i & 1 ? &thread->shadow : &thread->stack;
			size_t size = copy->end - copy->start;

			if (!thread->pub.sampled || !size)
				continue;
			local[n] = (struct iovec){ copy->data, size };
			remote[n] = (struct iovec){ (void *)copy->start, size };
			which[n++] = copy;
			want += size;
		}
		got = n ? process_vm_readv(t->pid, local, n, remote, n, 0) : 0;
		if (got == (ssize_t)want)
			continue;
		for (unsigned int k = 0; k < n; k++) {
			got = process_vm_readv(t->pid, &local[k], 1, &remote[k], 1, 0);
			which[k]->end = which[k]->start + (got > 0 ? got : 0);
		}
	}
}

static void release(struct thread *thread)
{
	if (thread->seized)
		detach(thread->pub.tid, thread->signo);
	thread->seized = false;
	thread->stopped = false;
	thread->signo = 0;
}

/* What is copied is taken from there; all else only of what does not run. */
struct reader {
	const struct trace *t;
	const struct thread *thread;
	bool copied;
	bool stopped;
};

static bool read_copy(const struct copy *copy, uint64_t addr, void *buf, size_t len)
{
	if (addr < copy->start || addr > copy->end || len > copy->end - addr)
		return false;
	memcpy(buf, copy->data + (addr - copy->start), len);
	return true;
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct reader *r = arg;
	const struct range *range;
	int pid = r->t->pid;

	if (r->copied && (read_copy(&r->thread->stack, addr, buf, len) ||
			  read_copy(&r->thread->shadow, addr, buf, len)))
		return 0;
	/* It runs: only what it cannot write is still as it was. */
	range = find_range(r->t, addr);
	if (!r->stopped && (!range || range->writable))
		return -EFAULT;
	return shstk_read_process(&pid, addr, buf, len);
}

/* Once more, with the thread stopped meanwhile. */
static void take_stopped(struct trace *t, struct thread *thread)
{
	struct reader reader = { .t = t, .thread = thread, .stopped = true };
	uint64_t at;

	if (ptrace(PTRACE_SEIZE, thread->pub.tid, 0, 0))
		return;
	thread->seized = true;
	at = now_ns(CLOCK_MONOTONIC);
	ptrace(PTRACE_INTERRUPT, thread->pub.tid, 0, 0);
	wait_stop(thread);
	if (thread->stopped && !take_registers(thread)) {
		if (thread->pub.shadow_on)
			plan_shadow(t, thread);
		trace_take(t->opts, t->space, &thread->pub, read_memory, &reader);
	}
	release(thread);
	t->pause += now_ns(CLOCK_MONOTONIC) - at;
}

/* What is shown of it ends, or has a gap, where memory was not copied. */
static bool cut_short(const struct trace_opts *o, const struct trace_thread *t)
{
	bool end = t->unwound.taken && t->unwound.nr >= 0 && t->unwound.info.end == SHSTK_END_READ;

	if (!t->hardware.taken || o->compare)
		return end;
	return (end && trace_has_gap(&t->hardware)) ||
	       (t->hardware.nr < 2 && t->hardware.info.end == SHSTK_END_READ);
}

/* @stopped: the process does not run. */
static int take_copied(struct trace *t, bool stopped)
{
	for (unsigned int i = 0; i < t->nr; i++) {
		struct thread *thread = &t->threads[i];
		struct reader reader = { t, thread, true, stopped };

		if (thread->pub.sampled &&
		    trace_take(t->opts, t->space, &thread->pub, read_memory, &reader))
			return -ENOMEM;
	}
	return 0;
}

static void take_cut_short(struct trace *t)
{
	for (unsigned int i = 0; i < t->nr; i++)
		if (t->threads[i].pub.sampled && cut_short(t->opts, &t->threads[i].pub))
			take_stopped(t, &t->threads[i]);
}

/* Of all that is live: the process is stopped, or what is read does not matter then. */
static int read_live(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct trace *t = arg;
	int pid = t->pid;

	return shstk_read_process(&pid, addr, buf, len);
}

static const struct shstk_regs *thread_regs(void *arg, int tid)
{
	const struct thread *thread = find_thread(arg, tid);

	return thread && thread->pub.sampled ? &thread->pub.regs : NULL;
}

/* The only part during which the process does not run. */
static int stop_and_copy(struct trace *t)
{
	bool go = shstk_space_has_go(t->space);
	int err = 0;
	uint64_t at = now_ns(CLOCK_MONOTONIC);

	for (unsigned int i = 0; i < t->nr; i++)
		ptrace(PTRACE_INTERRUPT, t->threads[i].pub.tid, 0, 0);
	for (unsigned int i = 0; i < t->nr; i++) {
		struct thread *thread = &t->threads[i];

		wait_stop(thread);
		if (!thread->stopped)
			continue;
		thread->pub.sampled = !take_registers(thread);
		if (thread->pub.sampled) {
			plan_shadow(t, thread);
			plan_stack(t, thread);
		}
	}
	copy_memory(t);
	if (t->goroutines)
		err = goroutines_take(t->goroutines);
	else if (go)
		err = take_copied(t, true);
	for (unsigned int i = 0; i < t->nr; i++)
		release(&t->threads[i]);
	t->pause = now_ns(CLOCK_MONOTONIC) - at;
	return err || go || t->goroutines ? err : take_copied(t, false);
}

static int find_goroutines(struct trace *t)
{
	int err;

	if (!t->opts->goroutines)
		return 0;
	t->source = (struct goroutine_source){ t->opts, t->space, read_live, t, thread_regs };
	err = goroutines_find(&t->source, &t->goroutines);
	if (err == -ENOENT)
		complain("process %d has no runtime of Go that is known", t->pid);
	return err;
}

static bool print_threads(const struct trace *t)
{
	struct json *json = t->opts->json;
	bool ok = true;

	if (json)
		shstk_json_open(json, "threads", '[');
	for (unsigned int i = 0; i < t->nr; i++)
		ok &= trace_print(t->opts, t->proc, &t->threads[i].pub);
	if (json)
		shstk_json_close(json);
	return ok;
}

/* False: it is not what was asked for. */
static bool print_all(const struct trace *t)
{
	struct json *json = t->opts->json;
	char comm[64] = "?";
	bool ok;

	trace_read_stat(t->pid, t->pid, comm, sizeof(comm));
	if (json) {
		shstk_json_open(json, NULL, '{');
		shstk_json_int(json, "pid", t->pid);
		shstk_json_string(json, "name", comm);
		shstk_json_real(json, "stopped_ms", t->pause / 1e6);
	} else {
		printf("process %d (%s), %u %s, ", t->pid, comm, t->nr,
		       t->nr == 1 ? "thread" : "threads");
		if (t->goroutines)
			printf("%zu goroutines, ", goroutines_count(t->goroutines));
		printf("stopped for %.3f ms\n", t->pause / 1e6);
	}
	ok = t->goroutines ? goroutines_print(t->goroutines, t->proc) : print_threads(t);
	if (json)
		shstk_json_close(json);
	return ok;
}

/* Where the process has the library that makes code at run time. */
static int open_jit(void *arg, uint64_t *start, uint64_t *offset)
{
	const struct trace *t = arg;
	struct mapping m;
	struct maps maps;
	int ret = maps_open(t->pid, "maps", &maps);

	if (ret)
		return ret;
	ret = -ENOENT;
	while (ret == -ENOENT && maps_next(&maps, &m)) {
		struct layout_map map = live_map(&m);

		if (!m.exec || !jit_is_known(m.path))
			continue;
		*start = m.start;
		*offset = m.offset;
		ret = live_open(t->pid, &map);
	}
	maps_close(&maps);
	return ret;
}

/* What it has written down is found while it runs. */
static int find_jit(struct trace *t)
{
	const struct jit_process process = { read_live, open_jit, t };

	return OWN_ARCH == SHSTK_ARCH_X86 ? jit_attach(t->space, &process, &t->jit) : 0;
}

static int name_made(const struct trace *t)
{
	int ret = 0;

	for (unsigned int i = 0; i < t->nr && t->jit && !ret; i++)
		ret = trace_name_made(t->jit, t->proc, &t->threads[i].pub);
	return ret;
}

static int prepare(struct trace *t)
{
	struct shstk_symbols_opts names = { .full_names = t->opts->full_names };
	int err = read_ranges(t);

	if (!err)
		err = shstk_space_create(OWN_ARCH, &t->space);
	if (!err) {
		shstk_space_set_debug(t->space, shstk_debug_find, NULL);
		err = shstk_space_add_pid(t->space, t->pid);
	}
	if (err >= 0)
		err = find_jit(t);
	if (!err)
		err = shstk_symbols_create(&names, &t->symbols);
	if (!err)
		err = shstk_symproc_create(t->symbols, t->pid, &t->proc);
	if (!err)
		err = shstk_symproc_read_maps(t->proc);
	if (err < 0)
		return err;
	t->threads = calloc(MAX_THREADS, sizeof(*t->threads));
	return t->threads ? 0 : -ENOMEM;
}

static void cleanup(struct trace *t)
{
	for (unsigned int i = 0; i < t->nr; i++)
		trace_deinit(&t->threads[i].pub);
	goroutines_destroy(t->goroutines);
	free(t->threads);
	free(t->ranges);
	if (t->arena)
		munmap(t->arena, t->arena_size);
	shstk_symbols_destroy(t->symbols);
	shstk_space_destroy(t->space);
	jit_destroy(t->jit);
}

int trace_process(const struct trace_opts *opts)
{
	struct trace t = { .opts = opts, .pid = opts->pid };
	int status = EXIT_FAILED;
	int err;

	if (!OWN_ARCH) {
		complain("this CPU is not supported: only x86-64 and arm64 are");
		return EXIT_FAILED;
	}
	if (trace_check(t.pid))
		return EXIT_FAILED;
	err = prepare(&t);
	if (!err)
		err = find_goroutines(&t);
	if (!err)
		err = seize_all(&t);
	if (!err)
		err = prepare_copies(&t);
	if (!err) {
		err = stop_and_copy(&t);
		if (!err) {
			take_cut_short(&t);
			err = name_made(&t);
		}
	}
	if (err && !(t.opts->goroutines && err == -ENOENT))
		refuse(&t, err);
	else if (!err && print_all(&t))
		status = EXIT_OK;
	else if (!err)
		complain("process %d: not every stack could be taken as asked, see above", t.pid);
	cleanup(&t);
	return status;
}
