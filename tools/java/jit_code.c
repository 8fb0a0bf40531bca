// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jit_code.c - frames and names of code that a process makes at run time. See jit_code.h.
 *
 * The facts are read from the process as it is now. The code may have been replaced since the
 * sample was taken, and it is replaced now and then: each fact is read anew after a while.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "tools/java/codecache.h"
#include "tools/java/hotspot.h"
#include "tools/java/jit_code.h"
#include "tools/proc/tasks.h"
#include "tools/shstk.h"

#define KEPT 4096 /* addresses that are kept, a power of two */
#define FRESH 1000000000 /* ns for which an address is kept */
#define FIRST_REST 16000000 /* time until the tables are searched again, ns; it doubles each time */
#define MAX_REST 64000000000 /* its maximum */
#define REST 20 /* after a search in vain, all searches rest for this many times its CPU time, */
#define REST_LONG 4 /* and for this many times its length: it may wait for a file */
#define NAMED 8192 /* pieces of code that are known to be named, a power of two */
#define NAME_ROOM 512 /* bytes for a name */
#define NEAR 512 /* bytes of code that are read in front of a program counter */
#define FIRST_FREE 250000000 /* ns for which look-ups in a process draw from no account, and */
#define FREE_OF_ONE 16 /* the part of the time from then on, as a divisor, in one process */
#define FREE_OF_ALL 4 /* and in all */
#define LONG 1000000 /* ns from which it is asked what a look-up waited for */

/* What is known of an address. */
struct known_address {
	uint64_t pc;
	uint64_t time;
	bool exact;
	bool found; /* it is in a piece of code, whose frame is below */
	uint8_t slack; /* bytes by which the frame may lie further out */
	struct hotspot_frame frame; /* its @cfa is 0 if the frame is not known */
};

/* An address for which a name was looked for, and the time of this. */
struct asked {
	uint64_t pc;
	uint64_t time;
};

/* A piece of code whose name was told. */
struct named_code {
	uint64_t start;
	uint64_t method;
};

/* What look-ups took that drew from no account. */
struct free_time {
	uint64_t began; /* CLOCK_MONOTONIC in ns; 0: there was none */
	uint64_t spent; /* ns */
};

struct jit {
	struct jit_process process;
	uint64_t time;
	uint64_t next; /* earliest time of the next search for the tables, CLOCK_MONOTONIC in ns */
	uint64_t rest; /* time between two searches, ns */
	struct codecache *cache;
	struct vmstructs vm; /* what @cache was made of */
	struct free_time free;
	uint64_t refused; /* @time when a look-up was refused last */
	struct known_address known[KEPT];
	struct asked asked[KEPT];
	struct named_code named[NAMED];
};

struct jit *jit_create(void)
{
	return calloc(1, sizeof(struct jit));
}

void jit_destroy(struct jit *jit)
{
	if (jit)
		codecache_destroy(jit->cache);
	free(jit);
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct jit *jit = arg;

	return jit->process.read(jit->process.arg, addr, buf, size);
}

/* What task_waited() said last. Only the recorder's main thread looks up. */
static uint64_t waited_before;

/*
 * Returns the ns that passed since @since and in which this thread did not wait for a CPU. Others who are
 * busy take nothing from a process's time. As it is not asked at each beginning how long was waited
 * until then, what was waited since the last question is left out, but never what the thread ran: @used
 * ns of CPU time.
 */
static uint64_t taken_since(uint64_t since, uint64_t used)
{
	const uint64_t took = now_ns(CLOCK_MONOTONIC) - since;
	uint64_t waited, now;

	if (took < LONG)
		return took;
	now = task_waited();
	waited = now > waited_before ? now - waited_before : 0;
	waited_before = now;
	if (used >= took)
		return took;
	return took - used > waited ? took - waited : used;
}

/* The time before which no process's tables are searched, CLOCK_MONOTONIC in ns. */
static uint64_t next_search;

/* Reads the tables with what the process's account has left. */
static void read_tables(struct jit *jit, struct shstk_account *account)
{
	const struct vm_memory memory = { read_memory, jit };
	struct vm_tables tables;
	uint64_t start, offset;
	bool found;
	int fd = jit->process.open(jit->process.arg, &start, &offset);

	if (fd < 0)
		return;
	found = vm_tables_find(fd, start, offset, account, &tables);
	close(fd);
	if (found && shstk_account_on(account) && !vmstructs_read(&memory, &tables, &jit->vm))
		jit->cache = codecache_create(&jit->vm);
}

/* Has all searches rest after one in vain, which took @used ns of CPU time. */
static void rest_all(const struct jit *jit, uint64_t used)
{
	const uint64_t took = taken_since(jit->time, used);

	next_search = now_ns(CLOCK_MONOTONIC) +
		      (REST * used > REST_LONG * took ? REST * used : REST_LONG * took);
}

/*
 * Searches the tables. A process that has just begun may not have them yet, so this is repeated.
 * Somebody who means harm may run many processes whose search takes long, so after a search in vain
 * the searches in all processes rest.
 */
static void find_cache(struct jit *jit)
{
	struct shstk_account *account;
	uint64_t used;

	if (jit->time < jit->next || jit->time < next_search)
		return;
	used = now_ns(CLOCK_THREAD_CPUTIME_ID);
	jit->rest = !jit->rest ? FIRST_REST : 2 * jit->rest < MAX_REST ? 2 * jit->rest : MAX_REST;
	jit->next = jit->time + jit->rest;
	account = jit->process.account(jit->process.arg);
	if (!account)
		return;
	if (shstk_account_begin(account))
		read_tables(jit, account);
	shstk_account_end(account);
	if (!jit->cache)
		rest_all(jit, now_ns(CLOCK_THREAD_CPUTIME_ID) - used);
}

void jit_begin(struct jit *jit, const struct jit_process *process)
{
	jit->process = *process;
	jit->time = now_ns(CLOCK_MONOTONIC);
	if (!jit->cache)
		find_cache(jit);
}

const struct vmstructs *jit_tables(const struct jit *jit)
{
	return jit->cache ? &jit->vm : NULL;
}

int jit_find_code(struct jit *jit, uint64_t pc, struct codeblob *ret)
{
	return jit->cache ? codecache_find(jit->cache, pc, ret) : -ENOENT;
}

bool jit_has_code(const struct jit *jit, uint64_t pc)
{
	return jit->cache && codecache_has(jit->cache, pc);
}

uint64_t jit_time(const struct jit *jit)
{
	return jit->time;
}

int jit_attach(struct shstk_space *space, const struct jit_process *process, struct jit **ret)
{
	struct jit *jit = jit_create();

	*ret = NULL;
	if (!jit)
		return -ENOMEM;
	jit_begin(jit, process);
	if (!jit->cache) {
		jit_destroy(jit);
		return 0;
	}
	shstk_space_set_shapes(space, jit_shape, jit);
	*ret = jit;
	return 0;
}

/* Corrects the frame at a program counter where not all of it is there. Returns 0 or -EFAULT. */
static int correct_frame(struct jit *jit, const struct codeblob *blob, uint64_t pc,
			 struct hotspot_frame *ret)
{
	bool making = pc < blob->ready && blob->ready - blob->start < NEAR;
	uint64_t start = pc - blob->start < NEAR ? blob->start : pc - NEAR;
	uint64_t end = making ? blob->ready : pc;
	uint8_t code[NEAR + HOTSPOT_TAIL];

	end = blob->end - end < HOTSPOT_TAIL ? blob->end : end + HOTSPOT_TAIL;
	if (read_memory(jit, start, code, end - start))
		return -EFAULT;
	if (blob->frame)
		hotspot_partial(code, end - start, pc - start, making, ret);
	else
		hotspot_edge(code, end - start, pc - start, ret);
	return 0;
}

/* ---- What look-ups may take ---- */

/*
 * Look-ups go on for as long as a process is sampled, for an hour or a month, so no sum bounds them.
 * They are free up to a part of the time, which is more than an honest process needs: it is some 5 us
 * for each address that is new within FRESH. The memory of others can be made so that each takes 100
 * us, and a stack have a thousand of them: what goes beyond that part is drawn from the process's
 * account, until that has no time left.
 */
static struct free_time free_of_all;

static bool has_left(struct free_time *free, uint64_t time, unsigned int part)
{
	if (!free->began)
		free->began = time;
	return free->spent < FIRST_FREE + (time - free->began) / part;
}

bool jit_begin_look_up(struct jit *jit, struct jit_look_up *l)
{
	if (jit->refused == jit->time)
		return false;
	*l = (struct jit_look_up){
		.since = now_ns(CLOCK_MONOTONIC),
		.used = now_ns(CLOCK_THREAD_CPUTIME_ID),
	};
	if (has_left(&jit->free, jit->time, FREE_OF_ONE) &&
	    has_left(&free_of_all, jit->time, FREE_OF_ALL))
		return true;
	l->account = jit->process.account(jit->process.arg);
	if (l->account && shstk_account_begin(l->account))
		return true;
	if (l->account)
		shstk_account_end(l->account);
	jit->refused = jit->time;
	return false;
}

void jit_end_look_up(struct jit *jit, const struct jit_look_up *l)
{
	const uint64_t used = now_ns(CLOCK_THREAD_CPUTIME_ID) - l->used;
	const uint64_t took = taken_since(l->since, used);

	if (l->account) {
		shstk_account_end(l->account);
		return;
	}
	jit->free.spent += took;
	free_of_all.spent += took;
}

/* ---- Frames ---- */

/*
 * Fills @k for its address. Returns false if this is not known, because the process cannot be read.
 */
static bool look(struct jit *jit, struct known_address *k)
{
	struct codeblob blob;
	int err = jit->cache ? codecache_find(jit->cache, k->pc, &blob) : -ENODATA;

	if (err)
		return err == -ENOENT;
	k->found = true;
	k->frame.cfa = blob.frameless && k->exact ? 8 : blob.frame;
	k->frame.fp_saved = !blob.frameless;
	/* Even within a method, a register may be pushed for a moment. */
	k->slack = blob.frame && (blob.aligns || k->exact) ? 8 : 0;
	return !k->exact || blob.frameless || !correct_frame(jit, &blob, k->pc, &k->frame);
}

static const struct known_address *find(struct jit *jit, uint64_t pc, bool exact)
{
	struct known_address *k = &jit->known[(pc ^ pc >> 12) % KEPT];
	struct known_address new = { .pc = pc, .exact = exact, .time = jit->time };
	bool same = k->time && k->pc == pc && k->exact == exact, found = false;
	struct jit_look_up look_up;

	if (same && jit->time - k->time < FRESH)
		return k;
	if (jit_begin_look_up(jit, &look_up)) {
		found = look(jit, &new);
		jit_end_look_up(jit, &look_up);
	}
	if (found)
		*k = new;
	/* Otherwise use the old facts: the process may have ended. */
	return found || same ? k : NULL;
}

int jit_shape(void *arg, uint64_t pc, int exact, struct shstk_frame_shape *ret)
{
	const struct known_address *k = find(arg, pc, exact);

	if (!k || !k->found)
		return -ENOENT;
	if (!ret)
		return 0;
	if (!k->frame.cfa)
		return -ENOENT;
	ret->cfa = k->frame.cfa;
	ret->fp_saved = k->frame.fp_saved;
	ret->slack = k->slack;
	return 0;
}

/* ---- Names ---- */

/* Returns whether @pc may be in code whose name was not looked for a short time ago. */
static bool is_unnamed(const struct jit *jit, uint64_t pc)
{
	const struct asked *asked = &jit->asked[(pc ^ pc >> 12) % KEPT];

	return jit->cache && codecache_has(jit->cache, pc) &&
	       !(asked->pc == pc && jit->time - asked->time < FRESH);
}

/* Names the piece of code that contains @pc. Returns 0 or -ENOMEM. */
static int name_code(struct jit *jit, struct shstk_symproc *proc, uint64_t pc)
{
	struct named_code *named;
	char name[NAME_ROOM];
	struct codeblob blob;
	int ret;

	jit->asked[(pc ^ pc >> 12) % KEPT] = (struct asked){ pc, jit->time };
	if (codecache_find(jit->cache, pc, &blob))
		return 0;
	named = &jit->named[(blob.start >> 5 ^ blob.start >> 18) % NAMED];
	if (named->start == blob.start && named->method == blob.method)
		return 0;
	if (!codecache_name(jit->cache, &blob, name, sizeof(name)))
		return 0;
	*named = (struct named_code){ blob.start, blob.method };
	ret = shstk_symproc_add_generated(proc, blob.start, blob.end, name);
	return ret == -ENOMEM ? ret : 0;
}

int jit_name(struct jit *jit, struct shstk_symproc *proc, const uint64_t *pcs, size_t nr)
{
	struct jit_look_up look_up;
	int ret = 0;

	for (size_t i = 0; i < nr && !ret; i++) {
		if (!is_unnamed(jit, pcs[i]))
			continue;
		if (!jit_begin_look_up(jit, &look_up))
			break;
		ret = name_code(jit, proc, pcs[i]);
		jit_end_look_up(jit, &look_up);
	}
	return ret;
}

void jit_tell_again(struct jit *jit)
{
	memset(jit->asked, 0, sizeof(jit->asked));
	memset(jit->named, 0, sizeof(jit->named));
}
