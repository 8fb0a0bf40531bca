/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call.h - a call of shstk_capture() or one of its kind: where on the stack it begins and
 * what it asks for.
 */
#ifndef SHSTK_CALL_H
#define SHSTK_CALL_H

#include "hook.h"
#include "internal.h"

#define ALL_SOURCES (SHSTK_USE_HARDWARE | SHSTK_USE_MEMO | SHSTK_USE_WALK)

/**
 * struct call - a call of a public function
 * @ra: the caller's pc: the first frame of the trace.
 * @sp: its registers.
 * @fp: see @sp.
 * @ssp: its shadow stack pointer, 0: it has none.
 * @pcs: what was asked for: the arguments of the function.
 * @max: see @pcs.
 * @opts: see @pcs.
 * @info: see @pcs.
 * @hook: or NULL; then @info is NULL.
 */
struct call {
	uint64_t ra, sp, fp, ssp;
	uint64_t *pcs;
	unsigned int max;
	const struct shstk_opts *opts;
	struct shstk_info *info;
	struct shstk_hook *hook;
};

/**
 * struct request - a call that was checked
 * @pcs: see struct call.
 * @max: see @pcs.
 * @sources: SHSTK_USE_*, at least one.
 * @skip: entries to be left out.
 * @check: SHSTK_CHECK_STACK is set.
 * @marks: receives the marks, or NULL.
 * @info: see @pcs.
 * @hook: see @pcs.
 */
struct request {
	uint64_t *pcs;
	unsigned int max;
	uint32_t sources;
	uint32_t skip;
	bool check;
	uint8_t *marks;
	struct shstk_info *info;
	struct shstk_hook *hook;
};

/* Does a call allow @source (SHSTK_USE_*)? */
static inline bool call_allows(const struct shstk_opts *opts, uint32_t source)
{
	return !opts || !opts->sources || opts->sources & source;
}

/* Does it want nothing but all entries? */
static inline bool call_wants_all(const uint64_t *pcs, unsigned int max,
				  const struct shstk_opts *opts, const struct shstk_info *info)
{
	if (!pcs || max > INT32_MAX || (info && info->size < 8))
		return false;
	if (!opts)
		return true;
	return opts->size == sizeof(*opts) && !opts->flags && !opts->skip && !opts->marks &&
	       !(opts->sources & ~ALL_SOURCES);
}

/* Both. */
static inline bool call_is_simple(const uint64_t *pcs, unsigned int max,
				  const struct shstk_opts *opts, const struct shstk_info *info,
				  uint32_t source)
{
	return call_wants_all(pcs, max, opts, info) && call_allows(opts, source);
}

/*
 * Tell the caller how a capture of @n entries went, by @source: 0 is the memo or the walk,
 * by @reused.
 */
void call_tell(struct shstk_info *to, int source, int n, int end, uint64_t end_pc,
	       unsigned int reused, unsigned int guessed);

/* Tell a hook how its capture went; see struct shstk_hook. */
static inline void call_tell_hook(struct shstk_hook *hook, uint64_t id, int end, bool crossed)
{
	hook->id = id;
	hook->end = end;
	hook->crossed = crossed;
}

#endif
