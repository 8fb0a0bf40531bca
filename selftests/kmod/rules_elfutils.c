// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_elfutils.c - compares callchains of the kernel with what elfutils unwinds from copies of
 * the same stacks.
 *
 *	rules_elfutils FILE [SAMPLES]	a perf.data file with both; only the first SAMPLES
 *
 * Elfutils is an independent unwinder: it shares with ours only the reading of perf.data and of the
 * order in which files were mapped. Entries are compared from the program counter on, as far as
 * both go. Run it on the kernel that took the samples, because the vdso of this process is used.
 *
 * In code that neither .eh_frame nor .debug_frame describes, elfutils continues with a guess (the
 * frame pointer), which proves nothing. So a stack is compared only up to such a frame.
 *
 * The program prints each kind of difference once, with the number of times it was met ("elfutils:
 * nothing" does not count as a difference). Then it prints how many samples were compared, how many
 * agree, in how many entries, how many of these elfutils followed as far as the kernel did, and
 * where it left the others.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uthash.h>

#include "tools/convert/mappings.h"
#include "tools/elf/image.h"
#include "tools/elf/symbols.h"
#include "tools/perf/data.h"
#include "tools/proc/maps.h"

#define MAX_FRAMES 1024
#define MAX_KINDS 256

/*
 * The mappings of a process, as elfutils has them. A child shares them until one of the two maps
 * more.
 */
struct view {
	unsigned int refs;
	Dwfl *dwfl;
	struct judge *judge;
};

struct process {
	int pid;
	struct mappings *mappings;
	struct view *view; /* NULL if something was mapped since */
	UT_hash_handle hh;
};

/* The differences that have the same description. */
struct kind {
	char *text;
	uint64_t nr;
	UT_hash_handle hh;
};

/*
 * Where elfutils left a stack that is equal so far. END_KERNEL: at the kernel's last entry or
 * behind it. END_UNDESCRIBED: in a frame without unwind information. END_NOT_COPIED: it wanted to
 * read what was not copied, deep in the stack or below the stack pointer. END_OTHER: mostly in a
 * frame that is found by rbx. libdw 0.188 thinks that rbx is lost in a function that has not saved
 * it, because x86_64_abi_cfi() has a wrong number for it (0).
 */
enum end { END_KERNEL, END_UNDESCRIBED, END_NOT_COPIED, END_OTHER, NR_ENDS };

struct judge {
	struct mappings_files files;
	struct images images;
	int vdso; /* descriptor, or -1 */
	struct process *processes;
	struct kind *kinds;
	uint64_t most, samples, equal, entries, ends[NR_ENDS], other_kinds;
	/* The current sample, and what elfutils found. */
	const struct perf_sample *s;
	struct callchain chain; /* its user callchain */
	uint64_t pcs[MAX_FRAMES];
	size_t nr;
	bool undescribed, not_copied;
};

/* ---- Processes ---- */

static void put_view(struct view *v)
{
	if (!v || --v->refs)
		return;
	dwfl_end(v->dwfl);
	free(v);
}

static void forget(struct process *p)
{
	put_view(p->view);
	p->view = NULL;
}

static struct process *get_process(struct judge *j, int pid)
{
	struct process *p;

	HASH_FIND_INT(j->processes, &pid, p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->mappings = mappings_create(&j->files);
	HASH_ADD_INT(j->processes, pid, p);
	return p->mappings ? p : NULL;
}

static int on_mmap(void *arg, const struct perf_map *from)
{
	struct mappings_map m = {
		.start = from->start,
		.end = from->end,
		.offset = from->offset,
		.path = (char *)from->path,
		.id = from->id,
	};
	struct process *p = get_process(arg, from->pid);

	if (!p)
		return -ENOMEM;
	forget(p);
	return mappings_add(&p->mappings, p->pid, &m) == -ENOMEM ? -ENOMEM : 0;
}

static int begin(struct judge *j, struct process *p, struct mappings *mappings, struct view *view)
{
	forget(p);
	mappings_put(p->mappings);
	p->mappings = mappings ? mappings : mappings_create(&j->files);
	p->view = view;
	if (view)
		view->refs++;
	return p->mappings ? 0 : -ENOMEM;
}

static int on_comm(void *arg, const struct perf_comm *c)
{
	struct process *p = c->exec ? get_process(arg, c->pid) : NULL;

	return p ? begin(arg, p, NULL, NULL) : 0;
}

static int on_fork(void *arg, const struct perf_fork *f)
{
	struct process *old = get_process(arg, f->parent), *p = get_process(arg, f->pid);

	if (!old || !p)
		return -ENOMEM;
	return f->pid == f->parent ? 0 : begin(arg, p, mappings_share(old->mappings), old->view);
}

static void on_lost(void *arg, uint64_t nr)
{
	(void)arg;
	printf("perf lost %llu records\n", (unsigned long long)nr);
}

/* ---- Unwinding by elfutils ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct view *v = arg;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = v;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = arg;
	return true;
}

/* Reads a word of the process. Of its memory only the stack is known. */
static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	struct judge *j = ((struct view *)arg)->judge;
	const struct perf_sample *s = j->s;
	uint64_t sp = s->regs.r[7];

	(void)dwfl;
	if (addr < sp || s->stack_size < sizeof(*ret) || addr - sp > s->stack_size - sizeof(*ret)) {
		j->not_copied = true;
		return false;
	}
	memcpy(ret, s->stack + (addr - sp), sizeof(*ret));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct perf_sample *s = ((struct view *)arg)->judge->s;
	Dwarf_Word regs[17];

	for (int i = 0; i < 16; i++)
		regs[i] = s->regs.r[i];
	regs[16] = s->regs.pc;
	return dwfl_thread_state_registers(thread, 0, 17, regs);
}

static bool has_rule(Dwarf_CFI *cfi, Dwarf_Addr addr)
{
	Dwarf_Frame *rule;

	if (!cfi || dwarf_cfi_addrframe(cfi, addr, &rule))
		return false;
	free(rule);
	return true;
}

/*
 * Returns whether unwind information describes the address. It uses the same steps as elfutils,
 * which guesses if these fail.
 */
static bool is_described(Dwfl_Module *module, Dwarf_Addr addr)
{
	Dwarf_Addr bias = 0;
	Dwarf_CFI *cfi;

	if (!module)
		return false;
	cfi = dwfl_module_eh_cfi(module, &bias);
	if (has_rule(cfi, addr - bias))
		return true;
	cfi = dwfl_module_dwarf_cfi(module, &bias);
	return has_rule(cfi, addr - bias);
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct judge *j = arg;
	Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(frame));
	Dwarf_Addr pc;
	bool is_interrupted;

	if (!dwfl_frame_pc(frame, &pc, &is_interrupted) || j->nr == MAX_FRAMES)
		return DWARF_CB_ABORT;
	j->pcs[j->nr++] = pc;
	if (!is_interrupted)
		pc--; /* a return address: the call in front of it counts */
	j->undescribed = !is_described(dwfl_addrmodule(dwfl, pc), pc);
	return j->undescribed ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static bool find_bias(int fd, const struct mappings_map *m, uint64_t *ret)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	bool found = elf && symbols_bias(elf, m->start, m->offset, ret);

	elf_end(elf);
	return found;
}

/* Returns a file with the vdso of this process, which elfutils can read, or -1 if there is none. */
static int open_vdso(void)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t size = maps_vdso_size();
	int fd = vdso && size ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd >= 0 && write(fd, vdso, size) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Returns the file that is mapped there, or -1 if it is no file or is not found. */
static int find_file(struct judge *j, const struct mappings_map *m)
{
	const struct image *file;

	if (!strcmp(m->path, "[vdso]"))
		return m->end - m->start == maps_vdso_size() ? j->vdso : -1;
	file = mappings_is_file(m->path) ? image_get(&j->images, m->path, &m->id) : NULL;
	return file ? file->fd : -1;
}

/* Tells elfutils about one mapping. mappings_name() calls it for each mapping. */
static int report(void *arg, pid_t pid, struct shstk_symproc *proc, const struct mappings_map *m)
{
	struct judge *j = arg;
	struct process *p = get_process(j, pid);
	int fd = find_file(j, m);
	uint64_t bias;

	(void)proc;
	if (!p || fd < 0 || !find_bias(fd, m, &bias))
		return 0;
	fd = dup(fd);
	if (!dwfl_report_elf(p->view->dwfl, m->path, m->path, fd, bias, true) && fd >= 0)
		close(fd);
	return 0;
}

static int make_view(struct judge *j, struct process *p)
{
	static char none[] = "";
	static char *debug_path = none;
	static const Dwfl_Callbacks files = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &debug_path,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_word,
		.set_initial_registers = set_registers,
	};
	struct view *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*v = (struct view){ .refs = 1, .dwfl = dwfl_begin(&files), .judge = j };
	p->view = v;
	if (!v->dwfl)
		return -ENOMEM;
	dwfl_report_begin(v->dwfl);
	mappings_name(p->mappings, p->pid, NULL);
	dwfl_report_end(v->dwfl, NULL, NULL);
	dwfl_attach_state(v->dwfl, NULL, 1, &threads, v);
	return 0;
}

/* ---- Samples ---- */

static void print_place(FILE *to, const struct process *p, const char *what, uint64_t addr)
{
	const struct mappings_map *m = mappings_find(p->mappings, addr);

	if (m)
		fprintf(to, " %s %s+0x%llx", what, m->path,
			(unsigned long long)(addr - m->start + m->offset));
	else
		fprintf(to, " %s no code", what);
}

static char *describe(const struct judge *j, const struct process *p, size_t at)
{
	const uint64_t *ips = j->chain.ips;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	if (at)
		print_place(to, p, "behind", ips[at - 1]);
	print_place(to, p, "is", ips[at]);
	if (at < j->nr)
		print_place(to, p, "elfutils:", j->pcs[at]);
	else
		fputs(" elfutils: nothing", to);
	fclose(to);
	return text;
}

static void note_difference(struct judge *j, const struct process *p, size_t at)
{
	char *text = describe(j, p, at);
	struct kind *k = NULL;

	if (text)
		HASH_FIND_STR(j->kinds, text, k);
	if (!k && text && HASH_COUNT(j->kinds) < MAX_KINDS)
		k = calloc(1, sizeof(*k));
	if (!k) {
		j->other_kinds++;
		free(text);
		return;
	}
	if (k->nr++) {
		free(text);
		return;
	}
	k->text = text;
	HASH_ADD_KEYPTR(hh, j->kinds, k->text, strlen(k->text), k);
}

static enum end find_end(const struct judge *j)
{
	if (j->nr >= j->chain.nr)
		return END_KERNEL;
	if (j->undescribed)
		return END_UNDESCRIBED;
	return j->not_copied ? END_NOT_COPIED : END_OTHER;
}

/* Compares the kernel's chain with what elfutils found. */
static void compare(struct judge *j, const struct process *p)
{
	size_t n = j->nr < j->chain.nr ? j->nr : j->chain.nr, i = 0;

	while (i < n && j->pcs[i] == j->chain.ips[i])
		i++;
	j->samples++;
	j->entries += i;
	if (i == n) {
		j->equal++;
		j->ends[find_end(j)]++;
	}
	if (i < n || find_end(j) == END_OTHER)
		note_difference(j, p, i);
}

static int on_sample(void *arg, const struct perfdata_event *event, const struct perf_sample *s)
{
	struct judge *j = arg;
	struct process *p = get_process(j, s->pid);

	(void)event;
	j->chain = perf_sample_user(s);
	if (s->abi != 2 || !s->stack_size || !j->chain.nr || j->samples == j->most)
		return 0;
	if (!p || (!p->view && make_view(j, p)))
		return -ENOMEM;
	j->s = s;
	j->nr = 0;
	j->undescribed = j->not_copied = false;
	dwfl_getthread_frames(p->view->dwfl, 1, take_frame, j);
	compare(j, p);
	return 0;
}

static int add_no_code(void *arg, pid_t pid, struct shstk_space *space,
		       const struct mappings_map *m)
{
	(void)arg;
	(void)pid;
	(void)space;
	(void)m;
	return -ENOENT;
}

static void print(const struct judge *j)
{
	typedef unsigned long long ull;
	const uint64_t *ends = j->ends;

	for (const struct kind *k = j->kinds; k; k = k->hh.next)
		printf("differs %llu times:%s\n", (ull)k->nr, k->text);
	if (j->other_kinds)
		printf("differs %llu times elsewhere\n", (ull)j->other_kinds);
	printf("%llu samples, %llu equal, %llu entries, %llu as far as the kernel,"
	       " %llu left where elfutils has no description, %llu where"
	       " the stack was not copied, %llu elsewhere\n",
	       (ull)j->samples, (ull)j->equal, (ull)j->entries, (ull)ends[END_KERNEL],
	       (ull)ends[END_UNDESCRIBED], (ull)ends[END_NOT_COPIED], (ull)ends[END_OTHER]);
}

int main(int argc, char **argv)
{
	static const struct perfdata_handler handler = {
		.sample = on_sample,
		.map = on_mmap,
		.comm = on_comm,
		.fork = on_fork,
		.lost = on_lost,
	};
	static struct judge j = { .most = UINT64_MAX, .images.root = -1 };
	struct perfdata *data;
	struct reason why;
	int err;

	if (argc < 2) {
		fprintf(stderr, "usage: rules_elfutils FILE [SAMPLES]\n");
		return 2;
	}
	if (argc > 2)
		j.most = strtoull(argv[2], NULL, 10);
	elf_version(EV_CURRENT);
	j.vdso = open_vdso();
	if (perfdata_open(argv[1], &data, &why)) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	j.files = (struct mappings_files){
		.arch = data->arch,
		.arg = &j,
		.add = add_no_code,
		.name = report,
	};
	err = perfdata_read(data, &handler, &j);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	print(&j);
	return 0;
}
