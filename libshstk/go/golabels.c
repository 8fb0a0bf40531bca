// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * golabels.c - reads the labels of the goroutine that the calling thread runs; see golabels.h.
 *
 * Like the runtime's own profiles, it takes the labels of the thread's goroutine (m.curg),
 * whatever stack the thread is on. The labels can't change meanwhile: only the thread that
 * was interrupted would change them.
 */
#include "enter.h"
#include "goroutine.h"
#include "goswitch.h"
#include "golabels.h"
#include "modmap.h"
#include "calling_thread.h"

struct label_buffer {
	char *at;
	size_t left;
};

static int put_label(void *arg, const char *key, const char *value)
{
	struct label_buffer *b = arg;
	size_t klen = strlen(key) + 1, vlen = strlen(value) + 1;

	if (klen + vlen > b->left)
		return 0;
	memcpy(b->at, key, klen);
	memcpy(b->at + klen, value, vlen);
	b->at += klen + vlen;
	b->left -= klen + vlen;
	return 0;
}

static const struct module *find_go(const uint64_t *pcs, unsigned int n)
{
	const struct module *m;
	unsigned int i;

	for (i = 0; i < n; i++) {
		m = modmap_find(pcs[i]);
		if (m && m->go.nfunc)
			return m;
	}
	return NULL;
}

/*
 * Returns the release of Go that made @m, as shstk_goruntime_release() does. It is searched once,
 * in one module, because a program has one runtime.
 */
static unsigned int release_of(const struct module *m)
{
	static unsigned int known; /* twice the release plus 1; 0: not searched yet */
	unsigned int release = load_relaxed(&known);

	if (!release) {
		release = 2 * shstk_goruntime_release(m) + 1;
		store_relaxed(&known, release);
	}
	return release / 2;
}

static void put_labels(const struct module *m, struct label_buffer *b)
{
	struct calling_thread o = { .t = NULL };
	const struct view *v = calling_thread_view(&o, false);
	struct shstk_goruntime rt = { .mod = m, .read = v->other.read, .arg = v->other.arg };
	struct cursor none = { .go_g = 0 };
	struct gothread thread;
	struct shstk_goroutine g = { .g = 0 };

	if (!goswitch_thread(v, &none, &thread) || !thread.curg)
		return;
	rt.release = release_of(m);
	g.g = thread.curg;
	shstk_goroutine_find_labels(&rt, &g);
	shstk_goroutine_labels(&rt, &g, put_label, b);
}

size_t shstk_golabels(const uint64_t *pcs, unsigned int n, char *buf, size_t size)
{
	struct label_buffer b = { buf, size };
	const struct module *m;
	struct thread *t;
	bool outermost;

	if (!modmap_has_go())
		return 0;
	t = thread_get();
	if (!t)
		return 0;
	outermost = enter(t, (uintptr_t)__builtin_frame_address(0));
	m = find_go(pcs, n);
	if (m)
		put_labels(m, &b);
	leave(t, outermost);
	return size - b.left;
}
