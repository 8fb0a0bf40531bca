// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dump_test.c - unwinds what another program dumped, from registers, a piece of its stack and its
 * files: with the whole piece, and with the piece cut off anywhere. The dump may be from another
 * architecture. Prints KTAP.
 *
 * usage: dump_test NAME=FILE...; an empty FILE is a skip.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shstk.h"

#define MAX 256

struct dump {
	int arch;
	struct shstk_regs regs;
	uint64_t truth[MAX];
	int nr_true;
	struct shstk_space *space;
	uint64_t at; /* address of the copied piece of the stack */
	size_t size; /* bytes of it that can be read now */
	size_t whole; /* bytes of it in the dump */
	uint8_t *stack;
};

struct trace {
	uint64_t pcs[MAX];
	uint8_t marks[MAX];
	int nr;
	struct shstk_info info;
};

static int number, failed;

static void result(bool ok, const char *name, const char *what)
{
	printf("%sok %d %s: %s\n", ok ? "" : "not ", ++number, name, what);
	failed |= !ok;
}

static int read_stack(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct dump *d = arg;

	if (addr < d->at || addr - d->at > d->size || len > d->size - (addr - d->at))
		return -1;
	memcpy(buf, d->stack + (addr - d->at), len);
	return 0;
}

static void unwind(struct dump *d, struct trace *t)
{
	struct shstk_opts opts = { .size = sizeof(opts), .marks = t->marks };

	memset(t, 0, sizeof(*t));
	t->info.size = sizeof(t->info);
	t->nr = shstk_unwind(d->space, &d->regs, read_stack, d, t->pcs, MAX, &opts, &t->info);
}

static bool read_line(struct dump *d, const char *line, int *reg)
{
	uint64_t a, b, c;
	char path[4096];

	if (sscanf(line, "arch %d", &d->arch) == 1)
		return !shstk_space_create(d->arch, &d->space);
	if (sscanf(line, "pc %" SCNx64, &d->regs.pc) == 1)
		return true;
	if (sscanf(line, "reg %" SCNx64, &a) == 1 && *reg < 32) {
		d->regs.known |= 1u << *reg;
		d->regs.r[(*reg)++] = a;
		return true;
	}
	if (sscanf(line, "true %" SCNx64, &a) == 1 && d->nr_true < MAX) {
		d->truth[d->nr_true++] = a;
		return true;
	}
	if (sscanf(line, "map %" SCNx64 " %" SCNx64 " %" SCNx64 " %4095s", &a, &b, &c, path) == 4)
		return !shstk_space_add_file(d->space, path, a, b, c);
	return false;
}

/*
 * Reads a dump in two passes: the maps are added in the second one, because they come before the
 * line with the architecture, which must be known first.
 */
static bool read_dump(struct dump *d, FILE *in)
{
	char line[8192];
	int reg = 0;
	bool ok = true;

	d->regs.size = sizeof(d->regs);
	for (int pass = 0; pass < 2; pass++) {
		rewind(in);
		while (fgets(line, sizeof(line), in)) {
			if (sscanf(line, "stack %" SCNx64 " %zx", &d->at, &d->size) == 2)
				break;
			if (strncmp(line, "map", 3) == 0 ? pass : !pass)
				ok &= read_line(d, line, &reg);
		}
	}
	d->whole = d->size;
	d->stack = malloc(d->size);
	return ok && d->stack && d->size && fread(d->stack, 1, d->size, in) == d->size;
}

static bool is_true(const struct dump *d, const struct trace *t)
{
	for (int i = 0; i < d->nr_true; i++) {
		if (i + 1 < t->nr && t->pcs[i + 1] == d->truth[i])
			continue;
		printf("# entry %d: %" PRIx64 ", not %" PRIx64 "\n", i + 1,
		       i + 1 < t->nr ? t->pcs[i + 1] : 0, d->truth[i]);
		return false;
	}
	return true;
}

/*
 * Returns true if the trace stays true when the stack is cut off after each of its words: it must
 * be the beginning of the whole trace and say that memory is missing, and nothing may be invented.
 */
static bool cut(struct dump *d, const struct trace *whole)
{
	struct trace t;
	int last = 0;

	for (d->size = 0; d->size <= d->whole; d->size += 8) {
		unwind(d, &t);
		if (t.nr < last || t.nr > whole->nr ||
		    memcmp(t.pcs, whole->pcs, t.nr * sizeof(t.pcs[0])) ||
		    memcmp(t.marks, whole->marks, t.nr) ||
		    (t.nr < whole->nr && t.info.end != SHSTK_END_READ)) {
			printf("# %zu bytes: %d entries, %d before, %d of the whole, %s\n", d->size,
			       t.nr, last, whole->nr, shstk_end_name(t.info.end));
			return false;
		}
		last = t.nr;
	}
	d->size = d->whole;
	return last == whole->nr;
}

/*
 * Returns true if unwinding ends soon with any answer, and never gives more entries than asked for,
 * when words of the stack are changed.
 */
static bool damaged(struct dump *d)
{
	size_t words = d->whole / 8;
	uint64_t seed = 1;
	struct trace t;

	for (int i = 0; i < 2000; i++) {
		uint64_t *word = (uint64_t *)d->stack;
		uint64_t old;
		size_t at;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = (seed >> 33) % (words < 200 ? words : 200);
		old = word[at];
		word[at] = i & 1 ? seed : word[(seed >> 20) % words];
		unwind(d, &t);
		word[at] = old;
		if (t.nr < 1 || t.nr > MAX || t.info.end > SHSTK_END_BOUNDS)
			return false;
	}
	return true;
}

static void run(const char *name, const char *path)
{
	struct dump d = { 0 };
	struct trace whole;
	FILE *in = fopen(path, "rb");

	if (!in || !read_dump(&d, in)) {
		result(false, name, "dump cannot be read");
	} else {
		unwind(&d, &whole);
		printf("# %s: %d entries, %s, from %zu bytes of stack\n", name, whole.nr,
		       shstk_end_name(whole.info.end), d.whole);
		result(is_true(&d, &whole), name, "every frame is the true one");
		result(whole.info.end == SHSTK_END_COMPLETE && whole.nr > d.nr_true + 3, name,
		       "down to the program's start");
		result(cut(&d, &whole), name, "cut off after each word");
		result(damaged(&d), name, "with damaged words");
	}
	shstk_space_destroy(d.space);
	free(d.stack);
	if (in)
		fclose(in);
}

int main(int argc, char **argv)
{
	printf("KTAP version 1\n");
	for (int i = 1; i < argc; i++) {
		char *path = strchr(argv[i], '=');

		if (!path)
			return 1;
		*path++ = '\0';
		if (*path)
			run(argv[i], path);
		else
			printf("ok %d %s # SKIP no emulator\n", ++number, argv[i]);
	}
	printf("1..%d\n", number);
	return failed;
}
