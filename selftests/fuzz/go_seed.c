// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * go_seed.c - inputs for go_fuzz to start from: a table of each form, as go_fuzz.c describes
 * inputs.
 *
 * usage: go_seed PREFIX
 */
#include <err.h>
#include <stdio.h>

#include "selftests/go/forms.h"

static void write_seed(const char *prefix, const char *name, int file, const struct file *f)
{
	const uint8_t *from = file ? f->bytes : f->bytes + f->head;
	size_t n = f->bytes + f->size - from;
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s-%s-%s", prefix, name, file ? "file" : "table");
	out = fopen(path, "w");
	if (!out || fputc(file, out) == EOF || fwrite(from, 1, n, out) != n || fclose(out))
		err(1, "%s", path);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		const struct form *form;
		uint64_t text;
		unsigned int gofunc;
	} seeds[] = {
		{ "1.2", &go_1_2, 0, 0 },	{ "1.16", &go_1_16, 0, 0 },
		{ "1.18", &go_1_18, TEXT, 38 }, { "1.20", &go_1_20, TEXT, 40 },
		{ "1.27", &go_1_20, 0, 43 },
	};
	static struct file f;
	size_t i;

	if (argc != 2)
		errx(2, "usage: go_seed PREFIX");
	for (i = 0; i < ARRAY_SIZE(seeds); i++) {
		make(&f, seeds[i].form, seeds[i].text, seeds[i].gofunc);
		write_seed(argv[1], seeds[i].name, 0, &f);
		write_seed(argv[1], seeds[i].name, 1, &f);
	}
	return 0;
}
