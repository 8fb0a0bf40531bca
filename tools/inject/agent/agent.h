/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agent.h - private parts of libshstk-agent.so, preloaded by `shstk record`.
 *
 *   main.c     finds the recorder's memory; start, fork and end of a process
 *   thread.c   slots, timers, threads that come and go
 *   handler.c  the agent's signal
 *   sample.c   takes a stack into the ring
 *   settle.c   the time of a thread that no signal told of
 *   ring.c     room for a record in the ring
 *   event.c    a clock that needs no tick, where it is permitted
 *   maps.c     tells the recorder what is mapped
 *   hooks.c    the library calls that the agent must see
 *   signals.c  the program's handlers and masks, beside the agent's signal
 *   action.c   the same, where the program makes the system call itself
 *   move.c     the agent's signal becomes another one, if the program uses it
 *   wait.c     calls that wait, which must not notice the sampling
 *   held.c     stacks that have no room for the agent's signal
 *   relatives.c children with this memory, and tracers
 *   sandbox.c  programs that give up system calls
 *   children.c what processes use that no agent samples: exits, other programs
 *   jit.c      unwind information that the program's JIT registers
 *
 * and in tools/inject/common/, for all that is preloaded:
 *
 *   env.c      keeps the agent in the environment of what is executed
 *   limits.c   limits of addresses, and memory that is locked
 *   private.c  libc's functions that a program may replace
 *   room.c     more stack for threads
 *   rawcall.c  system calls that the program makes by number
 *   anylibc.c  what other C libraries than glibc lack
 *
 * Nothing in the target may notice the agent but by its speed. So there is no
 * thread of its own, no open file, no heap memory, and one real-time signal
 * that the target can neither block nor take.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

#include "../common/env.h"
#include "ring.h"
#include "shstk.h"
#include "sys.h"

#define HOOK_API __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/**
 * struct calls - how much of a thread's time is in system calls, as its timer finds it
 * @since: its CPU clock when its timer was armed, in ns.
 * @last: the same at the timer's last signal.
 * @ticks: signals of the timer.
 * @found: those that came at the end of a system call.
 * @time: time that these stand for, each since the one before, in ns.
 * @taken: periods in samples of system calls.
 */
struct calls {
	uint64_t since;
	uint64_t last;
	uint64_t ticks;
	uint64_t found;
	uint64_t time;
	uint64_t taken;
};

/**
 * struct thread - this process's view of a slot; same index as the slot
 * @pid: process that took the slot; another value: inherited over fork, dead.
 * @tid: thread ID.
 * @timer: kernel's timer ID.
 * @armed: @timer exists.
 * @managed: the thread itself calls agent_end_thread(); else scan_threads() looks for it.
 * @program: first thread of a program: what it used before is that of the loader.
 * @tried: it was tried to open @event.
 * @start: this thread's CPU clock where the first period began, in ns.
 * @first: length of the first period, in ns.
 * @system: time in the kernel at the last sample, or the last signal of the timer, in ns.
 * @event: mapping of the perf event that signals each period, or NULL: the timer does,
 *	as the kernel's ticks come.
 * @event_fd: the number that its descriptor had.
 * @first_end: this thread's CPU clock at the end of the first period, 0 once its signal came, and
 * @first_rest: what was left of that, while @event is of that one alone; else 0.
 * @held: periods that signals of @event told of late, as the program had held them back.
 * @calls: see struct calls; used if there is @event.
 * @owed: periods that ran out before @event was another one, and are in no sample.
 * @periods: periods in the samples so far, lost ones included.
 * @rounds: destructor rounds seen.
 * @cpu_seen: by wall-clock time: its CPU clock at the last sample, if there are many.
 * @stretch: its timer's interval in periods.
 * @rest_until: no sample is taken before, on the clock of the periods, in ns.
 * @put_off: periods that ended meanwhile, by its timer, or by @event if it has one.
 * @seen: number of the scan that saw it last.
 * @open: by wall-clock time, in a call that waits: its sample lies at @head, without a
 *	weight, and is not committed. It is given up when another record needs the place.
 * @blocked: own.blocked of the thread that makes this one,
 * @signo: and own.signo.
 * @cramped: its stack has no room for the agent's signal.
 * @head: bytes produced; only this thread's own code changes it.
 * @room: bytes behind @head that are reserved: no more are ever committed.
 * @last: where the last sample is, as @head counts, plus 1; 0 if there is none.
 * @fn: start routine of a thread being created.
 * @arg: its argument.
 * @slot: the slot.
 * @ring: its ring.
 */
struct thread {
	int pid;
	int tid;
	int timer;
	bool armed;
	bool managed;
	bool program;
	bool tried;
	uint8_t rounds;
	uint64_t start;
	uint64_t first;
	uint64_t system;
	void *event;
	int event_fd;
	uint64_t first_end;
	uint64_t first_rest;
	uint64_t held;
	struct calls calls;
	uint64_t owed;
	uint64_t periods;
	uint64_t cpu_seen;
	uint64_t rest_until;
	uint64_t put_off;
	uint32_t stretch;
	uint32_t seen;
	_Atomic bool open;
	bool blocked;
	bool cramped;
	int signo;
	uint64_t head;
	uint32_t room;
	uint64_t last;
	void *(*fn)(void *arg);
	void *arg;
	struct rec_slot *slot;
	uint8_t *ring;
};

/**
 * struct agent - the state of the agent in this process
 * @on: attached; all hooks pass through as long as it is false.
 * @sandboxed: the program is about to forbid itself system calls: make no
 *	more than sampling needs.
 * @filtered: it was about to install a filter of system calls.
 * @wall: samples wall-clock time.
 * @shared: the program handles the agent's signal too: calls that wait must let it in.
 * @traced: another process than the recorder traces this one: no timers any more.
 * @shares_memory: there may be a child that has this memory and runs beside its parent.
 * @tsc_faults: the program may not read the time stamp counter.
 * @pid: this process, or -1 in a child that could not be followed.
 * @signo: signal of the timers; another one from time to time (move.c).
 * @frame: bytes of the stack that the kernel takes for a signal, at most.
 * @nr_slots: slots that are mapped; at most header->nr_slots.
 * @ring_size: as in the header when it was joined. Any program that is recorded can write to
 *	the header: what bounds what is written is not read there again.
 * @max_depth: likewise.
 * @period: likewise.
 * @instance: of this process image.
 * @parent: instance it was forked from, or 0.
 * @start_slot: slot with its REC_START record.
 * @parent_slot: slot with that of @parent.
 * @key: its destructor ends threads.
 * @opens: calls of dlopen() so far.
 * @takers: threads that are taking a slot: its ring must stay.
 * @armed: threads that have a timer.
 * @handlers: threads in the agent's handler that may make system calls there.
 * @lock: guards registration of threads against scan_threads(); taken with all
 *	signals blocked; a handler only tries it.
 * @header: the shared memory.
 * @slots: the slots in it.
 * @rings: the rings in it.
 * @threads: one for each mapped slot.
 */
struct agent {
	bool on;
	bool sandboxed;
	bool filtered;
	bool wall;
	bool shared;
	bool traced;
	bool shares_memory;
	bool tsc_faults;
	int pid;
	int signo;
	uint32_t frame;
	uint32_t nr_slots;
	uint32_t ring_size;
	uint32_t max_depth;
	uint64_t period;
	uint32_t instance;
	uint32_t parent;
	uint32_t start_slot;
	uint32_t parent_slot;
	pthread_key_t key;
	_Atomic uint32_t opens;
	_Atomic int takers;
	_Atomic uint32_t armed;
	_Atomic uint32_t handlers;
	_Atomic int lock;
	struct rec_header *header;
	struct rec_slot *slots;
	uint8_t *rings;
	struct thread *threads;
};

extern struct agent agent;

/**
 * struct cut - a system call that is about to be restarted
 * @pc: its instruction.
 * @sp: the stack pointer there.
 */
struct cut {
	uint64_t pc;
	uint64_t sp;
};

/**
 * struct own - what a thread of the program knows of itself, in its handlers too
 * @waits_in: the function of libc that a hook of wait.c is in, or NULL.
 * @cuts: the calls that the agent's signal interrupted last (signals.c).
 * @nr_cuts: so many there were.
 * @stack_end: everything from its stack pointer to there is its stack; 0: not known.
 * @held: the alternate stack on which the agent's signal was held back last; 0, 0: none.
 * @held_at: the state that the handler there interrupted, as a number; 0: none.
 * @cramped: the thread's alternate stack, or its only one, has no room for the agent's signal.
 * @was_cramped: the signal that comes next was held back for that.
 * @signo: the agent's signal as far as this thread knows; 0 in threads that it did not see
 *	begin: see move.c.
 * @left_blocked: signals that were the agent's, which the program has blocked.
 * @blocked: the program believes the agent's signal to be blocked.
 * @child_filtered: a child of vfork(), which has this memory too, is behind a filter of system
 *	calls: its hooks make none. Until it executes a program or ends.
 */
struct own {
	const void *waits_in;
	struct cut cuts[4];
	unsigned int nr_cuts;
	uintptr_t stack_end;
	struct {
		uintptr_t lo, hi;
	} held;
	uint64_t held_at;
	bool cramped;
	bool was_cramped;
	int signo;
	uint64_t left_blocked;
	bool blocked;
	bool child_filtered;
};

extern __thread struct own own;

/*
 * Is this memory of the frames of this thread that called the hook, or near them? That can be
 * read and written. Other pointers may be bad, which the kernel takes for an error; and far from
 * here they may be, too, on an alternate stack or a coroutine's.
 */
#define NEAR_FRAMES 16384

static inline __attribute__((always_inline)) bool on_stack(const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p, frame = (uintptr_t)__builtin_frame_address(0);

	return at > frame && at < own.stack_end && at - frame < NEAR_FRAMES &&
	       bytes <= own.stack_end - at;
}

/* Must the hooks of this thread make no system calls of their own? */
static inline bool in_sandbox(void)
{
	return agent.sandboxed || own.child_filtered;
}

/* Where this object lies; made by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* The kernel's signal set: what the system calls take. */
typedef uint64_t ksigset;

static inline ksigset block_signals(void)
{
	ksigset all = ~(ksigset)0, old = 0;

	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	return old;
}

/* The number that this thread's timer sends. */
static inline int own_signo(void)
{
	return own.signo ? own.signo : agent.signo;
}

static inline ksigset own_signal(void)
{
	return (ksigset)1 << (own_signo() - 1);
}

static inline void restore_signals(ksigset old)
{
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
}

static inline void change_own_signal(int how)
{
	ksigset one = own_signal();

	sys4(SYS_rt_sigprocmask, how, &one, NULL, sizeof(one));
}

/* Is there no room on this stack for the agent's signal? See held.c. */
static inline __attribute__((always_inline)) bool is_held(void)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	return own.cramped || frame - own.held.lo < own.held.hi - own.held.lo;
}

/* The agent's signal may come again, unless it is held back. */
static inline __attribute__((always_inline)) void admit_own_signal(void)
{
	if (!is_held())
		change_own_signal(SIG_UNBLOCK);
}

/*
 * In nanoseconds. By a system call: libc reads the time stamp counter, which a program may have
 * made fault (PR_SET_TSC). Where no call may be made it is 0 then.
 */
static inline uint64_t now(clockid_t clock)
{
	struct timespec ts = { 0 };

	if (!in_sandbox())
		sys2(SYS_clock_gettime, clock, &ts);
	else if (!agent.tsc_faults)
		clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* Is this the child of a clone() that has the memory of its parent, and runs beside it? */
static inline bool is_relative(void)
{
	return unlikely(agent.shares_memory) && !in_sandbox() && agent.pid != (int)sys0(SYS_getpid);
}

/* The calling thread, or NULL if it did not register itself. */
static inline struct thread *agent_self(void)
{
	struct thread *t = is_relative() ? NULL : pthread_getspecific(agent.key);

	return t && t->pid == agent.pid ? t : NULL;
}

/* Code of this object, not of the program? */
static inline bool is_own(uint64_t pc)
{
	return pc >= (uintptr_t)__ehdr_start && pc < (uintptr_t)etext;
}

/*
 * A program may have taken the access from a page of its stack. Behind a filter of system
 * calls that is not asked.
 */
static inline uint32_t capture_flags(void)
{
	return agent.sandboxed ? 0 : SHSTK_CHECK_STACK;
}

/* main.c */
void agent_fork_child(void);
void agent_leave(void);
/* The program has a new limit of addresses; it is about to lock all it has into memory. */
void agent_obey_limit(void);
void agent_before_lock(void);
bool agent_has_ring(uint32_t i);

/* event.c */
void event_begin(struct thread *t);
bool event_is_late(const struct thread *t);
void event_open(struct thread *t);
void event_close(struct thread *t);
void event_end(struct thread *t);
bool event_sent(const struct thread *t, const siginfo_t *si);
/*
 * Is it of an event that was closed meanwhile, or of another thread's? The program's own
 * descriptors send the same kind, but only by a signal that it has chosen for that.
 */
bool event_late(const siginfo_t *si);

/* thread.c */
struct thread *agent_take(int tid, bool managed);
void agent_drop(struct thread *t);
void agent_begin(struct thread *t);
void agent_end_thread(struct thread *t);
void agent_disarm(struct thread *t);
void agent_end_waits(void);
void scan_threads(void);
/* Makes a timer that signals a thread. Returns 0 or a negative errno. */
long timer_make(clockid_t clock, int signo, int tid, void *value, int *timer);
/* Its timer goes on with another signal. */
void agent_retime(struct thread *t, int signo);

/* handler.c */
int handler_install(void);
/* Was a signal sent to the agent, in this thread? */
bool handler_is_ours(const siginfo_t *si);
/* Takes a signal that the agent was sent by a number that is not its any more. */
bool handler_take_stray(int signo, siginfo_t *si, void *context);

/* move.c */
/* This thread uses the agent's present signal from now on. */
void move_follow(void);
/* The program uses the agent's signal. Returns false if there is no other one to take. */
bool move_away(void);
/* The program uses the signals of @set. If it has all real-time signals the agent stays. */
void move_if_named(const sigset_t *set);
/* The same in the agent's handler. @mask: the signals that are blocked when it ends. */
void move_in_handler(ksigset *mask);
/*
 * In the agent's handler, with a signal that was not sent to it: the program gets it. Returns
 * false if it has to get it from the handler itself.
 */
bool move_for(int signo, const siginfo_t *si, ksigset *mask);

/* Bytes of the stack that a sample takes, and a look for threads. */
#define SAMPLE_NEED (SHSTK_STACK_NEED + 1024)
#define SCAN_NEED (SAMPLE_NEED + 2048)
/* And what a hook takes that a thread may call at the end of its stack. */
#define HOOK_NEED 2560

/* held.c */
void held_resolve(void);
/* Bytes of the stack that the kernel takes for a signal. */
size_t held_frame(void);
/* The agent's signal may still be held back for a handler that is no more: it is let in. */
void held_mend(void);

/* sample.c */
void take_name(struct thread *t);
/* Takes the stack that the signal with @context interrupted, for so many periods. */
void sample_take(struct thread *t, uint64_t periods, const void *context);
/* That of this thread, as the kernel counts it, in ns. */
uint64_t time_in_kernel(void);
/* Periods of no known stack. */
void sample_place(struct thread *t, uint64_t periods, enum rec_place place);
/* Counts a sample; room for it, or NULL: it is lost. */
struct rec_sample *sample_new(struct thread *t, uint64_t periods, uint32_t room);
void sample_fill(struct rec_sample *s, int type, int n, const uint8_t *marks, uint64_t periods,
		 const struct shstk_info *info);
/* So many bytes of labels lie behind the marks. */
void sample_set_labels(struct rec_sample *s, uint32_t labels);
void sample_put(struct thread *t, uint32_t size);
uint64_t sample_late(struct thread *t, uint64_t periods);
/* By wall-clock time: this thread is about to wait in @function, and does no more. */
void agent_open_wait(const void *function);
void agent_close_wait(void);

/* relatives.c */
void relatives_resolve(void);

/* settle.c */
uint64_t unsampled_periods(const struct thread *t);
/* Do its samples stand for more than ran out? Signals that were late tell of it again. */
bool is_ahead(const struct thread *t);
/* Of these, what no signal of its event told of. */
uint64_t silent_periods(const struct thread *t);
/* Is another of the agent's signals waiting to be let in? */
bool signal_is_held_back(void);
/* @at: its CPU clock, before it has a timer. */
void settle_early(struct thread *t, uint64_t at);
void agent_settle(struct thread *t);

/* ring.c */
void *ring_reserve(struct thread *t, uint32_t size);
void ring_commit(struct thread *t, uint32_t size);

/* maps.c */
void maps_send(struct thread *t);
void maps_send_if_changed(void);
/* Calls @fn for each line of /proc/self/maps of what can be executed; @n: with its end. */
typedef void (*maps_fn)(void *arg, const char *line, size_t n);
void maps_each(maps_fn fn, void *arg);

/**
 * struct next - the functions that the hooks of hooks.c stand in front of
 */
struct next {
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*thrd_create)(thrd_t *, thrd_start_t, void *);
	pid_t (*fork_raw)(void);
	void (*exit_raw)(int);
	void *(*dlopen)(const char *, int);
	void *(*dlmopen)(Lmid_t, const char *, int);
	int (*dlclose)(void *);
};

extern struct next next;

/* A thread was made before the agent's constructor ran. */
extern _Atomic bool early_threads;

/* hooks.c */
void hooks_resolve(void);
void *next_symbol(const char *name);

/* signals.c */
void signals_resolve(void);
/* The program's handlers are known from now on. */
void signals_adopt(void);
/* In the child of a fork. */
void signals_fork_child(void);
/* Takes a signal that nobody handles for @handler. Returns 0 or -EBUSY. */
int signals_take_own(void (*handler)(int, siginfo_t *, void *), bool (*usable)(int signo));
/* As sigaction(), for the program. */
int signals_action(int signo, const struct sigaction *act, struct sigaction *old);
/* Was it the agent's signal? */
bool signals_were_left(int signo);
/* The agent takes another signal, and gives the program its present one. Returns false: none. */
bool signals_leave(void);
/*
 * A signal that was the agent's came for the program, which has no handler for it. Returns true if
 * its action is the default one, which the kernel now has; false: it is to be ignored.
 */
bool signals_allow_default(int signo);
/* The agent's signal interrupted this thread there. */
void signals_cut(const void *context);
/* Was it held back until now? Asked once for each. */
bool signals_held(const void *context);
/* SIGIO must not end the program (event.c). Returns: false: it might; try again later. */
bool signals_guard_io(void);
/* The action that the kernel has for @signo becomes what the program believes it is. */
void signals_translate(int signo, struct sigaction *act);
/* Somebody else sent the agent's signal. */
void signals_chain(int signo, siginfo_t *si, void *context);
/*
 * Takes a set of the program's, as far as the kernel looks at it. Returns false if it can't be
 * read: the error is for the call to tell.
 */
bool take_set(const sigset_t *set, sigset_t *copy);
/* @set without the agent's signal; @copy has room for it. */
const sigset_t *without_own(const sigset_t *set, sigset_t *copy);

/* wait.c */
void wait_resolve(void);

/* children.c */
void children_resolve(void);
void children_end(struct thread *t);
void children_exec(int pid, bool spawned, const char *path);

#endif
