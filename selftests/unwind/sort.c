// SPDX-License-Identifier: GPL-2.0-or-later
/* sort.c - callbacks from the C library: qsort(), bsearch(), twalk(). */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static unsigned int visits;

static void visit(const void *node, VISIT which, int depth)
{
	(void)node;
	(void)depth;
	visits += which == postorder || which == leaf;
}

int main(void)
{
	int v[48], big[5][40] = { 0 };
	unsigned int seed = 7;
	void *root = NULL;

	for (int i = 0; i < 48; i++) {
		seed = seed * 1103515245 + 12345;
		v[i] = seed >> 16;
	}
	for (int i = 0; i < 16; i++)
		tsearch(&v[i], &root, compare);
	twalk(root, visit);
	for (int i = 0; i < 5; i++)
		big[i][0] = v[i];
	qsort(big, 5, sizeof(big[0]), compare);
	qsort(v, 48, sizeof(v[0]), compare);
	printf("%u %d %d\n", visits, v[0], bsearch(&v[9], v, 48, sizeof(v[0]), compare) != NULL);
	return 0;
}
