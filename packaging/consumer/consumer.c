// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The smallest program that uses libshstk and libshstk-symbolize: it prints the functions of
 * its own stack and ends with 0 if main() is among them. CMakeLists.txt and meson.build say how
 * such a program is built; with WITHOUT_NAMES it needs libshstk alone.
 */
#include <stdio.h>
#include <string.h>

#include <shstk.h>
#ifndef WITHOUT_NAMES
#include <shstk_symbolize.h>
#endif

int main(void)
{
	uint8_t marks[64];
	struct shstk_opts opts = { .size = sizeof(opts), .marks = marks };
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[64];
	int n = shstk_capture(pcs, 64, &opts, &info);
	int found = 0;

	if (n < 1 || info.end != SHSTK_END_COMPLETE) {
		fprintf(stderr, "no whole stack: %d\n", n);
		return 1;
	}
#ifndef WITHOUT_NAMES
	struct shstk_symbolizer *symbolizer;
	struct shstk_name name;

	if (shstk_symbolizer_create(0, &symbolizer))
		return 1;
	for (int i = 0; i < n; i++) {
		if (shstk_symbolize(symbolizer, pcs[i], marks[i], &name, 1, sizeof(name)) < 1 ||
		    !name.function)
			continue;
		puts(name.function);
		found |= !strcmp(name.function, "main");
	}
	shstk_symbolizer_destroy(symbolizer);
#else
	printf("%d entries\n", n);
	found = n > 1;
#endif
	return !found;
}
