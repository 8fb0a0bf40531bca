// SPDX-License-Identifier: GPL-2.0-or-later
/* deep.c - a library for RTLD_DEEPBIND. It frees memory of the program and returns memory to it. */
#include <stdio.h>
#include <stdlib.h>

void *deep_makes(void);
void *deep_makes(void)
{
	void *volatile p = malloc(3000);

	return p;
}

/* The loader writes the address to data that it makes read-only afterwards. */
static void *(*const make[])(size_t) = { malloc };

void *deep_points(void);
void *deep_points(void)
{
	void *volatile p = make[0](700);

	return p;
}

void *deep_prints(void);
void *deep_prints(void)
{
	char *volatile text = NULL;
	char *line;

	if (asprintf(&line, "%d %s", 5, "hello") < 0)
		return NULL;
	text = realloc(line, 400);
	return text;
}

void deep_frees(void *p);
void deep_frees(void *p)
{
	free(p);
}
