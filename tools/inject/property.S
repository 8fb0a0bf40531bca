/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * property.S - a place for the mark that an arm64 object is ready for GCS.
 *
 * The C library switches shadow stacks on only if all that it loads is marked. Linkers
 * before binutils 2.44 drop the mark from an object as soon as one file in it has none,
 * and those that the compiler adds have none; of properties of the kind below one file is
 * enough. After linking, the mark is written in its place (tools/build.mk).
 */
	.section .note.gnu.property, "a"
	.balign 8
	.long 4, 16, 5			/* sizes of name and properties; NT_GNU_PROPERTY_TYPE_0 */
	.asciz "GNU"
	.long 0xb0008001, 4, 1, 0	/* in the range GNU_PROPERTY_UINT32_OR_LO..HI */

	.section .note.GNU-stack, "", %progbits
