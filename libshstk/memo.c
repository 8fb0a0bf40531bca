// SPDX-License-Identifier: LGPL-2.1-or-later
/* memo.c - keeps, verifies and replaces a thread's last trace; see memo.h. */
#include "memo.h"
#include "verify.h"

/* The number of frames that are verified before the result is looked at. */
#define BLOCK 256

const uint64_t memo_no_fp;

size_t memo_bytes(void)
{
	return 2 * MEMO_ROOM *
		       (2 * sizeof(uint64_t) + 2 * sizeof(int32_t) + sizeof(struct memo_fp)) +
	       2 * MEMO_WORDS * sizeof(struct memo_word) +
	       VERIFY_PACKED * MEMO_PACKED * (sizeof(uint32_t) + sizeof(uint16_t));
}

/*
 * Writes the values that end searches behind the last frame, frame pointer and word. Drops the words
 * of a step to a frame that was not added.
 */
static void seal(struct memo_side *s)
{
	while (s->word_end > s->word_first && s->word[s->word_end - 1].frame >= s->end)
		s->word_end--;
	s->word[s->word_end].frame = MEMO_NEVER;
	s->sp[s->end] = MEMO_NEVER;
	s->fp[s->fp_end].from = MEMO_NEVER;
	s->fp[s->fp_end].use = MEMO_NEVER;
}

void memo_clear(struct memo *m)
{
	memo_hide(m);
	memo_clear_side(&m->side[m->last]);
	seal(&m->side[m->last]);
}

void memo_init(struct memo *m, uint8_t *memory)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct memo_side *s = &m->side[i];

		s->raw = (uint64_t *)memory;
		memory += MEMO_ROOM * sizeof(*s->raw);
		s->id = (uint64_t *)memory;
		memory += MEMO_ROOM * sizeof(*s->id);
		s->fp = (struct memo_fp *)memory;
		memory += MEMO_ROOM * sizeof(*s->fp);
		s->word = (struct memo_word *)memory;
		memory += MEMO_WORDS * sizeof(*s->word);
		s->slot = (int32_t *)memory;
		memory += MEMO_ROOM * sizeof(*s->slot);
		s->sp = (int32_t *)memory;
		memory += MEMO_ROOM * sizeof(*s->sp);
	}
	m->packed.low = (uint32_t *)memory;
	m->packed.place = (uint16_t *)(memory + MEMO_PACKED * sizeof(*m->packed.low));
	m->records.low = (struct frame_half *)m->packed.low;
	m->records.place = m->packed.place;
	m->fours.four = (struct frame_four *)m->packed.low;
	m->last = 0;
	memo_clear(m);
}

uint64_t memo_hash(struct memo_side *s, int from)
{
	int k = min(s->hashed, s->end);
	uint64_t h = k < s->end ? s->id[k] : IDENTITY_START;

	while (k-- > from) {
		h = identity_add(h, native_strip(s->raw[k]));
		s->id[k] = h;
	}
	s->hashed = from;
	return h;
}

/* Does what verify_pairs() does, in the way that is fastest on this CPU. */
static no_sanitize uint64_t verify(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw,
				   uint64_t *out, int n, bool backwards)
{
	if (likely(verify_is_wide()))
		return verify_wide(anchor, slot, raw, out, n, backwards);
	return verify_pairs(anchor, slot, raw, out, n);
}

/*
 * Reads the words of frames @k to @end - 1 again and writes their pcs to @out. Returns 0 if no word
 * has changed.
 */
static no_sanitize uint64_t differ(const struct memo_side *m, int k, int end, uint64_t *out,
				   bool backwards)
{
	return verify((const uint8_t *)(uintptr_t)m->anchor, m->slot + k, m->raw + k, out, end - k,
		      backwards);
}

/* Returns the first of the frames @k to @end - 1 whose word has changed, or @end if none has. */
static no_sanitize int first_bad(const struct memo_side *m, int k, int end)
{
	const uint8_t *anchor = (const uint8_t *)(uintptr_t)m->anchor;

	while (k < end && verify_word(anchor, m->slot[k]) == m->raw[k])
		k++;
	return k;
}

static no_sanitize int verify_forwards(const struct memo_side *m, int from, int end, uint64_t *out)
{
	int k, next;

	for (k = from; k < end; k = next) {
		next = min(k + BLOCK, end);
		if (unlikely(differ(m, k, next, out + (k - from), false)))
			return first_bad(m, k, next);
	}
	return end;
}

static no_sanitize int verify_backwards(const struct memo_side *m, int from, int end, uint64_t *out)
{
	int k, next, good = end;

	for (next = end; next > from; next = k) {
		k = max(next - BLOCK, from);
		if (unlikely(differ(m, k, next, out + (k - from), true)))
			good = first_bad(m, k, next);
	}
	return good;
}

/*
 * Returns the end of the frames behind @j that can be verified: the next barrier, or the trace's
 * end.
 */
static int verify_end(const struct memo_side *m, int j)
{
	int b;

	for (b = 0; b < m->nbarrier; b++) {
		if (m->barrier[b] > j)
			return m->barrier[b];
	}
	return m->end;
}

/*
 * Verifies the saved frame pointers that the steps from frames behind @j and before @end use.
 * Returns the first frame that has a changed frame pointer, or @end.
 */
static no_sanitize int verify_fps(const struct memo_walk *w, int j, int end)
{
	const struct memo_fp *x = w->old->fp + w->old_fp;

	if (x->from <= j)
		x++;
	for (; x->from < end; x++) {
		if (*(const volatile uint64_t *)(uintptr_t)x->addr != x->val)
			return x->from;
	}
	return end;
}

/* Moves @w->old_word to the first word of the old trace that belongs to a frame behind @j. */
static void pass_words(struct memo_walk *w, int j)
{
	while (w->old->word[w->old_word].frame <= j)
		w->old_word++;
}

/*
 * Verifies the words that belong to frames up to @end - 1, from @w->old_word on. Returns the first
 * frame of which a word has changed, or @end.
 */
static no_sanitize int verify_words(const struct memo_walk *w, int end)
{
	const struct memo_word *x = w->old->word + w->old_word;

	for (; x->frame < end; x++) {
		if (*(const volatile uint64_t *)(uintptr_t)x->addr != x->val)
			return x->frame;
	}
	return end;
}

no_sanitize int memo_last_bad(const struct memo_side *s, int j, int n)
{
	const uint8_t *anchor = (const uint8_t *)(uintptr_t)s->anchor;
	int k;

	for (k = min(j + n, s->end) - 1; k > j; k--) {
		if (verify_word(anchor, s->slot[k]) != s->raw[k])
			return k;
	}
	return -1;
}

/*
 * Tells whether no word of the frames from @j on differs, if they are many and it is the turn of reading
 * them forwards.
 */
static inline __attribute__((always_inline)) bool
unchanged_forwards(struct memo *m, const struct memo_side *s, int j, uint64_t *out)
{
	if (likely(s->end - j <= MEMO_LONG))
		return false;
	m->backwards = !m->backwards;
	return !m->backwards && !differ(s, j, s->end, out, false);
}

/*
 * Returns the last frame behind frame @j that has a changed frame pointer, or @j. A frame pointer that
 * is set in one frame and used in others behind it is compared by whoever comes to these.
 */
static inline no_sanitize int last_bad_fp(const struct memo_side *s, int j)
{
	const struct memo_fp *x = s->fp + s->fp_end, *first = s->fp + s->fp_first;

	while (x-- > first && x->from > j)
		if (*(const stack_word *)(uintptr_t)x->addr != x->val)
			return x->from;
	return j;
}

/* Returns the last frame behind frame @j the step to which has read a word that is changed, or @j. */
static __attribute__((noinline)) no_sanitize int last_bad_word(const struct memo_side *s, int j)
{
	const struct memo_word *x = s->word + s->word_end, *first = s->word + s->word_first;

	while (x-- > first && x->frame > j)
		if (*(const stack_word *)(uintptr_t)x->addr != x->val)
			return x->frame;
	return j;
}

/*
 * Returns what memo_common() does, where @bad is the last of the frames behind frame @j whose word
 * differs, or @j. A walk that comes to frame @bad goes on to the next one.
 */
static inline int common(const struct memo_side *s, int j, int bad)
{
	if (bad > j)
		j = bad + 1;
	j = last_bad_fp(s, j);
	return likely(s->word_first == s->word_end) ? j : last_bad_word(s, j);
}

VERIFY_WIDE no_sanitize int memo_common_wide(struct memo *m, const struct memo_side *s, int j,
					     uint64_t *out)
{
	const uint8_t *anchor = (const uint8_t *)(uintptr_t)s->anchor;
	int k = j + 1, bad = -1;

	if (!unchanged_forwards(m, s, k, out))
		bad = verify_last_differs_inline(anchor, s->slot + k, s->raw + k, out, s->end - k);
	return common(s, j, k + bad);
}

no_sanitize int memo_common_any(struct memo *m, const struct memo_side *s, int j, uint64_t *out)
{
	const uint8_t *anchor = (const uint8_t *)(uintptr_t)s->anchor;
	int k = j + 1, bad = -1;

	if (!unchanged_forwards(m, s, k, out))
		bad = verify_last_differs(anchor, s->slot + k, s->raw + k, out, s->end - k);
	return common(s, j, k + bad);
}

no_sanitize bool memo_unchanged_short(const struct memo_side *s, int j, int end, uint64_t *out)
{
	return !differ(s, j + 1, end, out, false);
}

no_sanitize bool memo_unchanged_long(struct memo *m, const struct memo_side *s, int j, int end,
				     uint64_t *out)
{
	m->backwards = !m->backwards;
	return !differ(s, j + 1, end, out, m->backwards);
}

/* Returns the word of @a that the frame with the frame pointer @x was entered by. */
static uint64_t raw_of(const struct memo_again *a, const struct memo_side *s,
		       const struct memo_fp *x)
{
	return a->raw[x->from - (s->first + 1)];
}

/* Tells whether the frame pointer @x of @a was read from the word below a frame's return address. */
static bool in_record(const struct memo_again *a, const struct memo_side *s,
		      const struct memo_fp *x)
{
	int i = x->from - (s->first + 1);

	return i >= 0 && i < a->n && x->addr == (uintptr_t)a->anchor + a->slot[i] - 8;
}

/* Tells whether the record of @x can follow that of x[-1] in a struct frame_records. */
static bool continues(const struct memo_again *a, const struct memo_side *s,
		      const struct memo_fp *x)
{
	return x->from == x[-1].from + 1 && x->val >> 32 == x[-1].val >> 32 &&
	       raw_of(a, s, x) >> 32 == raw_of(a, s, x - 1) >> 32;
}

/* Finds the longest run of @a's frame pointers that struct frame_records can have. */
static void find_records(const struct memo_again *a, const struct memo_side *s,
			 const struct memo_fp **from, const struct memo_fp **end)
{
	const struct memo_fp *x, *first = a->fps;

	*from = *end = a->fps;
	for (x = a->fps; x < a->fps_end; x++) {
		if (!in_record(a, s, x)) {
			first = x + 1;
			continue;
		}
		if (x > first && (!continues(a, s, x) || x - first == MEMO_PACKED / 2 ||
				  (x->addr - first->addr) / 8 > UINT16_MAX))
			first = x;
		if (x + 1 - first > *end - *from) {
			*from = first;
			*end = x + 1;
		}
	}
}

/* Packs @again's frame records, if there are enough. Returns true if it did. */
static bool pack_records(struct memo *m)
{
	const struct memo_side *s = &m->side[m->last];
	struct memo_again *a = &m->again;
	struct frame_records *r = &m->records;
	const struct memo_fp *from, *end, *x;
	int i, rest = 0;

	find_records(a, s, &from, &end);
	if (end - from < MEMO_RECORDS || (a->fps_end - a->fps) - (end - from) > MEMO_REST)
		return false;
	for (x = a->fps; x < a->fps_end; x++) {
		if (x < from || x >= end)
			m->rest[rest++] = *x;
	}
	a->fps = m->rest;
	a->fps_end = m->rest + rest;
	r->base = (const uint64_t *)(uintptr_t)from->addr;
	r->high.fp = from->val >> 32;
	r->high.ra = raw_of(a, s, from) >> 32;
	for (i = 0, x = from; x < end; i++, x++) {
		r->place[i] = (x->addr - from->addr) / 8;
		r->low[i].fp = (uint32_t)x->val;
		r->low[i].ra = (uint32_t)raw_of(a, s, x);
	}
	r->from = from->from - (s->first + 1);
	r->end = r->from + i;
	return true;
}

/* Stores frames @i to @i + 3 of @a in @four, with no frame pointers. */
static void put_four(const struct memo_again *a, int i, struct frame_four *four)
{
	int k;

	for (k = 0; k < 4; k++) {
		four->place[k] = (a->slot[i + k] - a->slot[0]) / 8;
		four->raw[k] = a->raw[i + k];
		four->fp[k] = four->mask[k] = 0;
	}
}

/* Stores the frame pointer @fp of frame @i of @n in @fours, where the last frames can be twice. */
static void put_fp(struct frame_fours *fours, int n, int i, uint64_t fp)
{
	struct frame_four *four = &fours->four[i / 4];
	int k = i - (n - 4);

	if (four < fours->last) {
		four->fp[i % 4] = fp;
		four->mask[i % 4] = ~0ull;
	}
	if (k >= 0) {
		fours->last->fp[k] = fp;
		fours->last->mask[k] = ~0ull;
	}
}

/* Stores @again in @fours, if it has enough frame records and is short. Returns true if it did. */
static bool pack_fours(struct memo *m)
{
	const struct memo_side *s = &m->side[m->last];
	struct memo_again *a = &m->again;
	const struct memo_fp *x;
	int i, rest = 0;

	if (a->n > MEMO_FOURS || (uint32_t)(a->slot[a->n - 1] - a->slot[0]) / 8 > UINT16_MAX)
		return false;
	for (x = a->fps; x < a->fps_end; x++)
		rest += !in_record(a, s, x);
	if (rest > MEMO_REST || a->fps_end - a->fps - rest < MEMO_RECORDS)
		return false;
	m->fours.base = (const uint64_t *)(a->anchor + a->slot[0] - 8);
	m->fours.last = &m->fours.four[(a->n - 1) / 4];
	for (i = 0; i < a->n - 4; i += 4)
		put_four(a, i, &m->fours.four[i / 4]);
	put_four(a, a->n - 4, m->fours.last);
	for (x = a->fps, rest = 0; x < a->fps_end; x++) {
		if (in_record(a, s, x))
			put_fp(&m->fours, a->n, x->from - (s->first + 1), x->val);
		else
			m->rest[rest++] = *x;
	}
	a->fps = m->rest;
	a->fps_end = m->rest + rest;
	return true;
}

/* Finds the longest run of @again's return addresses that can be packed. */
static void find_run(const struct memo_again *a, int *from, int *end)
{
	int i, first = 0;

	*from = *end = 0;
	for (i = 0; i < a->n; i++) {
		if (a->raw[i] >> 32 != a->raw[first] >> 32 || i - first == MEMO_PACKED ||
		    (uint32_t)(a->slot[i] - a->slot[first]) / 8 > UINT16_MAX)
			first = i;
		if (i + 1 - first > *end - *from) {
			*from = first;
			*end = i + 1;
		}
	}
}

static void pack(struct memo *m)
{
	const struct memo_again *a = &m->again;
	struct memo_packed *p = &m->packed;
	int i, n;

	find_run(a, &p->from, &p->end);
	n = (p->end - p->from) & ~7;
	p->end = p->from + n;
	if (!VERIFY_PACKED || !verify_is_wide() || n < MEMO_LONG / 2) {
		p->end = p->from;
		return;
	}
	p->base = (const uint64_t *)(a->anchor + a->slot[p->from]);
	p->high = a->raw[p->from] >> 32;
	for (i = 0; i < n; i++) {
		p->place[i] = (a->slot[p->from + i] - a->slot[p->from]) / 8;
		p->low[verify_packed_at(i)] = (uint32_t)a->raw[p->from + i];
	}
}

void memo_count_again(struct memo *m)
{
	struct memo_again *a = &m->again;

	if (a->seen == MEMO_SEEN || ++a->seen < MEMO_SEEN)
		return;
	if (VERIFY_PACKED && verify_is_wide() && pack_fours(m))
		a->way = MEMO_IN_FOURS;
	else if (VERIFY_PACKED && verify_is_wide() && pack_records(m))
		a->way = MEMO_RECORDED;
	else if (a->way == MEMO_SHORT_FPS)
		a->way = MEMO_SHORT;
	else
		pack(m);
}

/*
 * Does what differ() does, for the words of @a with the indices @from to @end - 1. Often there are
 * none, because all words are packed.
 */
static no_sanitize uint64_t differ_again(const struct memo_again *a, int from, int end,
					 uint64_t *out, bool backwards)
{
	if (from == end)
		return 0;
	return verify(a->anchor, a->slot + from, a->raw + from, out + from, end - from, backwards);
}

/* Does what differ_again() does for all words of @again, some of which are packed. */
static no_sanitize uint64_t differ_packed(const struct memo *m, uint64_t *out)
{
	const struct memo_again *a = &m->again;
	const struct memo_packed *p = &m->packed;
	uint64_t d, before, behind;

	before = m->backwards ? differ_again(a, p->end, a->n, out, true) :
				differ_again(a, 0, p->from, out, false);
	d = verify_packed(p->base, p->place, p->low, p->high, out + p->from, p->end - p->from,
			  m->backwards);
	behind = m->backwards ? differ_again(a, 0, p->from, out, true) :
				differ_again(a, p->end, a->n, out, false);
	return before | d | behind;
}

no_sanitize bool memo_unchanged_again(struct memo *m, uint64_t *out)
{
	struct memo_again *a = &m->again;

	m->backwards = !m->backwards;
	if (a->seen == MEMO_SEEN && m->packed.from < m->packed.end)
		return !differ_packed(m, out);
	if (differ_again(a, 0, a->n, out, m->backwards))
		return false;
	memo_count_again(m);
	return true;
}

int memo_verify(struct memo_walk *w, uint64_t *out, int room)
{
	const struct memo_side *m = w->old;
	int from = w->met + 1;
	int end = verify_end(m, w->met);

	if (end - from > room)
		end = from + room;
	if (end - from < MEMO_LONG) {
		end = verify_forwards(m, from, end, out);
	} else {
		w->memo->backwards = !w->memo->backwards;
		end = w->memo->backwards ? verify_backwards(m, from, end, out) :
					   verify_forwards(m, from, end, out);
	}
	pass_words(w, w->met);
	return verify_words(w, verify_fps(w, w->met, end)) - 1;
}

no_sanitize bool memo_goes_on(const struct memo_walk *w, int v)
{
	const struct memo_side *m = w->old;

	return v + 1 < verify_end(m, v) && *memo_word_of(m, v + 1) == m->raw[v + 1] &&
	       verify_words(w, v + 2) == v + 2;
}

static void copy_frames(struct memo_side *to, int i, const struct memo_side *from, int k, int n)
{
	int x;

	if (n > 8) {
		memcpy(to->raw + i, from->raw + k, n * sizeof(*to->raw));
		memcpy(to->slot + i, from->slot + k, n * sizeof(*to->slot));
		memcpy(to->sp + i, from->sp + k, n * sizeof(*to->sp));
		return;
	}
	for (x = 0; x < n; x++) {
		to->raw[i + x] = from->raw[k + x];
		to->slot[i + x] = from->slot[k + x];
		to->sp[i + x] = from->sp[k + x];
	}
}

static void copy_fps(struct memo_side *to, int i, const struct memo_side *from, int k, int n,
		     int shift)
{
	for (; n > 0; n--, i++, k++) {
		to->fp[i] = from->fp[k];
		to->fp[i].from += shift;
		to->fp[i].use += shift;
	}
}

static void copy_words(struct memo_side *to, int i, const struct memo_side *from, int k, int n,
		       int shift)
{
	for (; n > 0; n--, i++, k++) {
		to->word[i] = from->word[k];
		to->word[i].frame += shift;
	}
}

/* Puts the fresh part in front of frame @j + 1 of the old trace. */
static void prepend(struct memo_walk *w, int j)
{
	struct memo_side *f = w->fresh, *m = w->old;
	int n = f->end - f->first, nfp = f->fp_end - f->fp_first;
	int first = j + 1 - n, fp_first = w->old_fp - nfp;
	int nword = f->word_end - f->word_first, word_first = w->old_word - nword;
	int shift = j + 1 - f->end;
	int barrier[MEMO_BARRIERS], nbarrier = 0;
	int b;

	for (b = 0; b < f->nbarrier; b++)
		barrier[nbarrier++] = f->barrier[b] + shift;
	for (b = 0; b < m->nbarrier; b++) {
		if (m->barrier[b] <= j)
			continue;
		if (nbarrier == MEMO_BARRIERS)
			goto forget;
		barrier[nbarrier++] = m->barrier[b];
	}
	if (first < 0 || fp_first < 0 || word_first < 0)
		goto forget;
	copy_frames(m, first, f, f->first, n);
	copy_fps(m, fp_first, f, f->fp_first, nfp, shift);
	copy_words(m, word_first, f, f->word_first, nword, shift);
	m->first = first;
	m->fp_first = fp_first;
	m->word_first = word_first;
	memo_unhash(m, j + 1);
	m->nbarrier = nbarrier;
	for (b = 0; b < nbarrier; b++)
		m->barrier[b] = barrier[b];
	return;

forget:
	memo_clear(w->memo);
}

/* Puts the frames of the old trace behind frame @j behind the fresh part. */
static void extend(struct memo_walk *w, int j)
{
	struct memo_side *f = w->fresh, *m = w->old;
	int n = m->end - (j + 1), nfp = m->fp_end - w->old_fp, nword = m->word_end - w->old_word;
	int shift = f->end - (j + 1);
	int b;

	for (b = 0; b < m->nbarrier; b++) {
		if (m->barrier[b] <= j)
			continue;
		if (f->nbarrier == MEMO_BARRIERS)
			goto forget;
		f->barrier[f->nbarrier++] = m->barrier[b] + shift;
	}
	if (n >= MEMO_ROOM - f->end || nfp >= MEMO_ROOM - f->fp_end ||
	    nword >= MEMO_WORDS - f->word_end)
		goto forget;
	copy_frames(f, f->end, m, j + 1, n);
	copy_fps(f, f->fp_end, m, w->old_fp, nfp, shift);
	copy_words(f, f->word_end, m, w->old_word, nword, shift);
	f->end += n;
	f->fp_end += nfp;
	f->word_end += nword;
	seal(f);
	w->memo->last = f - w->memo->side;
	return;

forget:
	memo_clear(w->memo);
}

/*
 * If the frame pointer of frame @j of the old trace is used there or further out, notes its use in
 * the fresh part, where it has another origin. The frames that are taken over end with frame @last.
 */
static void inherit_fp(struct memo_walk *w, int j, int last)
{
	const struct memo_fp *x = &w->old->fp[w->old_fp];

	if (x->from > j)
		return;
	memo_use_fp(w, min(x->use, last) + w->fresh->end - 1 - j, x->val);
	w->old_fp++;
}

unsigned int memo_count_guessed(const struct memo_side *s, int j)
{
	const struct memo_word *x = s->word + s->word_first, *end = s->word + s->word_end;
	unsigned int n = 0;

	for (; x < end; x++) {
		if (x->frame > j && x->mark & SHSTK_MARK_GUESS)
			n++;
		j = max(j, x->frame);
	}
	return n;
}

void memo_join_slow(struct memo_walk *w)
{
	struct memo_side *f = w->fresh, *m = w->old;
	int j = w->met;

	inherit_fp(w, j, m->end);
	pass_words(w, j);
	if (f->end - f->first <= m->end - j - 1)
		prepend(w, j);
	else
		extend(w, j);
}

void memo_replace(struct memo_walk *w)
{
	seal(w->fresh);
	w->memo->last = w->fresh - w->memo->side;
}

/* Copies the words of the old trace that belong to frames up to @v. Returns false without room. */
static bool take_words(struct memo_walk *w, int v, int shift)
{
	int from = w->old_word;
	struct memo_side *f = w->fresh;
	int n;

	pass_words(w, v);
	n = w->old_word - from;
	if (n >= MEMO_WORDS - f->word_end)
		return false;
	copy_words(f, f->word_end, w->old, from, n, shift);
	f->word_end += n;
	return true;
}

/* Returns the index of the last of the old frame pointers that is set in frame @v or before it. */
static int fp_of(const struct memo_walk *w, int v)
{
	int x = w->old_fp;

	while (w->old->fp[x + 1].from <= v)
		x++;
	return x;
}

int memo_take(struct memo_walk *w, int v, uint64_t *fp, bool (*fp_restored)(uint64_t pc))
{
	struct memo_side *f = w->fresh, *m = w->old;
	int j = w->met, x, nfp, n, shift;
	bool live;

	x = m->fp[w->old_fp].from <= v ? fp_of(w, v) : -1;
	for (; v > j; v--) {
		while (x >= w->old_fp && m->fp[x].from > v)
			x--;
		live = x >= w->old_fp && m->fp[x].use >= v;
		if (live || fp_restored(native_strip(m->raw[v])))
			break;
	}
	if (v == j)
		return j;
	n = v - j;
	inherit_fp(w, j, v);
	nfp = x >= w->old_fp ? x + 1 - w->old_fp : 0;
	if (n >= MEMO_ROOM - f->end || nfp >= MEMO_ROOM - f->fp_end)
		return -1;
	shift = f->end - (j + 1);
	if (!take_words(w, v, shift))
		return -1;
	copy_frames(f, f->end, m, j + 1, n);
	copy_fps(f, f->fp_end, m, w->old_fp, nfp, shift);
	f->end += n;
	f->fp_end += nfp;
	w->old_fp += nfp;
	if (nfp) {
		struct memo_fp *last = &f->fp[f->fp_end - 1];

		last->use = min(last->use, f->end - 1);
		*fp = last->val;
		memo_restored_fp(w, last->from, last->addr);
		w->fp_at = f->fp_end - 1;
	}
	if (!live)
		memo_restored_fp(w, f->end - 1, 0);
	w->met = v + 1;
	return v;
}
