/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agent.h - private parts of libshstk-agent.so, preloaded by `shstk record`.
 *
 *   main.c     finds the recorder's memory; start, fork and end of a process
 *   thread.c   slots, timers, threads that come and go, the signal handler
 *   maps.c     tells the recorder what is mapped
 *   hooks.c    the library calls that the agent must see
 *   sleep.c    calls that sleep, which must not notice the sampling
 *   sandbox.c  programs that give up system calls
 *   env.c      keeps the agent in the environment of what is executed
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

#include "ring.h"
#include "sys.h"

#define HOOK_API __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/**
 * struct thread - this process's view of a slot; same index as the slot
 * @pid: process that took the slot; another value: inherited over fork, dead.
 * @tid: thread ID.
 * @timer: kernel's timer ID.
 * @armed: @timer exists.
 * @managed: the thread itself calls agent_end_thread(); else scan() looks for it.
 * @start: this thread's CPU clock when its timer was armed, in ns.
 * @first: length of the first period, in ns.
 * @periods: periods in the samples so far, lost ones included.
 * @rounds: destructor rounds seen.
 * @seen: number of the scan that saw it last.
 * @cut: stack pointer at the system call that the agent's signal, and no other one,
 *	ended with EINTR last, since a hook of sleep.c set it to 0.
 * @head: bytes produced; only this thread's own code changes it.
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
	uint8_t rounds;
	uint64_t start;
	uint64_t first;
	uint64_t periods;
	uint32_t seen;
	_Atomic uint64_t cut;
	uint64_t head;
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
 * @wall: samples wall-clock time.
 * @pid: this process, or -1 in a child that could not be followed.
 * @signo: signal of the timers.
 * @nr_slots: slots that are mapped; at most header->nr_slots.
 * @instance: of this process image.
 * @parent: instance it was forked from, or 0.
 * @start_slot: slot with its REC_START record.
 * @parent_slot: slot with that of @parent.
 * @key: its destructor ends threads.
 * @opens: calls of dlopen() so far.
 * @lock: guards registration of threads against scan(); taken with all
 *	signals blocked; a handler only tries it.
 * @header: the shared memory.
 * @slots: the slots in it.
 * @rings: the rings in it.
 * @threads: one for each mapped slot.
 */
struct agent {
	bool on;
	bool sandboxed;
	bool wall;
	int pid;
	int signo;
	uint32_t nr_slots;
	uint32_t instance;
	uint32_t parent;
	uint32_t start_slot;
	uint32_t parent_slot;
	pthread_key_t key;
	_Atomic uint32_t opens;
	_Atomic int lock;
	struct rec_header *header;
	struct rec_slot *slots;
	uint8_t *rings;
	struct thread *threads;
};

extern struct agent agent;

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

static inline void restore_signals(ksigset old)
{
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
}

static inline void change_own_signal(int how)
{
	ksigset one = (ksigset)1 << (agent.signo - 1);

	sys4(SYS_rt_sigprocmask, how, &one, NULL, sizeof(one));
}

/* main.c */
void agent_fork_child(void);
void agent_leave(void);

/* thread.c */
uint64_t now(clockid_t clock);
struct thread *agent_take(int tid, bool managed);
void agent_drop(struct thread *t);
void agent_begin(struct thread *t);
void agent_end_thread(struct thread *t);
struct thread *agent_self(void);
void agent_settle(struct thread *t);
void scan_threads(void);
int handler_install(void);
void *ring_reserve(struct thread *t, uint32_t size);
void ring_commit(struct thread *t, uint32_t size);

/* maps.c */
void maps_send(struct thread *t);
void maps_send_if_changed(void);

/**
 * struct next - the functions that the hooks of hooks.c stand in front of
 */
struct next {
	int (*pthread_create)(pthread_t *, const pthread_attr_t *,
			      void *(*)(void *), void *);
	int (*thrd_create)(thrd_t *, thrd_start_t, void *);
	pid_t (*fork_raw)(void);
	void (*exit_raw)(int);
	void *(*dlopen)(const char *, int);
	void *(*dlmopen)(Lmid_t, const char *, int);
	int (*dlclose)(void *);
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	int (*sigprocmask)(int, const sigset_t *, sigset_t *);
	int (*pthread_sigmask)(int, const sigset_t *, sigset_t *);
	int (*sigwait)(const sigset_t *, int *);
	int (*signalfd)(int, const sigset_t *, int);
	sighandler_t (*signal)(int, sighandler_t);
};

extern struct next next;

/* hooks.c */
void hooks_resolve(void);
void *next_symbol(const char *name);
/* @set without the agent's signal; @copy has room for it. */
const sigset_t *without_own(const sigset_t *set, sigset_t *copy);
/* What the program believes to be the action of the agent's signal. */
extern struct sigaction program_action;

/* sleep.c */
void sleep_resolve(void);
/* The agent's signal interrupted thread @t, which is this one, there. */
void sleep_cut(struct thread *t, const void *context);

/* sandbox.c */
void sandbox_resolve(void);

/* env.c */
void env_resolve(void);
void env_remember(const char *record);

#endif
