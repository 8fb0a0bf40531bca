// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chain_status.c - prints how callchains by unwind rules ended.
 *
 * The kernel knows files by their numbers. The names are those of files that some process maps now,
 * or the names with which the tables were loaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/shstk_rules.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tools/rules/running_files.h"
#include "tools/rules/chain_status.h"
#include "tools/shstk.h"

#define MAX_CUTS 256
#define SHOWN 12

bool rules_module_number(const char *name, uint64_t *value)
{
	char path[128];
	bool good;
	FILE *f;

	*value = 0;
	snprintf(path, sizeof(path), "/sys/module/shstk_perf/%s", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	good = fscanf(f, "%" SCNu64, value) == 1;
	fclose(f);
	return good;
}

bool rules_hooks_off(void)
{
	FILE *f = fopen("/proc/sys/kernel/ftrace_enabled", "re");
	int on = 1;

	if (f && fscanf(f, "%d", &on) != 1)
		on = 1;
	if (f)
		fclose(f);
	return !on;
}

static bool counter(const char *name, uint64_t *value)
{
	char path[64];

	snprintf(path, sizeof(path), "rules/%s", name);
	return rules_module_number(path, value);
}

/* The counters in the order in which they are printed, with the text for each. */
static const struct {
	const char *name, *words;
} cuts[] = {
	{ "zero", "ended at a return address of 0" },
	{ "room", "had more entries than were asked for" },
	{ "cut_no_table", "cut in code of a file without a table, or of none" },
	{ "cut_no_rule", "cut in code that its file does not describe" },
	{ "cut_no_kind", "cut where only a full interpreter goes on" },
	{ "cut_no_memory", "cut where the stack was not in memory" },
	{ "cut_no_code", "cut at a return address outside of all code" },
	{ "cut_bad_cfa", "cut where the stack would not have grown" },
};

bool rules_totals(uint64_t *all, uint64_t *whole)
{
	bool there = counter("whole", whole);
	uint64_t value;

	*all = *whole;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		counter(cuts[i].name, &value);
		*all += value;
	}
	return there;
}

/* ---- Files in which chains ended ---- */

struct chain_end {
	struct shstk_rules_cuts cut;
	char *name;
};

struct chain_ends {
	struct chain_end v[MAX_CUTS];
	unsigned int n;
};

static uint64_t total(const struct shstk_rules_cuts *c)
{
	return c->no_table + c->no_rule + c->no_kind;
}

static int by_total(const void *a, const void *b)
{
	const struct chain_end *x = a, *y = b;

	return total(&x->cut) < total(&y->cut) ? 1 : -(total(&x->cut) > total(&y->cut));
}

/*
 * Reads in which files chains ended. A module that is older than this command does not have this
 * call and returns -ENOTTY.
 */
static int read_places(int device, struct chain_ends *p)
{
	struct shstk_rules_cuts arg = { 0 };

	while (p->n < MAX_CUTS && !ioctl(device, SHSTK_RULES_CUTS, &arg))
		if (total(&arg))
			p->v[p->n++].cut = arg;
	qsort(p->v, p->n, sizeof(p->v[0]), by_total);
	return p->n == MAX_CUTS || errno == ENOENT || errno == ENOTTY ? 0 : -errno;
}

/* Gives a file in which chains ended a name, if it has none yet. */
static void name_place(struct chain_ends *p, uint64_t dev, uint64_t ino, const char *name, int len)
{
	for (unsigned int i = 0; i < p->n; i++) {
		struct chain_end *c = &p->v[i];

		if (c->name || c->cut.dev != dev || c->cut.ino != ino)
			continue;
		if (asprintf(&c->name, "%.*s", len, name) < 0)
			c->name = NULL;
	}
}

static void name_running(void *arg, int fd, const char *path)
{
	struct stat st;

	if (!fstat(fd, &st))
		name_place(arg, (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev), st.st_ino,
			   path, (int)strlen(path));
	close(fd);
}

/* Gives names to the files in which chains ended: of running programs, or else of tables. */
static void name_places(int device, struct chain_ends *p)
{
	struct running all = { .stop = -1, .use = name_running, .arg = p };
	struct shstk_rules_list list = { 0 };

	name_place(p, 0, 0, "no file: made at run time", 64);
	name_place(p, 0, 1, "[vdso]", 64);
	running_files(&all);
	while (!ioctl(device, SHSTK_RULES_LIST, &list))
		name_place(p, list.dev, list.ino, list.name, SHSTK_RULES_NAME_LEN);
}

static void print_place(const struct chain_end *c)
{
	const struct shstk_rules_cuts *cut = &c->cut;

	printf("  %" PRIu64 " in ", total(cut));
	if (c->name)
		print_printable(c->name);
	else
		printf("inode %" PRIu64 " of device %" PRIu64 ":%" PRIu64, (uint64_t)cut->ino,
		       (uint64_t)cut->dev >> 20, (uint64_t)cut->dev & 0xfffff);
	if (cut->no_table)
		printf(": no table");
	if (cut->no_rule || cut->no_kind)
		printf("%s the last at +%#" PRIx64, cut->no_table ? "," : ":",
		       (uint64_t)cut->offset);
	putchar('\n');
}

static int print_places(int device)
{
	struct chain_ends *p = calloc(1, sizeof(*p));
	int err = p ? read_places(device, p) : -ENOMEM;

	if (!err && p->n) {
		name_places(device, p);
		puts("chains were cut, or left to the kernel's own walk, in code of:");
		for (unsigned int i = 0; i < p->n && i < SHOWN; i++)
			print_place(&p->v[i]);
		if (p->n > SHOWN)
			printf("  and of %u more files\n", p->n - SHOWN);
	}
	for (unsigned int i = 0; p && i < p->n; i++)
		free(p->v[i].name);
	free(p);
	return err;
}

/* ---- The whole status ---- */

static void print_counters(void)
{
	uint64_t all, whole, value, refused;

	rules_totals(&all, &whole);
	if (!all) {
		puts("no callchain was walked by rules yet");
	} else {
		printf("%.1f%% of %" PRIu64 " callchains whole\n",
		       100.0 * (double)whole / (double)all, all);
		for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
			if (counter(cuts[i].name, &value) && value)
				printf("%" PRIu64 " %s\n", value, cuts[i].words);
	}
	counter("first_unknown", &value);
	counter("refused", &refused);
	printf("%" PRIu64 " left to the kernel's own walk: nothing is known of their innermost "
	       "frame\n",
	       value + refused);
}

int rules_print_status(int device)
{
	struct shstk_rules_info info;

	if (ioctl(device, SHSTK_RULES_INFO, &info))
		return -errno;
	printf("%" PRIu64 " tables, %" PRIu64 " KiB of at most %" PRIu64 " KiB\n",
	       (uint64_t)info.tables, (uint64_t)info.bytes >> 10, (uint64_t)info.limit >> 10);
	if (rules_hooks_off())
		puts(RULES_HOOKS_OFF);
	print_counters();
	return print_places(device);
}
