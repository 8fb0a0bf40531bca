// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mutex.c - find the mutexes that threads wait for. See mutex.h.
 *
 * A waiting thread is in the system call futex(2), whose first argument is the address of the word
 * that it waits at. The word belongs to a mutex if the C library's function that locks a mutex made
 * the call. The address of the word tells the layout of the mutex: glibc's mutex begins with the
 * word, musl's has it after 4 bytes, and both mutexes lie at multiples of 8. Read-write locks are
 * found in the same way.
 *
 * If the kernel finds that a thread would wait for itself, at a mutex that inherits priorities, or
 * that the owner has died, the C library lets the thread wait for ever at a word on its own stack.
 * Such a thread is called refused here. Its mutex is found if the innermost frames still point to it.
 */
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/stack_pointer.h"
#include "tools/trace/mutex.h"

#define FUTEX_LOCK_PI2_OP 13 /* newer than some headers */
#define MEMBERS_SHOWN 8
#define REFUSED_STACK 512 /* bytes of the frames between the system call and the caller of libc */

/* glibc's pthread_mutex_t in words: lock, count, owner, users, kind. */
#define GLIBC_LOCKED 2 /* locked, and threads wait */
#define GLIBC_KINDS 3u /* timed, recursive, checked, adaptive */
#define GLIBC_ADAPTIVE 3u
#define GLIBC_ROBUST 0x10u
#define GLIBC_INHERIT 0x20u
#define GLIBC_FLAGS 0x380u /* shared between processes; lock elision allowed or forbidden */

/*
 * glibc's pthread_rwlock_t in words: readers, writers, two words at which threads wait, two of
 * padding, the writer that has it. Values at which threads wait for the former two are at most
 * GLIBC_RWLOCK_USED; other values belong to the first word.
 */
#define GLIBC_RWLOCK_WAITS 8 /* bytes before the words at which threads wait */
#define GLIBC_RWLOCK_USED 3u
#define GLIBC_RWLOCK_WRITER 4 /* words from the first one at which threads wait to the writer */

/* musl's pthread_mutex_t in words: kind, lock. */
#define MUSL_KINDS 3u /* normal, recursive, checked */
#define MUSL_ROBUST 4u
#define MUSL_INHERIT 8u
#define MUSL_FLAGS 0x88u /* shared between processes, or inherits priorities */

/* The kernel's errors for system calls that are restarted after a signal: first and last. */
#define ERESTARTSYS 512
#define ERESTART_RESTARTBLOCK 516

/* How each machine calls futex(2). Registers have DWARF's numbers. */
static const struct abi {
	int64_t futex;
	int64_t restart; /* the call that continues an interrupted call */
	uint8_t args[4];
	uint32_t insn; /* the instruction that calls the kernel */
	unsigned int size;
} abis[] = {
	[SHSTK_ARCH_X86] = { 202, 219, { 5, 4, 1, 10 }, 0x050f, 2 },
	[SHSTK_ARCH_ARM64] = { 98, 128, { 0, 1, 2, 3 }, 0xd4000001, 4 },
	[SHSTK_ARCH_RISCV] = { 98, 128, { 10, 11, 12, 13 }, 0x73, 4 },
};

/**
 * struct futex_wait - the arguments of futex(2)
 * @word: address of the word at which the thread waits.
 * @op: the operation, without its flags.
 * @value: the value that the word had.
 * @timed: the thread waits for a limited time.
 * @refused: the kernel refused the mutex: the thread waits for ever, at a word on its stack.
 */
struct futex_wait {
	uint64_t word;
	unsigned int op;
	uint32_t value;
	bool timed;
	bool refused;
};

static const struct abi *abi_of(int arch)
{
	bool known = arch > 0 && (size_t)arch < sizeof(abis) / sizeof(*abis) && abis[arch].size;

	return known ? &abis[arch] : NULL;
}

static bool is_locking(const struct futex_wait *wait)
{
	return wait->op == FUTEX_LOCK_PI || wait->op == FUTEX_LOCK_PI2_OP;
}

/* Returns true if a thread may be in futex(2), by its registers alone. */
static bool may_wait(int arch, const struct trace_thread *t, struct futex_wait *ret)
{
	const struct abi *abi = abi_of(arch);
	const uint64_t *r = t->regs.r;

	if (!abi || !t->sampled || (t->call != abi->futex && t->call != abi->restart))
		return false;
	*ret = (struct futex_wait){
		.word = r[abi->args[0]],
		.op = r[abi->args[1]] & FUTEX_CMD_MASK,
		.value = r[abi->args[2]],
		.timed = r[abi->args[3]],
	};
	if (ret->word & 3 ||
	    !(ret->op == FUTEX_WAIT || ret->op == FUTEX_WAIT_BITSET || is_locking(ret)))
		return false;
	ret->refused = !is_locking(ret) && !ret->timed && !ret->value &&
		       ret->word - stack_pointer(arch, &t->regs) < REFUSED_STACK;
	return true;
}

/* Returns the owner of a mutex that inherits priorities and is locked; 0 if this is none. */
static uint32_t owner_of_inheriting(const uint32_t *word)
{
	uint32_t owner = word[0] & FUTEX_TID_MASK, kind = word[4] & ~GLIBC_FLAGS & ~GLIBC_ROBUST;

	if (owner && word[2] == owner && kind & GLIBC_INHERIT &&
	    (kind & ~GLIBC_INHERIT) <= GLIBC_KINDS)
		return owner;
	kind = word[0] & ~MUSL_FLAGS & ~MUSL_ROBUST;
	return word[0] & MUSL_INHERIT && kind < MUSL_KINDS ? word[1] & FUTEX_TID_MASK : 0;
}

/*
 * Returns whether this is glibc's mutex that inherits priorities, which nobody has, of a kind that the
 * kernel refuses to a thread that would wait for itself. Its owner may have given up since.
 */
static bool is_free_inheriting(const uint32_t *word)
{
	const uint32_t kind = word[4] & ~GLIBC_FLAGS & ~GLIBC_ROBUST;

	return !word[0] && !word[2] && !word[3] &&
	       (kind == GLIBC_INHERIT || kind == (GLIBC_INHERIT | GLIBC_ADAPTIVE));
}

/**
 * struct pointed - the mutexes to which the frames of a refused thread point
 * @others: address of one that another thread has, or 0.
 * @own: address of one that the thread itself has, or 0.
 * @many_others: others have several.
 * @many_own: the thread itself has several.
 * @free: there is one that nobody has.
 */
struct pointed {
	uint64_t others;
	uint64_t own;
	bool many_others;
	bool many_own;
	bool free;
};

static void take_mutex(uint64_t at, int tid, shstk_read_fn read, void *arg, struct pointed *p)
{
	uint32_t word[MUTEX_SIZE / 4], owner;

	if (at == p->others || at == p->own || read(arg, at, word, sizeof(word)))
		return;
	owner = owner_of_inheriting(word);
	if (owner == (uint32_t)tid) {
		p->many_own |= p->own != 0;
		p->own = at;
	} else if (owner) {
		p->many_others |= p->others != 0;
		p->others = at;
	} else {
		p->free |= is_free_inheriting(word);
	}
}

/*
 * Takes a word of the registers or of the stack, which may point to a mutex, or into it: compilers keep
 * the address of the kind, which is read several times, and of the pointers to the next mutex.
 */
static void take_pointer(uint64_t at, int tid, shstk_read_fn read, void *arg, struct pointed *p)
{
	static const uint8_t offsets[] = { 0, 16, 24, 32 };

	if (at < 4096 || at & 7)
		return;
	for (size_t i = 0; i < sizeof(offsets); i++)
		take_mutex(at - offsets[i], tid, read, arg, p);
}

/*
 * Returns the address of the mutex that a refused thread asked for, or 0. The frames of its callers
 * may keep pointers to mutexes that it has, too. If they point to several others, one of which may be
 * free meanwhile, it is not known which it asked for.
 */
static uint64_t find_refused(int arch, const struct trace_thread *t, shstk_read_fn read, void *arg)
{
	uint64_t sp = stack_pointer(arch, &t->regs), at;
	struct pointed p = { .others = 0 };

	for (unsigned int i = 0; i < 32; i++)
		if (t->regs.known & 1u << i)
			take_pointer(t->regs.r[i], t->own_tid, read, arg, &p);
	for (unsigned int i = 0; i < REFUSED_STACK; i += 8)
		if (!read(arg, sp + i, &at, sizeof(at)))
			take_pointer(at, t->own_tid, read, arg, &p);
	if (p.free || p.many_others)
		return 0;
	return p.others || p.many_own ? p.others : p.own;
}

bool mutex_word(int arch, const struct trace_thread *t, shstk_read_fn read, void *arg,
		uint64_t *ret)
{
	struct futex_wait wait;

	if (!may_wait(arch, t, &wait))
		return false;
	*ret = wait.refused ? find_refused(arch, t, read, arg) : wait.word & ~7ull;
	return *ret;
}

/*
 * Returns true if the thread is still in the call. On x86, an interrupted call has an error in its
 * result register that programs never see. On other machines, the pc is back at the instruction and
 * the first argument is back in its register.
 */
static bool is_in_call(int arch, const struct abi *abi, const struct trace_thread *t,
		       shstk_read_fn read, void *arg)
{
	uint64_t at = t->regs.pc, result = -t->regs.r[0];
	uint32_t insn = 0;

	if (arch == SHSTK_ARCH_X86) {
		at -= abi->size;
		if (result < ERESTARTSYS || result > ERESTART_RESTARTBLOCK)
			return false;
	}
	return !read(arg, at, &insn, abi->size) && insn == abi->insn;
}

enum caller { CALLER_OTHER, CALLER_CONDITION, CALLER_MUTEX, CALLER_RWLOCK };

/*
 * Returns which kind of function @name is. glibc's names of its public functions begin with "__",
 * "___" or "__GI___".
 */
static enum caller caller_of(const char *name)
{
	static const struct {
		const char *begin;
		enum caller caller;
	} known[] = {
		{ "pthread_mutex_lock", CALLER_MUTEX },
		{ "pthread_mutex_timedlock", CALLER_MUTEX },
		{ "pthread_mutex_clocklock", CALLER_MUTEX },
		{ "pthread_mutex_cond_lock", CALLER_MUTEX },
		{ "pthread_cond_", CALLER_CONDITION },
		{ "pthread_rwlock_", CALLER_RWLOCK },
	};

	name += strspn(name, "_");
	if (!strncmp(name, "GI_", 3))
		name += 3 + strspn(name + 3, "_");
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strncmp(name, known[i].begin, strlen(known[i].begin)))
			return known[i].caller;
	return CALLER_OTHER;
}

/*
 * Returns the kind of function that waits. Only frames of the object that calls the kernel count,
 * and only up to a frame that a signal interrupted: what a signal handler waits for is not the
 * mutex of the function below it. Sets @guessed if a frame is a guess.
 */
static enum caller find_caller(struct shstk_symproc *proc, const struct trace_stack *s,
			       bool *guessed)
{
	char module[256] = "";

	for (int i = 0; i < s->nr && i < MUTEX_FRAMES; i++) {
		const struct shstk_symbol *sym;
		enum caller caller = CALLER_OTHER;

		if (s->marks[i] & (SHSTK_MARK_GAP | SHSTK_MARK_SIGNAL))
			return CALLER_OTHER;
		*guessed |= s->marks[i] & SHSTK_MARK_GUESS;
		sym = shstk_symproc_lookup(proc, s->pcs[i],
					   i ? SHSTK_SYMADDR_RETURN : SHSTK_SYMADDR_PC);
		if (!i)
			snprintf(module, sizeof(module), "%s", sym->map->name);
		else if (strncmp(module, sym->map->name, sizeof(module) - 1))
			return CALLER_OTHER;
		for (unsigned int k = 0; k < sym->nr && caller == CALLER_OTHER; k++)
			caller = caller_of(sym->frames[k].function);
		if (caller != CALLER_OTHER)
			return caller;
	}
	return CALLER_OTHER;
}

/*
 * Gets the owner of a mutex of glibc. Returns false if it is no such mutex, or of an unknown kind.
 */
static bool read_glibc(const struct futex_wait *wait, const uint32_t *word, uint32_t *owner)
{
	uint32_t kind = word[4] & ~GLIBC_FLAGS;
	uint32_t locker = word[0] & FUTEX_TID_MASK;

	if (wait->value & FUTEX_WAITERS) {
		*owner = word[2] == locker ? locker : 0;
		return kind & GLIBC_ROBUST && (kind & ~GLIBC_ROBUST) <= GLIBC_KINDS;
	}
	/*
	 * A thread writes its ID to the mutex after it has locked it, and removes it before it
	 * unlocks it.
	 */
	*owner = word[0] && word[3] ? word[2] : 0;
	return wait->value == GLIBC_LOCKED && word[0] <= GLIBC_LOCKED && kind <= GLIBC_KINDS;
}

static bool read_musl(const struct futex_wait *wait, const uint32_t *word, uint32_t *owner)
{
	uint32_t kind = word[0] & ~MUSL_FLAGS;

	*owner = kind ? word[1] & FUTEX_TID_MASK : 0;
	return wait->value & FUTEX_WAITERS && kind <= (MUSL_KINDS | MUSL_ROBUST) &&
	       (kind & MUSL_KINDS) < 3;
}

/*
 * Gets the writer that has a read-write lock: 0 if readers have it, or if it is of musl, which does
 * not keep it. Moves @at, the address of the word, to the beginning of the lock.
 */
static bool read_rwlock(const struct futex_wait *wait, const uint32_t *word, uint64_t *at,
			uint32_t *owner)
{
	bool glibc = wait->value <= GLIBC_RWLOCK_USED;

	*owner = glibc ? word[GLIBC_RWLOCK_WRITER] : 0;
	*at -= glibc ? GLIBC_RWLOCK_WAITS : 0;
	return !is_locking(wait);
}

static bool read_mutex(const struct futex_wait *wait, const uint32_t *word, uint32_t *owner)
{
	bool musl = wait->word & 4;

	/* For these operations, the kernel defines the contents of the word. */
	if (is_locking(wait)) {
		*owner = word[musl] & FUTEX_TID_MASK;
		return true;
	}
	return musl ? read_musl(wait, word, owner) : read_glibc(wait, word, owner);
}

/* Gets what the lock at @w->mutex says of its owner. Returns false if it is none. */
static bool read_lock(const struct futex_wait *wait, enum caller caller, shstk_read_fn read,
		      void *arg, struct mutex_waiter *w)
{
	uint32_t word[MUTEX_SIZE / 4], owner = 0;
	bool known = true;

	if (read(arg, w->mutex, word, sizeof(word)))
		return false;
	if (wait->refused)
		owner = owner_of_inheriting(word);
	else if (caller == CALLER_RWLOCK)
		known = read_rwlock(wait, word, &w->mutex, &owner);
	else
		known = read_mutex(wait, word, &owner);
	w->owner = (int)owner;
	return known && owner <= INT32_MAX;
}

void mutex_find(int arch, struct shstk_symproc *proc, const struct trace_thread *t,
		shstk_read_fn read, void *arg, struct mutex_waiter *ret)
{
	const struct trace_stack *s = trace_shown(t);
	struct mutex_waiter found = *ret;
	bool guessed = false, known;
	enum caller caller;
	struct futex_wait wait;

	if (!may_wait(arch, t, &wait) || !is_in_call(arch, abi_of(arch), t, read, arg))
		return;
	caller = s->taken ? find_caller(proc, s, &guessed) : CALLER_OTHER;
	/* A condition on the thread's own stack looks like the word at which a refused thread waits. */
	if (caller == CALLER_OTHER || (wait.refused && caller != CALLER_MUTEX))
		return;
	known = mutex_word(arch, t, read, arg, &found.mutex) &&
		read_lock(&wait, caller, read, arg, &found);
	if (!known && !wait.refused)
		return;
	if (!known)
		found.mutex = found.owner = 0;
	found.waits = true;
	found.refused = wait.refused;
	found.rwlock = caller == CALLER_RWLOCK;
	found.certain = caller != CALLER_CONDITION && !guessed;
	found.timed = wait.timed;
	*ret = found;
}

/* ---- Owners and cycles ---- */

static int by_own_tid(const void *a, const void *b)
{
	const struct mutex_waiter *x = a, *y = b;

	return x->own_tid < y->own_tid ? -1 : x->own_tid > y->own_tid;
}

struct mutex_waiter *mutex_waiter(struct mutex_waiter *list, size_t nr, int own_tid)
{
	const struct mutex_waiter key = { .own_tid = own_tid };

	return bsearch(&key, list, nr, sizeof(*list), by_own_tid);
}

/*
 * Returns whether a refused thread seems to have asked for a mutex of its own, but others wait for it:
 * then it may have asked for one of theirs.
 */
static bool is_doubtful(const struct mutex_waiter *list, size_t nr, const struct mutex_waiter *w)
{
	if (!w->refused || w->owner != w->own_tid)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (&list[i] != w && list[i].waits && list[i].owner == w->own_tid)
			return true;
	return false;
}

static void find_owner(struct mutex_waiter *list, size_t nr, struct mutex_waiter *w)
{
	struct mutex_waiter *owner;

	if (is_doubtful(list, nr, w))
		w->mutex = w->owner = 0;
	owner = w->owner ? mutex_waiter(list, nr, w->owner) : NULL;
	w->foreign = w->owner && !owner;
	w->certain &= owner && owner->stopped && w->stopped;
	if (owner && owner->waits && !owner->timed && !w->timed)
		w->next = owner;
}

/*
 * Sets the length of the cycle in all its members. All become as certain as the least certain one.
 */
static void mark_cycle(struct mutex_waiter *first)
{
	struct mutex_waiter *w = first;
	bool certain = true;
	size_t n = 0;

	do {
		certain &= w->certain;
		w = w->next;
		n++;
	} while (w != first);
	do {
		w->cycle = n;
		w->certain = certain;
		w = w->next;
	} while (w != first);
}

/*
 * Finds the cycles. Each thread waits for at most one other. The loop follows this chain from each
 * thread in turn, until it meets a thread that was seen before: in an earlier walk, or in this
 * walk, which means that the thread is in a cycle. @walk holds the number of the walk that first
 * saw each thread, or 0.
 */
static void find_cycles(struct mutex_waiter *list, size_t nr, size_t *walk)
{
	for (size_t i = 0; i < nr; i++) {
		struct mutex_waiter *w = &list[i];

		while (w && !walk[w - list]) {
			walk[w - list] = i + 1;
			w = w->next;
		}
		if (w && walk[w - list] == i + 1)
			mark_cycle(w);
	}
}

void mutex_resolve(struct mutex_waiter *list, size_t nr)
{
	size_t *walk = calloc(nr + 1, sizeof(*walk));

	qsort(list, nr, sizeof(*list), by_own_tid);
	for (size_t i = 0; i < nr; i++)
		if (list[i].waits)
			find_owner(list, nr, &list[i]);
	for (size_t i = 0; i < nr; i++)
		if (list[i].waits && list[i].owner && !list[i].foreign)
			list[i].owner = mutex_waiter(list, nr, list[i].owner)->tid;
	if (walk)
		find_cycles(list, nr, walk);
	free(walk);
}

int mutex_compare(const struct mutex_waiter *a, const struct mutex_waiter *b)
{
	bool x = a && a->waits, y = b && b->waits;

	if (x != y || !x)
		return x - y;
	if (a->mutex != b->mutex)
		return a->mutex < b->mutex ? -1 : 1;
	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	if (a->cycle != b->cycle)
		return a->cycle < b->cycle ? -1 : 1;
	return a->certain - b->certain;
}

/* ---- Printing ---- */

static void print_cycle(const struct mutex_waiter *waiter)
{
	const struct mutex_waiter *w = waiter;

	printf("  %s: ", waiter->certain ? "deadlock" : "seems to be a deadlock");
	for (size_t i = 0; i < waiter->cycle; i++, w = w->next) {
		if (i == MEMBERS_SHOWN) {
			printf(", ... (%zu threads)", waiter->cycle);
			break;
		}
		printf("%s%d %s %d", i ? ", " : "", w->tid, i ? "for" : "waits for", w->owner);
	}
	putchar('\n');
}

static const char *lock_name(const struct mutex_waiter *w)
{
	return w->rwlock ? "read-write lock" : "mutex";
}

void mutex_print(const struct mutex_waiter *w)
{
	if (!w || !w->waits)
		return;
	if (!w->mutex) {
		puts("  waits for ever: the kernel refused a mutex, because the thread would wait for itself, or because the mutex's owner has ended");
		return;
	}
	printf("  waits%s for %s 0x%llx", w->timed ? ", for a limited time," : "", lock_name(w),
	       (unsigned long long)w->mutex);
	if (!w->owner)
		puts(", whose owner is not known");
	else if (w->foreign)
		printf(", whose owner %d is not a thread of this process\n", w->owner);
	else
		printf(", which thread %d %s\n", w->owner, w->certain ? "has" : "seems to have");
	if (w->cycle)
		print_cycle(w);
}

void mutex_put(struct json *json, const struct mutex_waiter *w)
{
	if (!w || !w->waits) {
		shstk_json_null(json, "waits_for");
		return;
	}
	shstk_json_open(json, "waits_for", '{');
	shstk_json_string(json, "kind", lock_name(w));
	if (w->mutex)
		shstk_json_address(json, "mutex", w->mutex);
	else
		shstk_json_null(json, "mutex");
	if (w->owner && !w->foreign)
		shstk_json_int(json, "owner", w->owner);
	else
		shstk_json_null(json, "owner");
	shstk_json_bool(json, "certain", w->certain);
	shstk_json_bool(json, "timed", w->timed);
	shstk_json_bool(json, "refused", w->refused);
	shstk_json_bool(json, "deadlock", w->cycle);
	shstk_json_close(json);
}
