/* SPDX-License-Identifier: GPL-2.0-or-later */
/* assembly.h - the instructions of a function with the samples that were taken at each. */
#ifndef TOOLS_REPORT_ASSEMBLY_H
#define TOOLS_REPORT_ASSEMBLY_H

#include "tools/report/spots.h"

/**
 * assembly_print() - print the instructions of a function
 * @spots: where the samples of the function are; its addresses are sorted.
 * @room: number of columns for the text of an instruction.
 *
 * The file of each mapping is disassembled if it has the build id that the profile has for it.
 *
 * Return: an exit status: not EXIT_OK if a part is not shown, after a message that says why.
 */
int assembly_print(struct spots *spots, size_t room);

/* Number of columns before the text of an instruction. */
#define ASSEMBLY_COLUMNS (SPOTS_COLUMNS + 10)

#endif
