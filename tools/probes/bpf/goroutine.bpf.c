// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * goroutine.bpf.c - BPF program that copies the other stack of Go's threads, for `shstk record`
 * with copies of stacks.
 *
 * It runs in the kernel, at each sample of a perf event. The event itself copies one stack. If that
 * is the thread's own stack, or the one for signals, the goroutine that the thread runs is on
 * another stack: this program copies the other stack at the same moment, and the runtime's
 * descriptions that lead to it. All memory that it reads belongs to the user program and may hold
 * anything. If the descriptions do not point at each other, it is no Go program and nothing is
 * sent.
 */
#include <linux/bpf.h>

#include "goroutine.h"

typedef __u64 u64;
typedef __u32 u32;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

static u64 (*const now)(void) = (void *)BPF_FUNC_ktime_get_ns;
static u64 (*const current_ids)(void) = (void *)BPF_FUNC_get_current_pid_tgid;
static void *(*const current_task)(void) = (void *)BPF_FUNC_get_current_task_btf;
static void *(*const user_registers)(void *task) = (void *)BPF_FUNC_task_pt_regs;
static long (*const read_user)(void *to, u32 size,
			       const void *from) = (void *)BPF_FUNC_probe_read_user;
static void *(*const reserve)(void *ring, u64 size, u64 flags) = (void *)BPF_FUNC_ringbuf_reserve;
static void (*const submit)(void *record, u64 flags) = (void *)BPF_FUNC_ringbuf_submit;

/*
 * Indices of the registers that are used: the one in which Go keeps its goroutine, the program
 * counter and the stack pointer.
 */
#ifdef PROBES_X86
enum { GOROUTINE = 1, PROGRAM_COUNTER = 16, STACK_POINTER = 19 };
#else
enum { GOROUTINE = 28, PROGRAM_COUNTER = 32, STACK_POINTER = 31 };
#endif

/* Offsets in Go's descriptions. They are the same from Go 1.15 to 1.27, except M_CURG. */
enum {
	G_LO = 0,
	G_HI = 8,
	G_M = 0x30,
	G_SCHED_SP = 0x38,
	G_SCHED_G = 0x48,
	M_G0 = 0,
	M_CURG = 184,
	M_CURG_BEFORE_1_25 = 192,
};

#define CHUNK 2048 /* bytes; the sizes of goroutines' stacks are multiples of it */

/* A map as the recorder's loader reads it. */
struct map {
	u32 type, key_size, value_size, max, flags;
};

SECTION("maps") struct map ring = { .type = BPF_MAP_TYPE_RINGBUF, .max = 1 << 23 };

/**
 * struct goroutine_moment - the thread at the moment of a sample
 * @g: goroutine (struct g) of the stack that the thread is on.
 * @g0: goroutine of the thread's own stack.
 * @m: the thread (struct m).
 * @curg: the goroutine that the thread runs, or 0.
 * @from: lower end of the part of the goroutine's stack that is in use.
 * @end: upper end of the goroutine's stack.
 * @time: time at which the program began, in ns.
 */
struct goroutine_moment {
	u64 g, g0, m, curg;
	u64 from, end;
	u64 time;
};

/* Reads a register. The verifier wants registers to be read directly, not by a computed pointer. */
INLINE u64 word(const u64 *words, int i)
{
	return ((const volatile u64 *)words)[i];
}

/* Reads a word of user space. Returns 0 if this is not possible. */
INLINE u64 user_word(u64 at)
{
	u64 value = 0;

	if (!at || at & 7 || read_user(&value, sizeof(value), (void *)at))
		return 0;
	return value;
}

INLINE int is_goroutine(const struct goroutine_moment *m, u64 g)
{
	return g && g != m->g0 && user_word(g + G_SCHED_G) == g && user_word(g + G_M) == m->m;
}

/* Fills @m. Returns 1 if this is a thread of Go that is not on the stack of its goroutine. */
INLINE int find_moment(struct goroutine_moment *m, u64 g, u64 sp)
{
	u64 lo, saved;

	m->g = g;
	m->m = user_word(g + G_M);
	m->g0 = m->m ? user_word(m->m + M_G0) : 0;
	if (!m->g0 || user_word(m->g0 + G_M) != m->m)
		return 0;
	m->curg = user_word(m->m + M_CURG);
	if (!is_goroutine(m, m->curg))
		m->curg = user_word(m->m + M_CURG_BEFORE_1_25);
	m->from = m->end = 0;
	if (!is_goroutine(m, m->curg)) {
		m->curg = 0;
		return g == m->g0;
	}
	lo = user_word(m->curg + G_LO);
	m->end = user_word(m->curg + G_HI);
	if (sp > lo && sp <= m->end)
		return 0;
	/*
	 * Only a switch to g0 saves the stack pointer. A signal may come anywhere and saves
	 * nothing.
	 */
	saved = user_word(m->curg + G_SCHED_SP);
	m->from = g == m->g0 && saved > lo && saved <= m->end ? saved : lo;
	return 1;
}

INLINE void take_piece(struct go_piece *piece, u64 addr)
{
	piece->addr = addr;
	if (!addr || read_user(piece->words, sizeof(piece->words), (void *)addr))
		piece->addr = 0;
}

/*
 * Copies the goroutine's stack from its upper end down, as far as it is in use and in memory, to
 * the end of the @max bytes at @to. @max is a constant. Returns the number of bytes.
 */
INLINE u64 take_stack(__u8 *to, const struct goroutine_moment *m, const u64 max)
{
	u64 done = 0;

	for (u64 at = CHUNK; at <= max; at += CHUNK) {
		if (m->end - done <= m->from ||
		    read_user(to + (max - at), CHUNK, (void *)(m->end - at)))
			break;
		done = at;
	}
	return done;
}

INLINE void send(const struct goroutine_moment *m, const u64 *registers, const u64 max)
{
	struct go_moment *r = reserve(&ring, sizeof(*r) + max, 0);

	if (!r)
		return;
	r->tid = (u32)current_ids();
	r->room = max;
	r->time = m->time;
	r->pc = word(registers, PROGRAM_COUNTER);
	r->sp = word(registers, STACK_POINTER);
	take_piece(&r->pieces[GO_PIECE_G], m->g);
	take_piece(&r->pieces[GO_PIECE_G0], m->g0);
	take_piece(&r->pieces[GO_PIECE_M], m->m);
	take_piece(&r->pieces[GO_PIECE_CURG], m->curg);
	r->end = m->end;
	r->size = m->curg ? take_stack(r->stack, m, max) : 0;
	submit(r, BPF_RB_NO_WAKEUP);
}

/* Sends what belongs to a sample. Returns 1 in any case: the sample itself is to be taken. */
SECTION("perf_event") int sample(void *context)
{
	struct goroutine_moment m = { .time = now() };
	const u64 *registers;

	(void)context;
	if (!(u32)current_ids())
		return 1; /* an idle CPU */
	registers = user_registers(current_task());
	if (!find_moment(&m, word(registers, GOROUTINE), word(registers, STACK_POINTER)))
		return 1;
	if (m.end - m.from <= GO_STACK)
		send(&m, registers, GO_STACK);
	else
		send(&m, registers, GO_LARGE_STACK);
	return 1;
}
