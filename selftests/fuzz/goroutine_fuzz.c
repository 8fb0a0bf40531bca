// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * goroutine_fuzz.c - any bytes as the memory of a Go program: its goroutines and their labels are found, and
 * their stacks unwound, which lead from one stack to another. All that ends, and texts are strings.
 *
 * Input: struct head, and the memory, which is found again and again in the program's data. The program's
 * file, with a table of Go's, is always the same, apart from the name of a function and from its release.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/go/goroutine.h"
#include "libshstk/shstk.h"
#include "selftests/fuzz/repeated.h"
#include "selftests/go/forms.h"
#include "tools/convert/living_golabels.h"
#include "tools/perf/regs.h"
#include "tools/shstk.h"

#define CLOCK_STEP 10000000000 /* ns */
#include "clock.h"

#define MEMORY 16384 /* bytes of the program's data */
#define DEPTH 64
#define MOST 32 /* goroutines that are unwound */
#define BUILDINFO 0xa00 /* of a file that has its text behind it, and no pointer to it */
#define BUILDINFO_TEXT 32
#define PID 0x3fffff00

/**
 * struct head - what an input begins with
 * @function: what the first function is called; see names[].
 * @release: text of the build information.
 * @pointer: thread pointer, less the address of the data.
 * @g: address of a goroutine's description in a register, the same.
 * @places: addresses on a stack, the same.
 */
struct head {
	uint8_t function;
	char release[7];
	uint16_t pointer;
	uint16_t g;
	uint16_t places[GOLABELS_PLACES];
};

/* A program, and its memory. */
struct input {
	struct head head;
	const uint8_t *memory;
	size_t size;
	struct file file;
};

static const char *const names[] = {
	"main.plain",	      "runtime.systemstack", "runtime.mcall",	 "runtime.morestack",
	"runtime.asmcgocall", "runtime.cgocallback", "crosscall2",	 "runtime.gogo",
	"time.now",	      "runtime.sigpanic",    "runtime.walltime",
};

/* The process that living_golabels.c reads. */
static struct input *process;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_shstk_space_add_pid(struct shstk_space *space, int pid);
int __wrap_shstk_read_process(void *arg, uint64_t addr, void *buf, size_t size);

int perf_regs_arch(void)
{
	return SHSTK_ARCH_X86;
}

static int read_input(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct input *in = arg;

	if (addr < DATA || addr - DATA > MEMORY || size > MEMORY - (addr - DATA))
		return -EFAULT;
	copy_repeated(in->memory, in->size, addr - DATA, buf, size);
	return 0;
}

static void make_program(struct input *in)
{
	struct file *f = &in->file;
	Elf64_Phdr *data = (void *)(f->bytes + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));

	make(f, &go_1_20, TEXT, 40);
	put_text(f, NAMES + NAME_PLAIN, names[in->head.function % ARRAY_SIZE(names)]);
	/* Some functions count only in assembler. */
	put_text(f, FILES + FILE_A, "/a.s");
	put(f, BUILDINFO, "\xff Go buildinf:\10\2", 16);
	put(f, BUILDINFO + BUILDINFO_TEXT, in->head.release, sizeof(in->head.release));
	put64(f, BUILDINFO + 2 * BUILDINFO_TEXT, 0);
	finish(f);
	data->p_memsz = MEMORY;
}

static int add_program(struct shstk_space *space, const struct input *in)
{
	char path[32];
	int fd = memfd_create("program", MFD_CLOEXEC), ret;

	if (fd < 0 || write(fd, in->file.bytes, in->file.size) != (ssize_t)in->file.size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = shstk_space_add_file(space, path, TEXT, TEXT + 0x10000, 0);
	close(fd);
	return ret;
}

/* The linker has living_golabels.c call these for its process. */
int __wrap_shstk_space_add_pid(struct shstk_space *space, int pid)
{
	if (pid != PID)
		abort();
	return add_program(space, process) ? 0 : 1;
}

int __wrap_shstk_read_process(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	return read_input(process, addr, buf, size);
}

/* ---- Goroutines ---- */

/* What is looked at for each goroutine. */
struct look {
	const struct shstk_goruntime *rt;
	struct input *in;
	unsigned int nr;
	unsigned int labels;
};

static int judge_label(void *arg, const char *key, const char *value)
{
	struct look *l = arg;

	if (strlen(key) >= GO_TEXT_MAX || strlen(value) >= GO_TEXT_MAX ||
	    ++l->labels > GO_LABELS_MAX)
		abort();
	return 0;
}

static void unwind(struct input *in, struct shstk_space *space, const struct shstk_regs *regs)
{
	uint64_t pcs[DEPTH];

	if (shstk_unwind(space, regs, read_input, in, pcs, DEPTH, NULL, NULL) > DEPTH)
		abort();
}

static int judge(void *arg, const struct shstk_goroutine *g)
{
	struct look *l = arg;
	struct shstk_gostack stack;

	if (strlen(g->reason) >= sizeof(g->reason) || g->state > SHSTK_GO_OTHER || g->tid < 0)
		abort();
	if (shstk_goroutine_stack(l->rt, g->g, &stack) && stack.lo >= stack.hi)
		abort();
	l->labels = 0;
	shstk_goroutine_labels(l->rt, g, judge_label, l);
	unwind(l->in, l->rt->space, &g->regs);
	return ++l->nr == MOST;
}

static void read_goroutines(struct input *in, struct shstk_space *space)
{
	struct shstk_goruntime rt;
	struct look l = { .rt = &rt, .in = in };

	if (!shstk_goruntime_find(&rt, space, read_input, in))
		shstk_goruntime_each(&rt, judge, &l);
}

/* Unwinds a thread that is at an instruction. */
static void unwind_thread(struct input *in, struct shstk_space *space, uint64_t pc)
{
	struct shstk_regs regs = {
		.size = sizeof(regs),
		.known = UINT32_MAX,
		.pc = pc,
		.thread_pointer = DATA + in->head.pointer,
	};

	for (int i = 0; i < 32; i++)
		regs.r[i] = DATA + in->head.places[i % GOLABELS_PLACES];
	regs.r[14] = DATA + in->head.g;
	unwind(in, space, &regs);
	shstk_go_kind(space, pc);
	shstk_go_has_frame(space, pc);
}

static void read_program(struct input *in)
{
	struct shstk_space *space;

	if (shstk_space_create(SHSTK_ARCH_X86, &space) || add_program(space, in))
		abort();
	read_goroutines(in, space);
	for (uint64_t pc = TEXT; pc < TEXT + 64 * FUNCS; pc += 12)
		unwind_thread(in, space, pc);
	shstk_space_destroy(space);
}

/* ---- Labels of a sample ---- */

static void find_labels(struct input *in)
{
	struct golabels_hints hints = { .g = DATA + in->head.g, .nr = GOLABELS_PLACES };
	char *labels = malloc(GOLABELS_MAX);
	struct golabels *all;
	uint64_t next = 0;
	size_t size;

	process = in;
	all = golabels_create(PID, &next);
	if (!labels || !all)
		abort();
	for (int i = 0; i < GOLABELS_PLACES; i++)
		hints.places[i] = DATA + in->head.places[i];
	for (int i = 0; i < 2; i++) {
		size = golabels_find(all, &hints, labels);
		if (size > GOLABELS_MAX || (size && labels[size - 1]))
			abort();
		hints.g = 0;
	}
	golabels_destroy(all);
	free(labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input in;

	if (size < sizeof(in.head) + 8)
		return 0;
	memcpy(&in.head, data, sizeof(in.head));
	in.memory = data + sizeof(in.head);
	in.size = size - sizeof(in.head);
	make_program(&in);
	read_program(&in);
	find_labels(&in);
	return 0;
}
