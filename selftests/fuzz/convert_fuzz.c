// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * convert_fuzz.c - perf.data files, all the way to a profile: mappings, processes, stacks that are
 * unwound and callchains, whatever the records say.
 *
 * perfdata_fuzz.c is about reading the file alone. Files of programs are not looked for, so that the
 * files of this machine don't matter.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "selftests/fuzz/print_profile.h"
#include "tools/convert/file.h"
#include "tools/convert/recorded_files.h"
#include "tools/language/languages.h"
#include "tools/shstk.h"

#define CLOCK_STEP 1000000 /* ns */
#include "clock.h"

#define DEPTH 128

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char empty[] = "/tmp/shstk-fuzz-XXXXXX";

static void remove_empty(void)
{
	rmdir(empty);
}

/* Makes a folder without files, below which files of programs are looked for. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (!mkdtemp(empty))
		abort();
	return atexit(remove_empty);
}

/* The recorder's messages are nobody's. */
void complain(const char *format, ...)
{
	(void)format;
}

/* No file is an interpreter, so the functions below are never called. */
bool languages_may_be(const char *path)
{
	(void)path;
	return false;
}

int languages_find(struct languages *all, const struct language_module *module)
{
	(void)all;
	(void)module;
	abort();
}

void languages_set_context(struct languages *all, int pid, const struct context_process *process)
{
	(void)all;
	(void)pid;
	(void)process;
}

void languages_set(struct languages *all, int pid, int number)
{
	(void)all;
	(void)pid;
	(void)number;
	abort();
}

bool languages_function(void *arg, uint64_t pc, struct shstk_symframe *ret, const char **module)
{
	(void)arg;
	(void)pc;
	(void)ret;
	(void)module;
	abort();
}

bool languages_folded(const struct languages *all)
{
	(void)all;
	abort();
}

size_t languages_label(const struct languages *all, char *buf)
{
	(void)all;
	(void)buf;
	abort();
}

uint64_t languages_named(struct languages *all, const struct language *language, const char *name,
			 const char *file, unsigned int line)
{
	(void)all;
	(void)language;
	(void)name;
	(void)file;
	(void)line;
	return 0;
}

void languages_count_named(struct languages *all, bool placed)
{
	(void)all;
	(void)placed;
}

void languages_count_in_heap(struct languages *all)
{
	(void)all;
}

void languages_refuse(struct languages *all, const struct reason *why)
{
	(void)all;
	(void)why;
}

unsigned int languages_place(struct languages *all, const struct language_sample *sample,
			     const struct native_stack *native, uint64_t *pcs, uint8_t *marks,
			     unsigned int max)
{
	(void)all;
	(void)sample;
	(void)native;
	(void)pcs;
	(void)marks;
	(void)max;
	abort();
}

/* Converts the samples of one of the file's events. */
static void convert(struct perfdata *pd, const struct perfdata_event *event, bool labels)
{
	static const char *const formats[] = { "pb", "folded", "perf", "json" };
	struct convert_opts opts = { .kernel = KERNEL_NEVER,
				     .depth = DEPTH,
				     .fold = true,
				     .labels = labels,
				     .keep_times = 1000 };
	struct convert_file file = { .pd = pd, .event = event };
	struct shstk_symbols_opts names = { .no_lines = true, .no_servers = true };
	struct shstk_symbols *symbols = NULL;
	struct shstk_profile *profile = NULL;
	struct past past;

	if (past_init(&past, pd, empty))
		abort();
	if (shstk_symbols_create(&names, &symbols) || shstk_profile_create(symbols, &profile) ||
	    shstk_profile_add_type(profile, "samples", "count") < 0 ||
	    shstk_profile_add_type(profile, "cpu", "nanoseconds") < 0)
		abort();
	opts.source = convert_file_source(event);
	file.convert = converter_create(&opts, symbols, profile, &past.files);
	if (!file.convert)
		abort();
	if (!convert_file(&file))
		print_profile(profile, formats, sizeof(formats) / sizeof(*formats));
	converter_destroy(file.convert);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	past_deinit(&past);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct perfdata *pd;
	struct reason why;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (perfdata_open_fd("perf.data", fd, &pd, &why))
		return 0;
	for (unsigned int i = 0; i < pd->nr_events && i < 2; i++)
		convert(pd, &pd->events[i], size % 2);
	perfdata_close(pd);
	return 0;
}
