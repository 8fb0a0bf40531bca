// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * core_stacks.c - `shstk trace --core`: the stacks of a process that left a core file.
 *
 * Memory comes from the core file first. The kernel leaves out unchanged pages of mapped files;
 * these pages come from the files, if they are the files that were mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/address_space.h"
#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/elf/core_file.h"
#include "tools/elf/image.h"
#include "tools/elf/jit_library.h"
#include "tools/java/jit_code.h"
#include "tools/language/languages.h"
#include "tools/output.h"
#include "tools/shstk.h"
#include "tools/trace/goroutines.h"
#include "tools/trace/interpreted.h"
#include "tools/trace/mutex.h"
#include "tools/trace/trace.h"
#include "tools/trace/waiting_tasks.h"

#define MAX_IMAGES (1ull << 30) /* bytes of all modules that are put together */
#define MAX_VDSO (1u << 20)
#define MAX_STACKS (256u << 20) /* bytes of stacks that are compared with each other at a time */
#define PAGE 4096ull
#define PUT 1 /* a module was put together */

struct dump {
	const struct trace_opts *opts;
	struct core *core;
	const char *program; /* path of the program's file in the core file */
	struct images images; /* the files that the core file names */
	struct images given; /* the file that the user names */
	struct image **files; /* the file of each of core->maps, or NULL */
	size_t *firsts; /* for each of core->maps the index of its module's first mapping */
	int *put; /* at a module's first mapping: PUT, or why it was not put together; 0: not tried */
	uint64_t together; /* bytes of modules that were put together */
	struct shstk_space *space;
	struct shstk_symbols *symbols;
	struct shstk_symproc *proc;
	struct jit *jit; /* knows code made at run time, or NULL */
	struct mutex_waiter *waiters; /* one for each thread, sorted by own_tid; or NULL */
	struct interpreted interpreted; /* the interpreter in which the program runs */
};

/*
 * Finds the first mapping of each module. The mappings of one file are neighbours. This is done once: a
 * process may have mapped one file in many thousand pieces.
 */
static int find_firsts(struct dump *d)
{
	const struct core_map *maps = d->core->maps;

	d->firsts = calloc(d->core->nr_maps + 1, sizeof(*d->firsts));
	d->put = calloc(d->core->nr_maps + 1, sizeof(*d->put));
	if (!d->firsts || !d->put)
		return -ENOMEM;
	for (size_t i = 1; i < d->core->nr_maps; i++) {
		bool same = maps[i].offset && !strcmp(maps[i - 1].path, maps[i].path);

		d->firsts[i] = same ? d->firsts[i - 1] : i;
	}
	return 0;
}

/* Returns the file of a mapping, as opened for one of its mappings that is code; or NULL. */
static const struct image *find_file(const struct dump *d, size_t i)
{
	const struct core *core = d->core;

	for (size_t k = d->firsts[i]; k < core->nr_maps; k++) {
		if (strcmp(core->maps[k].path, core->maps[i].path))
			break;
		if (d->files[k])
			return d->files[k];
	}
	return NULL;
}

/*
 * Returns true if memory of a mapping was the same as in its file. The mapping's segment tells.
 * gdb's core files leave out whole segments, of which code was unchanged.
 */
static bool is_unchanged(const struct dump *d, const struct image *file, const struct core_map *m,
			 uint64_t addr)
{
	const struct core_segment *s = core_segment(d->core, addr);

	return s ? !s->write && addr - s->start >= s->dumped : image_is_code(file, m->offset);
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct dump *d = arg;
	const struct core_map *m;
	const struct image *file;

	if (!core_read(d->core, addr, buf, len))
		return 0;
	m = core_map(d->core, addr);
	if (!m || len > m->end - addr)
		return -EFAULT;
	file = find_file(d, m - d->core->maps);
	if (!file || !is_unchanged(d, file, m, addr) ||
	    pread(file->fd, buf, len, m->offset + (addr - m->start)) != (ssize_t)len)
		return -EFAULT;
	return 0;
}

static void read_build_id(const struct dump *d, size_t i, struct build_id *ret)
{
	const struct core *core = d->core;
	const struct core_map *m = &core->maps[d->firsts[i]];
	uint8_t page[PAGE];

	ret->size = 0;
	if (!m->offset && !core_read(core, m->start, page, sizeof(page)))
		build_id_of(page, sizeof(page), ret);
}

/*
 * Counts bytes that are put together against MAX_IMAGES, since a core file may be forged and
 * consist of holes. Returns false if there are too many, and says so once.
 */
static bool may_put_together(struct dump *d, uint64_t size)
{
	if (d->together > MAX_IMAGES)
		return false;
	if (size <= MAX_IMAGES - d->together) {
		d->together += size;
		return true;
	}
	d->together = MAX_IMAGES + 1;
	complain(
		"core file %s holds more than 1 GiB of code that is in no file: the rest is not read",
		d->core->path);
	return false;
}

/* Returns how many bytes of a segment, from its start, can be read. */
static uint64_t readable(const struct core *core, const struct core_segment *s)
{
	return core->memory < 0 ? s->held : s->end - s->start;
}

/* Returns the last mapping of the module whose first one is @first. */
static size_t find_last(const struct dump *d, size_t first)
{
	size_t last = first;

	while (last + 1 < d->core->nr_maps && d->firsts[last + 1] == first)
		last++;
	return last;
}

/*
 * Adds all parts that the core file holds of the module whose first mapping is @first, as they lay in
 * memory.
 */
static int put_together(struct dump *d, size_t first)
{
	const struct core *core = d->core;
	const size_t last = find_last(d, first);
	const uint64_t lo = core->maps[first].start, size = core->maps[last].end - lo;
	uint8_t *bytes;
	int err;

	if (!may_put_together(d, size))
		return -EFBIG;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	for (size_t i = first; i <= last; i++) {
		const struct core_map *m = &core->maps[i];
		const struct core_segment *s = core_segment(core, m->start);

		if (s && s->start == m->start && s->end == m->end)
			core_read(core, m->start, bytes + (m->start - lo), readable(core, s));
	}
	err = shstk_space_add_image(d->space, bytes, size, lo);
	munmap(bytes, size);
	return err;
}

/*
 * Adds the module of mapping @i from what the core file holds. This is done once for all mappings of
 * the module, which may be many thousand.
 */
static int add_from_core(struct dump *d, size_t i)
{
	const struct core *core = d->core;
	const size_t first = d->firsts[i];
	const struct core_segment *s;
	int err;

	if (d->put[first])
		return d->put[first] == PUT ? 0 : d->put[first];
	s = core_segment(core, core->maps[i].start);
	if (!s || core->maps[first].offset || readable(core, s) != s->end - s->start)
		return -ENOENT;
	err = put_together(d, first);
	d->put[first] = err ? err : PUT;
	return err;
}

static int add_symbols(struct dump *d, const struct core_map *m, const struct image *file,
		       const struct build_id *id)
{
	const char *base = strrchr(m->path, '/');
	struct shstk_symmap_info info = {
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.path = file ? file->found : m->path,
		.build_id = id->size ? id->data : NULL,
		.build_id_size = id->size,
	};
	char *name = NULL;
	int err;

	/* Without a build id to prove it is the right one, a file must not name anything. */
	if (!file && !id->size) {
		if (asprintf(&name, "[%s]", base ? base + 1 : m->path) < 0)
			return -ENOMEM;
		info.path = name;
	}
	err = shstk_symproc_add(d->proc, &info);
	free(name);
	return err;
}

/*
 * Returns true if a mapping may be code. The kernel's core files have a segment for each mapping,
 * and the segment tells. gdb's gcore leaves out the mappings that can be read from their files:
 * there, the files tell what the mappings are. The first page of a module, which gdb does write,
 * tells whether the module is an ELF file at all.
 */
static bool may_be_code(const struct dump *d, size_t i)
{
	const struct core_segment *s = core_segment(d->core, d->core->maps[i].start);
	size_t first = d->firsts[i];
	char magic[SELFMAG];

	/* Sockets and device memory cannot be opened. */
	if (*d->core->maps[i].path != '/')
		return false;
	if (s)
		return s->exec || (!s->write && d->files[first]);
	return d->files[first] || core_read(d->core, d->core->maps[first].start, magic, SELFMAG) ||
	       !memcmp(magic, ELFMAG, SELFMAG);
}

static bool is_code(const struct dump *d, const struct core_map *m, const struct image *file)
{
	const struct core_segment *s = core_segment(d->core, m->start);

	return s ? s->exec : file && image_is_code(file, m->offset);
}

/* Opens the file of mapping @i, and reads its build id. Returns NULL if it is not found. */
static struct image *open_file(struct dump *d, size_t i, struct build_id *id)
{
	const char *path = d->core->maps[i].path;

	read_build_id(d, i, id);
	if (d->opts->exe && d->program && !strcmp(path, d->program))
		return image_get(&d->given, d->opts->exe, id);
	return image_get(&d->images, path, id);
}

/* Adds the mapping of a file to the space and its names, if the mapping is code. */
static int add_map(struct dump *d, size_t i)
{
	const struct core_map *m = &d->core->maps[i];
	struct image *file;
	struct build_id id;
	int err = -ENOENT;

	if (!may_be_code(d, i))
		return 0;
	file = open_file(d, i, &id);
	d->files[i] = file;
	if (!is_code(d, m, file))
		return 0;
	if (file)
		err = image_add(d->space, file, m->start, m->end, m->offset);
	if (file && err) {
		complain("%s cannot be used: %s", file->found, strerror(-err));
		d->files[i] = NULL;
	}
	if (err)
		err = add_from_core(d, i);
	if (err && err != -ENOMEM)
		err = shstk_space_add_code(d->space, m->start, m->end);
	return err ? err : add_symbols(d, m, file, &id);
}

/* Adds the vDSO. */
static int add_vdso(struct dump *d)
{
	const struct core_segment *s = core_segment(d->core, d->core->vdso);
	uint64_t size = s ? readable(d->core, s) : 0;
	uint8_t *bytes;
	int err = 0;

	if (!d->core->vdso || !s || s->start != d->core->vdso || !s->exec || !size ||
	    size > MAX_VDSO)
		return 0;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	if (!core_read(d->core, s->start, bytes, size) &&
	    !shstk_space_add_image(d->space, bytes, size, s->start)) {
		struct shstk_symmap_info info = {
			.start = s->start,
			.end = s->end,
			.path = "[vdso]",
			.image = bytes,
			.image_size = size,
		};

		err = shstk_symproc_add(d->proc, &info);
	}
	free(bytes);
	return err;
}

/* Returns the number of mappings that lie below an address; they come first. */
static size_t count_below(const struct core *core, uint64_t addr)
{
	size_t first = 0, end = core->nr_maps;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (core->maps[middle].end <= addr)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/*
 * Returns whether code of the file that is mapped below a segment may lie there. It does not where
 * the kernel has the page for old system calls, and a file that was removed cannot be read.
 */
static bool may_be_hole(const struct core *core, size_t below, const struct core_segment *s)
{
	static const char removed[] = " (deleted)";
	const char *path = below ? core->maps[below - 1].path : "";
	const size_t length = strlen(path);

	return *path == '/' && (int64_t)s->start > 0 &&
	       (length < strlen(removed) || strcmp(path + length - strlen(removed), removed));
}

/*
 * Adds a segment as a mapping of the file that is mapped below it, if it lies where that file has
 * code: some programs copy their code to anonymous memory in its place, to have it on huge pages
 * (tools/convert/holes.h). Returns -ENOENT if it does not.
 */
static int add_hole(struct dump *d, const struct core_segment *s)
{
	struct shstk_file_code code[SHSTK_FILE_CODES];
	const size_t below = count_below(d->core, s->start);
	const struct core_map *beside;
	struct image *file;
	struct build_id id;
	int nr;

	if (!may_be_hole(d->core, below, s))
		return -ENOENT;
	beside = &d->core->maps[below - 1];
	file = open_file(d, below - 1, &id);
	nr = file ? shstk_file_code(file->fd, beside->start, beside->end, beside->offset, code) : 0;
	for (int i = 0; i < nr; i++) {
		const struct core_map m = {
			.start = s->start,
			.end = s->end,
			.offset = code[i].offset + (s->start - code[i].start),
			.path = beside->path,
		};
		int err;

		if (s->start < code[i].start || s->end > code[i].end)
			continue;
		err = image_add(d->space, file, m.start, m.end, m.offset);
		return err ? err : add_symbols(d, &m, file, &id);
	}
	return -ENOENT;
}

/* Adds executable memory that is no mapping of a file: most is code made at run time. */
static int add_rest(struct dump *d)
{
	for (size_t i = 0; i < d->core->nr_segments; i++) {
		const struct core_segment *s = &d->core->segments[i];
		int err;

		if (!s->exec || core_map(d->core, s->start) || s->start == d->core->vdso)
			continue;
		err = add_hole(d, s);
		if (err && err != -ENOMEM)
			err = shstk_space_add_code(d->space, s->start, s->end);
		if (err == -ENOMEM)
			return err;
	}
	return 0;
}

/* Adds the user's file for a core file without NT_FILE. AT_ENTRY tells where it lies. */
static int add_program(struct dump *d)
{
	struct image *file = image_get(&d->given, d->opts->exe, NULL);
	Elf *elf = file ? shstk_elf_begin(file->fd) : NULL;
	uint64_t bias = 0;
	size_t nr = 0;
	GElf_Ehdr eh;
	int err = 0;

	if (!file)
		return 0;
	if (!elf || !gelf_getehdr(elf, &eh) || elf_getphdrnum(elf, &nr)) {
		complain("%s is not an ELF file", d->opts->exe);
		goto out;
	}
	if (eh.e_type != ET_EXEC)
		bias = d->core->entry - eh.e_entry;
	if (bias && !d->core->entry) {
		complain("core file %s does not say where its program lies: %s is not used",
			 d->core->path, d->opts->exe);
		goto out;
	}
	for (size_t i = 0; i < nr && !err; i++) {
		static const struct build_id none;
		struct core_map m;
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		m = (struct core_map){
			.start = bias + (ph.p_vaddr & -PAGE),
			.end = bias + ((ph.p_vaddr + ph.p_memsz + PAGE - 1) & -PAGE),
			.offset = ph.p_offset & -PAGE,
			.path = file->path,
		};
		err = image_add(d->space, file, m.start, m.end, m.offset);
		if (err)
			complain("%s does not fit core file %s: %s", d->opts->exe, d->core->path,
				 strerror(-err));
		else
			err = add_symbols(d, &m, file, &none);
	}
out:
	elf_end(elf);
	return err == -ENOMEM ? err : 0;
}

static int add_modules(struct dump *d)
{
	const struct core_map *m = core_map(d->core, d->core->entry);
	int err;

	d->files = calloc(d->core->nr_maps + 1, sizeof(*d->files));
	if (!d->files || find_firsts(d))
		return -ENOMEM;
	d->program = m ? m->path : NULL;
	if (d->opts->exe && !m && d->core->nr_maps)
		complain("core file %s does not say which file is its program: %s is not used",
			 d->core->path, d->opts->exe);
	err = add_rest(d);
	if (!err && d->opts->exe && !d->core->nr_maps)
		err = add_program(d);
	for (size_t i = 0; i < d->core->nr_maps && !err; i++)
		err = add_map(d, i);
	return err ? err : add_vdso(d);
}

/* Creates the symbols. Separate debug files are looked for below the same root folder. */
static int make_symbols(struct dump *d)
{
	const char *root = d->opts->sysroot;
	struct shstk_symbols_opts opts = { .full_names = d->opts->full_names };
	char *dirs = NULL;
	int err;

	if (root && asprintf(&dirs, "%s/usr/lib/debug:/usr/lib/debug", root) < 0)
		return -ENOMEM;
	opts.debug_dirs = dirs;
	read_limit_apply(&d->opts->read_limit, &opts);
	err = shstk_symbols_create(&opts, &d->symbols);
	free(dirs);
	return err ? err : shstk_symproc_create(d->symbols, 0, &d->proc);
}

/*
 * Opens the file of a library that makes code at run time, if it is known, and tells where its code
 * is mapped. Returns a descriptor, or -ENOENT.
 */
static int open_jit(void *arg, uint64_t *start, uint64_t *offset)
{
	const struct dump *d = arg;

	for (size_t i = 0; i < d->core->nr_maps; i++) {
		const struct core_map *m = &d->core->maps[i];

		if (!d->files[i] || !jit_is_known(m->path) || !is_code(d, m, d->files[i]))
			continue;
		*start = m->start;
		*offset = m->offset;
		return fcntl(d->files[i]->fd, F_DUPFD_CLOEXEC, 0);
	}
	return -ENOENT;
}

static struct shstk_account *core_account(void *arg)
{
	const struct dump *d = arg;

	return shstk_symbols_account(d->symbols, d->core->path);
}

static int find_jit(struct dump *d)
{
	const struct jit_process process = { read_memory, open_jit, core_account, d };

	return d->core->arch == SHSTK_ARCH_X86 ? jit_attach(d->space, &process, &d->jit) : 0;
}

/* Finds the interpreter, if the program runs in one that is known. Returns 0 or -ENOMEM. */
static int find_interpreter(struct dump *d)
{
	struct interpreted *of = &d->interpreted;
	int err = 0;

	of->arch = d->core->arch;
	of->read = read_memory;
	of->arg = d;
	for (size_t i = 0; i < d->core->nr_maps && !of->number && !err; i++) {
		const struct core_map *m = &d->core->maps[i];
		struct language_module module = { .start = m->start, .offset = m->offset };

		if (!d->files[i] || !languages_may_be(m->path) || !is_code(d, m, d->files[i]))
			continue;
		module.fd = d->files[i]->fd;
		err = interpreted_find_in(of, &module, core_account(d), d->symbols);
	}
	return err;
}

static int prepare(struct dump *d)
{
	int err = images_init(&d->given, NULL);

	if (!err)
		err = images_init(&d->images, d->opts->sysroot);
	if (err) {
		complain("cannot open folder %s: %s", d->opts->sysroot, strerror(-err));
		return err;
	}
	err = shstk_space_create(d->core->arch, &d->space);
	if (!err) {
		shstk_space_set_debug(d->space, shstk_debug_find, NULL);
		shstk_space_set_generated(d->space, read_memory, d);
		err = make_symbols(d);
	}
	if (!err)
		err = add_modules(d);
	if (!err)
		err = find_jit(d);
	if (!err)
		err = find_interpreter(d);
	if (!err)
		err = interpreted_add_java(&d->interpreted, d->jit, d->symbols);
	if (err)
		complain("cannot read core file %s: %s", d->core->path, strerror(-err));
	return err;
}

static void put_head(struct json *json, const struct core *core, const char *signal)
{
	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "core", core->path);
	shstk_json_int(json, "pid", core->pid);
	shstk_json_string(json, "name", core->comm);
	shstk_json_string(json, "arch", core_machine(core));
	shstk_json_string(json, "signal", signal);
}

static void print_head(const struct core *core, struct json *json)
{
	char buf[32];
	const char *signal = core_signal_name(core->threads[0].signo, buf);

	if (json) {
		put_head(json, core, signal);
		return;
	}
	printf("core file %s", core->path);
	if (core->pid)
		printf(" of process %d (%s)", core->pid, core->comm);
	printf(", %s, %zu %s", core_machine(core), core->nr_threads,
	       core->nr_threads == 1 ? "thread" : "threads");
	if (signal)
		printf(", ended by %s", signal);
	putchar('\n');
}

/* Prints a line for each kind of damage of the core file. */
static void warn(const struct core *core)
{
	if (core->wanted > core->size && core->memory < 0)
		complain(
			"core file %s is cut off: it has %llu of %llu bytes; stacks end where memory is missing",
			core->path, (unsigned long long)core->size,
			(unsigned long long)core->wanted);
	if (core->damaged)
		complain("core file %s is damaged: %u of its notes and segments make no sense",
			 core->path, core->damaged);
}

/* Gives back the room for entries that a stack does not use. Returns the bytes that stay in use. */
static size_t trim(struct trace_stack *s)
{
	size_t nr = s->nr > 0 ? s->nr : 1;
	uint64_t *pcs = s->pcs ? realloc(s->pcs, nr * sizeof(*pcs)) : NULL;
	uint8_t *marks = s->marks ? realloc(s->marks, nr) : NULL;

	s->pcs = pcs ? pcs : s->pcs;
	s->marks = marks ? marks : s->marks;
	free(s->sps);
	s->sps = NULL;
	return s->taken ? nr * (sizeof(*pcs) + 1) : 0;
}

static void begin(const struct core_thread *from, struct trace_thread *ret)
{
	*ret = (struct trace_thread){
		.tid = from->tid,
		.own_tid = from->own_tid,
		.sampled = true,
		.regs = from->regs,
		.call = from->call,
		.shadow_on = from->shadow_on,
		.shadow = from->shadow,
	};
}

/* Finds the mutex that a thread waits for, by its innermost frames. */
static void find_mutex(struct dump *d, const struct core_thread *from, struct mutex_waiter *w)
{
	struct trace_opts opts = *d->opts;
	struct trace_thread t;
	uint64_t word;

	w->tid = from->tid;
	w->own_tid = from->own_tid;
	w->stopped = true;
	opts.depth = MUTEX_FRAMES;
	opts.fold = opts.compare = false;
	begin(from, &t);
	if (!mutex_word(d->core->arch, &t, read_memory, d, &word))
		return;
	if (!trace_take(&opts, d->space, &t, read_memory, d))
		mutex_find(d->core->arch, d->proc, &t, read_memory, d, w);
	trace_deinit(&t);
}

/*
 * Finds the mutexes of all threads. This comes before printing, because each thread's output names
 * the threads that it waits for. Returns false if out of memory.
 */
static bool find_mutexes(struct dump *d)
{
	size_t nr = d->core->nr_threads;

	d->waiters = calloc(nr + 1, sizeof(*d->waiters));
	if (!d->waiters)
		return false;
	for (size_t i = 0; i < nr; i++)
		find_mutex(d, &d->core->threads[i], &d->waiters[i]);
	mutex_resolve(d->waiters, nr);
	return true;
}

/* Takes the stacks of a thread and adds their bytes to @used. Returns false if out of memory. */
static bool take_thread(struct dump *d, const struct core_thread *from, struct trace_thread *t,
			size_t *used)
{
	begin(from, t);
	t->waiter = mutex_waiter(d->waiters, d->core->nr_threads, from->own_tid);
	if (from->tid == d->core->pid)
		snprintf(t->comm, sizeof(t->comm), "%s", d->core->comm);
	else if (d->core->memory >= 0)
		trace_describe(d->core->living, from->tid, t);
	t->note = NULL; /* all threads wait until the core file is written */
	interpreted_read(&d->interpreted, t);
	if (trace_take(d->opts, d->space, t, read_memory, d) ||
	    (d->jit && trace_name_made(d->jit, d->proc, t)))
		return false;
	interpreted_place(&d->interpreted, d->opts, d->space, t, read_memory, d);
	*used += trim(&t->hardware) + trim(&t->unwound);
	return true;
}

/* Prints the threads that were taken and releases them. */
static bool flush(struct dump *d, struct trace_thread *threads, struct trace_thread **list,
		  size_t nr)
{
	bool ok;

	for (size_t i = 0; i < nr; i++)
		list[i] = &threads[i];
	ok = trace_print(d->opts, d->proc, list, nr);
	for (size_t i = 0; i < nr; i++)
		trace_deinit(&threads[i]);
	return ok;
}

/*
 * Takes and prints all threads. Threads with equal stacks are found among as many threads as
 * MAX_STACKS has room for. Returns false if out of memory, or if a stack is not what was asked for.
 */
static bool print_list(struct dump *d, struct trace_thread *threads, struct trace_thread **list)
{
	size_t nr = 0, used = 0;
	bool ok = true;

	for (size_t i = 0; i < d->core->nr_threads; i++) {
		if (take_thread(d, &d->core->threads[i], &threads[nr], &used)) {
			nr++;
		} else {
			complain("out of memory");
			trace_deinit(&threads[nr]);
			ok = false;
		}
		if (used < MAX_STACKS && i + 1 < d->core->nr_threads &&
		    !(d->opts->first_apart && !i))
			continue;
		ok &= flush(d, threads, list, nr);
		nr = used = 0;
	}
	return ok;
}

static bool print_threads(struct dump *d)
{
	struct trace_thread *threads = calloc(d->core->nr_threads + 1, sizeof(*threads));
	struct trace_thread **list = calloc(d->core->nr_threads + 1, sizeof(*list));
	bool ok = threads && list && find_mutexes(d);

	if (d->opts->json)
		shstk_json_open(d->opts->json, "threads", '[');
	if (ok)
		ok = print_list(d, threads, list);
	else
		complain("out of memory");
	if (d->opts->json)
		shstk_json_close(d->opts->json);
	free(d->waiters);
	free(threads);
	free(list);
	return ok;
}

static const struct shstk_regs *thread_regs(void *arg, int tid)
{
	const struct dump *d = arg;

	for (size_t i = 0; i < d->core->nr_threads; i++)
		if (d->core->threads[i].tid == tid)
			return &d->core->threads[i].regs;
	return NULL;
}

/* Prints all goroutines. Returns false if there are none, or if one has no stack. */
static bool print_goroutines(struct dump *d)
{
	const struct goroutine_source from = { d->opts, d->space, read_memory, d, thread_regs };
	struct goroutines *all = NULL;
	bool ok = false;
	int err = goroutines_find(&from, &all);

	if (!err)
		err = goroutines_take(all);
	if (err == -ENOENT)
		complain("core file %s has no runtime of Go that is known", d->core->path);
	else if (err)
		complain("core file %s: goroutines cannot be read: %s", d->core->path,
			 strerror(-err));
	else
		ok = goroutines_print(all, d->proc);
	goroutines_destroy(all);
	return ok;
}

/* Finds where the program kept its tasks. Returns false after a message if that is not known. */
static bool find_tasks(struct dump *d, struct waiting_tasks *ret)
{
	struct reason why;

	for (size_t i = 0; i < d->core->nr_maps; i++) {
		const struct core_map *m = &d->core->maps[i];
		struct language_module module = {
			.start = m->start,
			.offset = m->offset,
			.read = read_memory,
			.arg = d,
			.account = core_account(d),
		};

		if (!d->files[i] || !waiting_tasks_may_be(m->path) || !is_code(d, m, d->files[i]))
			continue;
		module.fd = d->files[i]->fd;
		waiting_tasks_look(ret, m->path, &module);
	}
	if (waiting_tasks_known(ret, &d->interpreted, &why))
		return true;
	complain("core file %s: %s", d->core->path, why.text);
	return false;
}

/* Prints all tasks. Returns false if there are none that are known, or if they cannot be read. */
static bool print_tasks(struct dump *d)
{
	struct waiting_tasks tasks = { .refused = false };
	char whose[PATH_MAX + 32];
	bool ok = false;
	int err;

	if (!find_tasks(d, &tasks))
		return false;
	err = waiting_tasks_take(&tasks, &d->interpreted);
	snprintf(whose, sizeof(whose), "core file %s", d->core->path);
	if (err)
		waiting_tasks_complain(whose, err);
	else
		ok = waiting_tasks_print(&tasks, d->opts, d->proc);
	waiting_tasks_deinit(&tasks);
	return ok;
}

/* Prints what was asked for. Returns false if it is not whole. */
static bool print_asked(struct dump *d)
{
	if (d->opts->goroutines)
		return print_goroutines(d);
	return d->opts->tasks ? print_tasks(d) : print_threads(d);
}

int trace_core_threads(const struct trace_opts *opts, struct core *core,
		       const struct core_output *out)
{
	struct dump d = { .opts = opts, .core = core };
	int err;

	d.images.root = d.given.root = -1;
	warn(core);
	err = prepare(&d);
	if (!err) {
		out->head(core, opts->json);
		if (!print_asked(&d)) {
			complain("core file %s: not every stack could be taken as asked, see above",
				 core->path);
			err = -ENODATA;
		}
		trace_put_missing(opts, d.symbols);
		out->tail(core, opts->json);
	}
	images_deinit(&d.images);
	images_deinit(&d.given);
	interpreted_deinit(&d.interpreted);
	free(d.files);
	free(d.firsts);
	free(d.put);
	shstk_symbols_destroy(d.symbols);
	shstk_space_destroy(d.space);
	jit_destroy(d.jit);
	return err ? EXIT_FAILED : EXIT_OK;
}

static void close_object(const struct core *core, struct json *json)
{
	(void)core;
	if (json)
		shstk_json_close(json);
}

int trace_core(const struct trace_opts *opts)
{
	static const struct core_output out = { print_head, close_object };
	struct core *core;
	struct reason why;
	int status;

	if (core_open(opts->core, &core, &why)) {
		complain("%s", why.text);
		return EXIT_FAILED;
	}
	status = trace_core_threads(opts, core, &out);
	core_close(core);
	return status;
}
