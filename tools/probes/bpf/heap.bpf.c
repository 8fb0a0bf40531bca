// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * heap.bpf.c - BPF programs that record the calls of an allocator for `shstk record --heap -p`.
 *
 * They run in the kernel, at uprobes: enter() when a function that allocates begins, leave() when
 * it returns, release() when a function that frees begins, mapped() when the loader has mapped
 * libraries. If functions of the allocator call each other, as realloc() may call malloc(), only the
 * outermost call counts.
 *
 * A sampled allocation gives two records: the stack when the function is called, and the address of
 * the block when it returns. The address is kept in a map, so that frees of other blocks give no
 * record. If few allocations are sampled, most frees are such.
 *
 * If a process has an interpreter, enter() calls another program that reads its frames
 * (bpf/probed.bpf.c), and that one calls begun(), which records the stack.
 */
#include <linux/bpf.h>

#include "event.h"

typedef __u64 u64;
typedef __u32 u32;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

static void *(*const map_find)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const map_put)(void *map, const void *key, const void *value,
			     u64 flags) = (void *)BPF_FUNC_map_update_elem;
static long (*const map_remove)(void *map, const void *key) = (void *)BPF_FUNC_map_delete_elem;
static u64 (*const now)(void) = (void *)BPF_FUNC_ktime_get_ns;
static u32 (*const random_word)(void) = (void *)BPF_FUNC_get_prandom_u32;
static u64 (*const current_ids)(void) = (void *)BPF_FUNC_get_current_pid_tgid;
static long (*const current_comm)(void *buf, u32 size) = (void *)BPF_FUNC_get_current_comm;
static u64 (*const cookie_of)(void *words) = (void *)BPF_FUNC_get_attach_cookie;
static long (*const read_user)(void *to, u32 size,
			       const void *from) = (void *)BPF_FUNC_probe_read_user;
static void *(*const reserve)(void *ring, u64 size, u64 flags) = (void *)BPF_FUNC_ringbuf_reserve;
static long (*const tail_call)(void *words, void *map, u32 i) = (void *)BPF_FUNC_tail_call;
static void (*const submit)(void *record, u64 flags) = (void *)BPF_FUNC_ringbuf_submit;

/* Indices of the registers that are used, in the words that the kernel passes. */
#ifdef PROBES_X86
enum { ARG0 = 14, ARG1 = 13, ARG2 = 12, STACK_POINTER = 19, RETURNED = 10 };
#define RETURN_POPS 8 /* bytes that a return takes off the stack */
#else
enum { ARG0 = 0, ARG1 = 1, ARG2 = 2, STACK_POINTER = 31, RETURNED = 0 };
#define RETURN_POPS 0
#endif

/*
 * The distance to the next sample point, in bytes to be allocated, for each CPU. @begun is 0 as
 * long as @left is not set.
 */
struct distance {
	u64 left;
	u64 begun;
};

/* A map as the recorder's loader reads it. The maps below are in the order of enum probe_map. */
struct map {
	u32 type, key_size, value_size, max, flags;
};

#define MAP(name, t, key, value, m, f) \
	SECTION("maps")                \
	struct map name = { .type = t, .key_size = key, .value_size = value, .max = m, .flags = f }

MAP(config, BPF_MAP_TYPE_ARRAY, 4, sizeof(struct probe_config), 1, 0);
MAP(counts, BPF_MAP_TYPE_ARRAY, 4, sizeof(struct probe_counts), 1, 0);
MAP(gaps, BPF_MAP_TYPE_ARRAY, 4, 8, PROBE_GAPS, 0);
MAP(distances, BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct distance), 1, 0);
MAP(calls, BPF_MAP_TYPE_HASH, 8, sizeof(struct probe_pending), 1 << 16, BPF_F_NO_PREALLOC);
MAP(blocks, BPF_MAP_TYPE_HASH, sizeof(struct probe_block), 8, 1 << 22, BPF_F_NO_PREALLOC);
MAP(ring, BPF_MAP_TYPE_RINGBUF, 0, 0, 1 << 26, 0);
MAP(tails, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, PROBE_TAILS, 0);

/* Reads a register. The verifier wants registers to be read directly, not by a computed pointer. */
INLINE u64 word(const u64 *words, int i)
{
	return ((const volatile u64 *)words)[i];
}

INLINE void *first(void *map)
{
	u32 zero = 0;

	return map_find(map, &zero);
}

/*
 * Makes the kernel keep the program's stack where it belongs, by a tail call that does nothing,
 * since there is no such program. From Linux 6.13 on, a program with tail calls keeps its variables on the
 * kernel stack. Other programs with 64 bytes or more of variables get a stack per CPU. But a thread
 * that runs a program at an uprobe may be preempted, and the next thread writes to the same stack:
 * what the first thread reads back is then the other thread's, even an address that it writes to.
 */
INLINE void claim_stack(u64 *words)
{
	tail_call(words, &tails, PROBE_TAIL_EMPTY);
}

INLINE void count_lost(u64 allocations, u64 frees)
{
	struct probe_counts *c = first(&counts);

	if (!c)
		return;
	if (allocations)
		__sync_fetch_and_add(&c->lost, allocations);
	if (frees)
		__sync_fetch_and_add(&c->lost_frees, frees);
}

INLINE void fill(struct probe_event *e, u32 what, u64 process)
{
	e->what = what;
	e->tid = (u32)current_ids();
	e->process = process;
	e->time = now();
	e->size = e->addr = e->old = e->frames = 0;
}

/* Returns the distance from one sample point to the next, in bytes. */
INLINE u64 next_gap(void)
{
	u32 i = random_word() % PROBE_GAPS;
	u64 *gap = map_find(&gaps, &i);

	return gap ? *gap : 1;
}

/*
 * Returns 1 if one of the block's bytes is a sample point. Sample points beyond the end of the
 * block are drawn anew. The thread may be preempted by another thread that does the same, so the
 * value that is compared is also the one that is subtracted from.
 */
INLINE int is_chosen(const struct probe_config *c, u64 size)
{
	struct distance *d = first(&distances);
	u64 left;

	if (!c->sample)
		return 1;
	if (!d)
		return 0;
	if (!d->begun) {
		d->left = next_gap();
		d->begun = 1;
	}
	left = *(volatile u64 *)&d->left;
	if (left >= size) {
		d->left = left - size;
		return 0;
	}
	d->left = next_gap();
	return 1;
}

/* Counts a call that did not return where this would have been seen: its result is not known. */
INLINE void count_unseen(const struct probe_pending *call)
{
	struct probe_counts *c = first(&counts);

	if (c && call->chosen)
		__sync_fetch_and_add(&c->unseen, 1);
	count_lost(0, !!call->old);
}

/*
 * Copies the stack, at once if all @max bytes are in memory, else page by page. A page that is not
 * there may be one of a large array that was never used, and the callers lie behind it. @max is a
 * constant, which the verifier needs.
 */
INLINE void copy_stack(struct probe_call *r, u64 sp, const u64 max)
{
	u64 done = 4096 - (sp & 4095);

	r->missing = 0;
	r->stack_size = max;
	if (!read_user(r->stack, max, (void *)sp))
		return;
	r->stack_size = 0;
	if (read_user(r->stack, done & 4095 ? done & 4095 : 4096, (void *)sp))
		return;
	r->stack_size = done;
	for (int i = 1; i <= (int)(max / 4096); i++) {
		/*
		 * Keeps the compiler from counting and comparing another value in place of this
		 * one: the verifier would not know then that this one is bounded.
		 */
		asm volatile("" : "+r"(done));
		if (done > max - 4096)
			return;
		if (read_user(r->stack + done, 4096, (void *)(sp + done)))
			r->missing |= 1ull << i;
		else
			r->stack_size = done + 4096;
		done += 4096;
	}
}

INLINE int send_call(const u64 *words, u64 process, const struct probe_pending *call, const u64 max)
{
	struct probe_call *r = reserve(&ring, sizeof(*r) + max, 0);

	if (!r)
		return 0;
	fill(&r->event, PROBE_BEGINS, process);
	r->event.size = call->size;
	r->event.frames = call->frames;
	current_comm(r->comm, sizeof(r->comm));
#pragma unroll
	for (int i = 0; i < PROBE_WORDS; i++)
		r->words[i] = word(words, i);
	copy_stack(r, word(words, STACK_POINTER), max);
	submit(r, BPF_RB_NO_WAKEUP);
	return 1;
}

/*
 * Returns the bytes that a call asks for. A product that overflows is not allocated, so its value
 * does not matter.
 */
INLINE u64 size_asked(const u64 args[3], u32 kind)
{
	switch (kind) {
	case PROBE_SIZE:
		return args[0];
	case PROBE_COUNT_SIZE:
		return args[0] * args[1];
	case PROBE_POINTER:
		return args[2];
	case PROBE_REALLOC_ARRAY:
		return args[1] * args[2];
	default:
		return args[1];
	}
}

/* Forgets a block that is about to be given back. Returns 1 if it was recorded. */
INLINE int take_block(u64 process, u64 addr)
{
	struct probe_block key = { process, addr };

	return addr && !map_remove(&blocks, &key);
}

INLINE long keep_block(u64 process, u64 addr)
{
	struct probe_block key = { process, addr };
	u64 value = 1;

	return map_put(&blocks, &key, &value, BPF_ANY);
}

/* Records that a call has begun. */
INLINE void begin(const u64 *words)
{
	u64 process = cookie_of((void *)words) >> PROBE_KIND_BITS, thread = current_ids();
	const struct probe_config *c = first(&config);
	struct probe_pending *call = map_find(&calls, &thread);

	if (!c || !call)
		return;
	call->chosen = c->large ? send_call(words, process, call, PROBE_LARGE_COPY) :
				  send_call(words, process, call, PROBE_COPY);
	count_lost(!call->chosen, 0);
}

SECTION("probe/enter") int enter(u64 *words)
{
	u64 cookie = cookie_of(words), process = cookie >> PROBE_KIND_BITS;
	u32 kind = cookie & ((1 << PROBE_KIND_BITS) - 1);
	struct probe_config *c = first(&config);
	u64 args[] = { word(words, ARG0), word(words, ARG1), word(words, ARG2) };
	struct probe_pending call = { .sp = word(words, STACK_POINTER) };
	u64 thread = current_ids();
	const struct probe_pending *outer = map_find(&calls, &thread);

	claim_stack(words);
	/*
	 * A call further out on the stack than this one has called this function, or has jumped
	 * here from the same place: ignore this call. If the outer call is not further out, it was
	 * left without being seen, and counts as missing.
	 */
	if (!c || c->stop || (outer && outer->sp >= call.sp))
		return 0;
	if (outer)
		count_unseen(outer);
	call.size = size_asked(args, kind);
	if (kind == PROBE_POINTER)
		call.result = args[0];
	if ((kind == PROBE_REALLOC || kind == PROBE_REALLOC_ARRAY) && take_block(process, args[0]))
		call.old = args[0];
	call.chosen = is_chosen(c, call.size);
	if (map_put(&calls, &thread, &call, BPF_ANY)) {
		count_lost(call.chosen, !!call.old);
		return 0;
	}
	if (!call.chosen)
		return 0;
	/* Goes on in begun(), if frames are read. */
	tail_call(words, &tails, PROBE_TAIL_FRAMES);
	begin(words);
	return 0;
}

SECTION("probe/begun") int begun(u64 *words)
{
	claim_stack(words);
	begin(words);
	return 0;
}

/* Returns the address of the new block, or 0. */
INLINE u64 address(const struct probe_pending *call, u64 returned)
{
	u64 addr = 0;

	if (!call->result)
		return returned;
	if (!(u32)returned)
		read_user(&addr, sizeof(addr), (void *)call->result);
	return addr;
}

INLINE void send_end(u64 process, const struct probe_pending *call, u64 addr)
{
	struct probe_event *e = reserve(&ring, sizeof(*e), 0);

	if (!e) {
		count_lost(call->chosen, !!call->old);
		return;
	}
	fill(e, PROBE_ENDS, process);
	e->old = call->old;
	if (call->chosen && addr) {
		e->size = call->size;
		e->addr = addr;
		if (keep_block(process, addr)) {
			count_lost(1, 0);
			e->addr = 0;
		}
	}
	submit(e, BPF_RB_NO_WAKEUP);
}

SECTION("probe/leave") int leave(u64 *words)
{
	u64 process = cookie_of(words) >> PROBE_KIND_BITS, thread = current_ids(), addr;
	const struct probe_pending *found = map_find(&calls, &thread);
	struct probe_pending call;

	claim_stack(words);
	/* Ignore the return of a function that the outermost one has called. */
	if (!found || word(words, STACK_POINTER) != found->sp + RETURN_POPS)
		return 0;
	call = *found;
	map_remove(&calls, &thread);
	addr = address(&call, word(words, RETURNED));
	/*
	 * A realloc() that failed leaves the block as it was; a realloc() to 0 bytes frees the
	 * block.
	 */
	if (!addr && call.old && call.size) {
		count_lost(0, !!keep_block(process, call.old));
		return 0;
	}
	if (call.old || (call.chosen && addr))
		send_end(process, &call, addr);
	return 0;
}

SECTION("probe/release") int release(u64 *words)
{
	u64 process = cookie_of(words) >> PROBE_KIND_BITS, addr = word(words, ARG0);
	struct probe_config *c = first(&config);
	struct probe_block key = { process, addr };
	struct probe_event *e;

	claim_stack(words);
	if (!c || c->stop || !addr || !map_find(&blocks, &key))
		return 0;
	/*
	 * Reserve the record, and so take its place in the ring buffer, before the block is free:
	 * another thread may get the same address as soon as this thread goes on.
	 */
	e = reserve(&ring, sizeof(*e), 0);
	map_remove(&blocks, &key);
	if (!e) {
		count_lost(0, 1);
		return 0;
	}
	fill(e, PROBE_FREED, process);
	e->addr = addr;
	submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Tells that the process has other libraries now, in the order in which it allocates. */
SECTION("probe/mapped") int mapped(u64 *words)
{
	u64 process = cookie_of(words) >> PROBE_KIND_BITS;
	struct probe_config *c = first(&config);
	struct probe_event *e;

	claim_stack(words);
	if (!c || c->stop)
		return 0;
	e = reserve(&ring, sizeof(*e), 0);
	if (!e)
		return 0;
	fill(e, PROBE_MAPPED, process);
	submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}
