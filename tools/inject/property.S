/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * property.S - reserves the place for the mark that an arm64 object is ready for GCS.
 *
 * The C library enables shadow stacks only if every object that it loads has the mark. Linkers
 * before binutils 2.44 drop the mark from an object as soon as one of its input files lacks it, and
 * the files that the compiler adds lack it. A property of the kind below is kept if one input file
 * has it. After linking, the build writes the mark in its place (tools/build.mk).
 */
	.section .note.gnu.property, "a"
	.balign 8
	.long 4, 16, 5			/* sizes of name and properties, NT_GNU_PROPERTY_TYPE_0 */
	.asciz "GNU"
	.long 0xb0008001, 4, 1, 0	/* in the range GNU_PROPERTY_UINT32_OR_LO..HI */

	.section .note.GNU-stack, "", %progbits
