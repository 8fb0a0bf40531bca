/* SPDX-License-Identifier: GPL-2.0-or-later */
/* inlined.h - the methods that code which HotSpot compiled runs at a place, with what was inlined. */
#ifndef TOOLS_JAVA_INLINED_H
#define TOOLS_JAVA_INLINED_H

#include "tools/java/codecache.h"

#define INLINED_MAX 24 /* methods at a place, at most */

/**
 * struct java_scope - a method at a place
 * @method: address of the Method.
 * @at: offset of its bytecode.
 * @or_at: another offset at which it may be instead; mostly the same.
 */
struct java_scope {
	uint64_t method;
	uint32_t at;
	uint32_t or_at;
};

/**
 * java_inlined() - find the methods at a place where compiled code has called
 * @vm: the tables.
 * @code: the compiled method.
 * @pc: the return address.
 * @ret: receives the methods, the innermost first; has room for INLINED_MAX.
 *
 * Return: number of methods, of which the last one is that of @code; 0: it is not known.
 */
unsigned int java_inlined(const struct vmstructs *vm, const struct codeblob *code, uint64_t pc,
			  struct java_scope *ret);

/**
 * java_inlined_between() - find the methods at any place in compiled code
 * @vm: the tables, of a process in which compiled code tells its methods between calls, too
 *	(DebugNonSafepoints).
 * @code: the compiled method.
 * @pc: the address of an instruction.
 * @ret: receives the methods, the innermost first; has room for INLINED_MAX.
 *
 * HotSpot describes ranges of instructions, whose ends it does not know to the byte. So a method is told
 * only if it is in the descriptions before and behind the place. What the innermost one of these has
 * inlined may run instead of it.
 *
 * Return: as java_inlined().
 */
unsigned int java_inlined_between(const struct vmstructs *vm, const struct codeblob *code,
				  uint64_t pc, struct java_scope *ret);

#endif
