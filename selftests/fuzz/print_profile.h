/* SPDX-License-Identifier: GPL-2.0-or-later */
/* print_profile.h - prints a profile that a fuzz target made, so that what it holds is used. */
#ifndef PRINT_PROFILE_H
#define PRINT_PROFILE_H

#include <stdio.h>
#include <stdlib.h>

#include "libshstk/symbol/profile.h"

/* Prints @profile to memory in each of the @nr @formats. What is printed, or an error, is nobody's. */
static inline void print_profile(struct shstk_profile *profile, const char *const *formats,
				 size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char *bytes = NULL;
		size_t size;
		FILE *out = open_memstream(&bytes, &size);

		if (!out)
			abort();
		shstk_profile_print(profile, out, formats[i], NULL);
		fclose(out);
		free(bytes);
	}
}

#endif /* PRINT_PROFILE_H */
