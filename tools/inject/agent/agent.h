/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agent.h - private declarations of libshstk-agent.so, which `shstk record` preloads.
 *
 *   main.c          finds the recorder's memory; handles start, fork and end of a process
 *   thread.c        slots, timers, threads that begin and end
 *   handler.c       the handler of the agent's signal
 *   calls.c         how much of the time in the kernel system calls get
 *   sample.c        captures a stack into the ring
 *   context.c       the trace context of the sampled thread, as labels
 *   python.c        what Python runs in the sampled thread
 *   settle.c        accounts for the time of a thread that no signal reported
 *   ended.c         shares what threads left that ended before a tick found them
 *   ring.c          reserves room for a record in the ring
 *   thread_event.c  a clock that does not depend on the tick, where perf events are permitted
 *   send_maps.c     tells the recorder what is mapped
 *   hooks.c         hooks of the library calls that the agent must see
 *   signals.c       the program's handlers and masks, beside the agent's signal
 *   action.c        the same for programs that make the system call themselves
 *   move.c          changes the agent's signal if the program uses it
 *   wait.c          calls that wait, which must not be interrupted by the sampling
 *   hold_back.c     stacks that have no room for the agent's signal
 *   relatives.c     children that share this memory, and tracers
 *   in_sandbox.c    programs that give up system calls
 *   filter.c        what a filter of system calls permits
 *   children.c      CPU time that the agent does not sample: children that exited, other programs
 *   register_frame.c  unwind information that the program's JIT registers
 *
 * In tools/inject/common/, for all preloaded objects:
 *
 *   env.c           keeps the agent in the environment of programs that are executed
 *   limits.c        limits of the address space, and locked memory
 *   private.c       functions of libc that a program may replace
 *   room.c          more stack for threads
 *   rawcall.c       system calls that the program makes by number
 *   anylibc.c       functions that C libraries other than glibc lack
 *
 * The program must notice nothing of the agent but its own speed. So the agent has no thread of its
 * own, no open file and no heap memory. It has one real-time signal, which the program can neither
 * block nor take.
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
#include "calls.h"
#include "ring.h"
#include "shstk.h"
#include "sys.h"

#define HOOK_API __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/**
 * struct agent_thread - this process's view of a slot; has the same index as the slot
 * @pid: process that took the slot. Another value: the entry was inherited over fork and is dead.
 * @tid: thread ID.
 * @timer: the kernel's timer ID.
 * @armed: @timer exists.
 * @managed: the thread itself calls agent_end_thread(); otherwise scan_threads() looks for it.
 * @program: it is the first thread of a program: the loader used its time before the agent's start.
 * @tried: the agent has tried to open @event.
 * @asks: the timer's next signal is that of the first tick in this thread, at which no period ends.
 * @pauses: calls that execute a program, one in a handler during another, for which its timer stands still.
 * @paused_until: when that timer would have signalled, on its clock.
 * @start: this thread's CPU clock where the first period began, in ns.
 * @first: length of the first period, in ns.
 * @system: time in the kernel at the last sample or at the timer's last signal, in ns.
 * @event: mapping of the perf event that signals each period. NULL: the timer signals, at the
 *	kernel's ticks.
 * @event_fd: number that the event's descriptor had.
 * @first_end: this thread's CPU clock at the end of the first period, in ns; 0 once its signal
 *	came.
 * @first_rest: what was left of the first period when @event was opened for that period alone, in
 *	ns; otherwise 0.
 * @held: periods whose signals of @event came late because the program had blocked them.
 * @calls: time in system calls; used if there is an @event.
 * @owed: periods that are in no sample and ran out before @event was replaced, or in threads that
 *	ended (ended.c).
 * @part: time in a sandbox that is not a whole period yet, in ns, where each tick signals.
 * @periods: periods in the samples so far, including lost samples.
 * @rounds: destructor rounds seen.
 * @cpu_seen: with wall-clock time and many threads: its CPU clock at the last sample, in ns.
 * @stretch: interval of its timer, in periods.
 * @rest_until: no sample is taken before this time, on the clock of the periods, in ns.
 * @put_off: periods that ended before @rest_until, by its timer, or by @event if it has one.
 * @seen: number of the last scan that saw the thread.
 * @open: with wall-clock time: the thread is in a call that waits. Its sample lies at @head,
 *	without a weight and not committed. The sample is given up when another record needs the
 *	place.
 * @blocked: local.blocked of the thread that creates this one.
 * @signo: local.signo of the thread that creates this one.
 * @cramped: its stack has no room for the agent's signal.
 * @head: bytes produced; only this thread's own code changes it.
 * @room: bytes behind @head that are reserved; no more than that is ever committed.
 * @last: position of the last sample, in the units of @head, plus 1; 0: there is none.
 * @fn: start routine of a thread that is being created.
 * @arg: argument of @fn.
 * @slot: the slot.
 * @ring: the slot's ring.
 */
struct agent_thread {
	int pid;
	int tid;
	int timer;
	bool armed;
	bool managed;
	bool program;
	bool tried;
	bool asks;
	uint8_t rounds;
	uint32_t pauses;
	uint64_t paused_until;
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
	uint64_t part;
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
 * @on: the agent is attached; all hooks pass through as long as this is false.
 * @sandboxed: the program is about to forbid itself system calls: the agent makes no more than
 *	sampling needs.
 * @filtered: the program was about to install a filter of system calls.
 * @permits_mask: all filters that it installed permit to change a mask, whatever else they forbid.
 * @permits_hand_on: they also permit what is done for a program that is executed (main.c).
 * @wall: the agent samples wall-clock time.
 * @shared: the program handles the agent's signal too: calls that wait must let it in.
 * @traced: another process than the recorder traces this one: the agent makes no more timers.
 * @shares_memory: there may be a child that shares this memory and runs beside its parent.
 * @tsc_faults: the program may not read the time stamp counter.
 * @pid: this process, or -1 in a child that could not be followed.
 * @signo: signal of the timers; it may change (move.c).
 * @frame: most bytes of the stack that the kernel takes for a signal.
 * @nr_slots: slots that are mapped; at most header->nr_slots.
 * @ring_size: size of a ring in bytes, as in the header when the agent joined. Any program that is
 *	recorded can write to the header, so values that bound what is written are not read from
 *	there again.
 * @max_depth: most entries of a stack, as in the header when the agent joined.
 * @deepest: most entries of a stack that is shortened to @max_depth, or 0, as in the header then.
 * @period: ns between two samples, as in the header when the agent joined.
 * @tick: ns from one of the kernel's ticks to the next; 0: not known.
 * @instance: number of this process image.
 * @parent: instance that this one was forked from, or 0.
 * @start_slot: slot whose ring has the REC_START record of @instance.
 * @parent_slot: slot whose ring has the REC_START record of @parent.
 * @key: its destructor ends threads.
 * @opens: calls of dlopen() so far.
 * @takers: threads that are taking a slot: its ring must stay mapped.
 * @armed: threads that have a timer.
 * @handlers: threads in the agent's handler that may make system calls there.
 * @lock: guards registration of threads against scan_threads(). It is taken with all signals
 *	blocked; a handler only tries it.
 * @header: the shared memory.
 * @slots: the slots in @header.
 * @rings: the rings in @header.
 * @threads: one for each mapped slot.
 */
struct agent {
	bool on;
	bool sandboxed;
	bool filtered;
	bool permits_mask;
	bool permits_hand_on;
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
	uint32_t deepest;
	uint64_t period;
	uint64_t tick;
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
	struct agent_thread *threads;
};

extern struct agent agent;

/**
 * struct cut_call - a system call that is about to be restarted
 * @pc: address of its instruction.
 * @sp: the stack pointer there.
 */
struct cut_call {
	uint64_t pc;
	uint64_t sp;
};

/**
 * struct agent_local - what a thread of the program knows of itself, also in its handlers
 * @waits_in: the function of libc that a hook of wait.c is in, or NULL: also since a handler of the
 *	program ran in that hook.
 * @handler_ends: such a handler had no SA_RESTART.
 * @knocking: a hook of wait.c is making a call that the agent's signal is to interrupt, with the
 *	program's signals blocked, and no handler of the program has run since.
 * @knock_mask: the signals that are blocked when that call is not @knocking any more.
 * @has_knock: there is the timer whose signal interrupts it.
 * @knock_timer: that timer's ID in the kernel.
 * @knock_after: the time for which that timer was set last, in ns.
 * @cuts: the system calls that the agent's signal interrupted last (signals.c).
 * @nr_cuts: number of calls in @cuts so far.
 * @stack_end: the thread's stack reaches from its stack pointer to here; 0: not known.
 * @held: bounds of the alternate stack on which the agent's signal was held back last; 0, 0: none.
 * @held_at: state that the handler on that stack interrupted, as a number; 0: none.
 * @cramped: the thread's alternate stack, or the only stack that it has, has no room for the
 *	agent's signal.
 * @dispatches: the thread handles its system calls itself, and is @cramped for that.
 * @was_cramped: the signal that comes next was held back for lack of room.
 * @stack_is_small: the thread's own stack has no room for the agent's signal: the program provided
 *	a small one, or it is in pieces (-fsplit-stack).
 * @signo: the agent's signal as far as this thread knows; 0 in threads that the agent did not see
 *	begin (move.c).
 * @left_blocked: signals that the agent had before, and that the program has blocked.
 * @blocked: the program believes that the agent's signal is blocked.
 * @hand_on_depth: calls of signals_hand_on() of the thread that were not undone.
 * @masking: the last handler of the program that has the agent's signal in its sa_mask: the context that it
 *	interrupted, and the state there as a number. NULL: none.
 * @child_filtered: a child of vfork(), which shares this memory, is behind a filter of system
 *	calls: its hooks make none until it executes a program or ends.
 */
struct agent_local {
	const void *waits_in;
	bool handler_ends;
	bool knocking;
	bool has_knock;
	int knock_timer;
	uint64_t knock_mask;
	uint64_t knock_after;
	struct cut_call cuts[4];
	unsigned int nr_cuts;
	uintptr_t stack_end;
	struct {
		uintptr_t lo, hi;
	} held;
	uint64_t held_at;
	bool cramped;
	bool dispatches;
	bool was_cramped;
	bool stack_is_small;
	int signo;
	uint64_t left_blocked;
	bool blocked;
	bool child_filtered;
	int hand_on_depth;
	struct {
		const void *context;
		uint64_t state;
	} masking;
};

extern __thread struct agent_local local;

/*
 * Returns whether @p points into the stack frames of this thread that called the hook, at most
 * NEAR_FRAMES above. That memory can be read and written. Other pointers may be bad, which the
 * kernel would report as an error; memory farther away may be bad too, on an alternate stack or the
 * stack of a coroutine.
 */
#define NEAR_FRAMES 16384

static inline __attribute__((always_inline)) bool on_stack(const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p, frame = (uintptr_t)__builtin_frame_address(0);

	return at > frame && at < local.stack_end && at - frame < NEAR_FRAMES &&
	       bytes <= local.stack_end - at;
}

/* Returns whether the hooks of this thread must make no system calls of their own. */
static inline bool in_sandbox(void)
{
	return agent.sandboxed || local.child_filtered;
}

/* Returns whether this thread's mask may be changed: behind a filter, too, if that permits it. */
static inline bool may_mask(void)
{
	return !in_sandbox() || (agent.filtered && agent.permits_mask && !local.child_filtered);
}

/* The linker defines these: the beginning of this object and the end of its code. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* The kernel's signal set, as the system calls take it. */
typedef uint64_t ksigset;

static inline ksigset block_signals(void)
{
	ksigset all = ~(ksigset)0, old = 0;

	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	return old;
}

/* Returns the number of the signal that this thread's timer sends. */
static inline int agent_signo(void)
{
	return local.signo ? local.signo : agent.signo;
}

static inline ksigset agent_sigset(void)
{
	return (ksigset)1 << (agent_signo() - 1);
}

static inline void restore_signals(ksigset old)
{
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
}

static inline void change_agent_signal(int how)
{
	ksigset one = agent_sigset();

	sys4(SYS_rt_sigprocmask, how, &one, NULL, sizeof(one));
}

/* Returns whether this stack has no room for the agent's signal (hold_back.c). */
static inline __attribute__((always_inline)) bool is_held(void)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	return local.cramped || frame - local.held.lo < local.held.hi - local.held.lo;
}

/* Unblocks the agent's signal, unless it is held back. */
static inline __attribute__((always_inline)) void admit_agent_signal(void)
{
	if (!is_held())
		change_agent_signal(SIG_UNBLOCK);
}

static inline uint64_t to_ns(struct timespec ts)
{
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/*
 * Returns the time of @clock in nanoseconds. It makes a system call, because libc reads the time
 * stamp counter, which a program may have made fault (PR_SET_TSC). Returns 0 if the counter faults
 * and no system call may be made.
 */
static inline uint64_t now(clockid_t clock)
{
	struct timespec ts = { 0 };

	if (!in_sandbox())
		sys2(SYS_clock_gettime, clock, &ts);
	else if (!agent.tsc_faults)
		clock_gettime(clock, &ts);
	return to_ns(ts);
}

/* Returns the clock by which periods end. */
static inline clockid_t agent_clock(void)
{
	return agent.wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
}

static inline struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/*
 * Returns whether this is the child of a clone() that shares its parent's memory and runs beside
 * it.
 */
static inline bool is_relative(void)
{
	return unlikely(agent.shares_memory) && !in_sandbox() && agent.pid != (int)sys0(SYS_getpid);
}

/* Returns the calling thread, or NULL if it did not register itself. */
static inline struct agent_thread *agent_self(void)
{
	struct agent_thread *t = is_relative() ? NULL : pthread_getspecific(agent.key);

	return t && t->pid == agent.pid ? t : NULL;
}

/*
 * A tick of the kernel is a small part of a period that is longer than this, in ns, and few threads
 * get so far.
 */
#define LONG_PERIOD 50000000

/*
 * Returns whether each of the kernel's ticks in @t is to signal, because it stands for its length of
 * CPU time (ended.c).
 */
static inline bool by_tick(const struct agent_thread *t)
{
	return !t->event && !agent.wall && agent.tick && agent.period <= LONG_PERIOD;
}

/* Entries of a stack that tell what the thread is in. */
#define NEAR_CALLERS 64

/* Returns whether @pc is code of this object, not of the program. */
static inline bool is_agent_code(uint64_t pc)
{
	return pc >= (uintptr_t)__ehdr_start && pc < (uintptr_t)etext;
}

/*
 * Returns the flags for a capture. A program may have removed access to a page of its stack, so the
 * stack is checked, except behind a filter of system calls.
 */
static inline uint32_t capture_flags(void)
{
	return agent.sandboxed ? 0 : SHSTK_CHECK_STACK;
}

/* main.c */
void agent_fork_child(void);
void agent_leave(void);
/* Unmaps rings because the program has a new limit of its address space. */
void agent_obey_limit(void);
/* Unmaps rings because the program is about to lock all its memory. */
void agent_before_lock(void);
bool agent_has_ring(uint32_t i);
/*
 * Ends what is done while a program is executed, if a handler of the program has left that call by longjmp(). To be
 * called in hooks where local.hand_on_depth is not 0.
 */
void mend_handed_on(void);

/* thread_event.c */
void event_begin(struct agent_thread *t);
bool event_is_late(const struct agent_thread *t, uint64_t at);
/*
 * Opens the event for all periods but the first, in the thread's handler. Returns whether it was opened
 * now: then @owed of the thread has the periods that ran out until that moment.
 */
bool event_open(struct agent_thread *t);
void event_close(struct agent_thread *t);
void event_end(struct agent_thread *t);
bool event_sent(const struct agent_thread *t, const siginfo_t *si);
/*
 * Returns whether the signal is of an event that was closed meanwhile, or of another thread's
 * event. The program's own descriptors send the same kind of signal, but only with a number that
 * the program has chosen for that.
 */
bool event_late(const siginfo_t *si);

/* thread.c */
struct agent_thread *agent_take(int tid, bool managed);
void agent_drop(struct agent_thread *t);
void agent_begin(struct agent_thread *t);
void agent_end_thread(struct agent_thread *t);
void agent_disarm(struct agent_thread *t);
void agent_end_waits(void);
void scan_threads(void);
/* Makes a timer that signals thread @tid. Returns 0 or a negative errno. */
long timer_make(clockid_t clock, int signo, int tid, void *value, int *timer);
/* Makes the thread's timer go on with signal @signo. */
void agent_retime(struct agent_thread *t, int signo);
/* Returns the interval of the thread's timer, in ns. */
uint64_t agent_interval(const struct agent_thread *t);
/* Stops the calling thread's timer, until as many calls of agent_go_on(). */
void agent_pause(struct agent_thread *t);
/* Undoes one agent_pause(). Returns the periods that ran out meanwhile, which the timer does not report. */
uint64_t agent_go_on(struct agent_thread *t);
/* Makes the calling thread's timer signal at the first tick that finds the thread. */
void agent_ask(struct agent_thread *t);

/* handler.c */
int handler_install(void);
/* Returns whether the signal was sent to the agent, in this thread. */
bool handler_is_ours(const siginfo_t *si);
/*
 * Takes a signal that was sent to the agent by a number that is not the agent's any more. Returns
 * false if it was not sent to the agent.
 */
bool handler_take_stray(int signo, siginfo_t *si, void *context);

/* move.c */
/* Makes this thread use the agent's current signal from now on. */
void move_follow(void);
/*
 * Gives up the agent's signal because the program uses it. Returns false if no other one is left.
 */
bool move_away(void);
/*
 * Gives up the agent's signal if the program uses it by naming it in @set. If the set has all
 * real-time signals, the agent keeps its signal.
 */
void move_if_named(const sigset_t *set);
/*
 * Makes the thread follow the agent's current signal, in the agent's handler. @mask has the signals
 * that are blocked when the handler ends.
 */
void move_in_handler(ksigset *mask);
/*
 * Removes from the queue the signals that were sent to the agent by @signo; the others stay, in
 * their order, and *@others tells whether there are any. Returns the number of expirations of the
 * timer of @t that the removed ones told of; @t may be NULL. Called with the signal blocked.
 */
uint64_t move_drain(int signo, const struct agent_thread *t, bool *others);
/*
 * Gives a signal that was not sent to the agent to the program, in the agent's handler. @mask has
 * the signals that are blocked when the handler ends. Returns false if the handler itself has to
 * call the program's handler.
 */
bool move_for(int signo, const siginfo_t *si, ksigset *mask);

/*
 * Bytes of the stack that a sample takes, and that a scan for threads takes. Code that is not optimised
 * has larger frames.
 */
#ifdef __OPTIMIZE__
#define SAMPLE_NEED (SHSTK_STACK_NEED + 1024)
#else
#define SAMPLE_NEED (2 * (SHSTK_STACK_NEED + 1024))
#endif
#define SCAN_NEED (SAMPLE_NEED + 2048)
/* Bytes of the stack that a hook takes, which a thread may call at the end of its stack. */
#define HOOK_NEED 2560

/* hold_back.c */
void held_resolve(void);
/* Returns how many bytes of the stack the kernel takes for a signal. */
size_t held_frame(void);
/*
 * Lets the agent's signal in if it is still held back for a handler that has ended, and the thread be sampled if it
 * is not because of a call that such a handler has left (main.c).
 */
void held_mend(void);
/*
 * Ends the event of the calling thread @t and stops its timer, until agent_go_on(), and takes what these have sent. A
 * signal that was not the agent's stays the program's. Called with the signal blocked.
 */
void held_stop(struct agent_thread *t);
/*
 * Holds the agent's signal back if this thread's stack is in pieces and it has no alternate stack.
 * To be called when the program blocks signals.
 */
void held_look(void);
/* To be called in a new process, whose system calls the kernel does itself again. */
void held_fork_child(void);
/*
 * Does beforehand what can't be done behind a filter of system calls, for the programs that the calling thread
 * executes there: ends its event, and, if its signal is held back, its sampling, so that the signal is admitted.
 */
void held_before_filter(void);

/* sample.c */
void take_name(struct agent_thread *t);
/* Captures the stack that the signal with @context interrupted, with a weight of @periods. */
void sample_take(struct agent_thread *t, uint64_t periods, const void *context);
/* Returns this thread's time in the kernel, as the kernel counts it, in ns. */
uint64_t time_in_kernel(void);
/* Writes a sample of @periods whose stack is not known. */
void sample_place(struct agent_thread *t, uint64_t periods, enum rec_place place);
/* Counts a sample. Returns room for its record of @room bytes, or NULL if the sample is lost. */
struct rec_sample *sample_new(struct agent_thread *t, uint64_t periods, uint32_t room);
void sample_fill(struct rec_sample *s, int type, int n, const uint8_t *marks, uint64_t periods,
		 const struct shstk_info *info);
#define CONTEXT_ROOM 80 /* bytes of the labels that context_labels() writes, at most */

/* Looks whether threads of the program publish trace contexts (context.c). */
void context_find(void);
/*
 * Writes the trace context of the calling thread as labels. Returns their bytes, 0 if there is none.
 * Async-signal-safe.
 */
uint32_t context_labels(char *to);

/*
 * Sets the size of a sample with @nr entries, whose marks are followed by @labels bytes of labels, and
 * returns it.
 */
uint32_t sample_set_labels(struct rec_sample *s, uint32_t nr, uint32_t labels);
void sample_put(struct agent_thread *t, uint32_t size);
uint64_t sample_late(struct agent_thread *t, uint64_t periods);
/*
 * Notes, with wall-clock time, that this thread is about to wait in @function and does nothing
 * else.
 */
void agent_open_wait(const void *function);
void agent_close_wait(void);

/**
 * struct frames - what Python runs in a thread
 * @moment: the frames; NULL: there are none, or they could not be read.
 * @bytes: bytes of @moment with its entries.
 * @unknown: there are frames that could not be read.
 * @place: where they were read; NULL: nowhere.
 */
struct workplace;
struct frames {
	const struct language_moment *moment;
	uint32_t bytes;
	bool unknown;
	const struct workplace *place;
};

/* python.c */
/* Looks whether the process has a Python that is known. */
void frames_find(void);
void frames_fork_child(void);
/*
 * Reads what Python runs in the calling thread, in a handler or with signals blocked. Functions that are
 * new go to the recorder. What is returned stays until frames_give().
 */
struct frames frames_take(struct agent_thread *t);
void frames_give(const struct frames *frames);

/* relatives.c */
void relatives_resolve(void);

/* settle.c */
/*
 * Returns how many periods ran out that are in no sample. @at is the thread's CPU clock now, here
 * and below: the clock is read by a system call, so a handler reads it once.
 */
uint64_t unsampled_periods(const struct agent_thread *t, uint64_t at);
/*
 * Returns whether the samples, and what the next one takes over, stand for more periods than ran
 * out. Late signals report the same periods again.
 */
bool is_ahead(const struct agent_thread *t, uint64_t at);
/* Returns how many of the unsampled periods no signal of the thread's event reported. */
uint64_t silent_periods(const struct agent_thread *t, uint64_t at);
/* Returns whether the thread had so few ticks yet that they tell too little of where it spent its time. */
bool is_young(const struct agent_thread *t);
/* Returns whether another of the agent's signals is pending because it is blocked. */
bool signal_is_held_back(void);
/* Accounts for the time before the thread has a timer. @at is its CPU clock now. */
void settle_early(struct agent_thread *t, uint64_t at);
/*
 * Accounts for the rest of the calling thread, which ends. @last: no other thread of this process
 * comes after it, and it accounts for what is left of those that ended, too.
 */
void agent_settle(struct agent_thread *t, bool last);
/*
 * Accounts for @periods of the calling thread, in which the agent's signal is held back, and whose timer stood
 * still: wall-clock time has no other account.
 */
void settle_stopped(struct agent_thread *t, uint64_t periods);

/* ended.c */
/*
 * Leaves @periods, which the calling thread spent in the kernel, to be shared by the ticks in other
 * threads with the same start routine, @start. @calls: what its own ticks tell. @behind: the time that it
 * used behind the last of these, in ns. Returns false if that was not possible. Signals are
 * blocked.
 */
bool ended_leave(const void *start, const struct calls *calls, uint64_t behind, uint64_t periods);
/*
 * Notes the first signal of a thread's timer, which came @in_call or not, when the thread had used
 * @used ns. Returns how many of the periods that ended threads with @start left belong to the place that
 * it found: that call, or none.
 */
uint64_t ended_share(const void *start, uint64_t used, bool in_call);
/*
 * A tick found a thread in a call, and stands for as much time there as it had since the tick before. Its
 * silent periods may be fewer, @here in this call: others end behind the tick, and it leaves them if it
 * ends. Returns how many of those that ended threads with @start left the call gets in their place. @calls:
 * its own, which are to count the periods that are returned as taken.
 */
uint64_t ended_lend(const void *start, struct calls *calls, uint64_t here);
/* Returns all periods that no place got; they are the caller's from now on. */
uint64_t ended_rest(void);
/*
 * Leaves @periods of the calling thread, which has no event, to the ticks in other threads with @start.
 * @behind: the time that it used behind its last tick, in ns. Returns false if that was not possible.
 * Signals are blocked.
 */
bool ended_leave_unseen(const void *start, uint64_t behind, uint64_t periods);
/*
 * Notes the first tick in a thread without an event, which had used @used ns. Returns how many of the
 * periods that ended threads with @start left belong to the place that it found.
 */
uint64_t ended_claim(const void *start, uint64_t used);
/* Returns all periods that no tick has claimed; they are the caller's from now on. */
uint64_t ended_unseen_rest(void);
/* Forgets what the threads of the parent left. */
void ended_fork_child(void);

/* ring.c */
void *ring_reserve(struct agent_thread *t, uint32_t size);
void ring_commit(struct agent_thread *t, uint32_t size);

/* send_maps.c */
void maps_send(struct agent_thread *t);
void maps_send_if_changed(void);
/*
 * Calls @fn with @arg for the lines of executable mappings in /proc/self/maps. @n is the length of
 * @line with its line end.
 */
typedef void (*maps_fn)(void *arg, const char *line, size_t n);
void maps_each(maps_fn fn, void *arg);

/**
 * struct next - the next functions, which the hooks of hooks.c call
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

/* A thread was created before the agent's constructor ran. */
extern _Atomic bool early_threads;

/* hooks.c */
void hooks_resolve(void);
void *next_symbol(const char *name);

/* signals.c */
void signals_resolve(void);
/* Takes over the handlers that the program has so far; from now on the agent knows them. */
void signals_adopt(void);
/* Mends the state of the signals in the child of a fork. */
void signals_fork_child(void);
/*
 * Takes a signal that has no handler yet and that @usable accepts, for @handler. Returns 0 or
 * -EBUSY.
 */
int signals_take_own(void (*handler)(int, siginfo_t *, void *), bool (*usable)(int signo));
/* Does for the program what sigaction() does. */
int signals_action(int signo, const struct sigaction *act, struct sigaction *old);
/* Returns whether @signo was the agent's signal before. */
bool signals_were_left(int signo);
/*
 * Takes another signal for the agent and gives the program its current one. Returns false if none
 * is left.
 */
bool signals_leave(void);
/*
 * Begins to have the kernel ignore the signals that are or were the agent's and that the program ignores,
 * while a program is executed, which gets that; or ends it. The agent's signals do not come meanwhile.
 * What the program ignores may change meanwhile, and other threads may do the same.
 */
void signals_hand_on(bool on);
/*
 * Handles a signal that was the agent's and that came for the program, which has no handler for it.
 * Returns true if its action is the default one, which the kernel now has; false if it is to be
 * ignored.
 */
bool signals_allow_default(int signo);
/* Notes the system call that the agent's signal interrupted in this thread. */
void signals_cut(const void *context);
/*
 * Gives the call that the signal with @context interrupted, if it is one that is to be interrupted
 * (wait.c), the result that a handler of the program would have given it, and the program its
 * signals. Only if local.knocking.
 */
void signals_knocked(void *context);
/* Returns whether the signal was held back until now. To be asked once for each signal. */
bool signals_held(const void *context);
/*
 * Returns whether the calling thread is in a handler of the program that has the agent's signal in its sa_mask. Only
 * to be called behind a filter of system calls if permits_hand_on.
 */
bool signals_masked(void);
/*
 * Makes sure that SIGIO does not end the program (thread_event.c). Returns false if it might; the
 * caller tries again later.
 */
bool signals_guard_io(void);
/* Changes the action that the kernel has for @signo to what the program believes it is. */
void signals_translate(int signo, struct sigaction *act);
/* Calls the program's handler for a signal by the agent's number that somebody else sent. */
void signals_chain(int signo, siginfo_t *si, void *context);
/*
 * Copies a set of the program's, as far as the kernel looks at it. Returns false if it cannot be
 * read; the call itself then reports the error.
 */
bool take_set(const sigset_t *set, sigset_t *copy);
/**
 * struct kernel_action - the kernel's layout of struct sigaction
 * @handler: the function.
 * @flags: sa_flags.
 * @restorer: what the kernel returns to.
 * @mask: sa_mask.
 */
struct kernel_action {
	void (*handler)(int signo);
	unsigned long flags;
	void (*restorer)(void);
	ksigset mask;
};

/* Returns @set without the agent's signal; @copy has room for it. */
const sigset_t *without_own(const sigset_t *set, sigset_t *copy);

/* wait.c */
void wait_resolve(void);
/* Deletes the timer that interrupts a call of this thread, if there is one. */
void wait_forget_knock(void);
/* Interrupts a call that is to be interrupted again, later, in the agent's handler. */
void wait_knock_again(void);
/* Returns whether the signal came to interrupt such a call of this thread. */
static inline bool is_knock(const siginfo_t *si)
{
	return si->si_code == SI_TIMER && si->si_value.sival_ptr == &local;
}

/* children.c */
void children_resolve(void);
void children_end(struct agent_thread *t);
void children_exec(int pid, bool spawned, const char *path);

#endif
