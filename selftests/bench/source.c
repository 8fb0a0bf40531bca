/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.c - libshstk and its peers behind one prototype.
 *
 * libunwind is linked. LLVM's libunwind has the same names, so it is loaded separately, by its own
 * file name. libunwind also defines backtrace(), so glibc's is looked up in libc itself.
 * gperftools' tracer is loaded, because to link it would start its profiler's constructors.
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "selftests/framehop/peer.h"
#include "shstk_marker.h"
#include "source.h"
#include "shadow_reader.h"
#include "versus.h"

int memcpy_entries = 1;
unsigned int source_place;

static uintptr_t stack_lowest, stack_highest;

static int none_capture(uint64_t *pcs, int max)
{
	(void)pcs;
	return max;
}

/* Words that look like return addresses: like a shadow stack, but in ordinary memory. */
static uint64_t memcpy_from[4096];

static const char *memcpy_load(void)
{
	for (unsigned int i = 0; i < 4096; i++)
		memcpy_from[i] = (uint64_t)(uintptr_t)memcpy_load + 5 * i;
	return NULL;
}

static int memcpy_capture(uint64_t *pcs, int max)
{
	int n = memcpy_entries < max ? memcpy_entries : max;

	memcpy(pcs, memcpy_from, (size_t)n * sizeof(*pcs));
	return n;
}

/* Runs the reader of hardware shadow stacks on ordinary memory. */
static int reader_capture(uint64_t *pcs, int max)
{
	int n = memcpy_entries < max ? memcpy_entries : max;
	struct hw_trace trace;

	/* Set the same members as a capture does; the others are not looked at. */
	trace.pcs = pcs;
	trace.marks = NULL;
	trace.seen_before = false;
	trace.gap = false;
	trace.ended = false;
	trace.plain = true;
	trace.max = (unsigned int)max;
	trace.n = 0;
	trace.skip = 0;
	trace.nsignals = 0;
	hw_copy(&trace, (uintptr_t)memcpy_from, (uintptr_t)(memcpy_from + n));
	return (int)trace.n;
}

static const struct shstk_opts memo_opts = {
	.size = sizeof(memo_opts),
	.sources = SHSTK_USE_MEMO | SHSTK_USE_WALK,
};

static int memo_capture(uint64_t *pcs, int max)
{
	return shstk_capture(pcs, max, &memo_opts, NULL);
}

static const struct shstk_opts walk_opts = {
	.size = sizeof(walk_opts),
	.sources = SHSTK_USE_WALK,
};

static int walk_capture(uint64_t *pcs, int max)
{
	return shstk_capture(pcs, max, &walk_opts, NULL);
}

static int marker_capture(uint64_t *pcs, int max)
{
	return shstk_marker_capture(pcs, max, NULL);
}

static const struct shstk_opts hardware_opts = {
	.size = sizeof(hardware_opts),
	.sources = SHSTK_USE_HARDWARE,
};

static int hardware_capture(uint64_t *pcs, int max)
{
	return shstk_capture(pcs, max, &hardware_opts, NULL);
}

static int libunwind_capture(uint64_t *pcs, int max)
{
	return unw_backtrace((void **)pcs, max);
}

static int libunwind_step_capture(uint64_t *pcs, int max)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t ip;
	int n = 0;

	if (unw_getcontext(&context) || unw_init_local(&cursor, &context))
		return 0;
	while (n < max && unw_step(&cursor) > 0) {
		if (unw_get_reg(&cursor, UNW_REG_IP, &ip) || !ip)
			break;
		pcs[n++] = ip;
	}
	return n;
}

/*
 * LLVM's interface has libunwind's names, but structs of other sizes: 17 and 12 words on x86-64,
 * fewer than 80 and 70 elsewhere.
 */
struct llvm_context {
	uint64_t word[128];
} __attribute__((aligned(16)));

struct llvm_cursor {
	uint64_t word[128];
} __attribute__((aligned(16)));

#define LLVM_REG_IP (-1)

static int (*llvm_getcontext)(struct llvm_context *context);
static int (*llvm_init_local)(struct llvm_cursor *cursor, struct llvm_context *context);
static int (*llvm_step)(struct llvm_cursor *cursor);
static int (*llvm_get_reg)(struct llvm_cursor *cursor, int reg, size_t *value);

static int llvm_capture(uint64_t *pcs, int max)
{
	struct llvm_context context;
	struct llvm_cursor cursor;
	size_t ip;
	int n = 0;

	if (llvm_getcontext(&context) || llvm_init_local(&cursor, &context))
		return 0;
	while (n < max && llvm_step(&cursor) > 0) {
		if (llvm_get_reg(&cursor, LLVM_REG_IP, &ip) || !ip)
			break;
		pcs[n++] = ip;
	}
	return n;
}

static const char *llvm_load(void)
{
	void *lib = dlopen("libunwind.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);

	if (!lib)
		return "libunwind.so.1 is not installed";
	*(void **)&llvm_getcontext = dlsym(lib, "unw_getcontext");
	*(void **)&llvm_init_local = dlsym(lib, "unw_init_local");
	*(void **)&llvm_step = dlsym(lib, "unw_step");
	*(void **)&llvm_get_reg = dlsym(lib, "unw_get_reg");
	if (!llvm_getcontext || !llvm_init_local || !llvm_step || !llvm_get_reg)
		return "libunwind.so.1 lacks a function";
	return NULL;
}

static int (*glibc_backtrace)(void **buffer, int size);

static int glibc_capture(uint64_t *pcs, int max)
{
	return glibc_backtrace((void **)pcs, max);
}

static const char *glibc_load(void)
{
	void *lib = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	if (!lib)
		return "the C library is not glibc";
	*(void **)&glibc_backtrace = dlsym(lib, "backtrace");
	return glibc_backtrace ? NULL : "libc.so.6 lacks backtrace";
}

static int (*gperftools_trace)(void **result, int max_depth, int skip_count);

static int gperftools_capture(uint64_t *pcs, int max)
{
	return gperftools_trace((void **)pcs, max, 0);
}

static const char *gperftools_load(void)
{
	void *lib = dlopen("libprofiler.so.0", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return "libprofiler.so.0 is not installed";
	*(void **)&gperftools_trace = dlsym(lib, "_Z13GetStackTracePPvii");
	return gperftools_trace ? NULL : "libprofiler.so.0 lacks GetStackTrace";
}

/* A frame record: the caller's frame pointer, then the return address. */
struct record {
	const struct record *next;
	uint64_t pc;
};

static inline const struct record *own_record(void)
{
	return __builtin_frame_address(0);
}

/*
 * Follows frame records as a careful program does: only aligned ones, inside the stack, outwards.
 */
static int fp_checked_capture(uint64_t *pcs, int max)
{
	const struct record *fp = own_record();
	uintptr_t low = stack_lowest;
	int n = 0;

	while (n < max) {
		uintptr_t at = (uintptr_t)fp;

		if (at < low || at > stack_highest - sizeof(*fp) || at & 7)
			break;
		pcs[n++] = fp->pc;
		low = at + sizeof(*fp);
		fp = fp->next;
	}
	return n;
}

/*
 * Follows frame records without any check, which works only because the chains here end with NULL.
 */
static int fp_minimal_capture(uint64_t *pcs, int max)
{
	const struct record *fp;
	int n = 0;

	for (fp = own_record(); fp && n < max; fp = fp->next)
		pcs[n++] = fp->pc;
	return n;
}

static const struct framehop_api *framehop;
static struct framehop *framehop_unwinder;

/* Begins at the caller of the capture function, whose frame record is @own. */
static int framehop_trace(const struct record *own, uint64_t *pcs, int max)
{
	struct framehop_regs regs = {
		.pc = own->pc,
		.sp = (uintptr_t)(own + 1),
		.fp = (uintptr_t)own->next,
	};
	int end;

	return (int)framehop->trace(framehop_unwinder, &regs, NULL, (void *)stack_highest, pcs,
				    (unsigned int)max, &end);
}

static int framehop_capture(uint64_t *pcs, int max)
{
	return framehop_trace(own_record(), pcs, max);
}

/* Captures with none of the cached rules, which a new generation voids at little cost. */
static int framehop_miss_capture(uint64_t *pcs, int max)
{
	framehop->miss(framehop_unwinder);
	return framehop_trace(own_record(), pcs, max);
}

static const char *framehop_get(void)
{
	if (framehop)
		return NULL;
	framehop = framehop_load();
	if (!framehop)
		return "not built, see make framehop";
	framehop_unwinder = framehop->create();
	return framehop_add_process(framehop, framehop_unwinder, getpid()) ?
		       "/proc/self/maps cannot be read" :
		       NULL;
}

/* Captures twice. Returns NULL if the second capture was served by @source, else @missing. */
static const char *probe(uint32_t use, int source, const char *missing)
{
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.sources = use,
	};
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[64];

	for (int i = 0; i < 2; i++)
		if (shstk_capture(pcs, 64, &opts, &info) <= 0)
			return missing;
	return info.source == source ? NULL : missing;
}

static const char *marker_load(void)
{
	uint64_t pcs[64];

	shstk_marker_capture(pcs, 64, NULL);
	if (shstk_marker_status() != SHSTK_MARKER_ON)
		return shstk_marker_name(shstk_marker_status());
	return NULL;
}

static const char *hardware_load(void)
{
	return probe(SHSTK_USE_HARDWARE, SHSTK_SOURCE_HARDWARE,
		     "no hardware shadow stack is active");
}

struct source sources[MAX_SOURCES] = {
	{ "none", ON_ALL, false, false, none_capture, NULL, NULL },
	{ "shstk-memo", ON_ALL, true, true, memo_capture, NULL, NULL },
	{ "shstk-walk", ON_NOFP, true, true, walk_capture, NULL, NULL },
	{ "shstk-fp", ON_FP, true, true, walk_capture, NULL, NULL },
	{ "shstk-marker", ON_ALL, true, true, marker_capture, marker_load, NULL },
	{ "shstk-hardware", ON_ALL, true, true, hardware_capture, hardware_load, NULL },
	{ "libunwind", ON_ALL, true, false, libunwind_capture, NULL, NULL },
	{ "libunwind-step", ON_ALL, true, false, libunwind_step_capture, NULL, NULL },
	{ "llvm-libunwind", ON_ALL, true, false, llvm_capture, llvm_load, NULL },
	{ "glibc", ON_ALL, true, false, glibc_capture, glibc_load, NULL },
	{ "framehop", ON_NOFP, true, false, framehop_capture, framehop_get, NULL },
	{ "framehop-miss", ON_NOFP, true, false, framehop_miss_capture, framehop_get, NULL },
	{ "abseil", ON_ALL, true, false, abseil_capture, NULL, NULL },
	{ "gperftools", ON_ALL, true, false, gperftools_capture, gperftools_load, NULL },
	{ "fp-loop", ON_FP, true, false, fp_checked_capture, NULL, NULL },
	{ "fp-loop-min", ON_FP, true, false, fp_minimal_capture, NULL, NULL },
	{ "shstk-reader", ON_ALL, false, true, reader_capture, memcpy_load, NULL },
	{ "floor-loads", ON_NOFP | ONLY_FIXED, false, false, floor_capture, floor_load, NULL },
	{ "memcpy", ON_ALL, false, false, memcpy_capture, memcpy_load, NULL },
};

unsigned int nr_sources;

void source_list(void)
{
	while (sources[nr_sources].name)
		nr_sources++;
	for (unsigned int i = 0; i < VERSUS_SOURCES && versus_loaded(); i++)
		sources[nr_sources++] = versus_sources[i];
}

struct source *source_find(const char *name)
{
	for (unsigned int i = 0; i < nr_sources; i++)
		if (!strcmp(sources[i].name, name))
			return &sources[i];
	return NULL;
}

const char *source_load(struct source *source)
{
	if (source->load)
		source->missing = source->load();
	return source->missing;
}

void fp_loop_bounds(uintptr_t lowest, uintptr_t highest)
{
	stack_lowest = lowest;
	stack_highest = highest;
}
