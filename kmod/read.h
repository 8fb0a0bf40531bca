/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * read.h - copy the return addresses of current's shadow stack.
 *
 * Safe in NMI: nothing sleeps, locks or allocates, and a page that is not
 * present ends the copy. The kernel guards a shadow stack with an unmapped page
 * below it only; above may lie any other mapping, and words there may well look
 * like addresses. So the end is always established first: from the task if the
 * pointer lies in the stack that the kernel made for the thread, else from the
 * mapping. The latter serves stacks that a program switches to by itself, vfork
 * children and, on arm64, forked ones.
 */
#ifndef USHSTK_READ_H
#define USHSTK_READ_H

#include <linux/mm.h>
#include <linux/uaccess.h>

#include "arch.h"
#include "needs.h"

/*
 * VMAs are looked up without mmap_lock, which is not to be had in NMI: they and
 * the maple tree are freed by RCU then. Another thread may change a VMA while it
 * is read here; what comes of it is a wrong end, never a wrong access, since all
 * reading is done by copy_from_user_nofault(). CONFIG_PER_VMA_LOCK is what frees them so.
 */
static inline u64 ushstk_mapping_end(struct mm_struct *mm, u64 addr)
{
	struct vm_area_struct *vma;
	u64 end = 0;

	rcu_read_lock();
	vma = vma_lookup(mm, addr);
	if (vma && vma->vm_mm == mm && (vma->vm_flags & VM_SHADOW_STACK))
		end = vma->vm_end;
	rcu_read_unlock();
	return end;
}

/*
 * Words that are no return addresses are left out. A program that may write to
 * its shadow stack can fill gigabytes with them: more than these are not passed.
 */
#define USHSTK_MAX_MARKS 512

/*
 * How many words to read at once from @addr, a multiple of 8, on: up to @end or
 * @max, and not beyond the page, for those behind an end marker may be missing.
 * 0 means the end: whoever adds what this says to @addr gets there.
 */
static __always_inline u64 ushstk_chunk(u64 addr, u64 end, u64 max)
{
	return min3((end - addr) / 8, max, (u64)(PAGE_SIZE - offset_in_page(addr)) / 8);
}

/**
 * struct ushstk_span - what was copied
 * @nr: number of addresses written.
 * @switched: not from the stack that the kernel made for the thread.
 * @signal: a signal frame's mark was among the words.
 */
struct ushstk_span {
	unsigned int nr;
	bool switched;
	bool signal;
};

/**
 * ushstk_filter() - keep what are return addresses
 * @dst: receives up to @words addresses; may be @word, or before it.
 * @word: words of a shadow stack.
 * @words: their number.
 * @addr: address from which they were copied.
 * @nr: number of addresses; @dst[*nr] is where the next one goes.
 * @signal: set if there is the mark of a signal frame.
 *
 * Return: whether the stack goes on behind these words.
 */
static __always_inline bool ushstk_filter(u64 *dst, const u64 *word, u64 words, u64 addr,
					  unsigned int *nr, bool *signal)
{
	const u64 *stop = word + words;

	/* In place there is nothing to move before the first gap. */
	if (dst + *nr == word) {
		for (; word < stop; word++, addr += 8)
			if (unlikely(ushstk_arch_word(*word, addr) != USHSTK_WORD_CODE))
				break;
		*nr = word - dst;
	}

	for (; word < stop; word++, addr += 8) {
		enum ushstk_word kind = ushstk_arch_word(*word, addr);

		if (likely(kind == USHSTK_WORD_CODE))
			dst[(*nr)++] = *word;
		else if (kind == USHSTK_WORD_SIGNAL)
			*signal = true;
		else
			return false;
	}
	return true;
}

static __always_inline u64 ushstk_stack_end(u64 ssp, struct ushstk_span *span)
{
	u64 end = ushstk_arch_end(current, ssp);

	span->switched = !end;
	if (likely(end))
		return end;
	end = ushstk_mapping_end(current->mm, ssp);
	/* An empty stack's pointer is behind its last word. */
	return end ? end : ushstk_mapping_end(current->mm, ssp - 8);
}

/**
 * ushstk_read_current() - copy return addresses of current, innermost first
 * @dst: receives the addresses.
 * @max: capacity of @dst.
 * @span: receives how many there were.
 *
 * Words that are no return addresses are left out. Copies straight into @dst
 * and closes the gaps there: a call per word would double its cost.
 *
 * At most @max + USHSTK_MAX_MARKS words are looked at.
 *
 * Context: any, NMI as well; current is a user task.
 *
 * Return: 0; -ENODATA if there is no shadow stack pointer or none into a shadow
 * stack; -EBUSY if the registers may be another's; -EFAULT if a page is not
 * present.
 */
static __always_inline int ushstk_read_current(u64 *dst, unsigned int max, struct ushstk_span *span)
{
	u64 ssp, end, words, left = (u64)max + USHSTK_MAX_MARKS;
	unsigned int nr = 0;
	int ret;

	span->nr = 0;
	span->signal = false;
	ret = ushstk_arch_pointer(&ssp);
	if (unlikely(ret))
		return ret;
	if (unlikely(!IS_ALIGNED(ssp, 8)))
		return -ENODATA;

	end = ushstk_stack_end(ssp, span);
	if (unlikely(!end))
		return -ENODATA;
	ushstk_arch_sync();

	while ((words = ushstk_chunk(ssp, end, min_t(u64, max - nr, left)))) {
		if (unlikely(copy_from_user_nofault(dst + nr, (void __user *)ssp, words * 8)))
			return -EFAULT;
		if (!ushstk_filter(dst, dst + nr, words, ssp, &nr, &span->signal))
			break;
		ssp += words * 8;
		left -= words;
	}
	span->nr = nr;
	return 0;
}

#endif /* USHSTK_READ_H */
