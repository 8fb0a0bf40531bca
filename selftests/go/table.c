// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * table.c - what the library reads in the table of a Go program.
 *
 * usage: table FILE
 *
 * Reads addresses of the file in hexadecimal, one in each line, and prints of each the
 * distance from sp to the CFA by the table and where the return address lies, from the CFA
 * ("register": nowhere yet), or "none". First comes a line with the form of the table and
 * the number of its functions.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "go/gorule.h"
#include "selftests/map_file.h"

int main(int argc, char **argv)
{
	struct cfi_row row;
	struct gofile f;
	uint64_t vaddr;
	size_t size;
	void *data;
	int status;

	if (argc != 2)
		errx(2, "usage: table FILE");
	data = map_file(argv[1], &size);
	if (!data)
		err(1, "%s", argv[1]);
	status = shstk_gofile_init(&f, data, size);
	if (status)
		errx(1, "%s: no table: %d", argv[1], status);
	printf("form %u functions %u moduledata %s trees %s\n", f.tab.form, f.tab.nfunc,
	       f.tab.moduledata ? "yes" : "no", f.tab.gofunc ? "yes" : "no");
	while (scanf("%" SCNx64, &vaddr) == 1) {
		if (gorule_row(&f.tab, vaddr, &row))
			puts("none");
		else if (row.type[row.ra] == REG_SAME)
			printf("%d register\n", row.cfa_off);
		else
			printf("%d %d\n", row.cfa_off, row.val[row.ra]);
	}
	shstk_gofile_deinit(&f);
	return 0;
}
