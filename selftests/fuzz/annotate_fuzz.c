// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * annotate_fuzz.c - what `shstk report --annotate` reads besides profiles: source files, and what
 * objdump prints. What it prints of them has no control characters.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/report/objdump.c"
#include "tools/report/printable_line.c"
#include "tools/report/source_file.c"

#define START 0x1000
#define STOP 0x8000
#define ROOM 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* Prints a line to memory and looks at it there. */
static void print(const char *line, size_t len)
{
	FILE *const terminal = stdout;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	stdout = out;
	printable_line(line, len, ROOM);
	stdout = terminal;
	fclose(out);
	must(size && text[size - 1] == '\n' && size <= 4 * ROOM + 1);
	for (size_t i = 0; i + 1 < size; i++)
		must((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
	free(text);
}

static bool take_line(void *arg, const struct objdump_line *line)
{
	uint64_t *last = arg;

	must(line->address >= *last && line->address < STOP);
	*last = line->address;
	print(line->text, strlen(line->text));
	return true;
}

static void read_source(const char *path)
{
	struct reason why;
	struct source_file *file = source_file_open(path, NULL, &why);
	const char *line;
	size_t len;

	for (uint64_t i = 1; file && source_file_line(file, i, &line, &len); i += 1 + i % 2)
		print(line, len);
	source_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("annotate_fuzz", 0);
	uint64_t last = START;
	char path[32];
	FILE *from;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_source(path);
	lseek(fd, 0, SEEK_SET);
	from = fdopen(fd, "r");
	if (from) {
		read_lines(from, START, STOP, take_line, &last);
		fclose(from);
	}
	return 0;
}
