// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * step.c - ptrace: every thread, one instruction at a time.
 *
 * A single step costs tens of microseconds, so runs are bounded and sampled
 * where a plan says so: once a function was stepped often enough, its calls are
 * mostly run at full speed up to a breakpoint on the return address.
 * What is on the stack then is known again: the caller's frames. A function
 * that leaves by other means (longjmp(), exceptions) while it is run like that
 * loses the thread; report_never_returns() names those that always do.
 */
#include <errno.h>
#include <fcntl.h>
#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

/* A sampled run skips the rest of an activation after so many instructions without a call. */
#define LOOP_STEPS 2000
/*
 * A sampled run leaves the vdso after so many instructions. The vdso reads the clock again whenever
 * the kernel has updated it meanwhile, which never ends when it is stepped.
 */
#define VDSO_STEPS 300
#define VDSO_SIZE 0x4000
/* A skip is given up after so many stops at the right address in a deeper activation. */
#define SKIP_STOPS 2000
/* So many outermost frames are never skipped: start-up, main(), a command. */
#define KEEP_FRAMES 5
#define TARGETS 65536

enum state {
	STATE_NEW, /* waits for its first stop */
	STATE_STEP,
	STATE_SKIP, /* runs to the return address of one of its frames */
	STATE_REPEAT, /* runs to the end of a repeated instruction */
	STATE_ENTRY, /* runs to the program's entry point */
	STATE_LOST, /* runs freely, as its stack is not known any more */
};

struct task {
	pid_t tid;
	struct process *process;
	struct stack *stack;
	enum state state;
	bool stepped; /* @before and @insn are valid */
	struct user_regs_struct before;
	struct insn insn;
	bool signalled; /* a signal was delivered at @before */
	struct breakpoint breakpoint;
	unsigned int stops;
	unsigned int plain_steps;
	unsigned int in_window;
	u64 skip_to; /* address of the slot that holds the return address @breakpoint */
	struct task *next;
};

static const struct plan *plan;
static struct run_stats *stats;
static struct task *tasks;
static struct process *processes;
static unsigned int calls_of[TARGETS];
static u64 random_state;

static u64 next_random(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 33;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static u64 auxv(pid_t pid, u64 type)
{
	char path[64];
	Elf64_auxv_t aux;
	u64 value = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (read(fd, &aux, sizeof(aux)) == sizeof(aux))
		if (aux.a_type == type)
			value = aux.a_un.a_val;
	close(fd);
	return value;
}

static struct process *process_get(pid_t pid)
{
	struct process *p;

	for (p = processes; p; p = p->next)
		if (p->pid == pid) {
			p->users++;
			return p;
		}
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->pid = pid;
	p->users = 1;
	p->memory = memory_create(pid);
	p->vdso = auxv(pid, AT_SYSINFO_EHDR);
	p->unwinders = unwinders_create(p);
	p->next = processes;
	processes = p;
	stats->processes++;
	return p;
}

static void process_put(struct process *p)
{
	struct process **at = &processes;

	if (--p->users)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	unwinders_destroy(p->unwinders);
	report_forget_names(p);
	insn_flush();
	memory_destroy(p->memory);
	free(p);
}

static u64 hash_code_maps(pid_t pid)
{
	char path[64], line[4400];
	u64 hash = 14695981039346656037ull;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		char *perm = strchr(line, ' ');

		if (!perm || perm[3] != 'x')
			continue;
		for (char *c = line; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	}
	fclose(f);
	return hash;
}

/* Notes that code may have been mapped or unmapped. */
static void maps_changed(struct process *p)
{
	u64 hash = hash_code_maps(p->pid);

	if (hash == p->code_maps)
		return;
	p->code_maps = hash;
	insn_flush();
	report_forget_names(p);
	unwinders_changed(p->unwinders);
}

static struct task *task_find(pid_t tid)
{
	for (struct task *t = tasks; t; t = t->next)
		if (t->tid == tid)
			return t;
	return NULL;
}

static struct task *task_add(pid_t tid)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->tid = tid;
	t->next = tasks;
	tasks = t;
	return t;
}

static void task_remove(struct task *t)
{
	struct task **at = &tasks;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	stack_destroy(t->stack);
	if (t->process)
		process_put(t->process);
	free(t);
}

static bool set_breakpoint(struct task *t, u64 addr)
{
	return breakpoint_set(&t->breakpoint, t->tid, addr);
}

static bool is_alone(const struct task *t)
{
	return t->process->users == 1;
}

static void resume(struct task *t, int sig)
{
	if (t->state == STATE_STEP)
		ptrace(PTRACE_SINGLESTEP, t->tid, 0, sig);
	else
		breakpoint_run(&t->breakpoint, t->tid, is_alone(t), sig);
}

static void start_stepping(struct task *t)
{
	set_breakpoint(t, 0);
	t->state = STATE_STEP;
	t->stepped = false;
	t->plain_steps = 0;
}

static void lose(struct task *t)
{
	set_breakpoint(t, 0);
	if (t->state != STATE_LOST)
		stats->lost++;
	t->state = STATE_LOST;
}

/* Tells the cache what the instruction that just ran has written. */
static void note_writes(struct task *t, const struct user_regs_struct *after)
{
	struct memory *m = t->process->memory;
	u64 addr;

	switch (t->insn.write) {
	case WRITE_NONE:
		break;
	case WRITE_STACK:
		memory_written(m, after->rsp, 8);
		break;
	case WRITE_OPERAND:
		insn_operand(&t->insn, &t->before, &addr);
		memory_written(m, addr, t->insn.size);
		break;
	default:
		memory_flush(m);
	}
}

static void after_syscall(struct task *t)
{
	const struct user_regs_struct *r = &t->before;

	switch (r->rax) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		if (!(r->rdx & PROT_EXEC))
			break;
		/* fall through */
	case SYS_munmap:
	case SYS_mremap:
	case SYS_shmat:
	case SYS_shmdt:
		maps_changed(t->process);
	}
}

/* Brings the truth up to date with registers @after. */
static void follow(struct task *t, const struct user_regs_struct *after)
{
	if (!t->stepped)
		return;
	if (t->signalled) {
		t->signalled = false;
		memory_flush(t->process->memory);
		if (truth_signal(t->stack, t->process->memory, &t->before, after))
			return;
	}
	note_writes(t, after);
	truth_step(&t->stack, t->process->memory, &t->insn, &t->before, after);
	if (t->insn.kind == INSN_SYSCALL)
		after_syscall(t);
}

/* Returns whether this call of @function is to run at full speed. */
static bool sampled_out(struct process *p, u64 function)
{
	unsigned int *calls = &calls_of[(function ^ function >> 16) % TARGETS];

	if (!plan->fresh)
		return false;
	if (++*calls <= plan->fresh)
		return false;
	if (next_random() % (*calls / plan->fresh + 1) == 0)
		return false;
	return !report_never_returns(p, function);
}

/* Runs until the @n-th frame, counted from the innermost one (0), returns. */
static bool skip_to_return(struct task *t, unsigned int n)
{
	struct stack *s = t->stack;
	const struct frame *f;

	if (n >= s->count)
		return false;
	for (unsigned int i = s->count - 1 - n; i < s->count; i++)
		if (s->frames[i].kind != FRAME_CALL)
			return false;
	f = &s->frames[s->count - 1 - n];
	if (!set_breakpoint(t, f->pc))
		return false;
	t->state = STATE_SKIP;
	t->skip_to = f->slot;
	t->stops = 0;
	stats->skipped_calls++;
	return true;
}

/* Makes a sampled run go on elsewhere after so many steps in a row. */
static bool leave_window(struct task *t)
{
	unsigned int n;

	if (!plan->window || ++t->in_window < plan->window)
		return false;
	t->in_window = 0;
	/* Each frame further out is chosen half as often, but main()'s callees are not. */
	n = __builtin_ctzll(next_random() | 1 << 6);
	return n + KEEP_FRAMES < t->stack->count && skip_to_return(t, n);
}

/* Returns whether the program has a handler for this signal that stays installed. */
static bool catches(struct process *p, int sig)
{
	unsigned long caught = 0;
	char path[64], line[256];
	FILE *f;

	if (p->catches & 1ul << (sig - 1))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/status", p->pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "SigCgt: %lx", &caught) == 1)
			break;
	fclose(f);
	p->catches = caught;
	return caught & 1ul << (sig - 1);
}

static bool loops(const struct task *t, u64 pc, bool sample)
{
	if (pc - t->process->vdso < VDSO_SIZE)
		return t->plain_steps > VDSO_STEPS;
	return sample && plan->fresh && t->plain_steps > LOOP_STEPS;
}

static void remember(struct task *t, const struct user_regs_struct *r)
{
	const struct insn *insn = insn_at(t->process, r->rip);

	t->before = *r;
	t->stepped = true;
	if (insn)
		t->insn = *insn;
	else
		t->insn = (struct insn){ .write = WRITE_ANYWHERE };
}

/* Handles a stop of a stepped thread that is not a signal of the program's. */
static int stopped_stepping(struct task *t, const struct user_regs_struct *r)
{
	bool called = t->stepped && t->insn.kind == INSN_CALL && r->rsp == t->before.rsp - 8;
	bool sample, moved = !t->stepped || r->rip != t->before.rip || r->rsp != t->before.rsp;

	if (moved || t->signalled || t->insn.kind == INSN_REP)
		follow(t, r);
	if (moved || t->insn.kind != INSN_REP) {
		compare(t->process, t->tid, t->stack, r);
		truth_now = ++stats->steps;
	}
	remember(t, r);
	t->plain_steps = called ? 0 : t->plain_steps + 1;
	sample = breakpoint_is_cheap(is_alone(t));
	if (called && sample && sampled_out(t->process, r->rip) && skip_to_return(t, 0))
		return 0;
	if (loops(t, r->rip, sample) && skip_to_return(t, 0))
		return 0;
	if (sample && leave_window(t))
		return 0;
	if (t->insn.kind == INSN_REP && set_breakpoint(t, t->insn.pc + t->insn.len)) {
		t->state = STATE_REPEAT;
		stats->repeats++;
		return 0;
	}
	if (plan->inject && stats->steps % plan->inject == 0 && t->insn.kind != INSN_SYSCALL &&
	    catches(t->process, SIGUSR1)) {
		t->signalled = true;
		return SIGUSR1;
	}
	return 0;
}

static int stopped_running(struct task *t, const struct user_regs_struct *r)
{
	if (r->rip != t->breakpoint.addr)
		return 0;
	switch (t->state) {
	case STATE_REPEAT:
		t->state = STATE_STEP;
		set_breakpoint(t, 0);
		return stopped_stepping(t, r);
	case STATE_ENTRY:
		memory_flush(t->process->memory);
		maps_changed(t->process);
		t->stack->base = r->rsp;
		start_stepping(t);
		return stopped_stepping(t, r);
	case STATE_SKIP:
		if (r->rsp <= t->skip_to) {
			/* A deeper activation returned to the same address. */
			if (++t->stops > SKIP_STOPS)
				lose(t);
			return 0;
		}
		memory_flush(t->process->memory);
		maps_changed(t->process);
		truth_rise(t->stack, r->rsp);
		start_stepping(t);
		return stopped_stepping(t, r);
	default:
		return 0;
	}
}

static void new_child(struct task *parent, int event)
{
	struct user_regs_struct r, pr;
	unsigned long tid;
	struct task *t;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, 0, &tid))
		return;
	t = task_find(tid);
	if (!t) {
		int status;

		t = task_add(tid);
		if (waitpid(tid, &status, __WALL) != (pid_t)tid || !WIFSTOPPED(status)) {
			task_remove(t);
			return;
		}
	}
	ptrace(PTRACE_GETREGS, tid, 0, &r);
	ptrace(PTRACE_GETREGS, parent->tid, 0, &pr);
	if (event == PTRACE_EVENT_CLONE) {
		t->process = parent->process;
		t->process->users++;
		stats->threads++;
	} else {
		t->process = process_get(tid);
	}
	/* clone() may also make a process: its thread group tells. */
	if (event == PTRACE_EVENT_CLONE && syscall(SYS_tgkill, parent->process->pid, tid, 0)) {
		process_put(t->process);
		t->process = process_get(tid);
		stats->threads--;
	}
	maps_changed(t->process);
	start_stepping(t);
	breakpoint_child(&parent->breakpoint, tid);
	if (r.rsp != pr.rsp)
		t->stack = stack_create(r.rsp);
	else if (parent->state == STATE_STEP)
		t->stack = stack_copy(parent->stack);
	if (!t->stack) {
		t->stack = stack_create(r.rsp);
		lose(t);
		resume(t, 0);
		return;
	}
	resume(t, stopped_stepping(t, &r));
}

static void on_exec(struct task *t, const struct user_regs_struct *r)
{
	stack_destroy(t->stack);
	t->stack = stack_create(r->rsp);
	t->stack->base = r->rsp;
	breakpoint_exec(&t->breakpoint);
	t->signalled = false;
	t->process->vdso = auxv(t->process->pid, AT_SYSINFO_EHDR);
	memory_flush(t->process->memory);
	maps_changed(t->process);
	start_stepping(t);
}

static int handle_stop(struct task *t, int status)
{
	struct user_regs_struct r;
	int sig = WSTOPSIG(status), event = status >> 16;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &r))
		return 0;
	if (event == PTRACE_EVENT_EXEC)
		breakpoint_exec(&t->breakpoint);
	breakpoint_stopped(&t->breakpoint, t->tid, &r, event ? 0 : sig);
	t->breakpoint.blocked = event == PTRACE_EVENT_VFORK;
	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		new_child(t, event);
		return 0;
	case PTRACE_EVENT_EXEC:
		on_exec(t, &r);
		return 0;
	case PTRACE_EVENT_STOP:
	case PTRACE_EVENT_VFORK_DONE:
		return 0;
	}
	if (t->state == STATE_LOST)
		return sig == SIGTRAP ? 0 : sig;
	if (sig == SIGTRAP)
		return t->state == STATE_STEP ? stopped_stepping(t, &r) : stopped_running(t, &r);
	if (t->state == STATE_REPEAT) {
		/* The thread is in the middle of the function: it is stepped from here. */
		t->state = STATE_STEP;
		set_breakpoint(t, 0);
	}
	if (t->state == STATE_STEP) {
		if (t->stepped && (r.rip != t->before.rip || r.rsp != t->before.rsp))
			follow(t, &r);
		remember(t, &r);
		t->signalled = true;
	}
	return sig;
}

static void child(void)
{
	const char *input = plan->input ? plan->input : "/dev/null";
	int in = open(input, O_RDONLY), out = open("/dev/null", O_WRONLY);

	if (in < 0 || out < 0)
		_exit(126);
	dup2(in, 0);
	dup2(out, 1);
	if (!verbose)
		dup2(out, 2);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	personality(ADDR_NO_RANDOMIZE);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	execvp(plan->argv[0], plan->argv);
	_exit(127);
}

static int start(pid_t pid)
{
	struct user_regs_struct r;
	struct task *t;
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -ECHILD;
	if (ptrace(PTRACE_SETOPTIONS, pid, 0,
		   PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
			   PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC) ||
	    ptrace(PTRACE_GETREGS, pid, 0, &r))
		return -errno;
	t = task_add(pid);
	t->process = process_get(pid);
	on_exec(t, &r);
	if (!strcmp(plan->from, "entry")) {
		t->state = STATE_ENTRY;
		if (!set_breakpoint(t, auxv(pid, AT_ENTRY)))
			return -EOPNOTSUPP;
		resume(t, 0);
	} else {
		resume(t, stopped_stepping(t, &r));
	}
	return 0;
}

static void loop(pid_t first, double deadline)
{
	int status;

	stats->exit_status = -1;
	while (tasks && stats->steps < plan->steps) {
		pid_t tid = waitpid(-1, &status, __WALL);
		struct task *t;

		if (tid < 0)
			break; /* the wait also ends when the alarm rings */
		t = task_find(tid);
		if (!WIFSTOPPED(status)) {
			if (tid == first)
				stats->exit_status = status;
			if (t)
				task_remove(t);
			continue;
		}
		if (!t) {
			/* A child may be seen before the event of its parent. */
			task_add(tid);
			continue;
		}
		if (t->state == STATE_NEW)
			continue;
		resume(t, handle_stop(t, status));
		if ((stats->steps & 255) == 0 && now() > deadline)
			break;
	}
}

/* Ends a wait for threads that all sleep. */
static void on_alarm(int sig)
{
	(void)sig;
}

static void end_all(void)
{
	int status;

	for (struct task *t = tasks; t; t = t->next)
		kill(t->tid, SIGKILL);
	while (tasks) {
		pid_t tid = waitpid(-1, &status, __WALL);
		struct task *t = tid > 0 ? task_find(tid) : tasks;

		if (t && (tid < 0 || !WIFSTOPPED(status)))
			task_remove(t);
		else if (tid > 0 && WIFSTOPPED(status))
			kill(tid, SIGKILL);
	}
}

/**
 * run_plan() - step through a program and compare every trace
 * @p: what to run.
 * @s: receives what was done.
 *
 * Return: 0 or a negative errno: it could not be started.
 */
int run_plan(const struct plan *p, struct run_stats *s)
{
	struct sigaction ring = { .sa_handler = on_alarm };
	double begin = now();
	pid_t pid;
	int err;

	breakpoint_choose(p->breakpoints);
	plan = p;
	stats = s;
	memset(s, 0, sizeof(*s));
	memset(calls_of, 0, sizeof(calls_of));
	random_state = 1;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		child();
	err = start(pid);
	if (!err) {
		sigaction(SIGALRM, &ring, NULL);
		alarm(p->seconds);
		loop(pid, begin + p->seconds);
		alarm(0);
	}
	end_all();
	s->seconds = now() - begin;
	return err;
}
