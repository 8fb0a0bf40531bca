// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk unwind - the stacks that `perf record --call-graph dwarf` copied, as a
 * profile.
 *
 * Each sample has the registers and a piece of the stack; which files were
 * mapped where is told by other records. Processes are followed through fork and
 * exec in the order of time. The modules of a process are only read once it has
 * a sample.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/symbol/profile.h"
#include "tools/convert/beyond.h"
#include "tools/convert/layout.h"
#include "tools/convert/splice.h"
#include "tools/elf/image.h"
#include "tools/output.h"
#include "tools/perf/data.h"
#include "tools/proc/maps.h"
#include "tools/read_limit.h"
#include "tools/shstk.h"
#include "tools/unwind/chains.h"

#define MAX_DEPTH 4096
#define MAX_PROCESSES (1u << 18)

/*
 * A process of the file. Not tools/convert/population.h's, which asks /proc, forgets those that
 * have ended, and reads the kernel's records: these are as tools/perf/data.h has made them.
 */
struct process {
	int pid;
	struct layout *layout;
	struct shstk_symproc *proc;
	bool named; /* @proc has what @layout has */
	UT_hash_handle hh;
};

struct thread {
	int tid;
	char comm[64];
	struct beyond beyond;
	UT_hash_handle hh;
};

struct unwind {
	struct output output;
	const char *path;
	const char *event_name;
	const char *sysroot;
	unsigned long depth;
	struct read_limit read_limit;
	unsigned long first_only; /* samples of --chains; 0: all */
	bool judge; /* the kernel's chains, no profile */
	struct chains chains;
	bool quiet;

	struct perfdata *pd;
	const struct perfdata_event *event;
	struct images images;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct process *processes;
	struct thread *threads;
	uint64_t *pcs;
	uint64_t *sps;
	uint8_t *marks;

	struct layout_files files;
	uint64_t first, last;
	uint64_t samples;
	uint64_t complete;
	uint64_t too_short; /* stacks that go on behind their copy */
	uint64_t elsewhere; /* ... or on another stack */
	uint64_t continued; /* others, with what the thread had there before */
	uint64_t chained; /* stacks with what the kernel's callchain has there */
	uint64_t without; /* samples without registers of user space */
	uint64_t compat; /* of 32-bit code */
	uint64_t others; /* of other events */
	uint64_t lost;
};

enum {
	OPT_CHAINS = 256,
	OPT_EVENT,
	OPT_SYSROOT,
	OPT_DEPTH,
};

static const struct argp_option options[] = {
	{ "chains", OPT_CHAINS, "N", OPTION_ARG_OPTIONAL,
	  "judge the kernel's own callchains, of the first N samples, and write no profile", 0 },
	{ "event", OPT_EVENT, "NAME", 0,
	  "take the samples of this event, if there are several (the first one that has stacks)",
	  0 },
	{ "sysroot", OPT_SYSROOT, "DIR", 0, "look for the mapped files below DIR", 0 },
	{ "depth", OPT_DEPTH, "N", 0, "most frames of a stack, 1 to 4096 (1024)", 0 },
	READ_LIMIT_OPTION,
	{ "quiet", 'q', NULL, 0, "no summary", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct unwind *u = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &u->output;
		return 0;
	case ARGP_KEY_ARG:
		if (u->path)
			argp_failure(state, EXIT_USAGE, 0, "unexpected argument '%s'", arg);
		u->path = arg;
		return 0;
	case OPT_CHAINS:
		u->judge = true;
		if (arg)
			u->first_only = parse_number(state, "samples", arg, 1, 1000000000);
		return 0;
	case OPT_EVENT:
		u->event_name = arg;
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &u->read_limit);
		return 0;
	case OPT_SYSROOT:
		u->sysroot = arg;
		return 0;
	case OPT_DEPTH:
		u->depth = parse_number(state, "depth", arg, 1, MAX_DEPTH);
		return 0;
	case 'q':
		u->quiet = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &output_argp, 0, NULL, 0 },
	{ 0 },
};

const struct argp unwind_argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "[FILE]",
	.doc = "Unwind the stacks in FILE (perf.data), recorded by `perf record --call-graph dwarf`, and write a profile."
	       "\v"
	       "The profile holds what user space did; frames of the kernel are "
	       "left out. Files are taken from this machine, or below a folder "
	       "given by --sysroot, if their build ids are those that perf noted.",
};

/* Processes ------------------------------------------------------------- */

/* Executes another program, or is another process: nothing is mapped. */
static int begin_layout(struct unwind *u, struct process *p, struct layout *layout)
{
	if (!layout)
		layout = layout_create(&u->files);
	if (!layout)
		return -ENOMEM;
	layout_put(p->layout);
	p->layout = layout;
	p->named = false;
	return shstk_symproc_remove(p->proc, 0, UINT64_MAX);
}

static struct process *get_process(struct unwind *u, int pid)
{
	struct process *p;

	HASH_FIND_INT(u->processes, &pid, p);
	if (p)
		return p;
	if (HASH_COUNT(u->processes) >= MAX_PROCESSES)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->layout = layout_create(&u->files);
	if (!p->layout || shstk_symproc_create_past(u->symbols, pid, &p->proc)) {
		layout_put(p->layout);
		free(p);
		return NULL;
	}
	HASH_ADD_INT(u->processes, pid, p);
	if (!p->hh.tbl) {
		layout_put(p->layout);
		free(p);
		return NULL;
	}
	return p;
}

/* Was the file recorded with the kernel that runs here, as far as it says so? */
static bool is_this_kernel(const struct perfdata *pd)
{
	struct utsname here;

	return !uname(&here) && !strcmp(pd->release, here.release) &&
	       !strcmp(pd->machine, here.machine);
}

/*
 * The vdso is in no file; that of this process, if it is the same. perf record -z and -B
 * note no build ids: then it is taken on trust, as files are.
 */
static bool own_vdso(const struct perfdata *pd, const struct layout_map *m, const void **image)
{
	struct build_id own;

	*image = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!*image)
		return false;
	if (!m->id.size)
		return is_this_kernel(pd) && maps_vdso_size() == m->end - m->start;
	build_id_of(*image, 4096, &own);
	return own.size == m->id.size && !memcmp(own.data, m->id.data, own.size);
}

/* To the modules that are unwound with. */
static int add_code(void *arg, pid_t pid, struct shstk_space *space, const struct layout_map *m)
{
	struct unwind *u = arg;
	struct image *file = NULL;
	const void *vdso;
	int err = -ENOENT;

	(void)pid;
	if (!strcmp(m->path, "[vdso]") && own_vdso(u->pd, m, &vdso))
		return shstk_space_add_image(space, vdso, m->end - m->start, m->start);
	if (layout_is_file(m->path))
		file = image_get(&u->images, m->path, &m->id);
	if (!file)
		return err;
	err = image_add(space, file, m->start, m->end, m->offset);
	/* What is left of a mapping whose code was protected anew is maybe no code: arm64's BTI. */
	if (!err || (err == -ENOEXEC && !image_is_code(file, m->offset)))
		return err;
	if (!file->complained)
		complain("%s cannot be used: %s", file->found, strerror(-err));
	file->complained = true;
	return err;
}

/* To the mappings that addresses are named by. */
static int add_names(void *arg, pid_t pid, struct shstk_symproc *proc, const struct layout_map *m)
{
	struct unwind *u = arg;
	struct shstk_symmap_info info = {
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.path = m->path,
		.build_id = m->id.size ? m->id.data : NULL,
		.build_id_size = m->id.size,
	};
	struct image *file;
	const void *vdso;

	(void)pid;
	if (!strcmp(m->path, "[vdso]")) {
		if (own_vdso(u->pd, m, &vdso)) {
			info.image = vdso;
			info.image_size = m->end - m->start;
		}
	} else if (!layout_is_file(m->path)) {
		info.path = "";
	} else {
		file = image_get(&u->images, m->path, &m->id);
		if (file)
			info.path = file->found;
	}
	return shstk_symproc_add(proc, &info);
}

static int on_mmap(void *arg, const struct perf_map *from)
{
	struct layout_map m = {
		.start = from->start,
		.end = from->end,
		.offset = from->offset,
		.path = (char *)from->path,
		.id = from->id,
		.dev = from->dev,
		.inode = from->inode,
	};
	struct unwind *u = arg;
	struct process *p = get_process(u, from->pid);
	int ret;

	if (!p || strlen(m.path) >= PATH_MAX)
		return p ? 0 : -ENOMEM;
	ret = layout_add(&p->layout, p->pid, &m);
	if (ret > 0)
		ret = p->named ? add_names(u, p->pid, p->proc, &m) : 0;
	return ret;
}

static struct thread *get_thread(struct unwind *u, int tid)
{
	struct thread *t;

	HASH_FIND_INT(u->threads, &tid, t);
	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	HASH_ADD_INT(u->threads, tid, t);
	if (t->hh.tbl)
		return t;
	free(t);
	return NULL;
}

static int on_fork(void *arg, const struct perf_fork *f)
{
	struct unwind *u = arg;
	struct process *old, *p;
	struct thread *t = get_thread(u, f->tid), *maker = get_thread(u, f->from);

	if (!t || !maker)
		return -ENOMEM;
	memmove(t->comm, maker->comm, sizeof(t->comm));
	t->beyond.nr = 0;
	if (f->pid == f->parent)
		return 0;
	old = get_process(u, f->parent);
	p = get_process(u, f->pid);
	if (!old || !p)
		return -ENOMEM;
	/* The number may have been another one's. */
	return begin_layout(u, p, layout_share(old->layout));
}

static int on_comm(void *arg, const struct perf_comm *c)
{
	struct unwind *u = arg;
	struct thread *t = get_thread(u, c->tid);
	struct process *p;

	if (!t)
		return -ENOMEM;
	snprintf(t->comm, sizeof(t->comm), "%s", c->comm);
	printable(t->comm);
	if (!c->exec)
		return 0;
	t->beyond.nr = 0;
	p = get_process(u, c->pid);
	if (!p)
		return -ENOMEM;
	return begin_layout(u, p, NULL);
}

static void on_lost(void *arg, uint64_t nr)
{
	struct unwind *u = arg;

	u->lost += nr;
	u->chains.lost += nr;
}

/* Samples --------------------------------------------------------------- */

static int add_sample(struct unwind *u, struct process *p, const struct thread *t,
		      const struct perf_sample *s, const struct unwound *stack, enum beyond_by by)
{
	char label[BEYOND_LABEL];
	int64_t values[2] = { 1, s->period < INT64_MAX / 2 ? s->period : 0 };
	struct shstk_sample sample = {
		.proc = p->proc,
		.tid = s->tid,
		.comm = t->comm,
		.pcs = stack->pcs,
		.marks = stack->marks,
		.nr = stack->nr,
		.end = stack->end,
		.labels = label,
		.labels_size = output_wants_labels(&u->output) ? beyond_label(by, label) : 0,
		.time = s->time,
		.values = values,
	};

	return shstk_profile_add(u->profile, &sample);
}

struct where {
	struct unwind *u;
	const struct process *p;
};

static struct chain_place find_place(void *arg, uint64_t addr)
{
	const struct where *w = arg;
	const struct layout_map *m = layout_find(w->p->layout, addr);
	struct chain_place ret = { .mapped = m };

	if (m && layout_is_file(m->path))
		ret.file = image_get(&w->u->images, m->path, &m->id);
	if (m)
		ret.offset = addr - m->start + m->offset;
	return ret;
}

static int judge_sample(struct unwind *u, struct process *p, const struct perf_sample *s)
{
	struct stack_copy copy = { .regs = &s->regs, .bytes = s->stack, .size = s->stack_size };
	struct unwound stack = { .pcs = u->pcs, .marks = u->marks, .max = u->depth };
	struct where where = { u, p };
	const struct callchain user = perf_sample_user(s);
	struct chain chain = { user.ips, user.nr, &stack, find_place, &where };

	if (u->first_only && u->chains.samples == u->first_only)
		return 0;
	/* The registers are of a program that is being replaced: its stack is gone. */
	if (u->event->has_stacks && s->abi == 2 && !s->stack_size) {
		u->chains.without++;
		return 0;
	}
	if (s->abi == 2 && s->stack_size) {
		int err = layout_unwind(p->layout, p->pid, &copy, &stack);

		if (err)
			return err;
	}
	return chains_add(&u->chains, &chain) ? 0 : -ENOMEM;
}

static int on_sample(void *arg, const struct perfdata_event *event, const struct perf_sample *s)
{
	struct stack_copy copy = { .regs = &s->regs, .bytes = s->stack, .size = s->stack_size };
	struct unwind *u = arg;
	struct unwound stack = {
		.pcs = u->pcs,
		.marks = u->marks,
		.sps = u->sps,
		.max = u->depth,
	};
	const struct callchain chain = perf_sample_user(s);
	enum beyond_by by = BEYOND_NOTHING;
	struct process *p;
	struct thread *t;
	int err = 0;

	if (event != u->event) {
		u->others++;
		return 0;
	}
	if (s->abi != 2 && !u->judge) {
		u->without += !s->abi;
		u->compat += !!s->abi;
		return 0;
	}
	p = get_process(u, s->pid);
	t = get_thread(u, s->tid);
	if (!p || !t)
		return -ENOMEM;
	if (u->judge)
		return judge_sample(u, p, s);
	if (!p->named)
		err = layout_name(p->layout, p->pid, p->proc);
	p->named = true;
	if (!err)
		err = layout_unwind(p->layout, p->pid, &copy, &stack);
	if (err)
		return err;
	if (!splice_stack(p->layout, &chain, &stack))
		by = beyond_continue(&t->beyond, p->layout, &stack, &copy, &chain);
	u->continued += by == BEYOND_BEFORE;
	u->chained += by == BEYOND_CALLCHAIN;
	u->samples++;
	u->complete += stack.end == SHSTK_END_COMPLETE;
	u->too_short += unwound_too_short(&stack);
	u->elsewhere += stack.elsewhere;
	if (s->time && !u->first)
		u->first = s->time;
	u->last = s->time;
	return add_sample(u, p, t, s, &stack, by);
}

/* All of it ------------------------------------------------------------- */

static int choose_event(struct unwind *u)
{
	const char *path = u->pd->path;

	for (unsigned int i = 0; i < u->pd->nr_events; i++) {
		const struct perfdata_event *e = &u->pd->events[i];

		bool usable = u->judge ? e->has_chains : e->has_stacks;

		if (u->event_name ? strcmp(e->name, u->event_name) : !usable)
			continue;
		if (!usable && u->judge) {
			complain("event %s of %s has no callchains", e->name, path);
			return -ENODATA;
		}
		if (!usable) {
			complain("event %s of %s has no copies of the stack", e->name, path);
			return -ENODATA;
		}
		u->event = e;
		return 0;
	}
	if (u->event_name)
		complain("%s has no event '%s'; the first one is %s", path, u->event_name,
			 u->pd->events[0].name);
	else if (u->judge)
		complain("%s has no callchains: record with perf record -g", path);
	else
		complain(
			"%s has no copies of the stack: record with perf record --call-graph dwarf",
			path);
	return -ENODATA;
}

static int make_profile(struct unwind *u)
{
	const struct perfdata_event *e = u->event;
	const char *type = e->nanoseconds ? "cpu" : e->name;
	const char *unit = e->nanoseconds ? "nanoseconds" : "count";
	uint64_t period = e->period;
	struct shstk_symbols_opts opts = {
		.no_lines = u->judge || !output_wants_lines(&u->output),
		.full_names = u->output.full_names,
	};
	char *dirs = NULL;
	int err;

	if (u->sysroot && asprintf(&dirs, "%s/usr/lib/debug:/usr/lib/debug", u->sysroot) < 0)
		return -ENOMEM;
	opts.debug_dirs = dirs;
	read_limit_apply(&u->read_limit, &opts);
	if (e->freq)
		period = e->nanoseconds && period ? 1000000000 / period : 1;
	err = output_begin(&opts, type, unit, period, &u->symbols, &u->profile);
	free(dirs);
	if (err)
		return err;
	if (output_wants_times(&u->output))
		shstk_profile_keep_times(u->profile, output_wants_times(&u->output));
	u->pcs = malloc(u->depth * sizeof(*u->pcs));
	u->marks = malloc(u->depth);
	u->sps = malloc(u->depth * sizeof(*u->sps));
	return u->pcs && u->marks && u->sps ? 0 : -ENOMEM;
}

static unsigned long long count(uint64_t n)
{
	return n;
}

/* A line that is printed, and kept in the profile by @keep. */
static void say(struct unwind *u, int (*keep)(struct shstk_profile *profile, const char *text),
		const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(struct unwind *u, int (*keep)(struct shstk_profile *profile, const char *text),
		const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text)
		return;
	complain("%s: %s", u->pd->path, text);
	keep(u->profile, text);
	free(text);
}

/* Stacks with an outer part that is not from their copy. */
static void report_outer(struct unwind *u, uint64_t nr, enum beyond_by by)
{
	if (nr)
		say(u, shstk_profile_comment, "%llu of %llu stacks %s", count(nr),
		    count(u->samples), beyond_words(by));
}

/* What the profile does not hold, each in one line. */
static void report_gaps(struct unwind *u)
{
	const char *path = u->pd->path;

	if (u->pd->cut)
		say(u, shstk_profile_caution,
		    "the file is cut off, or was not finished: what is there is unwound");
	if (u->pd->damaged)
		say(u, shstk_profile_caution, "%llu records make no sense", count(u->pd->damaged));
	if (u->lost)
		say(u, shstk_profile_caution, "perf lost %llu records", count(u->lost));
	if (u->others)
		say(u, shstk_profile_comment,
		    "%llu samples of other events than %s left out, see --event", count(u->others),
		    u->event->name);
	if (u->compat)
		say(u, shstk_profile_caution, "%llu samples of 32-bit code left out",
		    count(u->compat));
	if (u->too_short)
		say(u, shstk_profile_comment,
		    "%llu stacks go on behind the piece that was copied, see --call-graph dwarf,SIZE of perf record",
		    count(u->too_short));
	if (u->elsewhere)
		say(u, shstk_profile_comment, "%llu stacks " UNWOUND_ELSEWHERE,
		    count(u->elsewhere));
	report_outer(u, u->continued, BEYOND_BEFORE);
	report_outer(u, u->chained, BEYOND_CALLCHAIN);
	if (!u->samples)
		complain("%s has no samples of user space", path);
}

static void report_done(const struct unwind *u)
{
	char *names = output_names(&u->output);

	if (!u->quiet)
		complain("%llu samples of %s, %llu stacks complete, %llu of the kernel only;%s",
			 count(u->samples), u->event->name, count(u->complete), count(u->without),
			 names ? names : "");
	free(names);
}

static void note(struct unwind *u)
{
	char *text = NULL;

	if (asprintf(&text, "unwound from %s, event %s", u->pd->path, u->event->name) < 0)
		return;
	shstk_profile_comment(u->profile, text);
	free(text);
	shstk_profile_set_time(u->profile, 0, u->last - u->first);
}

static int run(struct unwind *u)
{
	static const struct perfdata_handler handler = {
		.sample = on_sample,
		.map = on_mmap,
		.comm = on_comm,
		.fork = on_fork,
		.lost = on_lost,
	};
	int err;

	if (!u->pd->arch) {
		complain(
			"%s was recorded on %s, which is not supported: only x86_64 and aarch64 are",
			u->pd->path, u->pd->machine);
		return -EOPNOTSUPP;
	}
	err = choose_event(u);
	if (err)
		return err;
	u->files = (struct layout_files){
		.arch = u->pd->arch,
		.arg = u,
		.add = add_code,
		.name = add_names,
	};
	err = images_init(&u->images, u->sysroot);
	if (err) {
		complain("cannot open folder %s: %s", u->sysroot, strerror(-err));
		return err;
	}
	err = make_profile(u);
	if (!err)
		err = perfdata_read(u->pd, &handler, u);
	if (err) {
		complain("cannot unwind %s: %s", u->pd->path, strerror(-err));
		return err;
	}
	if (u->judge) {
		chains_print(&u->chains);
		return end_output() ? -EIO : 0;
	}
	note(u);
	report_gaps(u);
	if (!output_write(&u->output, u->profile, u->pd->path))
		return -EIO;
	if (!u->quiet)
		output_report_missing(u->symbols);
	report_done(u);
	return 0;
}

static void cleanup(struct unwind *u)
{
	struct process *p, *next;
	struct thread *t, *after;

	HASH_ITER(hh, u->processes, p, next)
	{
		HASH_DEL(u->processes, p);
		layout_put(p->layout);
		free(p);
	}
	HASH_ITER(hh, u->threads, t, after)
	{
		HASH_DEL(u->threads, t);
		beyond_deinit(&t->beyond);
		free(t);
	}
	free(u->pcs);
	free(u->marks);
	free(u->sps);
	chains_deinit(&u->chains);
	shstk_profile_destroy(u->profile);
	shstk_symbols_destroy(u->symbols);
	images_deinit(&u->images);
	perfdata_close(u->pd);
}

int cmd_unwind(int argc, char **argv)
{
	struct unwind u = { .depth = 1024, .images.root = -1 };
	struct reason why;
	int err;

	command_parse(&unwind_argp, argc, argv, &u);
	err = u.judge ? 0 : output_check(&u.output, EXIT_FAILED);
	if (err)
		return err;
	err = perfdata_open(u.path ? u.path : "perf.data", &u.pd, &why);
	if (err) {
		complain("%s", why.text);
		return EXIT_FAILED;
	}
	err = run(&u);
	cleanup(&u);
	return err ? EXIT_FAILED : EXIT_OK;
}
