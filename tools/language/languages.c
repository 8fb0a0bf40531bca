// SPDX-License-Identifier: GPL-2.0-or-later
/* languages.c - the languages of a recording. See languages.h. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "bpf/lend.h"
#include "bpf/walk.h"
#include "libshstk/shstk.h"
#include "libshstk/symbol/budget.h"
#include "tools/bpf/load_object.h"
#include "tools/repeats.h"
#include "tools/language/languages.h"
#include "tools/shstk.h"

#define OBJECT "shstk-language.bpf.o"
#define NATIVE_OBJECT "shstk-native.bpf.o" /* reads frames on the native stack, too */
#ifdef __x86_64__
#define WALK_READS true /* The walk reads frames in the heap (bpf/walk.bpf.c). */
#define IS_KNOWN(language) true /* The language is known on this kind of machine. */
#else
#define WALK_READS false
#define IS_KNOWN(language) ((language)->arm64)
#endif
#define MAX_FUNCTIONS (1u << 20)
#define MAX_BYTES (256u << 20) /* of all functions and positions */
#define MAX_MOMENTS 16384 /* threads whose last frames belong to no sample yet */
#define MAX_APART 1000000 /* ns between frames and their sample, at most */
#define MAX_APART_MORE 2000 /* ns more for each frame of a deep stack that was only passed */
#define MAX_APART_NATIVE 10000000 /* the same for frames on the native stack: new text is read */

static const struct language *const known[] = { &language_python, &language_php, &language_ruby,
						&language_v8 };

#define NR_KNOWN (sizeof(known) / sizeof(*known))

/* An interpreter: its number is its index. */
struct interpreter {
	const struct language *language;
	struct language_found found;
};

/* A function, by the number that the BPF program gave it. */
struct seen_function {
	UT_hash_handle hh;
	uint64_t id;
	const struct language *language;
	struct language_function it;
};

/* A function that has no such number: it is known by the text of its language, name and file. */
struct named_function {
	UT_hash_handle hh;
	struct seen_function it;
	char text[];
};

/* A place in a function, and the address that stands for it. */
struct position {
	UT_hash_handle hh;
	struct position_key {
		const struct seen_function *function;
		uint64_t line;
	} key;
	uint64_t pc;
};

/* What was read of a thread and belongs to no sample yet. */
struct kept_moment {
	UT_hash_handle hh;
	int tid;
	uint64_t time;
	struct language_moment it;
	struct language_entry entries[];
};

/*
 * What another process's program was told of a process: the number of its interpreter, its contexts, and whether
 * these could not be told.
 */
struct told_process {
	UT_hash_handle hh;
	int pid;
	int number;
	struct context_process contexts;
	bool untold;
};

/**
 * struct languages - the languages of a recording
 * @own: the BPF program that was loaded here for frames in the heap.
 * @behind: the one that was loaded for frames that the first one does not read: on the native stack, or, if that
 *	is the caller's, all. It reads those in the heap in any case.
 * @load: see languages_load_by(); NULL: there is none.
 * @load_arg: its argument.
 * @tell: see languages_lend(); NULL: nothing is read there.
 * @tell_arg: its argument.
 * @told: hash table of what it was told.
 * @untold: number of processes whose trace contexts could not be told; @unloaded says why of the first one.
 * @no_native: why there is no program that reads frames on the native stack; NULL: there may be one.
 * @program: the BPF program that reads frames in the heap, one of these or the caller's; NULL as long as
 *	there is none.
 * @stopped_only: none is to be loaded.
 * @failed: no program can be loaded.
 * @unloaded: why not.
 * @behind_failed: no such program can be loaded.
 * @why: why functions of an interpreter are not shown.
 * @refused: @why has a reason.
 * @wanted: a process was told that has an interpreter.
 * @contexts: a process was told that publishes contexts, or was to be told.
 * @interpreters: the interpreters, from number 1 on.
 * @by_behind: which of them were told to @behind.
 * @nr_interpreters: number of elements in use, with the first one, which is none.
 * @functions: hash table of the functions.
 * @named: hash table of functions that are known by their names.
 * @bytes: bytes that functions and positions take.
 * @positions: hash table of positions.
 * @by_pc: the same, in the order of their addresses.
 * @nr_positions: number of elements of @by_pc.
 * @max_positions: number of elements for which @by_pc has room.
 * @moments: hash table by thread ID.
 * @task: name of the task that ran at the last sample, as it was copied.
 * @task_size: its bytes; 0: none is known.
 * @task_of: the interpreter.
 * @truth: the word that was read for a test at the last sample.
 * @counts: see &struct language_counts.
 * @folded: see languages_folded().
 * @middle: frames in the middle of a deep stack, without their addresses.
 * @frames: the frames of the sample at hand.
 * @order: the order of its entries.
 * @pcs: its new entries.
 * @marks: their marks.
 */
struct languages {
	struct bpf_loaded own;
	struct bpf_loaded behind;
	const struct bpf_loaded *(*load)(void *arg);
	void *load_arg;
	languages_tell_fn *tell;
	void *tell_arg;
	struct told_process *told;
	unsigned int untold;
	const char *no_native;
	const struct bpf_loaded *program;
	bool stopped_only;
	bool failed;
	struct reason unloaded;
	bool behind_failed;
	struct reason why;
	bool refused;
	bool wanted;
	bool contexts;
	struct interpreter interpreters[LANGUAGE_TARGETS];
	bool by_behind[LANGUAGE_TARGETS];
	unsigned int nr_interpreters;
	struct seen_function *functions;
	struct named_function *named;
	size_t bytes;
	struct position *positions;
	struct position **by_pc;
	size_t nr_positions;
	size_t max_positions;
	struct kept_moment *moments;
	uint8_t task[LANGUAGE_TASK];
	size_t task_size;
	const struct interpreter *task_of;
	uint64_t truth;
	struct language_counts counts;
	bool folded;
	struct language_entry middle[LANGUAGE_PERIOD];
	struct language_frame frames[LANGUAGE_DEEPEST];
	int order[LANGUAGES_MOST];
	uint64_t pcs[LANGUAGES_MOST];
	uint8_t marks[LANGUAGES_MOST];
};

struct languages *languages_create(const struct bpf_loaded *program)
{
	struct languages *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->own.program = -1;
	all->behind.program = -1;
	all->program = program;
	all->nr_interpreters = 1;
	return all;
}

static void free_function(struct seen_function *f)
{
	free(f->it.name);
	free(f->it.file);
	free(f->it.lines);
	free(f->it.own);
	free(f);
}

static void forget_told(struct languages *all, struct told_process *t)
{
	HASH_DEL(all->told, t);
	free(t);
}

void languages_destroy(struct languages *all)
{
	struct named_function *n, *next_named;
	struct told_process *t, *next_told;
	struct seen_function *f, *next;

	if (!all)
		return;
	HASH_CLEAR(hh, all->positions);
	for (size_t i = 0; i < all->nr_positions; i++)
		free(all->by_pc[i]);
	free(all->by_pc);
	HASH_ITER(hh, all->functions, f, next)
	{
		HASH_DEL(all->functions, f);
		free_function(f);
	}
	HASH_ITER(hh, all->named, n, next_named)
	{
		HASH_DEL(all->named, n);
		free(n);
	}
	HASH_ITER(hh, all->told, t, next_told)
	{
		forget_told(all, t);
	}
	languages_lost(all);
	bpf_loaded_close(&all->own);
	bpf_loaded_close(&all->behind);
	free(all);
}

const char *languages_refused(const struct languages *all)
{
	return all->refused ? all->why.text : NULL;
}

bool languages_folded(const struct languages *all)
{
	return all->folded;
}

void languages_count(const struct languages *all, struct language_counts *ret)
{
	*ret = all->counts;
}

void languages_count_anew(struct languages *all)
{
	all->counts = (struct language_counts){ .samples = 0 };
}

/* ---- Interpreters ---- */

bool languages_may_be(const char *path)
{
	for (size_t i = 0; i < NR_KNOWN; i++)
		if (known[i]->may_be(path))
			return true;
	return false;
}

int languages_set_namespace(const struct bpf_loaded *program)
{
	struct walk_config config = { 0 };
	uint64_t dev, ino;
	__u32 zero = 0;

	bpf_own_namespace(&dev, &ino);
	config.ns_dev = dev;
	config.ns_ino = ino;
	return bpf_loaded_set(program, "config", &zero, &config);
}

void languages_load_by(struct languages *all, const struct bpf_loaded *(*load)(void *arg),
		       void *arg)
{
	all->load = load;
	all->load_arg = arg;
}

void languages_lend(struct languages *all, languages_tell_fn *tell, void *arg)
{
	all->tell = tell;
	all->tell_arg = arg;
}

void languages_without_native(struct languages *all, const char *why)
{
	all->no_native = why;
}

/* Loads a program. @what: what it is for. Returns 0, or a negative errno with the reason. */
static int load_object(struct languages *all, const char *what, const char *object,
		       struct bpf_loaded *ret)
{
	int err = bpf_loaded_open(what, object, "language_sample", ret, &all->unloaded);

	if (!err && languages_set_namespace(ret)) {
		because(&all->unloaded, "%s: %s", what, strerror(errno));
		err = -errno;
	}
	if (err)
		bpf_loaded_close(ret);
	return err;
}

/*
 * Loads the program that reads frames in the heap, once. @what: what it is for. Returns it, or NULL if
 * there is none.
 */
static const struct bpf_loaded *load(struct languages *all, const char *what)
{
	if (all->program || all->failed)
		return all->program;
	if (all->load)
		all->program = all->load(all->load_arg);
	if (all->program)
		return all->program;
	all->failed = load_object(all, what, OBJECT, &all->own);
	if (!all->failed)
		all->program = &all->own;
	return all->program;
}

/*
 * Loads the program that runs behind the first one, once; where there is none yet, it reads all frames. @what:
 * what it is for. Returns it, or NULL if there is none.
 */
static const struct bpf_loaded *load_behind(struct languages *all, const char *what,
					    const char *object)
{
	if (all->behind.program < 0 && !all->behind_failed)
		all->behind_failed = load_object(all, what, object, &all->behind);
	if (all->behind_failed)
		return NULL;
	if (!all->program)
		all->program = &all->behind;
	return &all->behind;
}

/* Returns whether the first program, which may not be loaded yet, reads frames. */
static bool first_reads(const struct languages *all)
{
	if (all->program)
		return bpf_loaded_map(all->program, "language_targets") >= 0;
	return !all->load || WALK_READS;
}

/*
 * Loads the program that reads frames, if that was not done. Returns it, or NULL if there is none. That for frames
 * on the native stack is larger, and some kernels refuse it; another interpreter may still have the other one then.
 */
static const struct bpf_loaded *load_reader(struct languages *all, bool on_stack)
{
	static const char what[] = "reading frames of interpreters by BPF";

	if (on_stack)
		return load_behind(all, "reading frames on the native stack by BPF", NATIVE_OBJECT);
	return first_reads(all) ? load(all, what) : load_behind(all, what, OBJECT);
}

void languages_expect(struct languages *all, const char *path)
{
	for (size_t i = 0; i < NR_KNOWN; i++)
		if (known[i]->may_be(path) && IS_KNOWN(known[i]))
			load_reader(all, known[i]->on_stack);
}

/* Returns the program that reads the frames of an interpreter. */
static const struct bpf_loaded *program_of(const struct languages *all, unsigned int number)
{
	return all->by_behind[number] ? &all->behind : all->program;
}

void languages_refuse(struct languages *all, const struct reason *why)
{
	if (!all->refused)
		all->why = *why;
	all->refused = true;
}

/* Returns whether there may be a program that can read the frames of an interpreter. */
static bool may_be_read(struct languages *all, const struct interpreter *it)
{
	struct reason why;

	if (!it->found.target.native || !all->no_native)
		return true;
	because(&why, "%s", all->no_native);
	languages_refuse(all, &why);
	return false;
}

/* ---- Programs of other processes ---- */

/* Returns what was told of a process, or NULL. */
static struct told_process *find_told(struct languages *all, int pid)
{
	struct told_process *ret;

	HASH_FIND_INT(all->told, &pid, ret);
	return ret;
}

/* Returns what was told of a process, nothing at first; NULL: there is no memory. */
static struct told_process *need_told(struct languages *all, int pid)
{
	struct told_process *ret = find_told(all, pid);

	if (ret)
		return ret;
	ret = calloc(1, sizeof(*ret));
	if (!ret)
		return NULL;
	ret->pid = pid;
	HASH_ADD_INT(all->told, pid, ret);
	if (ret->hh.tbl)
		return ret;
	free(ret);
	return NULL;
}

/* Says why frames of a process are not read. */
static void refuse_frames(struct languages *all, bool native, int err)
{
	const bool other = err != -EOPNOTSUPP;
	struct reason why;

	because(&why, "the broker reads no frames %s%s%s",
		native ? "on the native stack; root may record them" : "of interpreters",
		other ? ": " : "", other ? strerror(-err) : "");
	languages_refuse(all, &why);
}

/*
 * Says why trace contexts of a process are not read, as @err says; 0: they are. A process is told again with
 * other rings, and what it lacked before that is no reason any more.
 */
static void note_contexts(struct languages *all, struct told_process *t, int err)
{
	if (err && !all->untold)
		because(&all->unloaded, "the broker reads none: %s", strerror(-err));
	all->untold += !!err - t->untold;
	t->untold = err;
}

static int tell_of(struct languages *all, const struct told_process *t)
{
	const struct language_found *found = &all->interpreters[t->number].found;
	const struct lent_process process = {
		.number = t->number,
		.target = found->target,
		.native = found->native,
		.contexts = t->contexts,
	};

	return all->tell(all->tell_arg, t->pid, &process);
}

/*
 * Tells about a process. If its frames cannot be read, its contexts may. It is forgotten if there is
 * neither.
 */
static void tell(struct languages *all, struct told_process *t)
{
	int err = tell_of(all, t);

	if (err && t->number) {
		refuse_frames(all, all->interpreters[t->number].found.target.native, err);
		t->number = 0;
		err = t->contexts.nr ? tell_of(all, t) : 0;
	}
	if (t->contexts.nr)
		note_contexts(all, t, err);
	if (!t->number && !t->contexts.nr)
		forget_told(all, t);
}

/* Tells about a process that it has the interpreter @number. */
static void tell_number(struct languages *all, int pid, int number)
{
	struct told_process *t = need_told(all, pid);

	all->wanted |= number > 0;
	if (!t)
		return;
	t->number = number;
	tell(all, t);
}

/* Tells where its contexts are, or with NULL that there are none, unless that was told. */
static void tell_contexts(struct languages *all, int pid, const struct context_process *process)
{
	static const struct context_process none;
	struct told_process *t = process ? need_told(all, pid) : find_told(all, pid);

	process = process ? process : &none;
	if (!t || !memcmp(&t->contexts, process, sizeof(*process)))
		return;
	t->contexts = *process;
	tell(all, t);
}

void languages_tell_again(struct languages *all)
{
	struct told_process *t, *next;

	HASH_ITER(hh, all->told, t, next)
	{
		tell(all, t);
	}
}

/*
 * What another process's program was told of it stays there until newer ones take its place, since to take it back
 * would be a connection for each process that ends. If its number is used again, the program reads frames of the
 * new process as it did of the old one, only of the same user and while the same recording lasts. The recorder takes
 * functions for a process that has an interpreter alone, and tells it anew.
 */
void languages_ended(struct languages *all, int pid)
{
	struct told_process *t = find_told(all, pid);

	if (t)
		forget_told(all, t);
}

/* ---- Programs of this process ---- */

/* Tells the BPF program how frames are found. Returns false if there is no such program. */
static bool set_program_target(struct languages *all, unsigned int number,
			       const struct interpreter *it)
{
	const bool native = it->found.target.native;
	const struct bpf_loaded *program;
	__u32 key = number;

	if (!may_be_read(all, it))
		return false;
	if (all->tell)
		return true;
	program = load_reader(all, native);
	if (!program) {
		languages_refuse(all, &all->unloaded);
		return false;
	}
	all->by_behind[number] = program == &all->behind;
	if (native && bpf_loaded_set(program, "native_targets", &key, &it->found.native))
		return false;
	return !bpf_loaded_set(program, "language_targets", &key, &it->found.target);
}

/* Returns the number of an interpreter; 0: there are too many. */
static int number_of(struct languages *all, const struct interpreter *it)
{
	unsigned int n;

	/* Frames on the native stack are read by the BPF program only. */
	if (all->stopped_only && it->found.target.native)
		return 0;
	for (n = 1; n < all->nr_interpreters; n++)
		if (!memcmp(&all->interpreters[n], it, sizeof(*it)))
			return (int)n;
	if (n == LANGUAGE_TARGETS) {
		if (!all->refused)
			because(&all->why,
				"no more than %d interpreters at different addresses can be known",
				LANGUAGE_TARGETS - 1);
		all->refused = true;
		return 0;
	}
	if (!all->stopped_only && !set_program_target(all, n, it))
		return 0;
	all->interpreters[all->nr_interpreters++] = *it;
	return (int)n;
}

int languages_add(struct languages *all, const struct language *language,
		  const struct language_found *found)
{
	struct interpreter it;

	memset(&it, 0, sizeof(it));
	it.language = language;
	it.found = *found;
	return number_of(all, &it);
}

/* Returns whether a language is known on the machine of its interpreter's file, or else the reason. */
static bool is_served(const struct language *language, int fd, struct reason *why)
{
	Elf64_Half machine = EM_X86_64;
	ssize_t n = pread(fd, &machine, sizeof(machine), offsetof(Elf64_Ehdr, e_machine));

	/* A file that cannot be read was none to recognise either. */
	if (n != sizeof(machine) || machine == EM_X86_64 ||
	    (language->arm64 && machine == EM_AARCH64))
		return true;
	because(why, "%s is not known on this kind of machine", language->module);
	return false;
}

static int find(struct languages *all, const struct language_module *module)
{
	struct interpreter it;
	struct reason why;
	int err = 0;

	for (size_t i = 0; i < NR_KNOWN; i++) {
		memset(&it, 0, sizeof(it));
		it.language = known[i];
		err = it.language->recognise(module, &it.found, &why);
		if (err == -ENOENT)
			continue;
		/* What was found out about code of another machine may be anything. */
		if (is_served(it.language, module->fd, &why)) {
			if (!err)
				return number_of(all, &it);
			if (err == -EAGAIN)
				return err;
		}
		if (all->refused)
			continue;
		all->refused = true;
		all->why = why;
	}
	return 0;
}

int languages_find(struct languages *all, const struct language_module *module)
{
	int ret = 0;

	if (shstk_account_begin(module->account))
		ret = find(all, module);
	shstk_account_end(module->account);
	return ret;
}

/* Tells the program that walks stacks what there is from now on. The other programs always look. */
static void note_use(const struct bpf_loaded *program, enum walk_use what)
{
	const __u32 key = what, value = 1;

	bpf_loaded_set(program, "uses", &key, &value);
}

void languages_set(struct languages *all, int pid, int number)
{
	const struct bpf_loaded *program = program_of(all, number);
	__u32 key = pid, value = number;

	if (all->tell)
		tell_number(all, pid, number);
	if (all->tell || !program)
		return;
	all->wanted |= number > 0;
	if (number) {
		bpf_loaded_set(program, "language_processes", &key, &value);
		note_use(program, WALK_USES_LANGUAGES);
	}
	/* It may have had another one. */
	if (program != all->program || !number)
		bpf_loaded_set(all->program, "language_processes", &key, NULL);
	if (all->behind.program >= 0 && (program != &all->behind || !number))
		bpf_loaded_set(&all->behind, "language_processes", &key, NULL);
}

void languages_set_context(struct languages *all, int pid, const struct context_process *process)
{
	__u32 key = pid;

	all->contexts |= process != NULL;
	if (all->tell) {
		tell_contexts(all, pid, process);
		return;
	}
	if (process ? !load(all, "reading trace contexts by BPF") : !all->program)
		return;
	bpf_loaded_set(all->program, "context_processes", &key, process);
	note_use(all->program, WALK_USES_CONTEXTS);
}

bool languages_contexts_wanted(const struct languages *all)
{
	return all->contexts && all->program;
}

const char *languages_contexts_refused(const struct languages *all)
{
	const bool refused = all->tell ? all->untold : all->failed;

	return all->contexts && refused ? all->unloaded.text : NULL;
}

void languages_stopped_only(struct languages *all)
{
	all->stopped_only = true;
}

const struct language_target *languages_target(const struct languages *all, int number)
{
	return &all->interpreters[number].found.target;
}

bool languages_known(const struct languages *all, uint64_t id)
{
	const struct seen_function *f;

	HASH_FIND(hh, all->functions, &id, sizeof(id), f);
	return f;
}

size_t languages_bytes(const struct languages *all)
{
	return all->bytes;
}

bool languages_wanted(const struct languages *all)
{
	return all->wanted;
}

void languages_walked(struct languages *all)
{
	const struct bpf_loaded *walker = all->load ? all->load(all->load_arg) : NULL;

	if (walker)
		all->program = walker;
}

void languages_not_walked(struct languages *all)
{
	if (all->behind.program >= 0)
		all->program = &all->behind;
}

/* Returns the program that runs at events, if it was loaded here. */
static const struct bpf_loaded *first_program(const struct languages *all)
{
	return all->program == &all->own || all->program == &all->behind ? all->program : NULL;
}

bool languages_have_program(const struct languages *all)
{
	return first_program(all);
}

int languages_behind(const struct languages *all)
{
	return all->program == &all->behind ? -1 : all->behind.program;
}

bool languages_read_behind(const struct languages *all, int number)
{
	return number > 0 && all->by_behind[number];
}

/* Notes that a program does not run, if @err is not 0. Returns @err. */
static int refuse_begin(struct languages *all, int err)
{
	if (!err)
		return 0;
	all->refused = true;
	because(&all->why, "reading frames of interpreters by BPF: events for it: %s",
		strerror(-err));
	return err;
}

int languages_begin_behind(struct languages *all, struct perf_rings *rings)
{
	const struct bpf_loaded *first = first_program(all);
	int err;

	if (languages_behind(all) < 0)
		return 0;
	err = bpf_loaded_connect(&all->behind, rings);
	if (!err && first)
		err = bpf_loaded_set_next(first, all->behind.program);
	return refuse_begin(all, err);
}

int languages_begin(struct languages *all, struct perf_rings *rings)
{
	const struct bpf_loaded *first = first_program(all);
	const int err = languages_begin_behind(all, rings);

	return err || !first ? err : refuse_begin(all, bpf_loaded_begin(first, rings, true));
}

int languages_then(struct languages *all, int program)
{
	const struct bpf_loaded *first = first_program(all);

	if (all->behind.program >= 0)
		return bpf_loaded_set_next(&all->behind, program);
	return first ? bpf_loaded_set_next(first, program) : -ENOENT;
}

int languages_set_truth(struct languages *all, int number, uint64_t addr)
{
	struct language_target *target = &all->interpreters[number].found.target;
	__u32 key = number;

	target->truth = addr;
	if (all->tell)
		return 0;
	return bpf_loaded_set(program_of(all, number), "language_targets", &key, target);
}

uint64_t languages_truth(const struct languages *all)
{
	return all->truth;
}

/* ---- Records ---- */

/* Returns an estimate of the bytes that a function takes. */
static size_t size_of(const struct language_function *f)
{
	return sizeof(struct seen_function) + strlen(f->name) + strlen(f->file) +
	       f->nr_lines * sizeof(*f->lines) + f->own_bytes;
}

/* Returns whether another function or position may be kept. Says so if there are too many. */
static bool has_room(struct languages *all)
{
	if (HASH_COUNT(all->functions) + HASH_COUNT(all->named) < MAX_FUNCTIONS &&
	    all->bytes < MAX_BYTES)
		return true;
	if (!all->refused)
		because(&all->why,
			"there are more than %u of them, or they and their lines take more than %u MiB",
			MAX_FUNCTIONS, MAX_BYTES >> 20);
	all->refused = true;
	return false;
}

static int take_code(struct languages *all, const struct language_code *code, size_t size)
{
	const struct interpreter *of;
	struct seen_function *f;
	int err;

	if (size < offsetof(struct language_code, table) || code->target >= all->nr_interpreters ||
	    !code->target || !has_room(all))
		return 0;
	of = &all->interpreters[code->target];
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->id = code->id;
	f->language = of->language;
	err = of->language->function(of->found.version, code, size, &f->it);
	if (!err)
		HASH_ADD(hh, all->functions, id, sizeof(f->id), f);
	if (err || !f->hh.tbl) {
		free_function(f);
		return err == -ENOMEM ? err : 0;
	}
	all->bytes += size_of(&f->it);
	return 0;
}

static void forget(struct languages *all, struct kept_moment *m)
{
	HASH_DEL(all->moments, m);
	free(m);
}

void languages_forget(struct languages *all, int tid)
{
	struct kept_moment *m;

	HASH_FIND_INT(all->moments, &tid, m);
	if (m)
		forget(all, m);
}

/*
 * Leaves out the outermost frame, if it is none of a call (@base_frame of &struct language_found). If it is another
 * one, the list is not whole. Returns false if the thread runs no function.
 */
static bool drop_base(const struct languages *all, struct kept_moment *m, unsigned int nr_task)
{
	const struct interpreter *of = &all->interpreters[m->it.target];
	struct language_frame frame = { .function = NULL };
	struct language_entry *last;

	if (!of->found.base_frame || m->it.end != LANGUAGE_WHOLE)
		return true;
	if (!m->it.nr_frames)
		return false;
	last = m->entries + m->it.nr_marks + m->it.nr_frames - 1;
	frame.entry = last;
	if (of->language->kind(of->found.version, &frame) != LANGUAGE_ENTRY) {
		m->it.end = LANGUAGE_UNREADABLE;
		return true;
	}
	memmove(last, last + 1, nr_task * sizeof(*last));
	return --m->it.nr_frames;
}

/* Keeps what was read of a thread until its sample comes, which is the next one. */
static int take_moment(struct languages *all, int tid, uint64_t time,
		       const struct language_moment *it, size_t size)
{
	size_t nr = (size - sizeof(*it)) / sizeof(struct language_entry);
	const unsigned int nr_task = it->task_size ? LANGUAGE_TASK_ENTRIES : 0;
	struct kept_moment *m;

	if (!it->target || it->target >= all->nr_interpreters || it->nr_marks > LANGUAGE_MARKS ||
	    it->nr_frames > LANGUAGE_FRAMES || it->nr_marks + it->nr_frames + nr_task > nr ||
	    it->task_size > LANGUAGE_TASK ||
	    (it->left_out && (it->nr_frames != LANGUAGE_FRAMES ||
			      it->left_out > LANGUAGE_DEEPEST - LANGUAGE_FRAMES)))
		return 0;
	nr = it->nr_marks + it->nr_frames + nr_task;
	languages_forget(all, tid);
	/* Samples of these were lost. */
	if (HASH_COUNT(all->moments) >= MAX_MOMENTS)
		forget(all, all->moments);
	m = malloc(sizeof(*m) + nr * sizeof(*m->entries));
	if (!m)
		return -ENOMEM;
	memset(m, 0, sizeof(*m));
	m->tid = tid;
	m->time = time;
	m->it = *it;
	memcpy(m->entries, it + 1, nr * sizeof(*m->entries));
	if (!drop_base(all, m, nr_task)) {
		free(m);
		return 0;
	}
	HASH_ADD_INT(all->moments, tid, m);
	if (m->hh.tbl)
		return 0;
	free(m);
	return -ENOMEM;
}

int languages_take(struct languages *all, int tid, uint64_t time, const void *record, size_t size)
{
	const struct language_moment *it = record;

	if (size < sizeof(*it))
		return 0;
	if (it->kind == LANGUAGE_CODE)
		return take_code(all, record, size);
	return it->kind == LANGUAGE_MOMENT ? take_moment(all, tid, time, it, size) : 0;
}

void languages_lost(struct languages *all)
{
	struct kept_moment *m, *next;

	HASH_ITER(hh, all->moments, m, next)
	{
		forget(all, m);
	}
}

/* ---- Stacks ---- */

/* Makes room for another element of by_pc. Returns false without memory. */
static bool grow_by_pc(struct languages *all)
{
	size_t max = all->max_positions ? 2 * all->max_positions : 1024;
	struct position **more;

	if (all->nr_positions < all->max_positions)
		return true;
	more = reallocarray(all->by_pc, max, sizeof(*more));
	if (!more)
		return false;
	all->by_pc = more;
	all->max_positions = max;
	return true;
}

/*
 * Returns the address that stands for a line of a function; 0: there is no room for it. A process
 * may have other lines at each sample.
 */
static uint64_t position_of(struct languages *all, const struct seen_function *f, unsigned int line)
{
	const struct position_key key = { f, line };
	struct position *p;

	HASH_FIND(hh, all->positions, &key, sizeof(key), p);
	if (p)
		return p->pc;
	if (!has_room(all) || !grow_by_pc(all))
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return 0;
	p->key = key;
	p->pc = SHSTK_FUNCTION_BASE + all->nr_positions;
	HASH_ADD(hh, all->positions, key, sizeof(p->key), p);
	if (!p->hh.tbl) {
		free(p);
		return 0;
	}
	all->by_pc[all->nr_positions++] = p;
	all->bytes += sizeof(*p) + sizeof(*all->by_pc);
	return p->pc;
}

bool languages_function(void *arg, uint64_t pc, struct shstk_symframe *ret, const char **module)
{
	const struct languages *all = arg;
	const struct language_function *f;

	if (pc < SHSTK_FUNCTION_BASE || pc - SHSTK_FUNCTION_BASE >= all->nr_positions)
		return false;
	f = &all->by_pc[pc - SHSTK_FUNCTION_BASE]->key.function->it;
	*module = all->by_pc[pc - SHSTK_FUNCTION_BASE]->key.function->language->module;
	*ret = (struct shstk_symframe){
		.function = f->name,
		.linkage = f->name,
		.file = *f->file ? f->file : NULL,
		.line = (unsigned int)all->by_pc[pc - SHSTK_FUNCTION_BASE]->key.line,
		.start_line = f->line,
	};
	return true;
}

uint64_t languages_position(struct languages *all, uint64_t id, int at)
{
	struct seen_function *f;

	HASH_FIND(hh, all->functions, &id, sizeof(id), f);
	return f ? position_of(all, f, f->language->line(&f->it, at)) : 0;
}

/* ---- Functions that callers found ---- */

#define MAX_TEXT 2048 /* bytes of language, name and file, with their 0s */

/* Writes what a function is known by. Returns its bytes; 0: it is too long. */
static size_t make_text(const struct language *language, const char *name, const char *file,
			char text[MAX_TEXT])
{
	const int n = snprintf(text, MAX_TEXT, "%s%c%s%c%s", language->module, 0, name, 0, file);

	return n > 0 && n < MAX_TEXT ? (size_t)n + 1 : 0;
}

/* Returns a function that was not known; NULL: there is no room for it. */
static struct named_function *add_named(struct languages *all, const struct language *language,
					const char *text, size_t size)
{
	struct named_function *f = has_room(all) ? calloc(1, sizeof(*f) + size) : NULL;

	if (!f)
		return NULL;
	memcpy(f->text, text, size);
	f->it.language = language;
	f->it.it.name = f->text + strlen(f->text) + 1;
	f->it.it.file = f->it.it.name + strlen(f->it.it.name) + 1;
	HASH_ADD_KEYPTR(hh, all->named, f->text, size, f);
	if (!f->hh.tbl) {
		free(f);
		return NULL;
	}
	all->bytes += sizeof(*f) + size;
	return f;
}

uint64_t languages_named(struct languages *all, const struct language *language, const char *name,
			 const char *file, unsigned int line)
{
	struct named_function *f = NULL;
	char text[MAX_TEXT];
	const size_t size = make_text(language, name, file, text);

	if (size)
		HASH_FIND(hh, all->named, text, size, f);
	if (size && !f)
		f = add_named(all, language, text, size);
	return f ? position_of(all, &f->it, line) : 0;
}

void languages_count_named(struct languages *all, bool placed)
{
	all->counts.samples++;
	all->counts.placed += placed;
}

void languages_count_in_heap(struct languages *all)
{
	all->counts.in_heap++;
}

/* ---- Frames ---- */

/* Finds the functions of @nr frames. */
static void find_functions(struct languages *all, const struct language_entry *entries,
			   unsigned int nr, struct language_frame *ret)
{
	struct seen_function *f;

	for (unsigned int i = 0; i < nr; i++) {
		HASH_FIND(hh, all->functions, &entries[i].id, sizeof(entries[i].id), f);
		ret[i] = (struct language_frame){ &entries[i], f ? &f->it : NULL };
	}
}

/*
 * Makes the frames in the middle of a deep stack, which were not copied. If they repeat those before
 * them, they are the same; else one stands for all. Returns the number of frames that were made.
 */
static unsigned int make_middle(struct languages *all, const struct language_moment *it)
{
	const unsigned int period = it->repeats ? __builtin_ctz(it->repeats) + 1 : 0;
	struct language_frame *to = all->frames + LANGUAGE_INNER;

	if (!period || period > LANGUAGE_PERIOD) {
		all->middle[0] = (struct language_entry){ .id = LANGUAGE_NO_FUNCTION };
		*to = (struct language_frame){ all->middle, NULL };
		return 1;
	}
	for (unsigned int i = 0; i < period; i++) {
		all->middle[i] = *to[(int)i - (int)period].entry;
		all->middle[i].addr = 0;
	}
	for (unsigned int i = 0; i < it->left_out; i++)
		to[i] = (struct language_frame){ &all->middle[i % period],
						 to[(int)i - (int)period].function };
	return it->left_out;
}

/* Finds all frames of a moment, and their functions. */
static void find_frames(struct languages *all, const struct kept_moment *m,
			struct language_frames *ret)
{
	const struct language_entry *entries = m->entries + m->it.nr_marks;
	const unsigned int inner = m->it.left_out ? LANGUAGE_INNER : m->it.nr_frames;

	*ret = (struct language_frames){
		.marks = m->entries,
		.nr_marks = m->it.nr_marks,
		.frames = all->frames,
		.nr = inner,
		.base_word = m->it.base_word,
	};
	find_functions(all, entries, inner, all->frames);
	if (!m->it.left_out)
		return;
	ret->left_out = m->it.repeats ? 0 : inner;
	ret->nr += make_middle(all, &m->it);
	find_functions(all, entries + inner, m->it.nr_frames - inner, all->frames + ret->nr);
	ret->nr += m->it.nr_frames - inner;
}

/* The stack that is being made, in @all's arrays. */
static bool add_entry(struct languages *all, unsigned int *nr, uint64_t pc, uint8_t mark)
{
	if (*nr >= LANGUAGES_MOST)
		return false;
	all->pcs[*nr] = pc;
	all->marks[(*nr)++] = mark;
	return true;
}

/* Adds a place in a function. Returns false without memory. */
static bool add_function(struct languages *all, const struct seen_function *f, int at,
			 unsigned int *nr)
{
	const uint64_t pc = position_of(all, f, f->language->line(&f->it, at));

	return pc && add_entry(all, nr, pc, SHSTK_MARK_PC);
}

/* Adds the functions that a frame runs. Returns false if one is not known, or without memory. */
static bool add_frame(struct languages *all, const struct language *language,
		      const struct language_frame *frame, unsigned int *nr)
{
	struct language_part parts[LANGUAGE_PARTS];
	unsigned int nr_parts;

	if (!language->expand)
		return add_function(all,
				    (const void *)((const char *)frame->function -
						   offsetof(struct seen_function, it)),
				    frame->entry->at, nr);
	nr_parts = language->expand(frame, parts, LANGUAGE_PARTS);
	for (unsigned int i = 0; i < nr_parts; i++) {
		struct seen_function *f;

		HASH_FIND(hh, all->functions, &parts[i].id, sizeof(parts[i].id), f);
		if (!f || f->language != language || !add_function(all, f, parts[i].at, nr))
			return false;
	}
	return nr_parts;
}

/*
 * Makes the entries of @nr in the order that was found. Returns their number; 0: a function is not
 * known, or there is no memory.
 */
static unsigned int make_entries(struct languages *all, const struct interpreter *of,
				 const struct native_stack *native, unsigned int nr)
{
	unsigned int ret = 0;

	for (unsigned int i = 0; i < nr; i++) {
		const int at = all->order[i];
		bool added;

		if (at == PLACE_LEFT_OUT)
			added = add_entry(all, &ret, SHSTK_FUNCTION_LEFT_OUT, 0);
		else if (at >= 0)
			added = add_entry(all, &ret, native->pcs[at], native->marks[at]);
		else
			added = add_frame(all, of->language, &all->frames[~at], &ret);
		if (!added)
			return 0;
	}
	return ret;
}

/* Returns how many ns frames and their sample may be apart. Some kernels take the sample's time first. */
static uint64_t max_apart(const struct languages *all, const struct language_moment *it)
{
	/* Of a stack that is too deep it is not told how many frames were passed. */
	const uint64_t passed = it->end == LANGUAGE_DEEP ? LANGUAGE_DEEPEST : it->left_out;

	if (all->interpreters[it->target].found.target.native)
		return MAX_APART_NATIVE;
	return MAX_APART + passed * MAX_APART_MORE;
}

static bool belongs(const struct languages *all, const struct kept_moment *m,
		    const struct language_sample *sample)
{
	uint64_t apart = m->time > sample->time ? m->time - sample->time : sample->time - m->time;

	return m->it.pc == sample->pc && m->it.sp == sample->sp &&
	       (int)m->it.target == sample->number && sample->number &&
	       apart < max_apart(all, &m->it);
}

static unsigned int place(struct languages *all, const struct kept_moment *m,
			  const struct native_stack *native)
{
	const struct interpreter *of = &all->interpreters[m->it.target];
	struct language_frames frames;
	unsigned int nr;

	if (m->it.end != LANGUAGE_WHOLE ||
	    native->nr + m->it.nr_frames + m->it.left_out > LANGUAGES_MOST)
		return 0;
	find_frames(all, m, &frames);
	nr = place_frames(native, of->language, &of->found, &frames, all->order);
	all->folded = frames.left_out;
	return nr ? make_entries(all, of, native, nr) : 0;
}

/* Keeps the name of the task of a sample, until the next one. */
static void keep_task(struct languages *all, const struct kept_moment *m)
{
	all->task_of = &all->interpreters[m->it.target];
	all->task_size = m->it.task_size;
	memcpy(all->task, &m->entries[m->it.nr_marks + m->it.nr_frames], all->task_size);
}

size_t languages_label(const struct languages *all, char *buf)
{
	static const char key[] = "task";
	const struct language *language;
	size_t size;

	if (!all->task_size || !all->task_of->language->task)
		return 0;
	language = all->task_of->language;
	memcpy(buf, key, sizeof(key));
	size = language->task(all->task_of->found.version, all->task, all->task_size,
			      buf + sizeof(key), LANGUAGES_LABEL - sizeof(key));
	if (!size)
		return 0;
	printable(buf + sizeof(key));
	return sizeof(key) + size;
}

/* Shortens the stack of @nr entries that was made. Returns how many it has then. */
static unsigned int shorten(struct languages *all, const struct native_stack *native,
			    unsigned int nr, unsigned int max)
{
	unsigned int left = repeats_shorten(all->pcs, all->marks, nr, max, native->complete);

	all->folded |= left < nr;
	return left;
}

unsigned int languages_place(struct languages *all, const struct language_sample *sample,
			     const struct native_stack *native, uint64_t *pcs, uint8_t *marks,
			     unsigned int max)
{
	unsigned int nr = 0;
	struct kept_moment *m;

	all->task_size = 0;
	HASH_FIND_INT(all->moments, &sample->tid, m);
	if (!m)
		return 0;
	if (belongs(all, m, sample)) {
		keep_task(all, m);
		all->truth = m->it.truth;
		nr = place(all, m, native);
		if (sample->fold && nr > sample->fold)
			nr = shorten(all, native, nr, sample->fold);
		if (nr > max)
			nr = 0;
		all->counts.samples++;
		all->counts.placed += nr > 0;
		all->counts.too_deep += m->it.end == LANGUAGE_DEEP;
		memcpy(pcs, all->pcs, nr * sizeof(*pcs));
		memcpy(marks, all->marks, nr);
	}
	forget(all, m);
	return nr;
}
