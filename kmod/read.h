/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * read.h - copies the return addresses from the shadow stack of current.
 *
 * The functions are safe in NMI: nothing sleeps, locks or allocates, and a page that is not present
 * ends the copy. The kernel guards a shadow stack with an unmapped page below it only. Any other
 * mapping may lie above it, and words there may look like addresses. So the end of the stack is
 * always determined first: from the task, if the pointer lies in the stack that the kernel made for
 * the thread, otherwise from the mapping. The mapping is needed for stacks to which a program
 * switches by itself, for vfork children and, on arm64, for forked children.
 */
#ifndef USHSTK_READ_H
#define USHSTK_READ_H

#include <linux/mm.h>
#include <linux/uaccess.h>

#include "arch.h"
#include "needs.h"

/*
 * Returns the end of the shadow stack mapping at @addr, or 0 if there is none. VMAs are looked up
 * without mmap_lock, which cannot be taken in NMI; VMAs and the maple tree are freed by RCU, which
 * CONFIG_PER_VMA_LOCK ensures. Another thread may change a VMA while it is read here. The result
 * may then be a wrong end, but never a wrong access, because all reading is done by
 * copy_from_user_nofault().
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
 * The most words to skip that are no return addresses. A program that may write to its shadow stack
 * can fill gigabytes with such words.
 */
#define USHSTK_MAX_MARKS 512

/*
 * Returns how many words to read at once from @addr, which is a multiple of 8: up to @end or @max,
 * and not beyond the page, because the pages behind an end marker may be missing. A loop that reads
 * that many words and advances @addr by them reaches the end, where the result is 0.
 */
static __always_inline u64 ushstk_chunk(u64 addr, u64 end, u64 max)
{
	return min3((end - addr) / 8, max, (u64)(PAGE_SIZE - offset_in_page(addr)) / 8);
}

/**
 * struct ushstk_span - what was copied from a shadow stack
 * @nr: number of addresses written.
 * @switched: the stack is not the one that the kernel made for the thread.
 * @signal: the mark of a signal frame was among the words.
 */
struct ushstk_span {
	unsigned int nr;
	bool switched;
	bool signal;
};

/**
 * ushstk_filter() - keep only the words that are return addresses
 * @dst: receives the addresses; may be @word, or lie before it.
 * @word: words of a shadow stack.
 * @words: number of words.
 * @addr: address from which the words were copied.
 * @nr: number of addresses in @dst so far; the next one goes to @dst[*nr].
 * @signal: is set if the mark of a signal frame is among the words.
 *
 * Return: true if the stack continues behind these words.
 */
static __always_inline bool ushstk_filter(u64 *dst, const u64 *word, u64 words, u64 addr,
					  unsigned int *nr, bool *signal)
{
	const u64 *stop = word + words;

	/* If @word is already in place, nothing has to be moved before the first gap. */
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

/* Returns the end of the shadow stack of current that @ssp points into, or 0 if there is none. */
static __always_inline u64 ushstk_stack_end(u64 ssp, struct ushstk_span *span)
{
	u64 end = ushstk_arch_end(current, ssp);

	span->switched = !end;
	if (likely(end))
		return end;
	end = ushstk_mapping_end(current->mm, ssp);
	/* The pointer of an empty stack is behind its last word. */
	return end ? end : ushstk_mapping_end(current->mm, ssp - 8);
}

/**
 * ushstk_read_current() - copy the return addresses of current, innermost first
 * @dst: receives the addresses.
 * @max: room in @dst, in words.
 * @span: receives the number of addresses and where they come from.
 *
 * Words that are no return addresses are left out. The function copies directly into @dst and
 * closes the gaps there, because one call per word would double the cost. It looks at most at @max
 * + USHSTK_MAX_MARKS words.
 *
 * Context: any, including NMI; current is a user task.
 *
 * Return: 0; -ENODATA if there is no shadow stack pointer, or it does not point into a shadow
 * stack; -EBUSY if the registers may belong to somebody else; -EFAULT if a page is not present.
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
