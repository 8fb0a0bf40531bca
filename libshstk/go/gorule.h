/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gorule.h - rules from Go's table of functions, and the functions that rules cannot
 * describe.
 *
 * An ordinary Go function moves sp by a distance that is known at each instruction; that
 * is all. A few functions of the runtime change stacks: they are known by name, since the
 * numbers that the runtime gives them change with the release.
 */
#ifndef SHSTK_GORULE_H
#define SHSTK_GORULE_H

#include "gopclntab.h"
#include "rule.h"

/**
 * enum go_role - what a function does to the stack
 * @GO_ORDINARY: moves sp as the table says.
 * @GO_OUTERMOST: has no caller.
 * @GO_SYSTEMSTACK: runs a function on the thread's own stack, g0.
 * @GO_MCALL: leaves a goroutine for g0, for good.
 * @GO_MORESTACK: the same, to give the goroutine a larger stack.
 * @GO_NOCTXT: goes to that at once, on machines whose calls leave the return address in a
 *	register.
 * @GO_GOGO: leaves g0 for a goroutine.
 * @GO_ASMCGOCALL: calls C on g0.
 * @GO_CGOCALLBACK: called by C on g0, goes on with the goroutine.
 * @GO_CROSSCALL: called by C, saves C's registers.
 * @GO_INJECTED: a signal handler lets interrupted code go on here.
 * @GO_VDSO_CALL: calls the kernel's vdso on g0, sp kept in a register.
 */
enum go_role {
	GO_ORDINARY,
	GO_OUTERMOST,
	GO_SYSTEMSTACK,
	GO_MCALL,
	GO_MORESTACK,
	GO_NOCTXT,
	GO_GOGO,
	GO_ASMCGOCALL,
	GO_CGOCALLBACK,
	GO_CROSSCALL,
	GO_VDSO_CALL,
	GO_INJECTED,
};

enum go_role gorule_role(const struct gopclntab *g, const struct gofunc *f);

/*
 * The rule at @vaddr: RULE_SP; RULE_END for outermost functions; RULE_FULL for those that
 * change stacks and for very large frames; RULE_NONE.
 */
uint64_t gorule_at(const struct gopclntab *g, uint64_t vaddr);

/* RULE_SP at @vaddr as if no function changed stacks; RULE_FULL, RULE_NONE. */
uint64_t gorule_plain(const struct gopclntab *g, uint64_t vaddr);

/* The same as a row, as if no function changed stacks. 0, or -enum shstk_end. */
int gorule_row(const struct gopclntab *g, uint64_t vaddr, struct cfi_row *row);

#endif
