/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probed_read.h - what a task has of uprobes: the part of probed.h that both walks have, this
 * module's and the one of bpf/. Of the kernel it uses struct uprobe_task and what it leads to,
 * current, and get_kernel_nofault().
 */
#ifndef USHSTK_PROBED_READ_H
#define USHSTK_PROBED_READ_H

/* The kernel's own bound (MAX_URETPROBE_DEPTH), which is no header's: pending return probes. */
#define USHSTK_RETURNS 64

static __always_inline const struct uprobe_task *ushstk_own_utask(void)
{
	return current->utask;
}

/* Pending return probes, innermost first; NULL: there are none. */
static noinline __maybe_unused const struct return_instance *
ushstk_returns(const struct uprobe_task *utask)
{
	struct return_instance *first;

	return get_kernel_nofault(first, &utask->return_instances) ? NULL : first;
}

/**
 * struct ushstk_return - one of them, as it was read
 * @next: the one outside of it.
 * @stack: stack pointer at the function's entry.
 * @address: where it returns to.
 * @chained: the next one is of the same frame: a function that left by a tail call.
 */
struct ushstk_return {
	const struct return_instance *next;
	unsigned long stack, address;
	bool chained;
};

static inline bool ushstk_read_return(const struct return_instance *i, struct ushstk_return *r)
{
	struct return_instance *next;

	if (get_kernel_nofault(next, &i->next) || get_kernel_nofault(r->stack, &i->stack) ||
	    get_kernel_nofault(r->address, &i->orig_ret_vaddr) ||
	    get_kernel_nofault(r->chained, &i->chained))
		return false;
	r->next = next;
	return true;
}

/* All of one frame are passed, the kernel gave each of them the same address. */
static inline const struct return_instance *ushstk_next_frame(struct ushstk_return *r)
{
	unsigned int left = USHSTK_RETURNS;

	while (r->chained && r->next && left-- && ushstk_read_return(r->next, r))
		;
	return r->next;
}

/* Of the frame that was entered with this stack pointer: those before it are of frames left. */
static inline bool ushstk_find_return(const struct return_instance *i, unsigned long stack,
				      struct ushstk_return *r)
{
	unsigned int left;

	for (left = USHSTK_RETURNS; i && left; left--, i = r->next) {
		if (!ushstk_read_return(i, r))
			return false;
		if (r->stack == stack)
			return true;
	}
	return false;
}

/**
 * ushstk_take_return() - where the next frame with a return probe returns to
 * @first: pending return probes, of which those that are passed are left out then.
 * @stack: stack pointer with which the frame was entered; 0: not known. Without it a frame that
 *	was left by longjmp() is taken for one that is there, until another probe is hit.
 * @address: receives where it returns to.
 *
 * Return: whether there is one.
 */
static noinline __maybe_unused bool ushstk_take_return(const struct return_instance **first,
						       unsigned long stack, unsigned long *address)
{
	struct ushstk_return r;

	if (!*first)
		return false;
	if ((!stack || !ushstk_find_return(*first, stack, &r)) && !ushstk_read_return(*first, &r))
		return false;
	*address = r.address;
	*first = ushstk_next_frame(&r);
	return true;
}

/* Where an instruction lies that has a probe, and is made elsewhere. */
static noinline __maybe_unused u64 ushstk_unstepped(u64 pc)
{
	const struct uprobe_task *utask = current->utask;
	unsigned long copy, original;
	struct uprobe *active;

	if (get_kernel_nofault(active, &utask->active_uprobe) ||
	    get_kernel_nofault(copy, &utask->xol_vaddr) ||
	    get_kernel_nofault(original, &utask->vaddr))
		return pc;
	/* @pc may also be just behind it: executed, not yet moved back. */
	if (!active || pc - copy > UPROBE_XOL_SLOT_BYTES)
		return pc;
	return original + (pc - copy);
}

#endif /* USHSTK_PROBED_READ_H */
