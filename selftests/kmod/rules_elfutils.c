// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_elfutils.c - callchains of the kernel against what elfutils makes of copies of the
 * same stacks.
 *
 *   rules_elfutils FILE [SAMPLES]     a perf.data file with both; the first so many samples
 *
 * An unwinder of others: it shares nothing with ours but the reading of perf.data and of the
 * order in which files were mapped. Entries are compared from the program counter on, as far
 * as both go. It says how many samples were compared, how many agree, of how many entries,
 * and how many stacks elfutils followed as far as the kernel did.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "tools/elf/image.h"
#include "tools/elf/symbols.h"
#include "tools/perf/data.h"
#include "tools/unwind/layout.h"

#define MAX_FRAMES 1024
#define MAX_TOLD 20

/* What a process has mapped, as elfutils has it; of a child, too, until either maps more. */
struct view {
	unsigned int refs;
	Dwfl *dwfl;
	struct judge *judge;
};

struct process {
	int pid;
	struct layout *layout;
	struct view *view; /* NULL: something was mapped since */
	UT_hash_handle hh;
};

struct judge {
	struct layout_files files;
	struct images images;
	struct process *processes;
	uint64_t most, samples, equal, entries, reached;
	unsigned int told;
	/* The sample at hand, and what elfutils found. */
	const struct perfdata_sample *s;
	uint64_t pcs[MAX_FRAMES];
	size_t nr;
};

/* ---- processes ---- */

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
	p->layout = layout_create(&j->files);
	HASH_ADD_INT(j->processes, pid, p);
	return p->layout ? p : NULL;
}

static int on_mmap(void *arg, const struct perfdata_mmap *from)
{
	struct layout_map m = {
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
	return layout_add(&p->layout, p->pid, &m) == -ENOMEM ? -ENOMEM : 0;
}

static int begin(struct judge *j, struct process *p, struct layout *layout, struct view *view)
{
	forget(p);
	layout_put(p->layout);
	p->layout = layout ? layout : layout_create(&j->files);
	p->view = view;
	if (view)
		view->refs++;
	return p->layout ? 0 : -ENOMEM;
}

static int on_comm(void *arg, int pid, int tid, const char *comm, bool exec)
{
	struct process *p = exec ? get_process(arg, pid) : NULL;

	(void)tid;
	(void)comm;
	return p ? begin(arg, p, NULL, NULL) : 0;
}

static int on_fork(void *arg, int pid, int tid, int parent, int from)
{
	struct process *old = get_process(arg, parent), *p = get_process(arg, pid);

	(void)tid;
	(void)from;
	if (!old || !p)
		return -ENOMEM;
	return pid == parent ? 0 : begin(arg, p, layout_share(old->layout), old->view);
}

static void on_lost(void *arg, uint64_t nr)
{
	(void)arg;
	printf("perf lost %llu records\n", (unsigned long long)nr);
}

/* ---- elfutils ---- */

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

/* Of the process's memory only the stack is known. */
static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	const struct perfdata_sample *s = ((struct view *)arg)->judge->s;
	uint64_t sp = s->regs.r[7];

	(void)dwfl;
	if (addr < sp || s->stack_size < sizeof(*ret) || addr - sp > s->stack_size - sizeof(*ret))
		return false;
	memcpy(ret, s->stack + (addr - sp), sizeof(*ret));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct perfdata_sample *s = ((struct view *)arg)->judge->s;
	Dwarf_Word regs[17];

	for (int i = 0; i < 16; i++)
		regs[i] = s->regs.r[i];
	regs[16] = s->regs.pc;
	return dwfl_thread_state_registers(thread, 0, 17, regs);
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct judge *j = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || j->nr == MAX_FRAMES)
		return DWARF_CB_ABORT;
	j->pcs[j->nr++] = pc;
	return DWARF_CB_OK;
}

static bool find_bias(int fd, const struct layout_map *m, uint64_t *ret)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	bool found = elf && symbols_bias(elf, m->start, m->offset, ret);

	elf_end(elf);
	return found;
}

/* Tells elfutils of one mapping; layout_name() comes here with each. */
static int report(void *arg, pid_t pid, struct shstk_symproc *proc, const struct layout_map *m)
{
	struct judge *j = arg;
	struct process *p = get_process(j, pid);
	struct image *file = layout_is_file(m->path) ? image_get(&j->images, m->path, &m->id) :
						       NULL;
	uint64_t bias;

	(void)proc;
	if (p && file && find_bias(file->fd, m, &bias))
		dwfl_report_elf(p->view->dwfl, m->path, file->found, -1, bias, true);
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
	layout_name(p->layout, p->pid, NULL);
	dwfl_report_end(v->dwfl, NULL, NULL);
	dwfl_attach_state(v->dwfl, NULL, 1, &threads, v);
	return 0;
}

/* ---- samples ---- */

static void print_place(const struct process *p, const char *what, uint64_t addr)
{
	const struct layout_map *m = layout_find(p->layout, addr);

	if (m)
		printf(" %s%s+0x%llx", what, m->path,
		       (unsigned long long)(addr - m->start + m->offset));
	else
		printf(" %s0x%llx", what, (unsigned long long)addr);
}

static void tell(struct judge *j, const struct process *p, size_t at)
{
	const struct perfdata_sample *s = j->s;

	if (j->told++ >= MAX_TOLD)
		return;
	printf("differs: entry %zu of %zu", at + 1, s->nr_chain);
	if (at)
		print_place(p, "behind ", s->chain[at - 1]);
	print_place(p, "is ", s->chain[at]);
	print_place(p, "elfutils: ", j->pcs[at]);
	printf("\n");
}

static int on_sample(void *arg, const struct perfdata_sample *s)
{
	struct judge *j = arg;
	struct process *p = get_process(j, s->pid);
	size_t n, i = 0;

	if (s->abi != 2 || !s->stack_size || !s->nr_chain || j->samples == j->most)
		return 0;
	if (!p || (!p->view && make_view(j, p)))
		return -ENOMEM;
	j->s = s;
	j->nr = 0;
	dwfl_getthread_frames(p->view->dwfl, 1, take_frame, j);
	n = j->nr < s->nr_chain ? j->nr : s->nr_chain;
	while (i < n && j->pcs[i] == s->chain[i])
		i++;
	j->samples++;
	j->entries += i;
	j->equal += i == n;
	j->reached += i == n && j->nr >= s->nr_chain;
	if (i < n)
		tell(j, p, i);
	return 0;
}

static int add_no_code(void *arg, pid_t pid, struct shstk_space *space, const struct layout_map *m)
{
	(void)arg;
	(void)pid;
	(void)space;
	(void)m;
	return -ENOENT;
}

static void print(const struct judge *j)
{
	printf("%llu samples, %llu equal, %llu entries, %llu as far as the kernel\n",
	       (unsigned long long)j->samples, (unsigned long long)j->equal,
	       (unsigned long long)j->entries, (unsigned long long)j->reached);
}

int main(int argc, char **argv)
{
	static const struct perfdata_handler handler = { on_sample, on_mmap, on_comm, on_fork,
							 on_lost };
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
	if (perfdata_open(argv[1], &data, &why)) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	j.files = (struct layout_files){
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
