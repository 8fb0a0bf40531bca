// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * address_space.c - the modules of another program, and unwinding in that program.
 *
 * It uses the same tables and the same walker as captures of own threads. Only the memory is read
 * differently: through a function that the caller gives.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "address_space.h"
#include "file_rules.h"
#include "guess.h"
#include "return_probes.h"
#include "regular.h"
#include "step.h"

#define KNOWN 16384 /* most entries in the table of a program's own rules, a power of two */
#define KNOWN_FROM 8 /* number of stacks of a program that are unwound before these are kept */
#define KNOWN_OF_FILES (1u << 20) /* most entries in the table of rules of files, a power of two */
#define NO_SIMPLE_RULE 3ull /* kept instead of a rule that step() cannot use; no kind of rule */
#define MAX_INNER 1024
#define HEADERS ((size_t)4096) /* bytes at the start of a file that hold its headers and notes */
/* Lookups in a chunk before it is compiled; compiling takes as long as 128 lookups. */
#define ASKED 128

#define WINDOW 512 /* bytes of code that are read at once */
#define WINDOW_FRONT 32 /* bytes of a window in front of the address that is asked for */
#define CODE_PAGE 4096ull
#define INSN 15 /* largest size of an instruction in bytes */
#define WINDOWS 2 /* one for a function and one for its caller */

/* A piece of code that was read from the program. */
struct window {
	uint64_t start;
	size_t size;
	uint8_t bytes[WINDOW];
};

/**
 * struct code - where a module lies, and how its rules are known in the table of rules of files
 * @range: its addresses.
 * @to_key: what makes the key of an address when it is added; 0: its rules are the program's own.
 */
struct code {
	struct range range;
	uint64_t to_key;
};

struct shstk_space {
	const struct machine *m;
	struct module **module; /* sorted by address */
	size_t n, room;
	bool nested; /* some modules lie between segments of other modules */
	size_t nr_go; /* number of modules with code of Go */
	/* Where Go keeps its goroutine, below the thread pointer; 0: not found yet. */
	int32_t go_tls;
	shstk_debug_fn debug;
	void *debug_arg;
	shstk_shape_fn shape;
	void *shape_arg;
	shstk_read_fn read_generated; /* reads code that is in no file, or NULL */
	void *generated_arg;
	uint64_t probe_return; /* address of the kernel's trampoline for probed returns, or 0 */
	/* Code that is in no file, read for the stack that is being unwound. */
	struct window windows[WINDOWS];
	unsigned int next_window;
	unsigned int unwound; /* number of stacks that were unwound, counted up to KNOWN_FROM */
	struct rule_table own; /* rules by address */
	struct file_rules *files; /* numbers of files whose rules are shared, or NULL */
	struct rule_table *shared; /* rules of these files, for the thread that uses this space */
	struct code *code; /* of each module; NULL: the modules changed since it was made */
	const struct code *last; /* the one that was used last */
};

/* The function that is asked for more unwind information about a file, and its arguments. */
struct more {
	shstk_debug_fn find;
	void *arg;
	char path[];
};

static void be_patient(struct module *m)
{
	m->eh.asked = m->df.asked = m->sf.asked = ASKED;
}

static void drop(struct module *m)
{
	free(m->more_arg);
	module_free(m);
}

/* Takes a module out of the space, but not out of its list. */
static void take_out(struct shstk_space *s, struct module *m)
{
	s->nr_go -= !!m->go.nfunc;
	drop(m);
}

SHSTK_API int shstk_space_create(int arch, struct shstk_space **ret)
{
	const struct machine *m = machine_by_arch(arch);
	struct shstk_space *s;

	if (!m || !ret)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->m = m;
	if (m == &machine_x86)
		s->probe_return = PROBED_PAGE_X86;
	*ret = s;
	return 0;
}

SHSTK_API void shstk_space_destroy(struct shstk_space *space)
{
	size_t i;

	if (!space)
		return;
	for (i = 0; i < space->n; i++)
		drop(space->module[i]);
	free(space->module);
	free(space->code);
	rule_table_clear(&space->own);
	free(space);
}

/* Returns how many modules begin at or below @pc. */
static size_t up_to(const struct shstk_space *s, uint64_t pc)
{
	size_t lo = 0, n = s->n;

	while (n) {
		size_t half = n / 2;

		if (s->module[lo + half]->range.lo <= pc) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo;
}

static struct module *find(void *arg, uint64_t pc)
{
	const struct shstk_space *s = arg;
	size_t n = up_to(s, pc);
	struct module *m;

	for (m = n ? s->module[n - 1] : NULL; m; m = m->outer)
		if (range_has(&m->range, pc) && (!s->nested || module_has(m, pc)))
			break;
	return m;
}

static bool is_code(void *arg, uint64_t pc)
{
	const struct shstk_space *s = arg;
	struct module *m = find(arg, pc);

	return m ? module_is_code(m, pc) : pc && pc == s->probe_return;
}

bool shstk_space_has_file(struct shstk_space *space, uint64_t addr)
{
	const struct module *m = find(space, addr);

	return m && m->img.nload;
}

const struct module *shstk_space_find(struct shstk_space *space, uint64_t pc)
{
	return find(space, pc);
}

uint64_t shstk_space_function(struct shstk_space *space, uint64_t pc)
{
	const struct module *m = find(space, pc);
	struct range function;

	return m && module_function(m, pc, &function) ? function.lo : 0;
}

const struct module *address_space_module(const struct shstk_space *space, size_t i)
{
	return i < space->n ? space->module[i] : NULL;
}

bool shstk_space_has_go(const struct shstk_space *space)
{
	return space->nr_go;
}

/*
 * Sets the outer module of each module from index @first on. The modules from @first to @last are
 * new, or the module that they lay in is gone. Behind @last, the loop ends at the first module
 * whose outer module does not change: all modules behind that one are right already.
 */
static void find_outer(struct shstk_space *s, size_t first, size_t last)
{
	struct module *before = first ? s->module[first - 1] : NULL;
	struct module *top = before && before->outer ? before->outer : before;
	size_t i;

	for (i = first; i < s->n; i++) {
		struct module *m = s->module[i];
		struct module *outer = top && m->range.lo < top->range.hi ? top : NULL;

		if (i > last && m->outer == outer)
			break;
		m->outer = outer;
		if (!outer)
			top = m;
	}
}

/* Forgets the program's own rules, and what lies where, because the modules have changed. */
static void forget_known(struct shstk_space *s)
{
	rule_table_clear(&s->own);
	s->unwound = 0;
	free(s->code);
	s->code = NULL;
	s->last = NULL;
}

/*
 * Returns true if the module @new replaces @m: they overlap, and the newer mapping of an address is
 * the valid one. If one module lies between the segments of the other, both are valid.
 */
static bool is_replaced(struct shstk_space *s, const struct module *m, const struct module *new)
{
	bool between;

	if (m->range.lo >= new->range.hi || new->range.lo >= m->range.hi)
		return false;
	between = module_between(m, new) || module_between(new, m);
	s->nested |= between;
	return !between;
}

/* Drops the modules from index @from to @to that @new replaces. */
static void drop_among(struct shstk_space *s, size_t from, size_t to, const struct module *new)
{
	size_t i, k, n = from, last = from;

	if (from == to)
		return;
	for (i = from; i < to; i++) {
		struct module *m = s->module[i];

		if (!is_replaced(s, m, new)) {
			s->module[n++] = m;
			continue;
		}
		for (k = i + 1; k < s->n && s->module[k]->outer == m; k++)
			last = k;
		take_out(s, m);
	}
	memmove(s->module + n, s->module + to, (s->n - to) * sizeof(*s->module));
	s->n -= to - n;
	if (n < to)
		find_outer(s, from, last);
}

/*
 * Drops the modules that @new replaces. A module that begins in front of @new and reaches into it
 * is either the last module in front of it, or it is nested, together with that last one, in a
 * module that begins further in front. Only an attacker has more than MAX_INNER modules nested in
 * one.
 */
static void drop_overlap(struct shstk_space *s, const struct module *new)
{
	size_t from = up_to(s, new->range.lo), to = from, n;

	while (to < s->n && s->module[to]->range.lo < new->range.hi)
		to++;
	for (n = 0; from && n < MAX_INNER; n++)
		if (s->module[--from]->range.lo < new->range.lo && !s->module[from]->outer)
			break;
	drop_among(s, from, to, new);
}

static int insert(struct shstk_space *s, struct module *m)
{
	size_t at;

	if (m->img.m && m->img.m != s->m) {
		drop(m);
		return -ENOEXEC;
	}
	be_patient(m);
	forget_known(s);
	drop_overlap(s, m);
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct module **p = reallocarray(s->module, room, sizeof(*p));

		if (!p) {
			drop(m);
			return -ENOMEM;
		}
		s->module = p;
		s->room = room;
	}
	at = up_to(s, m->range.lo);
	memmove(s->module + at + 1, s->module + at, (s->n - at) * sizeof(*s->module));
	s->module[at] = m;
	s->n++;
	s->nr_go += !!m->go.nfunc;
	find_outer(s, at, at);
	return 0;
}

static struct section section_of(const struct shstk_section *s)
{
	return (struct section){ s->data, s->data ? s->size : 0, s->vaddr };
}

static void find_more(struct module *m)
{
	struct shstk_debug d = { .size = sizeof(d) };
	const struct more *more = m->more_arg;
	struct section eh_frame, debug_frame;

	if (!more->find(more->arg, more->path, m->map, m->map_size, &d)) {
		eh_frame = section_of(&d.eh_frame);
		debug_frame = section_of(&d.debug_frame);
		module_add(m, &eh_frame, &debug_frame);
		be_patient(m);
	}
	free(d.eh_frame.data);
	free(d.debug_frame.data);
}

static int set_more(const struct shstk_space *s, struct module *m, const char *path)
{
	struct more *more;

	if (!s->debug)
		return 0;
	more = malloc(sizeof(*more) + strlen(path) + 1);
	if (!more)
		return -ENOMEM;
	more->find = s->debug;
	more->arg = s->debug_arg;
	strcpy(more->path, path);
	m->more_arg = more;
	m->more = find_more;
	return 0;
}

SHSTK_API void shstk_space_set_debug(struct shstk_space *space, shstk_debug_fn find, void *arg)
{
	space->debug = find;
	space->debug_arg = arg;
}

SHSTK_API void shstk_space_set_shapes(struct shstk_space *space, shstk_shape_fn find, void *arg)
{
	space->shape = find;
	space->shape_arg = arg;
}

/*
 * Returns true if both modules are read from the same file: their headers are equal, and headers
 * tell files apart.
 */
static bool same_file(const struct module *a, const struct module *b)
{
	return !a->img.in_memory && !b->img.in_memory && a->map && b->map &&
	       a->map_size == b->map_size && !memcmp(a->map, b->map, min(a->map_size, HEADERS));
}

/*
 * Returns true if the mapping @at is a segment of a module that the space already has. @m is the
 * module that was made from this mapping. Two segments may begin in the same page of a file, so
 * that @m's load bias may be wrong; the module in front tells which segment this is.
 */
static bool is_part(const struct shstk_space *s, const struct module *m, const struct range *at,
		    uint64_t offset)
{
	size_t n = up_to(s, at->lo);
	const struct module *before = n ? s->module[n - 1] : NULL;

	return before && before->bias != m->bias && same_file(before, m) &&
	       elf_image_fits(&before->img, at, offset, before->bias);
}

void shstk_space_share(struct shstk_space *space, struct file_rules *files, unsigned int user)
{
	space->files = files;
	space->shared = file_rules_table(files, user);
}

void shstk_space_set_probes(struct shstk_space *space, uint64_t page)
{
	space->probe_return = page;
}

void shstk_space_set_generated(struct shstk_space *space, shstk_read_fn read, void *arg)
{
	space->read_generated = read;
	space->generated_arg = arg;
}

/*
 * Reads the code around @pc into @w. If that fails, for instance where a mapping ends, reads only
 * what lies in the page of @pc. Returns false if nothing can be read.
 */
static bool fill_window(const struct shstk_space *s, struct window *w, uint64_t pc)
{
	uint64_t page = pc & -CODE_PAGE, start = pc - WINDOW_FRONT,
		 end = pc + WINDOW - WINDOW_FRONT;

	w->start = start;
	w->size = end - start;
	if (!s->read_generated(s->generated_arg, w->start, w->bytes, w->size))
		return true;
	w->start = max(start, page);
	w->size = min(end, page + CODE_PAGE) - w->start;
	if (!s->read_generated(s->generated_arg, w->start, w->bytes, w->size))
		return true;
	w->size = 0;
	return false;
}

/*
 * Serves struct view.generated: returns the bytes at @pc of code that is in no file, or NULL. Reads
 * more if a window ends so close to @pc that an instruction (at most 15 bytes) may not be complete.
 */
static const uint8_t *generated_code(void *arg, uint64_t pc, size_t *before, size_t *after)
{
	struct shstk_space *s = arg;
	struct window *w = NULL;
	unsigned int i;

	for (i = 0; i < WINDOWS && !w; i++) {
		const struct window *k = &s->windows[i];

		if (pc - k->start < k->size &&
		    (k->size < WINDOW ||
		     (pc - k->start >= INSN && k->size - (pc - k->start) > INSN)))
			w = &s->windows[i];
	}
	if (!w) {
		w = &s->windows[s->next_window++ % WINDOWS];
		if (!fill_window(s, w, pc))
			return NULL;
	}
	*before = pc - w->start;
	*after = w->size - *before;
	return w->bytes + *before;
}

static void forget_windows(struct shstk_space *s)
{
	unsigned int i;

	for (i = 0; i < WINDOWS; i++)
		s->windows[i].size = 0;
}

/*
 * Adds the file @fd, which is mapped at @at from @offset on. @path is the name by which the file is
 * known; a different name may have been opened. Returns 0 or a negative errno.
 */
static int add_fd(struct shstk_space *s, int fd, const char *path, const struct range *at,
		  uint64_t offset)
{
	struct module *m;
	int err;

	err = module_from_fd(&m, fd, at, offset);
	if (err)
		return err;
	/* The mapping decides, because the file may claim more than is mapped. */
	if (!range_has(&m->range, at->lo) || at->hi - 1 > m->range.hi + 0xffff) {
		drop(m);
		return -ENOEXEC;
	}
	if (is_part(s, m, at, offset)) {
		drop(m);
		return 0;
	}
	err = set_more(s, m, path);
	if (err) {
		drop(m);
		return err;
	}
	m->file = s->files && m->img.hi < 1ull << FILE_RULES_SHIFT ?
			  file_rules_number(s->files, fd) :
			  0;
	return insert(s, m);
}

SHSTK_API int shstk_space_add_file(struct shstk_space *space, const char *path, uint64_t start,
				   uint64_t end, uint64_t offset)
{
	const struct range at = { start, end };
	int saved = errno;
	int fd, err;

	if (!space || !path || end <= start)
		return -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	err = fd < 0 ? -errno : add_fd(space, fd, path, &at, offset);
	if (fd >= 0)
		close(fd);
	errno = saved;
	return err;
}

SHSTK_API int shstk_space_add_image(struct shstk_space *space, const void *image, size_t size,
				    uint64_t start)
{
	int saved = errno;
	struct module *m;
	void *copy;
	int err;

	if (!space || !image || !size)
		return -EINVAL;
	copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED) {
		errno = saved;
		return -ENOMEM;
	}
	memcpy(copy, image, size);
	err = module_from_memory(&m, copy, size, start);
	if (err) {
		munmap(copy, size);
	} else {
		m->map = copy;
		m->map_size = size;
		err = insert(space, m);
	}
	errno = saved;
	return err;
}

SHSTK_API int shstk_space_add_code(struct shstk_space *space, uint64_t start, uint64_t end)
{
	struct module *m;
	int saved = errno;
	int err;

	if (!space || end <= start)
		return -EINVAL;
	err = module_from_range(&m, start, end);
	errno = saved;
	return err ? err : insert(space, m);
}

static int code_of_image(const void *image, size_t size, const struct range *at, uint64_t offset,
			 struct shstk_file_code *ret)
{
	struct elf_image img;
	uint64_t bias;
	unsigned int i;
	int n = 0;

	if (elf_image_parse(&img, image, size, false) || !elf_image_bias(&img, at, offset, &bias))
		return -ENOEXEC;
	for (i = 0; i < img.nload && n < SHSTK_FILE_CODES; i++) {
		const struct load *l = &img.load[i];
		uint64_t start = l->vaddr & -CODE_PAGE;

		if (l->exec)
			ret[n++] = (struct shstk_file_code){
				.start = start + bias,
				.end = ALIGN_UP(l->vaddr + l->memsz, CODE_PAGE) + bias,
				.offset = l->offset & -CODE_PAGE,
			};
	}
	return n;
}

int shstk_file_code(int fd, uint64_t start, uint64_t end, uint64_t offset,
		    struct shstk_file_code *ret)
{
	const struct range at = { start, end };
	uint64_t inode;
	size_t size;
	void *image;
	int n = module_file(fd, &inode, &size);

	if (n)
		return n;
	image = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (image == MAP_FAILED)
		return -ENOEXEC;
	n = code_of_image(image, size, &at, offset, ret);
	munmap(image, size);
	return n;
}

/**
 * struct parsed_line - a line of /proc/PID/maps
 * @start: first address of the mapping.
 * @end: first address behind the mapping.
 * @offset: offset of @start in the file, in bytes.
 * @prot: access permissions, as letters.
 * @name: name of the file, or the kernel's name for the mapping; points into the line.
 */
struct parsed_line {
	uint64_t start, end, offset;
	char prot[5];
	const char *name;
};

/**
 * struct map_run - mappings that are contiguous in memory and in their file
 * @start: first address of the first mapping.
 * @end: first address behind the last mapping so far.
 * @offset: offset of @start in the file, in bytes.
 * @name: name of the file; NULL if there is none so far.
 *
 * The mappings were one mapping until the protection of a part was changed. The file offset at
 * which the run begins tells which segment the mappings belong to.
 */
struct map_run {
	uint64_t start, end, offset;
	char *name;
};

static bool parse_line(char *line, struct parsed_line *l)
{
	unsigned long long start, end, offset;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, l->prot, &offset, &at) <
		    4 ||
	    !at)
		return false;
	l->start = start;
	l->end = end;
	l->offset = offset;
	l->name = line + at;
	return true;
}

/*
 * Adds an image that the kernel maps, like the vdso: reads it from the process. Returns 0 or a
 * negative errno.
 */
static int add_memory(struct shstk_space *s, pid_t pid, const struct parsed_line *l)
{
	size_t size = l->end - l->start;
	void *copy = size <= 1 << 20 ? malloc(size) : NULL;
	struct iovec local = { copy, size };
	struct iovec remote = { (void *)(uintptr_t)l->start, size };
	int err;

	if (!copy)
		return -ENOMEM;
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)size)
		err = -errno;
	else
		err = shstk_space_add_image(s, copy, size, l->start);
	free(copy);
	return err;
}

/*
 * Adds the mapping @l to @run if it continues the run; otherwise begins a new run with it. Returns
 * 0 or -ENOMEM.
 */
static int follow_run(struct map_run *run, const struct parsed_line *l)
{
	bool same = run->name && run->end == l->start &&
		    run->offset + (l->start - run->start) == l->offset &&
		    !strcmp(run->name, l->name);

	if (!same) {
		free(run->name);
		*run = (struct map_run){ .start = l->start, .offset = l->offset };
		run->name = *l->name == '/' ? strdup(l->name) : NULL;
		if (*l->name == '/' && !run->name)
			return -ENOMEM;
	}
	run->end = l->end;
	return 0;
}

static int add_mapped(struct shstk_space *s, int fd, const struct map_run *run)
{
	const struct range at = { run->start, run->end };
	int err;

	if (fd < 0)
		return fd;
	err = add_fd(s, fd, run->name, &at, run->offset);
	close(fd);
	return err;
}

/*
 * Adds the module of the mapping @l. @run is the run of mappings of the same file that ends with
 * it. Returns 0 or a negative errno.
 */
static int add_line(struct shstk_space *s, pid_t pid, const struct parsed_line *l,
		    const struct map_run *run)
{
	char path[96];
	int err = -ENOENT;

	if (!strcmp(l->name, "[vdso]"))
		return add_memory(s, pid, l);
	if (!strcmp(l->name, "[uprobes]"))
		shstk_space_set_probes(s, l->start);
	if (l->name[0] == '/') {
		/* This path works for deleted files too, but needs more rights. */
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid,
			 (unsigned long long)l->start, (unsigned long long)l->end);
		err = add_mapped(s, regular_open(path), run);
		if (err)
			err = add_mapped(s, regular_open_of(pid, l->name), run);
	}
	if (!err)
		return 0;
	/* It is code in any case: made at run time (JIT), or from a file that cannot be read. */
	return shstk_space_add_code(s, l->start, l->end);
}

SHSTK_API int shstk_space_add_pid(struct shstk_space *space, int pid)
{
	struct map_run run = { .name = NULL };
	int saved = errno;
	char *line = NULL;
	size_t room = 0;
	char path[64];
	int n = 0;
	FILE *f;

	if (!space || pid <= 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f) {
		n = errno == ENOENT ? -ESRCH : -errno;
		goto out;
	}
	while (getline(&line, &room, f) > 0) {
		struct parsed_line l;

		if (!parse_line(line, &l))
			continue;
		if (follow_run(&run, &l)) {
			n = -ENOMEM;
			break;
		}
		if (!strchr(l.prot, 'x') || !strcmp(l.name, "[vsyscall]"))
			continue;
		if (!is_code(space, l.start) && !add_line(space, pid, &l, &run))
			n++;
	}
	free(run.name);
	free(line);
	fclose(f);
out:
	errno = saved;
	return n;
}

SHSTK_API int shstk_read_process(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)addr, len };
	int saved = errno;
	ssize_t n;
	int err;

	n = process_vm_readv(*(pid_t *)arg, &local, 1, &remote, 1, 0);
	err = n == (ssize_t)len ? 0 : n < 0 ? -errno : -EFAULT;
	errno = saved;
	return err;
}

/* ---- Unwinding ---- */

struct unwinding {
	uint64_t *pcs;
	uint8_t *marks;
	uint64_t *sps;
	unsigned int sp; /* DWARF number of the stack pointer */
	unsigned int max, n, skip;
	struct shstk_info info;
};

static bool append(struct unwinding *u, const struct cursor *c)
{
	if (u->skip) {
		u->skip--;
		return true;
	}
	if (u->n == u->max)
		return false;
	if (u->marks)
		u->marks[u->n] = c->mark;
	if (u->sps)
		u->sps[u->n] = c->regs.r[u->sp];
	u->info.guessed += !!(c->mark & SHSTK_MARK_GUESS);
	u->pcs[u->n++] = c->regs.r[REG_PC];
	return true;
}

/*
 * Lists where the modules lie, unless that was done. Without memory, and where a module lies between the
 * segments of another one, there is no list.
 */
static void list_code(struct shstk_space *s)
{
	size_t i;

	if (s->code || !s->shared || s->nested)
		return;
	s->code = calloc(s->n, sizeof(*s->code));
	for (i = 0; s->code && i < s->n; i++) {
		const struct module *m = s->module[i];

		s->code[i].range = m->range;
		if (m->file)
			s->code[i].to_key = ((uint64_t)m->file << FILE_RULES_SHIFT) - m->bias;
	}
}

/* Returns the entry of the list for an address, or NULL. Mostly it is that of the frame before. */
static const struct code *code_at(struct shstk_space *s, uint64_t addr)
{
	size_t lo = 0, n = s->code ? s->n : 0;

	if (s->last && range_has(&s->last->range, addr))
		return s->last;
	while (n) {
		size_t half = n / 2;

		if (range_has(&s->code[lo + half].range, addr))
			return s->last = &s->code[lo + half];
		if (s->code[lo + half].range.lo < addr) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return NULL;
}

/**
 * struct known - where the rule of a frame is kept
 * @table: the table; NULL while the program's own rules are not kept.
 * @most: most entries that it may have.
 * @key: the key there: the address. For exact addresses, bit 63 is inverted, which is 0 in all addresses
 *	of a program and in the keys of files.
 */
struct known {
	struct rule_table *table;
	size_t most;
	uint64_t key;
};

static struct known known_of(struct shstk_space *s, const struct cursor *c)
{
	uint64_t pc = cursor_reg(c, REG_PC), exact = (uint64_t)c->exact << 63;
	const struct code *code = code_at(s, pc - !c->exact);

	if (code && code->to_key)
		return (struct known){ s->shared, KNOWN_OF_FILES, (pc + code->to_key) ^ exact };
	return (struct known){ s->unwound < KNOWN_FROM ? NULL : &s->own, KNOWN, pc ^ exact };
}

/*
 * Returns the rule of the cursor's frame if it is in the table, else RULE_NONE. The table has only
 * rules of ordinary frames and of outermost frames, and NO_SIMPLE_RULE for code that has no such rule.
 */
static uint64_t known_rule(struct shstk_space *s, const struct cursor *c)
{
	const struct known k = known_of(s, c);

	return k.table ? rule_table_get(k.table, k.key) : RULE_NONE;
}

/*
 * Finds the rule of the cursor's frame and puts it into the table. Returns the rule, NO_SIMPLE_RULE if
 * the frame is neither ordinary nor the outermost one, or RULE_NONE if there is no table or if the
 * address has no code.
 */
static uint64_t find_rule(struct shstk_space *s, const struct cursor *c)
{
	uint64_t pc = cursor_reg(c, REG_PC), rule;
	const struct known k = known_of(s, c);
	struct module *m = k.table ? find(s, pc - !c->exact) : NULL;

	if (!m || !module_is_code(m, pc - !c->exact))
		return RULE_NONE;
	rule = module_rule(m, pc, c->exact);
	if (RULE_KIND(rule) != RULE_SP && RULE_KIND(rule) != RULE_FP && RULE_KIND(rule) != RULE_END)
		rule = NO_SIMPLE_RULE;
	rule_table_put(k.table, k.most, k.key, rule);
	return rule;
}

/* Does what cursor_step() does. @rule is what known_rule() has returned, or RULE_NONE. */
static int step(const struct view *v, struct cursor *c, uint64_t rule, uint8_t *mark)
{
	int err;

	/*
	 * If all registers are wanted (v->full), rules are not enough: only rows recover all
	 * registers.
	 */
	if (rule == RULE_NONE && !v->full)
		rule = find_rule(v->arg, c);
	if (rule == RULE_NONE || rule == NO_SIMPLE_RULE)
		return cursor_step(v, c, mark);
	*mark = c->mark;
	if (RULE_KIND(rule) == RULE_END)
		return STEP_COMPLETE;
	err = cursor_step_rule(v, c, rule);
	return err == -SHSTK_END_BAD_PC ? guess_helper(v, c) : err;
}

static void count_unwound(struct shstk_space *s)
{
	s->unwound += s->unwound < KNOWN_FROM;
}

/* Makes one attempt to unwind the stack. Returns a value of enum shstk_end. */
static int unwind(struct unwinding *u, const struct view *v, struct cursor *c)
{
	for (;;) {
		uint64_t pc = c->regs.r[REG_PC];
		bool first = c->innermost && c->exact;
		uint64_t rule = v->full ? RULE_NONE : known_rule(v->arg, c);
		uint8_t mark;
		int err;

		u->info.end_pc = pc;
		if (!first && rule == RULE_NONE && !v->is_code(v->arg, pc - !c->exact))
			return SHSTK_END_BAD_PC;
		if (!append(u, c))
			return SHSTK_END_CAPACITY;
		err = step(v, c, rule, &mark);
		if (u->marks && u->n)
			u->marks[u->n - 1] |= mark;
		if (err)
			return err == STEP_COMPLETE ? SHSTK_END_COMPLETE : -err;
	}
}

static void start(const struct shstk_space *s, const struct shstk_regs *regs, struct cursor *c)
{
	const struct machine *m = s->m;

	*c = (struct cursor){ .exact = true, .innermost = true, .mark = SHSTK_MARK_PC };
	memcpy(c->regs.r, regs->r, sizeof(regs->r));
	c->regs.known = regs->known;
	c->regs.r[REG_PC] = regs->pc;
	c->regs.known |= 1ull << REG_PC;
	if (!m->ra_in_reg) {
		c->regs.r[m->ra] = regs->pc;
		c->regs.known |= 1ull << m->ra;
	}
	if (cursor_knows(c, machine_go_g(m)))
		c->go_g = cursor_reg(c, machine_go_g(m));
}

SHSTK_API int shstk_unwind(struct shstk_space *space, const struct shstk_regs *regs,
			   shstk_read_fn read, void *arg, uint64_t *pcs, unsigned int max,
			   const struct shstk_opts *opts, struct shstk_info *info)
{
	struct shstk_opts o;
	struct unwinding u;
	struct cursor c;
	struct view v;
	int end;

	if (!space || !regs || regs->size < offsetof(struct shstk_regs, thread_pointer) || !read ||
	    (!pcs && max) || max > INT_MAX || (info && info->size < 8) ||
	    !get_opts(&o, opts, SHSTK_USE_WALK))
		return -EINVAL;
	v = (struct view){
		.m = space->m,
		.pac_mask = regs->pac_mask,
		.thread_pointer = regs->size >= sizeof(*regs) ? regs->thread_pointer : 0,
		.leaves_stack = true,
		.mem = { read, arg },
		.other = { read, arg },
		.go_tls = &space->go_tls,
		.find = find,
		.is_code = is_code,
		.arg = space,
		.shape = space->shape,
		.shape_arg = space->shape_arg,
		.generated = space->read_generated ? generated_code : NULL,
		.generated_arg = space,
		.probe_return = space->probe_return,
	};
	forget_windows(space);
	count_unwound(space);
	list_code(space);
	if (space->m == &machine_arm64 && !v.pac_mask)
		v.pac_mask = ~((1ull << 48) - 1); /* user addresses have 48 bits by default */
	do {
		u = (struct unwinding){
			.pcs = pcs,
			.marks = o.marks,
			.sps = o.sps,
			.sp = space->m->sp,
			.max = max,
			.skip = o.skip,
		};
		start(space, regs, &c);
		end = unwind(&u, &v, &c);
		if (end != SHSTK_END_NO_REGISTER || v.full)
			break;
		v.full = true; /* a rule needs a register other than pc, sp and fp */
	} while (true);
	if (info) {
		u.info.source = u.n ? SHSTK_SOURCE_WALK : SHSTK_SOURCE_NONE;
		u.info.end = end;
		put_info(info, u.info);
	}
	return u.n;
}
