// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * goroutine.c - finds the goroutines of another program; see goroutine.h.
 *
 * The runtime's list of goroutines has no symbol in stripped programs. So the program's data
 * is searched for it: for a slice whose elements point at themselves. Sources: golang/go,
 * src/runtime/runtime2.go, proc.go, map.go, src/runtime/pprof/label.go, Go 1.15 to 1.27.
 */
#include <errno.h>

#include "address_space.h"
#include "goroutine.h"
#include "gorule.h"
#include "goswitch.h"

#define CHUNK 4096
#define WORDS (CHUNK / 8)
#define DATA_MAX (256u << 20) /* most bytes of a segment that are searched */
#define CANDIDATES_MAX 100000 /* most words whose targets are read in a search */

/* The states of a goroutine in the runtime. */
enum {
	G_IDLE,
	G_RUNNABLE,
	G_RUNNING,
	G_SYSCALL,
	G_WAITING,
	G_DEAD = 6,
	G_COPYSTACK = 8,
	G_PREEMPTED,
	G_LEAKED,
	G_DEADEXTRA,
	G_SCAN = 0x1000,
};

/* Offsets of members of g and m, which differ by 8 between some releases. */
struct member_offsets {
	uint16_t syscall_sp, status, id, reason, procid;
};

static struct member_offsets places_of(unsigned int release)
{
	struct member_offsets p = { 112, 144, 152, 176, 72 };

	if (release >= 25) {
		p.syscall_sp = 104;
		p.procid = 64;
	} else if (release >= 23) {
		p.status = 152;
		p.id = 160;
		p.reason = 184;
	}
	return p;
}

/* ---- Reading ---- */

static bool read_word(const struct shstk_goruntime *rt, uint64_t addr, uint64_t *ret)
{
	return addr && !(addr & 7) && !rt->read(rt->arg, addr, ret, 8);
}

/* Reads a Go string, cut to GO_TEXT_MAX bytes. Returns false if it can't be read. */
static bool read_string(const struct shstk_goruntime *rt, uint64_t addr, char *text)
{
	uint64_t data, len;

	text[0] = '\0';
	if (!read_word(rt, addr, &data) || !read_word(rt, addr + 8, &len))
		return false;
	len = min(len, (uint64_t)GO_TEXT_MAX - 1);
	if (len && rt->read(rt->arg, data, text, len))
		return false;
	text[len] = '\0';
	return true;
}

static bool points_at_itself(const struct shstk_goruntime *rt, uint64_t g)
{
	uint64_t self;

	return !(g & 7) && read_word(rt, g + GO_G_SCHED + GO_SCHED_G, &self) && self == g;
}

/* ---- The release ---- */

static const char buildinfo_magic[] = "\xff Go buildinf:";

/* Returns the 19 of a text "go1.19" in the @len bytes at @p, or 0 if there is no such text. */
static unsigned int parse_release(const uint8_t *p, size_t len)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i + 5 <= len; i++)
		if (!memcmp(p + i, "go1.", 4))
			break;
	for (i += 4; i < len && p[i] >= '0' && p[i] <= '9' && n < 1000; i++)
		n = 10 * n + p[i] - '0';
	return n;
}

/*
 * Returns the release that the build information at @p tells, or 0. The build information has
 * the text itself, or a pointer to a Go string.
 */
static unsigned int release_at(const struct gopclntab *go, const uint8_t *p, size_t len,
			       uint64_t vaddr)
{
	uint64_t string, text;
	size_t avail;

	if (len < 32 || memcmp(p, buildinfo_magic, 14))
		return 0;
	if (p[15] & 2)
		return parse_release(p + 32, min(len - 32, (size_t)32));
	if (!gopclntab_word(go, vaddr + 16, &string) || !gopclntab_word(go, string, &text))
		return 0;
	p = elf_image_at(go->img, text, &avail);
	return p ? parse_release(p, min(avail, (size_t)16)) : 0;
}

unsigned int shstk_goruntime_release(const struct module *m)
{
	const struct section *s = &m->img.go_buildinfo;
	unsigned int i, n = 0;

	if (s->size)
		return release_at(&m->go, s->data, s->size, s->vaddr);
	for (i = 0; i < m->img.nload && !n; i++) {
		uint64_t at = ALIGN_UP(m->img.load[i].vaddr, 16);
		size_t avail, off;
		const uint8_t *p = elf_image_at(&m->img, at, &avail);

		for (off = 0; p && !m->img.load[i].exec && !n && avail - off >= 32; off += 16)
			n = release_at(&m->go, p + off, avail - off, at + off);
	}
	return n;
}

/* ---- The list of all goroutines ---- */

/* A search of the program's data. */
struct goroutine_search {
	struct shstk_goruntime *rt;
	uint64_t words[WORDS + 2]; /* a chunk, and the last two words before it */
	uint64_t at; /* address of the first word in @words */
	uint64_t longest; /* length of the longest slice of goroutines so far */
	unsigned int candidates; /* words whose targets were read */
};

/*
 * Checks whether the words from @i on are a slice of goroutines. If there are several such slices,
 * the longest one is the list of all goroutines.
 */
static void try_allgs(struct goroutine_search *s, size_t i)
{
	uint64_t data = s->words[i], len = s->words[i + 1], cap = s->words[i + 2], first, last;

	if (!len || len > cap || cap > 10 * GOROUTINES_MAX || data & 7 || data < CHUNK ||
	    len <= s->longest || s->candidates >= CANDIDATES_MAX)
		return;
	s->candidates++;
	if (!read_word(s->rt, data, &first) || !points_at_itself(s->rt, first) ||
	    !read_word(s->rt, data + 8 * (len - 1), &last) || !points_at_itself(s->rt, last))
		return;
	s->longest = len;
	s->rt->allgs = s->at + 8 * i;
}

/*
 * Checks whether the words from @i on are the second string of the list of texts that tell what a
 * goroutine waits for. The first string of the list is empty.
 */
static void try_reasons(struct goroutine_search *s, size_t i)
{
	static const char second[] = "GC assist marking";
	const size_t len = sizeof(second) - 1;
	char text[sizeof(second)];

	if (s->words[i + 1] != len || s->rt->reasons || s->candidates >= CANDIDATES_MAX)
		return;
	s->candidates++;
	if (!s->rt->read(s->rt->arg, s->words[i], text, len) && !memcmp(text, second, len))
		s->rt->reasons = s->at + 8 * i - 16;
}

static void search_words(struct goroutine_search *s, size_t n)
{
	size_t i;

	for (i = 0; i + 2 < n; i++) {
		try_allgs(s, i);
		try_reasons(s, i);
	}
}

static void search_range(struct goroutine_search *s, uint64_t lo, uint64_t hi)
{
	uint64_t at = ALIGN_UP(lo, 8);
	size_t kept = 0;

	while (at + 8 <= hi) {
		size_t n = min((hi - at) / 8, (CHUNK - at % CHUNK) / 8);

		s->at = at - 8 * kept;
		if (s->rt->read(s->rt->arg, at, s->words + kept, 8 * n)) {
			kept = 0;
		} else {
			search_words(s, kept + n);
			memmove(s->words, s->words + kept + n - 2, 16);
			kept = 2;
		}
		at += 8 * n;
	}
}

static int find_in(struct shstk_goruntime *rt, const struct module *m)
{
	struct goroutine_search s = { .rt = rt };
	unsigned int i;

	rt->mod = m;
	rt->allgs = 0;
	rt->reasons = 0;
	rt->release = shstk_goruntime_release(m);
	for (i = 0; i < m->img.nload; i++) {
		const struct load *l = &m->img.load[i];

		if (l->write)
			search_range(&s, m->bias + l->vaddr,
				     m->bias + l->vaddr + min(l->memsz, (uint64_t)DATA_MAX));
	}
	return rt->allgs ? 0 : -ENOENT;
}

int shstk_goruntime_find(struct shstk_goruntime *rt, struct shstk_space *space, shstk_read_fn read,
			 void *arg)
{
	const struct module *m;
	size_t i;

	*rt = (struct shstk_goruntime){ .space = space, .read = read, .arg = arg };
	for (i = 0; (m = address_space_module(space, i)); i++)
		if (m->go.nfunc && !find_in(rt, m))
			return 0;
	return -ENOENT;
}

/* ---- One goroutine ---- */

static bool is_code(const struct shstk_goruntime *rt, uint64_t pc)
{
	return module_is_code(rt->mod, pc);
}

/*
 * Reads where a goroutine was made, the function that it began with, and its labels. The
 * first two are words of g with one word between them, at one of three places. The right
 * place is the one where the second word is the start of a function.
 */
static void read_origin(const struct shstk_goruntime *rt, struct shstk_goroutine *g)
{
	static const uint16_t places[] = { 280, 288, 296 };
	uint64_t made, began;
	struct gofunc f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		if (!read_word(rt, g->g + places[i], &made) ||
		    !read_word(rt, g->g + places[i] + 16, &began) ||
		    (made && !is_code(rt, made - 1)) ||
		    !shstk_gopclntab_find(&rt->mod->go, began - rt->mod->bias, &f) ||
		    f.entry != began - rt->mod->bias)
			continue;
		g->gopc = g->id == 1 ? 0 : made; /* the runtime makes the first goroutine */
		g->startpc = began;
		if (!read_word(rt, g->g + places[i] + 64, &g->labels))
			g->labels = 0;
		return;
	}
}

static int state_of(uint32_t status)
{
	switch (status & ~G_SCAN) {
	case G_RUNNABLE:
		return SHSTK_GO_RUNNABLE;
	case G_RUNNING:
		return SHSTK_GO_RUNNING;
	case G_SYSCALL:
		return SHSTK_GO_SYSCALL;
	case G_WAITING:
	case G_LEAKED:
		return SHSTK_GO_WAITING;
	default:
		return SHSTK_GO_OTHER;
	}
}

static void read_reason(const struct shstk_goruntime *rt, const struct member_offsets *p,
			struct shstk_goroutine *g)
{
	uint64_t word;
	uint8_t n;

	if (!rt->reasons || !read_word(rt, g->g + (p->reason & ~7), &word))
		return;
	n = word >> 8 * (p->reason & 7);
	if (n >= 64 || !read_string(rt, rt->reasons + 16 * n, g->reason))
		g->reason[0] = '\0';
}

/* Reads the registers that it will go on with, or had when it called the kernel or C. */
static bool read_regs(const struct shstk_goruntime *rt, const struct member_offsets *p,
		      struct shstk_goroutine *g)
{
	const struct machine *m = rt->mod->img.m;
	bool called = g->state == SHSTK_GO_SYSCALL;
	uint64_t at = g->g + (called ? p->syscall_sp : GO_G_SCHED), link;
	unsigned int go_g = machine_go_g(m);
	int i;

	g->regs = (struct shstk_regs){ .size = sizeof(g->regs), .known = 1u << m->sp | 1u << go_g };
	g->regs.r[go_g] = g->g;
	if (!read_word(rt, at, &g->regs.r[m->sp]) || !read_word(rt, at + 8, &g->regs.pc))
		return false;
	/* arm64 has two places for the link register; the wrong one holds no address of code. */
	for (i = 32; m->ra_in_reg && !called && i <= 40; i += 8) {
		if (!read_word(rt, at + i, &link) || !is_code(rt, link - 1))
			continue;
		g->regs.r[m->ra] = link;
		g->regs.known |= 1u << m->ra;
		break;
	}
	return true;
}

/* Reads the goroutine at @at. Returns false if it is dead, or not a goroutine. */
static bool read_goroutine(const struct shstk_goruntime *rt, const struct member_offsets *p,
			   uint64_t at, struct shstk_goroutine *g)
{
	uint64_t status, m, tid;

	*g = (struct shstk_goroutine){ .g = at };
	if (!points_at_itself(rt, at) || !read_word(rt, at + p->status, &status) ||
	    !read_word(rt, at + p->id, &g->id))
		return false;
	status &= UINT32_MAX & ~G_SCAN;
	if (status == G_IDLE || status == G_DEAD || status == G_DEADEXTRA)
		return false;
	g->state = state_of(status);
	if (g->state == SHSTK_GO_WAITING)
		read_reason(rt, p, g);
	if (read_word(rt, at + GO_G_M, &m) && m && read_word(rt, m + p->procid, &tid) &&
	    tid < INT32_MAX)
		g->tid = tid;
	read_origin(rt, g);
	return read_regs(rt, p, g);
}

/* Returns the goroutine of thread @m, or 0. Its place in m differs by 8 between releases. */
static uint64_t current_of(const struct shstk_goruntime *rt, uint64_t m)
{
	uint64_t place = rt->release >= 25 ? 184 : 192, g;

	return m && read_word(rt, m + place, &g) && g && points_at_itself(rt, g) ? g : 0;
}

bool shstk_goroutine_stack(const struct shstk_goruntime *rt, uint64_t g, struct shstk_gostack *ret)
{
	uint64_t m;

	if (!g || !points_at_itself(rt, g) || !read_word(rt, g + GO_G_STACK_LO, &ret->lo) ||
	    !read_word(rt, g + GO_G_STACK_HI, &ret->hi) || !read_word(rt, g + GO_G_M, &m))
		return false;
	ret->current = current_of(rt, m);
	return ret->lo < ret->hi;
}

enum shstk_gokind shstk_go_kind(struct shstk_space *space, uint64_t pc)
{
	const struct module *m = shstk_space_find(space, pc);
	struct gofunc f;

	if (!m || !m->go.nfunc || !shstk_gopclntab_find(&m->go, pc - m->bias, &f))
		return SHSTK_GO_NONE;
	switch (gorule_role(&m->go, &f)) {
	case GO_OUTERMOST:
		return SHSTK_GO_OUTERMOST;
	case GO_SYSTEMSTACK:
	case GO_MORESTACK:
	case GO_ASMCGOCALL:
		return SHSTK_GO_SWITCH;
	case GO_VDSO_CALL:
		return SHSTK_GO_VDSO;
	default:
		return SHSTK_GO_CODE;
	}
}

bool shstk_go_has_frame(struct shstk_space *space, uint64_t pc)
{
	const struct module *m = shstk_space_find(space, pc);
	struct gofunc f;
	int32_t delta;

	return m && m->go.nfunc && shstk_gopclntab_find(&m->go, pc - m->bias, &f) &&
	       shstk_gopclntab_spdelta(&m->go, &f, pc - m->bias, &delta) && delta > 0;
}

int shstk_goruntime_each(const struct shstk_goruntime *rt,
			 int (*each)(void *arg, const struct shstk_goroutine *g), void *arg)
{
	struct member_offsets p = places_of(rt->release);
	uint64_t data, n, i, at;
	struct shstk_goroutine g;
	int ret = 0;

	if (!read_word(rt, rt->allgs, &data) || !read_word(rt, rt->allgs + 8, &n))
		return -EFAULT;
	for (i = 0; i < min(n, (uint64_t)GOROUTINES_MAX) && !ret; i++)
		if (read_word(rt, data + 8 * i, &at) && read_goroutine(rt, &p, at, &g))
			ret = each(arg, &g);
	return ret;
}

/* ---- Labels ---- */

struct labels {
	const struct shstk_goruntime *rt;
	int (*each)(void *arg, const char *key, const char *value);
	void *arg;
	unsigned int left;
};

static int put_label(struct labels *l, uint64_t key, uint64_t value)
{
	char k[GO_TEXT_MAX], v[GO_TEXT_MAX];

	if (!l->left || !read_string(l->rt, key, k) || !read_string(l->rt, value, v))
		return 0;
	l->left--;
	return l->each(l->arg, k, v);
}

/* Gives the labels at @at to @l->each: since Go 1.24 they are a slice of pairs. */
static int put_list(struct labels *l, uint64_t at)
{
	uint64_t data, n, i;
	int ret = 0;

	if (!read_word(l->rt, at, &data) || !read_word(l->rt, at + 8, &n))
		return 0;
	for (i = 0; i < min(n, (uint64_t)GO_LABELS_MAX) && !ret; i++)
		ret = put_label(l, data + 32 * i, data + 32 * i + 16);
	return ret;
}

/*
 * Gives the labels in a bucket of a map to @l->each. A bucket has eight pairs: first a byte for
 * each pair, which is 0 to 4 if the pair is not in use, then the keys, then the values.
 */
static int put_bucket(struct labels *l, uint64_t at)
{
	enum { USED = 5, KEYS = 8, VALUES = KEYS + 8 * 16 };
	uint8_t top[8];
	int i, ret = 0;

	if (l->rt->read(l->rt->arg, at, top, sizeof(top)))
		return 0;
	for (i = 0; i < 8 && !ret; i++)
		if (top[i] >= USED)
			ret = put_label(l, at + KEYS + 16 * i, at + VALUES + 16 * i);
	return ret;
}

/* Gives the labels at @at to @l->each: before Go 1.24 they are a map. */
static int put_map(struct labels *l, uint64_t at)
{
	enum { FLAGS = 8, BUCKETS = 16, SIZE = 8 + 2 * 8 * 16 + 8 };
	uint64_t map, flags, bucket, i, n, next;
	int ret = 0, more;

	if (!read_word(l->rt, at, &map) || !read_word(l->rt, map + FLAGS, &flags) ||
	    !read_word(l->rt, map + BUCKETS, &bucket))
		return 0;
	n = 1ull << min(flags >> 8 & 0xff, (uint64_t)6);
	for (i = 0; i < n && !ret; i++) {
		next = bucket + i * SIZE;
		for (more = 0; next && more < GO_LABELS_MAX && !ret; more++) {
			ret = put_bucket(l, next);
			if (!read_word(l->rt, next + SIZE - 8, &next))
				break;
		}
	}
	return ret;
}

void shstk_goroutine_find_labels(const struct shstk_goruntime *rt, struct shstk_goroutine *g)
{
	read_origin(rt, g);
}

int shstk_goroutine_labels(const struct shstk_goruntime *rt, const struct shstk_goroutine *g,
			   int (*each)(void *arg, const char *key, const char *value), void *arg)
{
	struct labels l = { rt, each, arg, GO_LABELS_MAX };

	if (!g->labels || !rt->release)
		return 0;
	return rt->release >= 24 ? put_list(&l, g->labels) : put_map(&l, g->labels);
}
