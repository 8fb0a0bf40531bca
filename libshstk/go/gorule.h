/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gorule.h - makes unwind rules from Go's table of functions, and knows the functions that
 * rules can't describe.
 *
 * An ordinary Go function only moves sp by a distance that is known at each instruction. A
 * few functions of the runtime change stacks. They are known by name, because the numbers
 * that the runtime gives them change with the release.
 */
#ifndef SHSTK_GORULE_H
#define SHSTK_GORULE_H

#include "gopclntab.h"
#include "rule.h"

/**
 * enum go_role - what a function does to the stack
 * @GO_ORDINARY: it moves sp as the table says.
 * @GO_OUTERMOST: it has no caller.
 * @GO_SYSTEMSTACK: it runs a function on the thread's own stack, g0.
 * @GO_MCALL: it leaves a goroutine's stack for g0 and does not return.
 * @GO_MORESTACK: it leaves a goroutine's stack for g0, to give the goroutine a larger stack.
 * @GO_NOCTXT: it jumps to the function of role GO_MORESTACK, on machines whose calls leave
 *	the return address in a register.
 * @GO_GOGO: it leaves g0 for a goroutine's stack.
 * @GO_ASMCGOCALL: it calls C on g0.
 * @GO_CGOCALLBACK: C calls it on g0, and it continues on the goroutine's stack.
 * @GO_CROSSCALL: C calls it, and it saves C's registers.
 * @GO_INJECTED: a signal handler lets interrupted code continue here.
 * @GO_VDSO_CALL: it calls the kernel's vdso on g0 and keeps sp in a register.
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

/* Returns the role of function @f. */
enum go_role gorule_role(const struct gopclntab *g, const struct gofunc *f);

/*
 * Returns the rule at @vaddr: a RULE_SP; RULE_END for outermost functions; RULE_FULL for
 * functions that change stacks and for very large frames; RULE_NONE if there is no function.
 */
uint64_t gorule_at(const struct gopclntab *g, uint64_t vaddr);

/*
 * Returns the rule at @vaddr as if no function changed stacks: a RULE_SP, RULE_FULL for very large
 * frames, or RULE_NONE if there is no function.
 */
uint64_t gorule_plain(const struct gopclntab *g, uint64_t vaddr);

/*
 * Makes the row at @vaddr as if no function changed stacks. Returns 0, or a negative enum
 * shstk_end.
 */
int gorule_row(const struct gopclntab *g, uint64_t vaddr, struct cfi_row *row);

#endif
