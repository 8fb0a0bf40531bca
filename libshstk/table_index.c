// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * table_index.c - finds the functions that a section describes; see table_index.h.
 */
#include <errno.h>
#include <sys/mman.h>

#include "cfi_bytes.h"
#include "table_index.h"

static int32_t read_s32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

uint64_t index_start(const struct table *t, size_t i)
{
	if (t->hdr)
		return t->hdr_vaddr + read_s32(t->hdr + 8 * i);
	if (!t->index)
		return sframe_start(&t->sf, i);
	return t->img->lo + t->index[i].start;
}

uint64_t index_offset(const struct table *t, size_t i)
{
	if (t->hdr)
		return t->hdr_vaddr + read_s32(t->hdr + 8 * i + 4) - t->sec.s.vaddr;
	return t->index ? t->index[i].offset : i;
}

size_t index_search(const struct table *t, uint64_t vaddr)
{
	size_t lo = 0, n = t->nfde;

	while (n) {
		size_t half = n / 2;

		if (index_start(t, lo + half) <= vaddr) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo ? lo - 1 : t->nfde;
}

bool index_use_hdr(struct table *t, const struct section *h)
{
	enum { VERSION = 1, TABLE_ENC = 0x3b, COUNT_ENC = 0x03 };
	uint64_t frame, count;
	struct bytes b;

	if (h->size < 4 || h->data[0] != VERSION)
		return false;
	b = (struct bytes){ h->data + 4, h->data + h->size, false };
	frame = cfi_pointer(&b, h->data[1], h->vaddr + 4, h->vaddr);
	if (b.bad)
		return false;
	if (!t->sec.s.size) { /* the file has no section headers */
		size_t avail;

		t->sec.s.data = elf_image_at(t->img, frame, &avail);
		if (!t->sec.s.data)
			return false;
		t->sec.s.size = avail;
		t->sec.s.vaddr = frame;
	}
	if (h->data[2] != COUNT_ENC || h->data[3] != TABLE_ENC || frame != t->sec.s.vaddr)
		return false;
	count = cfi_pointer(&b, h->data[2], 0, 0);
	if (b.bad || !count || count > (size_t)(b.end - b.p) / 8)
		return false;
	t->hdr = b.p;
	t->hdr_vaddr = h->vaddr;
	t->nfde = count;
	return true;
}

static void sift_down(struct index_entry *e, size_t i, size_t n)
{
	struct index_entry v = e[i];
	size_t child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && e[child].start < e[child + 1].start)
			child++;
		if (e[child].start <= v.start)
			break;
		e[i] = e[child];
		i = child;
	}
	e[i] = v;
}

/* Sorts the index by heapsort, because qsort() may allocate. */
static void sort_index(struct index_entry *e, size_t n)
{
	size_t i;

	for (i = n / 2; i--;)
		sift_down(e, i, n);
	while (n > 1) {
		struct index_entry v = e[--n];

		e[n] = e[0];
		e[0] = v;
		sift_down(e, 0, n);
	}
}

/*
 * Reads the whole section and returns the number of functions in it; lists them in @list if that
 * is not NULL. Entries of functions that the linker has discarded have no length or lie outside of
 * the image; they do not count.
 */
static size_t scan(const struct table *t, struct index_entry *list)
{
	size_t off = 0, next, n = 0;
	struct fde fde;
	int kind;

	while ((kind = cfi_entry(&t->sec, off, &fde, &next)) >= 0) {
		uint64_t rel = fde.start - t->img->lo;

		if (kind == 1 && fde.end > fde.start && rel <= UINT32_MAX) {
			if (list)
				list[n] = (struct index_entry){ rel, off };
			n++;
		}
		off = next;
	}
	return n;
}

static int index_alloc(struct table *t, size_t n)
{
	size_t bytes = ALIGN_UP(n * sizeof(*t->index), 4096);
	void *p;

	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	t->index = p;
	t->index_bytes = bytes;
	t->nfde = n;
	return 0;
}

int index_build(struct table *t)
{
	size_t n;
	int err;

	if (!t->sec.s.size || t->sec.s.size > UINT32_MAX)
		return -ENOENT;
	n = scan(t, NULL);
	if (!n)
		return -ENOENT;
	err = index_alloc(t, n);
	if (err)
		return err;
	scan(t, t->index);
	sort_index(t->index, n);
	return 0;
}

int index_sframe(struct table *t)
{
	struct sframe_func f;
	size_t i, n = 0;
	int err;

	if (t->sf.sorted) {
		t->nfde = t->sf.nfunc;
		return 0;
	}
	err = index_alloc(t, t->sf.nfunc);
	if (err)
		return err;
	for (i = 0; i < t->sf.nfunc; i++) {
		uint64_t rel = sframe_start(&t->sf, i) - t->img->lo;

		if (sframe_func(&t->sf, i, &f) && rel <= UINT32_MAX)
			t->index[n++] = (struct index_entry){ rel, i };
	}
	t->nfde = n;
	sort_index(t->index, n);
	return 0;
}

void index_free(struct table *t)
{
	if (t->index)
		munmap(t->index, t->index_bytes);
	t->index = NULL;
	t->nfde = 0;
}
