/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call.h - a call of shstk_capture() or of a similar function: where on the stack it begins and
 * what it asks for.
 */
#ifndef SHSTK_CALL_H
#define SHSTK_CALL_H

#include "hook.h"
#include "internal.h"

#define ALL_SOURCES (SHSTK_USE_HARDWARE | SHSTK_USE_MEMO | SHSTK_USE_WALK)

/**
 * struct call - a call of a public function
 * @ra: return address into the caller: the first entry of the trace.
 * @sp: stack pointer of the caller's frame.
 * @fp: frame pointer of the caller's frame.
 * @ssp: shadow stack pointer; 0 if the thread has no shadow stack.
 * @pcs: the call's argument of this name: receives the trace.
 * @max: the call's argument of this name: capacity of @pcs in entries.
 * @opts: the call's argument of this name: options, or NULL.
 * @info: the call's argument of this name: receives how the capture went, or NULL.
 * @hook: the hook that makes the call, or NULL; with a hook, @info is NULL.
 * @keep: the place that is to keep the trace (places.h), or NULL.
 * @keep_tag: tag of the trace, if @keep is to keep it.
 */
struct call {
	uint64_t ra, sp, fp, ssp;
	uint64_t *pcs;
	unsigned int max;
	const struct shstk_opts *opts;
	struct shstk_info *info;
	struct shstk_hook *hook;
	struct place *keep;
	uint8_t keep_tag;
};

/**
 * struct request - a call whose arguments were checked
 * @pcs: receives the trace.
 * @max: capacity of @pcs in entries.
 * @sources: mask of SHSTK_USE_*, at least one bit.
 * @skip: number of innermost entries to leave out.
 * @check: the call has SHSTK_CHECK_STACK set.
 * @marks: receives the marks, or NULL.
 * @sps: receives the stack pointers, or NULL; not NULL only if @sources is SHSTK_USE_WALK.
 * @info: receives how the capture went, or NULL.
 * @hook: the hook that makes the call, or NULL.
 * @call: the call, whose trace a place may be to keep, or NULL.
 */
struct request {
	uint64_t *pcs;
	unsigned int max;
	uint32_t sources;
	uint32_t skip;
	bool check;
	uint8_t *marks;
	uint64_t *sps;
	struct shstk_info *info;
	struct shstk_hook *hook;
	const struct call *call;
};

/* Returns true if a call's arguments but for its options are valid. */
static inline bool call_is_valid(const uint64_t *pcs, unsigned int max,
				 const struct shstk_info *info)
{
	return pcs && max <= INT32_MAX && (!info || info->size >= 8);
}

/*
 * Returns true if @opts are valid and allow @source (SHSTK_USE_*), and ask for nothing special: no
 * flags, no skipped entries and no marks.
 */
static inline bool call_opts_are_simple(const struct shstk_opts *opts, uint32_t source)
{
	return opts->size == sizeof(*opts) && !opts->flags && !opts->skip && !opts->marks &&
	       (likely((opts->sources & (~ALL_SOURCES | source)) == source) || !opts->sources);
}

/* Returns true if a call is valid, asks for nothing special and allows @source. */
static inline bool call_is_simple(const uint64_t *pcs, unsigned int max,
				  const struct shstk_opts *opts, const struct shstk_info *info,
				  uint32_t source)
{
	return call_is_valid(pcs, max, info) && (!opts || call_opts_are_simple(opts, source));
}

/*
 * Tells the caller in @to how a capture of @n entries went. @source is the source of the entries; 0
 * means the memo if @reused is not 0, else the walk.
 */
void call_tell(struct shstk_info *to, int source, int n, int end, uint64_t end_pc,
	       unsigned int reused, unsigned int guessed);

/* Tells a hook how its capture went; see struct shstk_hook. */
static inline void call_tell_hook(struct shstk_hook *hook, uint64_t id, int end, bool crossed)
{
	hook->id = id;
	hook->end = end;
	hook->crossed = crossed;
}

#endif
