/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * return_probe_read.h - reads the uprobes data of a task. This part of return_probe.h is shared by
 * two walks: the one of this module and the one in bpf/. It uses only these parts of the kernel:
 * struct uprobe_task and the structures it points to, current, and get_kernel_nofault().
 */
#ifndef USHSTK_RETURN_PROBE_READ_H
#define USHSTK_RETURN_PROBE_READ_H

/*
 * Most pending return probes of a task. This is MAX_URETPROBE_DEPTH of the kernel, which no header
 * exports.
 */
#define USHSTK_RETURNS 64

/* Returns the uprobes data of current, or NULL if it has none. */
static __always_inline const struct uprobe_task *ushstk_own_utask(void)
{
	return current->utask;
}

/*
 * Returns the innermost pending return probe, from which the others are linked, or NULL if there
 * are none.
 */
static noinline __maybe_unused const struct return_instance *
ushstk_returns(const struct uprobe_task *utask)
{
	struct return_instance *first;

	return get_kernel_nofault(first, &utask->return_instances) ? NULL : first;
}

/**
 * struct ushstk_return - a pending return probe, as it was read
 * @next: the next outer return probe.
 * @stack: stack pointer at the entry of the function.
 * @address: address to which the function returns.
 * @chained: the next one belongs to the same frame, because a function was left by a tail call.
 */
struct ushstk_return {
	const struct return_instance *next;
	unsigned long stack, address;
	bool chained;
};

/* Reads a pending return probe. Returns false if it cannot be read. */
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

/*
 * Returns the first return probe of the next frame. Skips all return probes of the frame of @r; the
 * kernel gave the same return address to each of them.
 */
static inline const struct return_instance *ushstk_next_frame(struct ushstk_return *r)
{
	unsigned int left = USHSTK_RETURNS;

	while (r->chained && r->next && left-- && ushstk_read_return(r->next, r))
		;
	return r->next;
}

/*
 * Finds the return probe of the frame that was entered with the stack pointer @stack. Return probes
 * before it belong to frames that were left already. Returns whether it was found.
 */
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
 * ushstk_take_return() - get the return address of the next frame that has a return probe
 * @first: the innermost pending return probe; it is advanced past those that are passed.
 * @stack: stack pointer with which the frame was entered, or 0 if it is not known. If it is not
 *	known, a frame that was left by longjmp() still counts as present, until another probe is
 *	hit.
 * @address: receives the return address.
 *
 * Return: true if there is one.
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

/*
 * Returns the address of the instruction at @pc; if @pc is in the copy of a probed instruction,
 * returns the address of the original.
 */
static noinline __maybe_unused u64 ushstk_unstepped(u64 pc)
{
	const struct uprobe_task *utask = current->utask;
	unsigned long copy, original;
	struct uprobe *active;

	if (get_kernel_nofault(active, &utask->active_uprobe) ||
	    get_kernel_nofault(copy, &utask->xol_vaddr) ||
	    get_kernel_nofault(original, &utask->vaddr))
		return pc;
	/* @pc may also be just behind the copy: it is executed, but @pc is not moved back yet. */
	if (!active || pc - copy > UPROBE_XOL_SLOT_BYTES)
		return pc;
	return original + (pc - copy);
}

#endif /* USHSTK_RETURN_PROBE_READ_H */
