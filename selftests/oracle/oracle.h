/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oracle.h - the parts of the oracle, a single-stepper that knows the stack.
 *
 *	insn.c		what an instruction does to the stack, from its bytes
 *	memory.c	the program's memory, cached between stops
 *	truth.c		the true stack, from what instructions did
 *	step.c		ptrace: every thread, one instruction at a time
 *	breakpoint.c	or up to an address
 *	compare.c	the unwinders' answers against the truth
 *	report.c	names, causes of misses, KTAP and the table
 *	oracle.c	options
 *
 * The truth never looks at unwind information: a call pushes what it put on
 * the stack, and an entry ends when the stack pointer rises above its slot.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/user.h>

#include "memory.h"

struct process;

enum peer { PEER_SHSTK, PEER_LIBUNWIND, PEER_FRAMEHOP, PEERS };

#define MAX_FRAMES 4096

/* ---- insn.c ---- */

enum insn_kind {
	INSN_PLAIN,
	INSN_CALL,
	INSN_RET,
	INSN_SYSCALL,
	INSN_PUSH,
	INSN_POP, /* pops into a general register */
	INSN_LOAD_SP, /* sets the stack pointer from a register or memory */
	INSN_REP, /* repeats itself: many steps at one address */
};

enum insn_write {
	WRITE_NONE,
	WRITE_STACK, /* writes below the stack pointer, as push and call do */
	WRITE_OPERAND, /* writes @size bytes at base + index * scale + disp */
	WRITE_ANYWHERE,
};

/**
 * struct insn - one decoded instruction
 * @owner: process it was decoded in.
 * @pc: its address.
 * @len: bytes.
 * @kind: enum insn_kind.
 * @write: enum insn_write.
 * @base: register number of the written operand's address, see insn_reg();
 *	-1 for none.
 * @index: the same for the index register.
 * @scale: factor of the index.
 * @segment: 0, or 'f' or 'g' for fs and gs.
 * @size: bytes written.
 * @disp: displacement; rip-relative ones are already absolute.
 */
struct insn {
	const struct process *owner;
	u64 pc;
	uint8_t len;
	uint8_t kind;
	uint8_t write;
	int8_t base;
	int8_t index;
	uint8_t scale;
	char segment;
	uint16_t size;
	int64_t disp;
};

const struct insn *insn_at(struct process *p, u64 pc);
void insn_flush(void);
bool insn_operand(const struct insn *insn, const struct user_regs_struct *regs, u64 *addr);

/* ---- truth.c ---- */

enum frame_kind {
	FRAME_CALL, /* @pc is the return address that a call pushed */
	FRAME_SIGNAL, /* @pc is the interrupted program counter */
	FRAME_START, /* @pc was put there by makecontext() or its like */
};

/**
 * struct frame - one entry of the true stack
 * @slot: address of the return address; for FRAME_SIGNAL the interrupted
 *	stack pointer minus one.
 * @pc: code address.
 * @base: FRAME_SIGNAL: the end of the interrupted stack.
 * @saved: FRAME_SIGNAL: where the kernel keeps the program counter; a handler
 *	may change it.
 * @born: truth_now when it was pushed.
 * @kind: enum frame_kind.
 * @other_stack: FRAME_SIGNAL: the handler runs on an alternate stack.
 */
struct frame {
	u64 slot;
	u64 pc;
	u64 base;
	u64 saved;
	u64 born;
	uint8_t kind;
	bool other_stack;
};

struct group;

/**
 * struct pending - a miss that the end of its function may yet explain
 * @group: where it was counted.
 * @when: truth_now.
 * @silent: as in struct miss.
 * @guessed: as in struct miss.
 */
struct pending {
	struct group *group;
	u64 when;
	bool silent;
	bool guessed;
};

#define MAX_PENDING 1024

/**
 * struct stack - the true stack of one thread or coroutine
 * @frames: entries, outermost first.
 * @count: their number.
 * @base: no frame of this stack lies above.
 * @sp: the stack pointer when the thread left this stack.
 * @held: a return address was popped into a register (vfork() does that).
 * @held_frame: that entry.
 * @landing: control came here by a load of the stack pointer, and is still in
 *	the function that did it.
 * @pending: misses of each unwinder since the innermost function was entered;
 *	older ones are dropped when it is full.
 * @npending: how many were added so far.
 * @next: other stacks that this thread left.
 */
struct stack {
	struct frame frames[MAX_FRAMES];
	unsigned int count;
	u64 base;
	u64 sp;
	bool held;
	struct frame held_frame;
	bool landing;
	struct pending pending[PEERS][MAX_PENDING];
	unsigned int npending[PEERS];
	struct stack *next;
};

struct stack *stack_create(u64 sp);
struct stack *stack_copy(const struct stack *s);
void stack_destroy(struct stack *s);

struct truth_stats {
	u64 calls;
	u64 returns;
	u64 odd_returns; /* returns to an address that no call pushed */
	u64 signals;
	u64 switches;
	u64 overflows;
};
extern struct truth_stats truth_stats;
extern u64 truth_now; /* number of instructions that the truth has followed so far */

void truth_step(struct stack **s, struct memory *m, const struct insn *insn,
		const struct user_regs_struct *before, const struct user_regs_struct *after);
bool truth_signal(struct stack *s, struct memory *m, const struct user_regs_struct *before,
		  const struct user_regs_struct *after);
void truth_rise(struct stack *s, u64 sp);
unsigned int truth_trace(const struct stack *s, struct memory *m, u64 pc, u64 *pcs,
			 unsigned int max, bool held);

/* ---- breakpoint.c ---- */

enum breakpoints {
	BREAK_BEST, /* debug registers if they work, else INT3 */
	BREAK_HARDWARE,
	BREAK_INT3,
	BREAK_STEP, /* no breakpoint: every instruction up to there is stepped */
};

/**
 * struct breakpoint - where a thread shall stop
 * @addr: the address, or 0.
 * @planted: where an INT3 is now, while the thread runs.
 * @was: where one was until the thread stopped last.
 * @word: the program's code there.
 * @blocked: the thread waits in vfork(): its child runs in this memory.
 */
struct breakpoint {
	u64 addr;
	u64 planted;
	u64 was;
	u64 word;
	bool blocked;
};

/* Chooses once how threads are stopped, and prints that. */
void breakpoint_choose(enum breakpoints wanted);
/*
 * Returns whether a thread runs up to a breakpoint at full speed. @alone: as for breakpoint_run().
 */
bool breakpoint_is_cheap(bool alone);
/*
 * Stops thread @tid, which is stopped now, at @addr; 0: nowhere. Returns false if that is
 * impossible.
 */
bool breakpoint_set(struct breakpoint *b, pid_t tid, u64 addr);
/* Notes a child @tid of a thread that stopped: it does not have its parent's breakpoint. */
void breakpoint_child(const struct breakpoint *parent, pid_t tid);
/* Notes that the thread runs another program now. */
void breakpoint_exec(struct breakpoint *b);
/*
 * Notes that the thread stopped by @sig, and corrects its registers @r if the breakpoint was the
 * cause.
 */
void breakpoint_stopped(struct breakpoint *b, pid_t tid, struct user_regs_struct *r, int sig);
/*
 * Lets the thread run with signal @sig. @alone: no other thread shares its memory. The thread may
 * stop by SIGTRAP anywhere.
 */
void breakpoint_run(struct breakpoint *b, pid_t tid, bool alone, int sig);

/* ---- step.c ---- */

struct process {
	pid_t pid;
	unsigned int users;
	struct memory *memory;
	struct unwinders *unwinders;
	u64 vdso;
	u64 catches; /* set of signals with handlers, as far as they were asked for */
	u64 code_maps; /* hash of the executable mappings */
	struct process *next;
};

/**
 * struct plan - what to run and how far
 * @argv: the program.
 * @name: how it is called in the report.
 * @input: file for its standard input, or NULL.
 * @from: first instruction: "start" of the process, "entry" of the program,
 *	or a function's name ("main").
 * @steps: instructions to check at most.
 * @fresh: calls of one function that are stepped before it is sampled; 0 steps
 *	everything.
 * @window: steps in a row, then run until one of the frames on the stack
 *	returns; 0 never.
 * @inject: send SIGUSR1 before every n-th instruction, 0 never.
 * @seconds: wall clock limit.
 * @breakpoints: how to stop at an address.
 */
struct plan {
	char **argv;
	const char *name;
	const char *input;
	const char *from;
	u64 steps;
	unsigned int fresh;
	unsigned int window;
	unsigned int inject;
	unsigned int seconds;
	enum breakpoints breakpoints;
};

struct run_stats {
	u64 steps;
	u64 skipped_calls;
	u64 repeats;
	u64 threads;
	u64 processes;
	u64 lost;
	int exit_status; /* status as wait(2) has it, or -1 if the oracle ended it */
	double seconds;
};

int run_plan(const struct plan *plan, struct run_stats *stats);

/* ---- compare.c ---- */

extern bool use_peer[PEERS];
int framehop_choose(void);
const unsigned long long *dwarf_register(const struct user_regs_struct *r, int n);
struct unwinders *unwinders_create(struct process *p);
void unwinders_destroy(struct unwinders *u);
void unwinders_changed(struct unwinders *u);
void compare(struct process *p, pid_t tid, struct stack *s, const struct user_regs_struct *regs);

/* ---- report.c ---- */

bool report_never_returns(struct process *p, u64 function);
void report_forget_names(struct process *p);

enum miss_kind {
	MISS_SHORT, /* correct as far as it goes, but frames are missing */
	MISS_WRONG, /* an address that is not on the true stack */
	MISS_LONG, /* goes on after the outermost frame */
};

enum cause {
	CAUSE_NO_INFO, /* no unwind information covers the frame */
	CAUSE_TABLE, /* the unwind information is wrong there */
	CAUSE_END, /* the outermost frame was not recognised */
	CAUSE_OWN, /* the unwind information is right, but the unwinder read it wrongly */
	CAUSE_SWITCH, /* the function was replacing the stack pointer */
	CAUSES,
};

/**
 * struct miss - a trace that differs from the truth
 * @peer: whose.
 * @kind: how.
 * @pc: the frame that was unwound wrongly: its code address...
 * @is_return: ...which is a return address.
 * @sp: stack pointer of the innermost frame.
 * @silent: the unwinder claimed the trace to be complete.
 * @guessed: the wrong entry was marked as a guess.
 */
struct miss {
	enum peer peer;
	enum miss_kind kind;
	u64 pc;
	bool is_return;
	bool silent;
	bool guessed;
};

struct tally {
	u64 checked;
	u64 exact;
	u64 exact_open; /* all addresses right, end not recognised */
	u64 guessed; /* exact traces with an entry that is marked as a guess */
	u64 switching; /* misses while a function replaced the stack */
	u64 held; /* traces that are exact if a return address in a register counts */
};
extern struct tally tally[PEERS];

void report_switched(struct stack *s, u64 since);
void report_miss(struct process *p, struct stack *s, const struct miss *miss, bool other_right,
		 const u64 *trace, unsigned int count, const u64 *truth, unsigned int depth,
		 const struct user_regs_struct *regs, const char *end);
int report_read_known(const char *path);
unsigned int report_finish(const struct plan *plan, const struct run_stats *stats, FILE *table);

extern int verbose;

#endif /* ORACLE_H */
