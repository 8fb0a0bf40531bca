// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compare.c - the unwinders' answers against the truth.
 *
 * libshstk, libunwind and framehop get the same registers and the same memory. A trace
 * is exact if it holds all return addresses up to the outermost frame and
 * nothing else. How the sides end:
 *  - The truth of a process begins with an empty stack at its first
 *    instruction, at the program's entry point when control first gets there,
 *    of a thread at the first instruction after clone: the outermost frame is
 *    the code that runs there (ld.so's _start, the program's, clone3).
 *  - An unwinder that stops after that frame is exact, whether it knew that
 *    this is the end (complete) or not (counted as "open end").
 *  - libunwind reports a last frame with address 0 for some of these: that is
 *    taken as its way to say so.
 *  - The entry that makecontext() makes is optional.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <libunwind-ptrace.h>

#include "oracle.h"
#include "selftests/framehop/peer.h"
#include "shstk.h"

#define MAX_TRACE (MAX_FRAMES + 2)

struct unwinders {
	struct process *process;
	struct shstk_space *space;
	unw_addr_space_t as;
	void *upt;
	struct framehop *framehop;
	bool stale;
};

struct answer {
	u64 pcs[MAX_TRACE];
	uint8_t marks[MAX_TRACE];
	unsigned int count;
	bool complete;
	unsigned int guessed;
	const char *end;
	bool exact;
};

struct tally tally[PEERS];
bool use_peer[PEERS] = { true, true };
static const struct framehop_api *framehop;

/* What libunwind's accessors read from: libunwind passes them no argument of the caller's. */
static struct {
	struct process *process;
	const struct user_regs_struct *regs;
} current;

/* Returns the register with this DWARF number (16 is rip), or NULL. */
const unsigned long long *dwarf_register(const struct user_regs_struct *r, int n)
{
	const unsigned long long *const regs[] = {
		&r->rax, &r->rdx, &r->rcx, &r->rbx, &r->rsi, &r->rdi, &r->rbp, &r->rsp, &r->r8,
		&r->r9,	 &r->r10, &r->r11, &r->r12, &r->r13, &r->r14, &r->r15, &r->rip,
	};

	return n >= 0 && n <= 16 ? regs[n] : NULL;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write, void *arg)
{
	(void)as;
	(void)arg;
	if (write || memory_read(current.process->memory, addr, val, 8))
		return -UNW_EINVAL;
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write, void *arg)
{
	const unsigned long long *from = dwarf_register(current.regs, reg);

	(void)as;
	(void)arg;
	if (write || !from)
		return -UNW_EBADREG;
	*val = *from;
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write,
			void *arg)
{
	(void)as;
	(void)reg;
	(void)val;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int dyn_info_list(unw_addr_space_t as, unw_word_t *addr, void *arg)
{
	(void)as;
	(void)addr;
	(void)arg;
	return -UNW_ENOINFO;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	(void)as;
	(void)c;
	(void)arg;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t as, unw_word_t addr, char *buf, size_t len, unw_word_t *off,
		   void *arg)
{
	(void)as;
	(void)addr;
	(void)buf;
	(void)len;
	(void)off;
	(void)arg;
	return -UNW_ENOINFO;
}

static unw_accessors_t accessors = {
	.find_proc_info = _UPT_find_proc_info,
	.put_unwind_info = _UPT_put_unwind_info,
	.get_dyn_info_list_addr = dyn_info_list,
	.access_mem = access_mem,
	.access_reg = access_reg,
	.access_fpreg = access_fpreg,
	.resume = no_resume,
	.get_proc_name = no_name,
};

struct unwinders *unwinders_create(struct process *p)
{
	struct unwinders *u = calloc(1, sizeof(*u));

	if (!u)
		abort();
	u->process = p;
	u->stale = true;
	return u;
}

static void drop(struct unwinders *u)
{
	shstk_space_destroy(u->space);
	u->space = NULL;
	if (u->upt)
		_UPT_destroy(u->upt);
	u->upt = NULL;
	if (u->as)
		unw_destroy_addr_space(u->as);
	u->as = NULL;
	if (u->framehop)
		framehop->destroy(u->framehop);
	u->framehop = NULL;
}

void unwinders_destroy(struct unwinders *u)
{
	drop(u);
	free(u);
}

/* Notes that code was mapped or unmapped: each unwinder starts afresh before it is used next. */
void unwinders_changed(struct unwinders *u)
{
	u->stale = true;
}

static void renew(struct unwinders *u)
{
	if (!u->stale)
		return;
	drop(u);
	if (shstk_space_create(SHSTK_ARCH_X86, &u->space) ||
	    shstk_space_add_pid(u->space, u->process->pid) < 0) {
		fprintf(stderr, "oracle: shstk_space_add_pid(%d) failed\n", u->process->pid);
		exit(1);
	}
	u->as = unw_create_addr_space(&accessors, 0);
	u->upt = _UPT_create(u->process->pid);
	if (!u->as || !u->upt)
		abort();
	unw_set_caching_policy(u->as, UNW_CACHE_GLOBAL);
	if (use_peer[PEER_FRAMEHOP]) {
		u->framehop = framehop->create();
		if (framehop_add_process(framehop, u->framehop, u->process->pid))
			abort();
	}
	u->stale = false;
}

static void ask_shstk(struct unwinders *u, const struct user_regs_struct *r, struct answer *a)
{
	struct shstk_regs regs = { .size = sizeof(regs), .pc = r->rip };
	struct shstk_opts opts = { .size = sizeof(opts), .marks = a->marks };
	struct shstk_info info = { .size = sizeof(info) };
	int n;

	for (int i = 0; i < 16; i++)
		regs.r[i] = *dwarf_register(r, i);
	regs.known = 0xffff;
	n = shstk_unwind(u->space, &regs, memory_read, u->process->memory, a->pcs, MAX_TRACE, &opts,
			 &info);
	if (n < 0) {
		fprintf(stderr, "oracle: shstk_unwind: error %d\n", n);
		exit(1);
	}
	a->count = n;
	a->complete = info.end == SHSTK_END_COMPLETE;
	a->guessed = info.guessed;
	a->end = shstk_end_name(info.end);
}

static void ask_libunwind(struct unwinders *u, const struct user_regs_struct *r, struct answer *a)
{
	unw_cursor_t cursor;
	unw_word_t ip;
	int more = 1;

	current.process = u->process;
	current.regs = r;
	a->count = 0;
	a->guessed = 0;
	memset(a->marks, 0, 1);
	if (unw_init_remote(&cursor, u->as, u->upt))
		more = -1;
	while (more > 0 && a->count < MAX_TRACE) {
		if (unw_get_reg(&cursor, UNW_REG_IP, &ip) || !ip)
			break;
		a->pcs[a->count++] = ip;
		more = unw_step(&cursor);
	}
	a->complete = more >= 0;
	a->end = more < 0 ? unw_strerror(more) : "end";
}

/**
 * framehop_choose() - framehop is asked too
 *
 * Return: 0 or -ENOENT: it was not built.
 */
int framehop_choose(void)
{
	framehop = framehop_load();
	use_peer[PEER_FRAMEHOP] = framehop;
	return framehop ? 0 : -ENOENT;
}

static int read_word(void *memory, u64 addr, u64 *word)
{
	return memory_read(memory, addr, word, sizeof(*word));
}

static void ask_framehop(struct unwinders *u, const struct user_regs_struct *r, struct answer *a)
{
	static const char *const ends[] = {
		"end",
		"unreadable stack",
		"moved backwards",
		"did not advance",
		"arithmetic overflow",
		"return address 0",
	};
	struct framehop_regs regs = { r->rip, r->rsp, r->rbp };
	int end;

	a->count = framehop->trace(u->framehop, &regs, read_word, u->process->memory, a->pcs,
				   MAX_TRACE, &end);
	a->guessed = 0;
	a->complete = !end;
	a->end = ends[end];
}

static bool equals(const struct answer *a, const u64 *truth, unsigned int n)
{
	return a->count == n && !memcmp(a->pcs, truth, n * sizeof(*truth));
}

static unsigned int first_difference(const struct answer *a, const u64 *truth, unsigned int n)
{
	unsigned int i = 0;

	while (i < a->count && i < n && a->pcs[i] == truth[i])
		i++;
	return i;
}

static bool is_return_address(const struct stack *s, unsigned int index)
{
	return index && s->frames[s->count - index].kind != FRAME_SIGNAL;
}

static void note_miss(enum peer peer, struct process *p, struct stack *s, const struct answer *a,
		      bool other_right, const u64 *truth, unsigned int n,
		      const struct user_regs_struct *regs)
{
	unsigned int i = first_difference(a, truth, n);
	struct miss miss = { .peer = peer, .silent = a->complete };

	/* If an unwinder did not even start, the first frame is to blame. */
	miss.pc = truth[i ? i - 1 : 0];
	miss.is_return = is_return_address(s, i ? i - 1 : 0);
	if (i == n)
		miss.kind = MISS_LONG;
	else if (i == a->count)
		miss.kind = MISS_SHORT;
	else
		miss.kind = MISS_WRONG;
	if (i < a->count && peer == PEER_SHSTK)
		miss.guessed = a->marks[i] & SHSTK_MARK_GUESS;
	report_miss(p, s, &miss, other_right, a->pcs, a->count, truth, n, regs, a->end);
}

/**
 * compare() - ask every unwinder at this stop
 * @p: process.
 * @tid: thread; only its registers matter.
 * @s: its true stack.
 * @regs: its registers.
 */
void compare(struct process *p, pid_t tid, struct stack *s, const struct user_regs_struct *regs)
{
	static struct answer answers[PEERS];
	static u64 truth[MAX_TRACE], held[MAX_TRACE];
	unsigned int n, n_held = 0, optional, exact = 0;

	(void)tid;
	renew(p->unwinders);
	n = truth_trace(s, p->memory, regs->rip, truth, MAX_TRACE, false);
	if (s->held)
		n_held = truth_trace(s, p->memory, regs->rip, held, MAX_TRACE, true);
	optional = s->count && s->frames[0].kind == FRAME_START;
	if (use_peer[PEER_SHSTK])
		ask_shstk(p->unwinders, regs, &answers[PEER_SHSTK]);
	if (use_peer[PEER_LIBUNWIND])
		ask_libunwind(p->unwinders, regs, &answers[PEER_LIBUNWIND]);
	if (use_peer[PEER_FRAMEHOP])
		ask_framehop(p->unwinders, regs, &answers[PEER_FRAMEHOP]);
	for (int i = 0; i < PEERS; i++) {
		struct answer *a = &answers[i];

		if (!use_peer[i])
			continue;
		tally[i].checked++;
		a->exact = equals(a, truth, n) || (optional && equals(a, truth, n - 1));
		if (!a->exact && n_held && equals(a, held, n_held)) {
			a->exact = true;
			tally[i].held++;
		}
		exact += a->exact;
		tally[i].exact += a->exact;
		tally[i].exact_open += a->exact && !a->complete;
		tally[i].guessed += a->exact && a->guessed;
	}
	for (int i = 0; i < PEERS; i++)
		if (use_peer[i] && !answers[i].exact)
			note_miss(i, p, s, &answers[i], exact, truth, n, regs);
}
