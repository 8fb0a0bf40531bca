// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mappings.c - keeps what programs have mapped, and unwinds copies of their stacks. See mappings.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/address_space.h"
#include "libshstk/file_rules.h"
#include "tools/convert/mappings.h"
#include "tools/convert/stepped.h"
#include "tools/elf/jit_library.h"
#include "tools/java/jit_code.h"
#include "tools/java/methods.h"
#include "tools/language/languages.h"
#include "tools/stack_pointer.h"

#define MAX_MAPS 65536
#define MAX_PARTS 16 /* parts of a mapping that differ in protection */
#define HUGE_PAGE (2ull << 20)
#define SAMPLE 64 /* bytes of code in one comparison */
#define SAMPLES 16 /* number of comparisons */
#define FRAME_MAX (8ull << 20) /* bytes of a stack; few are larger */
_Static_assert(MAPPINGS_WORKERS < FILE_RULES_USERS, "each thread has a table of rules");

#define MAX_ENDS 4 /* kinds of outermost frames: those of the first thread, those of others */

/**
 * struct unwinder - the modules of a process for unwinding, for one thread at a time
 * @files: where files are found.
 * @space: the modules; NULL until they are needed.
 * @pid: the process whose stack was unwound last.
 */
struct unwinder {
	const struct mappings_files *files;
	struct shstk_space *space;
	pid_t pid;
};

/**
 * struct mappings - what is mapped
 * @refs: number of processes that have these mappings.
 * @files: where files are found.
 * @maps: the mappings, sorted by address.
 * @nr: number of mappings.
 * @max: number of mappings for which @maps has room.
 * @nr_jit: number of mappings of libraries that make code at run time.
 * @nr_languages: number of mappings that may be of an interpreter.
 * @language: what mappings_language() returned; -EAGAIN: it has to be found out.
 * @asked: how often that was wanted since the last change.
 * @own: unwinds for the thread that changes the mappings.
 * @workers: unwind for other threads, MAPPINGS_WORKERS of them; NULL until one is needed.
 * @jit: what is known of code made at run time, or NULL.
 * @methods: what is known of Java's methods, or NULL.
 * @ends: outermost entries of complete stacks, the innermost of them first; 0: none.
 * @nr_ends: how many such ends were found so far.
 * @stepped: probed instructions of the process, or NULL: they were not looked for.
 */
struct mappings {
	unsigned int refs;
	const struct mappings_files *files;
	struct mappings_map *maps;
	size_t nr;
	size_t max;
	size_t nr_jit;
	size_t nr_languages;
	int language;
	unsigned int asked;
	struct unwinder own;
	struct unwinder *workers;
	struct jit *jit;
	struct java_methods *methods;
	uint64_t ends[MAX_ENDS][MAPPINGS_OUTERMOST];
	unsigned int nr_ends;
	struct stepped *stepped;
};

bool mappings_is_file(const char *path)
{
	return *path == '/' && strncmp(path, "//", 2) && strncmp(path, "/dev/zero", 9) &&
	       strncmp(path, "/SYSV", 5) && strncmp(path, "/memfd:", 7) &&
	       strncmp(path, "/anon_hugepage", 14);
}

struct mappings *mappings_create(const struct mappings_files *files)
{
	struct mappings *mappings = calloc(1, sizeof(*mappings));

	if (!mappings)
		return NULL;
	mappings->refs = 1;
	mappings->files = files;
	mappings->own.files = files;
	return mappings;
}

struct mappings *mappings_share(struct mappings *mappings)
{
	mappings->refs++;
	return mappings;
}

void mappings_put(struct mappings *mappings)
{
	if (!mappings || --mappings->refs)
		return;
	for (size_t i = 0; i < mappings->nr; i++)
		free(mappings->maps[i].path);
	free(mappings->maps);
	shstk_space_destroy(mappings->own.space);
	for (size_t i = 0; mappings->workers && i < MAPPINGS_WORKERS; i++)
		shstk_space_destroy(mappings->workers[i].space);
	free(mappings->workers);
	jit_destroy(mappings->jit);
	java_methods_destroy(mappings->methods);
	free(mappings->stepped);
	free(mappings);
}

/*
 * Returns the index of the first mapping that ends behind @addr. The mappings are sorted and do not
 * overlap.
 */
static size_t first_behind(const struct mappings *mappings, uint64_t addr)
{
	size_t lo = 0, hi = mappings->nr, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (mappings->maps[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int make_room(struct mappings *mappings)
{
	size_t max = mappings->max ? 2 * mappings->max : 16;
	struct mappings_map *more;

	if (mappings->nr < mappings->max)
		return 0;
	more = reallocarray(mappings->maps, max, sizeof(*more));
	if (!more)
		return -ENOMEM;
	mappings->maps = more;
	mappings->max = max;
	return 0;
}

/* Counts a mapping that comes or goes, if it may be of an interpreter. */
static void count_language(struct mappings *mappings, const char *path, int change)
{
	if (!languages_may_be(path))
		return;
	mappings->nr_languages += change;
	mappings->language = mappings->nr_languages ? -EAGAIN : 0;
	mappings->asked = 0;
}

/* Puts a mapping at its place, where nothing is mapped. Returns 0 or -ENOMEM. */
static int insert(struct mappings *mappings, const struct mappings_map *map)
{
	size_t at = first_behind(mappings, map->start);
	char *path = strdup(map->path);

	if (!path || make_room(mappings)) {
		free(path);
		return -ENOMEM;
	}
	memmove(mappings->maps + at + 1, mappings->maps + at,
		(mappings->nr - at) * sizeof(*mappings->maps));
	mappings->maps[at] = *map;
	mappings->maps[at].path = path;
	mappings->nr++;
	mappings->nr_jit += jit_is_known(path);
	count_language(mappings, path, 1);
	return 0;
}

/*
 * Replaces mappings that other processes share by a copy, so that they can be changed. Returns 0 or
 * -ENOMEM.
 */
static int make_own(struct mappings **mappings)
{
	struct mappings *old = *mappings, *own;
	int err = 0;

	if (old->refs == 1)
		return 0;
	own = mappings_create(old->files);
	if (!own)
		return -ENOMEM;
	memcpy(own->ends, old->ends, sizeof(own->ends));
	own->nr_ends = old->nr_ends;
	for (size_t i = 0; i < old->nr && !err; i++)
		err = insert(own, &old->maps[i]);
	if (err) {
		mappings_put(own);
		return err;
	}
	mappings_put(old);
	*mappings = own;
	return 0;
}

/* Removes @gone mappings from index @at on. */
static void take_out(struct mappings *mappings, size_t at, size_t gone)
{
	struct mappings_map *m;

	if (!gone)
		return;
	m = mappings->maps + at;
	for (size_t i = 0; i < gone; i++) {
		mappings->nr_jit -= jit_is_known(m[i].path);
		count_language(mappings, m[i].path, -1);
		free(m[i].path);
	}
	mappings->nr -= gone;
	memmove(m, m + gone, (mappings->nr - at) * sizeof(*m));
}

/* Takes away the part of a mapping before @addr. */
static void cut_front(struct mappings_map *m, uint64_t addr)
{
	m->offset += addr - m->start;
	m->start = addr;
}

/*
 * Takes away the part of a mapping that @map covers or that lies behind it. What lies behind @map
 * becomes a mapping of its own. Returns 0 or -ENOMEM.
 */
static int cut_back(struct mappings *mappings, size_t at, const struct mappings_map *map)
{
	struct mappings_map behind = mappings->maps[at];

	mappings->maps[at].end = map->start;
	if (behind.end <= map->end || mappings->nr == MAX_MAPS)
		return 0;
	cut_front(&behind, map->end);
	return insert(mappings, &behind);
}

/*
 * Removes what a new mapping covers. What lies before and behind it stays: a change of one page's
 * protection is reported as a mapping of that page. Returns 0 or -ENOMEM.
 */
static int cut_overlap(struct mappings *mappings, const struct mappings_map *map)
{
	size_t at = first_behind(mappings, map->start), stop;
	int err = 0;

	if (at < mappings->nr && mappings->maps[at].start < map->start)
		err = cut_back(mappings, at++, map);
	for (stop = at; stop < mappings->nr && mappings->maps[stop].end <= map->end;)
		stop++;
	take_out(mappings, at, stop - at);
	if (at < mappings->nr && mappings->maps[at].start < map->end)
		cut_front(&mappings->maps[at], map->end);
	return err;
}

/*
 * Returns whether both mappings may be of the same file. An event's record may tell a build id,
 * /proc tells an inode number.
 */
static bool same_file(const struct mappings_map *a, const struct mappings_map *b)
{
	if (a->id.size && b->id.size)
		return a->id.size == b->id.size && !memcmp(a->id.data, b->id.data, a->id.size);
	return !a->inode || !b->inode || (a->inode == b->inode && a->dev == b->dev);
}

static bool has(const struct mappings *mappings, const struct mappings_map *map)
{
	size_t at = first_behind(mappings, map->start);
	const struct mappings_map *m = at < mappings->nr ? &mappings->maps[at] : NULL;

	return m && m->start == map->start && m->end == map->end && m->offset == map->offset &&
	       same_file(m, map) && !strcmp(m->path, map->path);
}

bool mappings_has(const struct mappings *mappings, uint64_t addr)
{
	return mappings_find(mappings, addr);
}

int mappings_read(const struct mappings *mappings, pid_t pid, uint64_t addr, void *buf, size_t size)
{
	const struct mappings_files *files = mappings->files;

	return files->read(files->arg, pid, addr, buf, size);
}

static const struct mappings_map *find_jit(const struct mappings *mappings)
{
	for (size_t i = 0; i < mappings->nr; i++)
		if (jit_is_known(mappings->maps[i].path))
			return &mappings->maps[i];
	return NULL;
}

bool mappings_has_jit(const struct mappings *mappings)
{
	return mappings->nr_jit;
}

const char *mappings_interpreter(const struct mappings *mappings)
{
	for (size_t i = 0; (mappings->nr_languages || mappings->nr_jit) && i < mappings->nr; i++)
		if (languages_may_be(mappings->maps[i].path) ||
		    jit_is_known(mappings->maps[i].path))
			return mappings->maps[i].path;
	return NULL;
}

/* ---- Functions of struct jit_process and struct language_module ---- */

static int read_process(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct mappings *mappings = arg;

	return mappings_read(mappings, mappings->own.pid, addr, buf, size);
}

static int open_jit(void *arg, uint64_t *start, uint64_t *offset)
{
	const struct mappings *mappings = arg;
	const struct mappings_files *files = mappings->files;
	const struct mappings_map *map = find_jit(mappings);

	if (!map)
		return -ENOENT;
	*start = map->start;
	*offset = map->offset;
	return files->open(files->arg, mappings->own.pid, map);
}

static struct shstk_account *account_of(void *arg)
{
	const struct mappings *mappings = arg;

	return mappings->files->account(mappings->files->arg, mappings->own.pid);
}

/* Returns the number of the interpreter that the file of a mapping is, as languages_find() does. */
static int find_language(struct mappings *mappings, const struct mappings_map *map,
			 struct languages *languages)
{
	const struct mappings_files *files = mappings->files;
	struct language_module module = {
		.fd = files->open(files->arg, mappings->own.pid, map),
		.start = map->start,
		.offset = map->offset,
		.read = read_process,
		.arg = mappings,
		.account = account_of(mappings),
	};
	int ret = 0;

	if (module.fd < 0)
		return 0;
	if (module.account)
		ret = languages_find(languages, &module);
	close(module.fd);
	return ret;
}

/*
 * Returns whether a process is to be asked which interpreter it has. It may only be starting, so it
 * is asked again, each time after twice as many samples: the answer may never come.
 */
static bool is_due(struct mappings *mappings)
{
	unsigned int asked = ++mappings->asked;

	return !(asked & (asked - 1));
}

int mappings_language(struct mappings *mappings, pid_t pid, struct languages *languages)
{
	int found = 0;

	if (!languages || mappings->language != -EAGAIN)
		return mappings->language > 0 ? mappings->language : 0;
	if (!mappings->files->read || !mappings->files->open || !mappings->files->account) {
		mappings->language = 0;
		return 0;
	}
	if (!is_due(mappings))
		return 0;
	mappings->own.pid = pid;
	for (size_t i = 0; i < mappings->nr && !found; i++)
		if (languages_may_be(mappings->maps[i].path))
			found = find_language(mappings, &mappings->maps[i], languages);
	mappings->language = found;
	return found > 0 ? found : 0;
}

int mappings_name_generated(const struct mappings *mappings, struct shstk_symproc *proc,
			    const uint64_t *pcs, size_t nr)
{
	return mappings->jit ? jit_name(mappings->jit, proc, pcs, nr) : 0;
}

int mappings_arch(const struct mappings *mappings)
{
	return mappings->files->arch;
}

bool mappings_empty(const struct mappings *mappings)
{
	return !mappings->nr;
}

/* Prepares for a process that makes code at run time in a known way. Returns 0 or -ENOMEM. */
static int add_jit(struct mappings *mappings, struct shstk_space *space)
{
	if (!mappings->files->read || mappings->files->arch != SHSTK_ARCH_X86)
		return 0;
	if (!mappings->jit)
		mappings->jit = jit_create();
	if (!mappings->jit)
		return -ENOMEM;
	shstk_space_set_shapes(space, jit_shape, mappings->jit);
	return 0;
}

/*
 * Returns the mapping joined with those before it that precede it both in memory and in its file.
 * They were one mapping until the protection of a part was changed. The beginning of the whole in
 * the file tells to which segment they belong.
 */
static struct mappings_map all_of(const struct mappings *mappings, const struct mappings_map *map)
{
	const struct mappings_map *m = mappings->maps + first_behind(mappings, map->start);
	struct mappings_map all = *map;

	for (unsigned int i = 0; i < MAX_PARTS && m > mappings->maps; i++) {
		m--;
		if (m->end != all.start || m->offset + (m->end - m->start) != all.offset ||
		    !same_file(m, map) || strcmp(m->path, map->path))
			break;
		all.start = m->start;
		all.offset = m->offset;
	}
	return all;
}

/*
 * Adds a mapping to the modules for unwinding. The stacks of code that is made at run time in a known
 * way are unwound only by the thread that changes the mappings. Returns 0 or -ENOMEM.
 */
static int add_code(struct mappings *mappings, pid_t pid, struct shstk_space *space, bool own,
		    const struct mappings_map *map)
{
	const struct mappings_files *files = mappings->files;
	const struct mappings_map all = all_of(mappings, map);
	int err = files->add(files->arg, pid, space, &all);

	if (!strcmp(map->path, "[uprobes]"))
		shstk_space_set_probes(space, map->start);
	if (own && jit_is_known(map->path) && add_jit(mappings, space))
		return -ENOMEM;
	if (err && err != -ENOMEM)
		err = shstk_space_add_code(space, map->start, map->end);
	return err;
}

/* Adds a mapping to the modules of all threads that have some. Returns 0 or -ENOMEM. */
static int add_code_for_all(struct mappings *mappings, pid_t pid, const struct mappings_map *map)
{
	struct shstk_space *space = mappings->own.space;
	int err = space ? add_code(mappings, pid, space, true, map) : 0;

	for (size_t i = 0; mappings->workers && i < MAPPINGS_WORKERS && !err; i++) {
		space = mappings->workers[i].space;
		err = space ? add_code(mappings, pid, space, false, map) : 0;
	}
	return err;
}

/* Returns whether the process has at @addr the same @n bytes as the file has at @offset. */
static bool same_bytes(const struct mappings *mappings, pid_t pid, int fd, uint64_t addr,
		       uint64_t offset, size_t n)
{
	uint8_t there[SAMPLE], here[SAMPLE];

	return !mappings_read(mappings, pid, addr, there, n) &&
	       pread(fd, here, n, (off_t)offset) == (ssize_t)n && !memcmp(here, there, n);
}

/*
 * Returns whether the process has at @map a copy of the file's code that @old maps; -1 if that is
 * not known.
 */
static int is_same_code(const struct mappings *mappings, pid_t pid, const struct mappings_map *old,
			const struct mappings_map *map)
{
	const struct mappings_files *files = mappings->files;
	uint64_t size = map->end - map->start, at;
	int fd, same = 1;
	uint8_t byte;

	if (size < SAMPLE || !files->read || !files->open ||
	    mappings_read(mappings, pid, map->start, &byte, 1))
		return -1;
	fd = files->open(files->arg, pid, old);
	if (fd < 0)
		return -1;
	for (unsigned int i = 0; i < SAMPLES && same; i++) {
		at = i * (size - SAMPLE) / (SAMPLES - 1);
		same = same_bytes(mappings, pid, fd, map->start + at,
				  old->offset + (map->start + at - old->start), SAMPLE);
	}
	close(fd);
	return same;
}

/*
 * Returns whether a program replaced its code by a copy on huge pages. Then anonymous memory lies
 * over a mapping of a file. If the process cannot be asked (any more), it is taken for a copy if it
 * covers the whole mapping, or whole huge pages of it. Code that is made at run time where a file
 * was mapped before hardly looks like that.
 */
static bool is_copy_of_code(const struct mappings *mappings, pid_t pid,
			    const struct mappings_map *map)
{
	const struct mappings_map *old = mappings_find(mappings, map->start);
	int same;

	if (!old || map->end > old->end || !mappings_is_file(old->path) ||
	    mappings_is_file(map->path) || strncmp(map->path, "//anon", 6))
		return false;
	same = is_same_code(mappings, pid, old, map);
	if (same >= 0)
		return same;
	return (map->start == old->start && map->end == old->end) ||
	       !((map->start | map->end) & (HUGE_PAGE - 1));
}

int mappings_add(struct mappings **mappings, pid_t pid, const struct mappings_map *map)
{
	int err;

	if (!strcmp(map->path, "[vsyscall]") || map->end <= map->start || has(*mappings, map) ||
	    is_copy_of_code(*mappings, pid, map))
		return 0;
	err = make_own(mappings);
	if (!err)
		err = cut_overlap(*mappings, map);
	if (err)
		return err;
	if ((*mappings)->nr == MAX_MAPS)
		return 0;
	err = insert(*mappings, map);
	if (!err)
		err = add_code_for_all(*mappings, pid, map);
	return err ? err : 1;
}

const struct mappings_map *mappings_find(const struct mappings *mappings, uint64_t addr)
{
	size_t at = first_behind(mappings, addr);

	return at < mappings->nr && mappings->maps[at].start <= addr ? &mappings->maps[at] : NULL;
}

int mappings_name(const struct mappings *mappings, pid_t pid, struct shstk_symproc *proc)
{
	const struct mappings_files *files = mappings->files;
	int err = 0;

	for (size_t i = 0; i < mappings->nr && !err; i++)
		err = files->name(files->arg, pid, proc, &mappings->maps[i]);
	if (mappings->jit)
		jit_tell_again(mappings->jit);
	return err;
}

static int read_generated(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct unwinder *u = arg;

	return u->files->read(u->files->arg, u->pid, addr, buf, size);
}

/* Adds all modules to @space, which @u gets. Returns 0 or -ENOMEM. */
static int fill_space(struct mappings *mappings, pid_t pid, struct unwinder *u,
		      struct shstk_space *space)
{
	const bool own = u == &mappings->own;
	int err = 0;

	shstk_space_set_debug(space, shstk_debug_find, NULL);
	if (u->files->read)
		shstk_space_set_generated(space, read_generated, u);
	if (u->files->rules)
		shstk_space_share(space, u->files->rules, own ? 0 : 1 + (u - mappings->workers));
	for (size_t i = 0; i < mappings->nr && !err; i++)
		err = add_code(mappings, pid, space, own, &mappings->maps[i]);
	return err;
}

/*
 * Gives @u, which is one of @mappings, all modules, unless it has them. If there is not memory for all,
 * it has none: with some of them, stacks would be wrong later. Returns 0 or a negative errno.
 */
static int make_space(struct mappings *mappings, pid_t pid, struct unwinder *u)
{
	struct shstk_space *space;
	int err;

	if (u->space)
		return 0;
	err = shstk_space_create(u->files->arch, &space);
	if (err)
		return err;
	err = fill_space(mappings, pid, u, space);
	if (err)
		shstk_space_destroy(space);
	else
		u->space = space;
	return err;
}

uint64_t mappings_function(struct mappings *mappings, pid_t pid, uint64_t pc)
{
	if (make_space(mappings, pid, &mappings->own))
		return 0;
	return shstk_space_function(mappings->own.space, pc);
}

bool mappings_has_go(const struct mappings *mappings)
{
	return mappings->own.space && shstk_space_has_go(mappings->own.space);
}

enum shstk_gokind mappings_go_kind(const struct mappings *mappings, uint64_t pc)
{
	return mappings->own.space ? shstk_go_kind(mappings->own.space, pc) : SHSTK_GO_NONE;
}

bool mappings_go_has_frame(const struct mappings *mappings, uint64_t pc)
{
	return mappings->own.space && shstk_go_has_frame(mappings->own.space, pc);
}

/* What is known of the process's memory while a copy is unwound. */
struct known_memory {
	const struct stack_copy *copy;
	uint64_t sp;
	uint64_t missed; /* the last address that was asked for and is not known */
};

static bool read_piece(const struct memory_piece *p, uint64_t addr, void *buf, size_t len)
{
	if (addr < p->addr || addr - p->addr > p->size || len > p->size - (addr - p->addr))
		return false;
	memcpy(buf, p->bytes + (addr - p->addr), len);
	return true;
}

static int read_copy(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct known_memory *k = arg;
	const struct memory_piece stack = { k->sp, k->copy->bytes, k->copy->size };

	if (read_piece(&stack, addr, buf, len))
		return 0;
	for (size_t i = 0; i < k->copy->nr_more; i++)
		if (read_piece(&k->copy->more[i], addr, buf, len))
			return 0;
	k->missed = addr;
	return -EFAULT;
}

/*
 * Returns whether the stack continues on another stack. A stack that is larger than its copy goes
 * on right behind it, at most a frame away.
 */
static bool is_elsewhere(const struct known_memory *k)
{
	return k->missed < k->sp || k->missed - k->sp > k->copy->size + FRAME_MAX;
}

uint64_t mappings_sp(const struct mappings *mappings, const struct stack_copy *copy)
{
	return stack_pointer(mappings->files->arch, copy->regs);
}

int unwinder_unwind(struct unwinder *u, pid_t pid, const struct stack_copy *copy,
		    struct unwound *ret)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = { .size = sizeof(opts), .marks = ret->marks, .sps = ret->sps };
	struct known_memory known = { .copy = copy,
				      .sp = stack_pointer(u->files->arch, copy->regs) };
	int nr;

	u->pid = pid;
	memset(ret->marks, 0, ret->max);
	nr = shstk_unwind(u->space, copy->regs, read_copy, &known, ret->pcs, ret->max, &opts,
			  &info);
	if (nr < 0)
		return nr;
	ret->nr = nr;
	ret->end = info.end;
	ret->elsewhere = info.end == SHSTK_END_READ && is_elsewhere(&known);
	ret->missed = known.missed;
	return 0;
}

static int unwind_copy(struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
		       struct unwound *ret)
{
	int err = make_space(mappings, pid, &mappings->own);

	if (err)
		return err;
	mappings->own.pid = pid;
	if (mappings->jit)
		jit_begin(mappings->jit,
			  &(struct jit_process){ read_process, open_jit, account_of, mappings });
	return unwinder_unwind(&mappings->own, pid, copy, ret);
}

bool mappings_place_methods(struct mappings *mappings, struct languages *all,
			    const struct native_stack *native, const struct stack_copy *copy,
			    struct java_entries *ret)
{
	struct known_memory known = { .copy = copy, .sp = mappings_sp(mappings, copy) };
	const struct java_stack stack = { *native, copy->regs, read_copy, &known };

	if (mappings->jit && !mappings->methods)
		mappings->methods = java_methods_create();
	return mappings->jit && mappings->methods &&
	       java_place(mappings->methods, mappings->jit, all, &stack, ret);
}

/* ---- Instructions that are stepped outside of their function ---- */

/* Returns whether @pc is in a slot where the kernel steps instructions. */
static bool is_stepped(const struct mappings *mappings, uint64_t pc)
{
	const struct mappings_map *map = mappings_find(mappings, pc);
	const int arch = mappings->files->arch;

	return map && !strcmp(map->path, "[uprobes]") && stepped_is_known(arch) &&
	       !stepped_is_trampoline(arch, map->start, pc) && mappings->files->open;
}

/*
 * Reads code from the memory of the process or, if it is gone, from the file that it had mapped.
 * Returns whether all could be read.
 */
static bool read_code(const struct mappings *mappings, pid_t pid, uint64_t addr, void *buf,
		      size_t size)
{
	const struct mappings_files *files = mappings->files;
	const struct mappings_map *map = mappings_find(mappings, addr);
	bool all;
	int fd;

	if (files->read)
		return !files->read(files->arg, pid, addr, buf, size);
	if (!map || !mappings_is_file(map->path))
		return false;
	fd = files->open(files->arg, pid, map);
	if (fd < 0)
		return false;
	all = pread(fd, buf, size, (off_t)(map->offset + (addr - map->start))) == (ssize_t)size;
	close(fd);
	return all;
}

/*
 * Returns the function that the call before the return address @ra leads to, also by a stub of the
 * linker; 0 if that is not known.
 */
static uint64_t find_callee(const struct mappings *mappings, pid_t pid, uint64_t ra)
{
	const int arch = mappings->files->arch;
	uint8_t code[STEPPED_CALL], stub[STEPPED_STUB];
	struct stepped_target to;
	uint64_t address;

	if (ra < sizeof(code) || !read_code(mappings, pid, ra - sizeof(code), code, sizeof(code)))
		return 0;
	to = stepped_call(arch, ra, code);
	if (to.address && read_code(mappings, pid, to.address, stub, sizeof(stub)))
		to.slot = stepped_stub(arch, to.address, stub);
	if (!to.slot)
		return to.address;
	return mappings->files->read &&
			       read_code(mappings, pid, to.slot, &address, sizeof(address)) ?
		       address :
		       0;
}

/*
 * Finds the functions that may have been called last: the return address is at the stack pointer, or
 * next to it behind a first instruction that pushes a register; of arm64 it is in a register.
 */
static void find_called(const struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
			struct stepped *s)
{
	uint64_t ras[2] = { 0 };

	s->nr = 0;
	if (mappings->files->arch == SHSTK_ARCH_ARM64)
		ras[0] = copy->regs->r[30];
	else if (copy->size >= sizeof(ras))
		memcpy(ras, copy->bytes, sizeof(ras));
	for (size_t i = 0; i < 2; i++) {
		const uint64_t callee = find_callee(mappings, pid, ras[i]);

		if (callee)
			stepped_add(s, callee, 0);
	}
}

/*
 * Unwinds as if the instruction at @site was the one that is stepped. Returns whether that leads to
 * the end of the stack.
 */
static bool unwind_site(struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
			const struct stepped_site *site, struct unwound *ret)
{
	struct shstk_regs regs = *copy->regs;
	struct stack_copy there = *copy;

	regs.pc = stepped_pc(mappings->files->arch, mappings_find(mappings, regs.pc)->start,
			     regs.pc, site);
	there.regs = &regs;
	return regs.pc && !unwind_copy(mappings, pid, &there, ret) &&
	       ret->end == SHSTK_END_COMPLETE && ret->nr > 1;
}

/*
 * Returns the probed instruction that is stepped: the only one by which the stack has an end, or
 * the only one of these that was just called. Returns NULL if that is not known.
 */
static const struct stepped_site *find_site(struct mappings *mappings, pid_t pid,
					    const struct stack_copy *copy, struct unwound *ret)
{
	const struct stepped *s = mappings->stepped;
	const struct stepped_site *any = NULL, *callee = NULL;
	unsigned int complete = 0, called = 0;

	for (size_t i = 0; i < s->nr; i++) {
		if (!unwind_site(mappings, pid, copy, &s->sites[i], ret))
			continue;
		complete++;
		any = &s->sites[i];
		if (find_callee(mappings, pid, ret->pcs[1]) == any->address) {
			called++;
			callee = any;
		}
	}
	if (!mappings->files->read)
		any = callee;
	return complete == 1 ? any : called == 1 ? callee : NULL;
}

/* Unwinds from the instruction that is stepped, if it can be found. It is marked as a guess. */
static int unwind_stepped(struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
			  struct unwound *ret)
{
	const struct stepped_site *site;

	if (!mappings->stepped)
		mappings->stepped = calloc(1, sizeof(*mappings->stepped));
	if (!mappings->stepped)
		return -ENOMEM;
	if (mappings->files->read)
		stepped_find(mappings->stepped, mappings->files, pid, mappings->maps, mappings->nr);
	else
		find_called(mappings, pid, copy, mappings->stepped);
	site = find_site(mappings, pid, copy, ret);
	if (!site || !unwind_site(mappings, pid, copy, site, ret))
		return unwind_copy(mappings, pid, copy, ret);
	ret->marks[0] |= SHSTK_MARK_GUESS;
	return 0;
}

int mappings_unwind(struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
		    struct unwound *ret)
{
	return is_stepped(mappings, copy->regs->pc) ? unwind_stepped(mappings, pid, copy, ret) :
						      unwind_copy(mappings, pid, copy, ret);
}

struct unwinder *mappings_unwinder(struct mappings *mappings, pid_t pid, unsigned int worker,
				   uint64_t pc)
{
	struct unwinder *u;

	if (mappings->nr_jit || mappings_has_go(mappings) || is_stepped(mappings, pc))
		return NULL;
	if (!mappings->workers)
		mappings->workers = calloc(MAPPINGS_WORKERS, sizeof(*mappings->workers));
	if (!mappings->workers)
		return NULL;
	u = &mappings->workers[worker];
	/* Once it has modules, its thread may be reading it. */
	if (!u->space)
		u->files = mappings->files;
	return !make_space(mappings, pid, u) && !shstk_space_has_go(u->space) ? u : NULL;
}

void mappings_keep_outermost(struct mappings *mappings, const struct unwound *stack)
{
	const uint64_t *end = stack->pcs + stack->nr - MAPPINGS_OUTERMOST;

	/* The innermost entry is not a return address. */
	if (stack->nr <= MAPPINGS_OUTERMOST)
		return;
	for (unsigned int i = 0; i < MAX_ENDS; i++)
		if (!memcmp(mappings->ends[i], end, sizeof(mappings->ends[i])))
			return;
	memcpy(mappings->ends[mappings->nr_ends++ % MAX_ENDS], end, sizeof(mappings->ends[0]));
}

int mappings_find_outermost(const struct mappings *mappings, uint64_t pc, const uint64_t **ret)
{
	for (unsigned int i = 0; pc && i < MAX_ENDS; i++) {
		const uint64_t *end = mappings->ends[i];

		for (int n = MAPPINGS_OUTERMOST; n--;) {
			*ret = end + n + 1;
			if (end[n] == pc)
				return MAPPINGS_OUTERMOST - 1 - n;
		}
	}
	return -1;
}
