// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gorule.c - makes unwind rules from Go's table of functions; see gorule.h.
 */
#include "gorule.h"

static const struct {
	const char *name;
	enum go_role role;
} roles[] = {
	{ "runtime.goexit", GO_OUTERMOST },
	{ "runtime.mstart", GO_OUTERMOST },
	{ "runtime.rt0_go", GO_OUTERMOST },
	{ "runtime.clone", GO_OUTERMOST },
	{ "runtime.systemstack", GO_SYSTEMSTACK },
	{ "runtime.mcall", GO_MCALL },
	{ "runtime.morestack", GO_MORESTACK },
	{ "runtime.morestack_noctxt", GO_NOCTXT },
	{ "runtime.gogo", GO_GOGO },
	{ "gogo", GO_GOGO },
	{ "runtime.asmcgocall", GO_ASMCGOCALL },
	{ "runtime.cgocallback", GO_CGOCALLBACK },
	{ "runtime.cgocallback_gofunc", GO_CGOCALLBACK },
	{ "crosscall2", GO_CROSSCALL },
	{ "runtime.asyncPreempt", GO_INJECTED },
	{ "runtime.sigpanic", GO_INJECTED },
	{ "runtime.nanotime1", GO_VDSO_CALL },
	{ "runtime.walltime1", GO_VDSO_CALL },
	{ "runtime.walltime", GO_VDSO_CALL },
	{ "time.now", GO_VDSO_CALL },
	{ "runtime.vgetrandom1", GO_VDSO_CALL },
};

/*
 * Tells whether @f is written in assembler: in an earlier release a function of the same name may
 * be written in Go.
 */
static bool is_assembler(const struct gopclntab *g, const struct gofunc *f)
{
	struct goline l[4];
	unsigned int n = shstk_gopclntab_lines(g, f->entry, l, ARRAY_SIZE(l));
	size_t len = n && l[n - 1].file ? strlen(l[n - 1].file) : 0;

	return len > 2 && !strcmp(l[n - 1].file + len - 2, ".s");
}

enum go_role gorule_role(const struct gopclntab *g, const struct gofunc *f)
{
	const char *name = shstk_gopclntab_name(g, f);
	size_t i;

	for (i = 0; name && i < ARRAY_SIZE(roles); i++)
		if (!strcmp(name, roles[i].name))
			break;
	if (!name || i == ARRAY_SIZE(roles))
		return GO_ORDINARY;
	if (roles[i].role == GO_NOCTXT && !g->img->m->ra_in_reg)
		return GO_ORDINARY;
	return roles[i].role != GO_VDSO_CALL || is_assembler(g, f) ? roles[i].role : GO_ORDINARY;
}

/* Returns the rule for a frame of @delta bytes on x86, where frames keep rbp at their top. */
static uint64_t rule_x86(int32_t delta)
{
	uint64_t rule = RULE_SP | RULE_CFA(delta + 8) | RULE_RA_SAVED | RULE_RA_AT(-8);

	return delta ? rule | RULE_FP_SAVED | RULE_FP_AT(-16) : rule;
}

/*
 * Returns where the return address lies on arm64, relative to the CFA: at the sp that the function
 * has once it has made its frame. A few functions of the runtime that call C move sp further.
 */
static int32_t link_place(const struct gopclntab *g, const struct gofunc *f, int32_t delta)
{
	int32_t size = shstk_gopclntab_frame_size(g, f);

	return size > 0 && size < delta ? -size : -delta;
}

/*
 * Returns the rule for a frame of @delta bytes on arm64. There the frame pointer is saved below sp,
 * where the frame may not be read. So it is not followed; no rule for Go code needs it.
 */
static uint64_t rule_arm64(int32_t delta, int32_t link)
{
	return delta ? RULE_SP | RULE_CFA(delta) | RULE_RA_SAVED | RULE_RA_AT(link) : RULE_SP;
}

static uint64_t rule_of(const struct gopclntab *g, const struct gofunc *f, int32_t delta)
{
	if (delta + 8 >= RULE_OFF_MAX)
		return RULE_FULL;
	return g->img->m == &machine_x86 ? rule_x86(delta) :
					   rule_arm64(delta, link_place(g, f, delta));
}

/* Finds the function at @vaddr and how far sp lies below the frame's start there. */
static bool find(const struct gopclntab *g, uint64_t vaddr, struct gofunc *f, int32_t *delta)
{
	return shstk_gopclntab_find(g, vaddr, f) && shstk_gopclntab_spdelta(g, f, vaddr, delta);
}

uint64_t gorule_plain(const struct gopclntab *g, uint64_t vaddr)
{
	struct gofunc f;
	int32_t delta;

	return find(g, vaddr, &f, &delta) ? rule_of(g, &f, delta) : RULE_NONE;
}

uint64_t gorule_at(const struct gopclntab *g, uint64_t vaddr)
{
	struct gofunc f;
	int32_t delta;

	if (!find(g, vaddr, &f, &delta))
		return RULE_NONE;
	switch (gorule_role(g, &f)) {
	case GO_ORDINARY:
		return rule_of(g, &f, delta);
	case GO_OUTERMOST:
		return RULE_END;
	default:
		return RULE_FULL;
	}
}

static void save(struct cfi_row *row, unsigned int reg, int32_t at)
{
	row->type[reg] = REG_AT_CFA;
	row->val[reg] = at;
}

/* Fills in the row of a frame as Go's compiler makes it. */
static void plain_row(const struct gopclntab *g, const struct gofunc *f, int32_t delta,
		      struct cfi_row *row)
{
	const struct machine *m = g->img->m;

	if (m == &machine_x86) {
		row->cfa_off = delta + 8;
		save(row, m->ra, -8);
		if (delta)
			save(row, m->fp, -16);
	} else if (delta) {
		row->cfa_off = delta;
		save(row, m->ra, link_place(g, f, delta));
	}
}

/*
 * Fills in the registers that crosscall2 saves on x86, because C wants them back. Since Go 1.17
 * this is done by a macro for all such functions: flags, rdi, rsi, rbp, rbx, r12 to r15, and
 * others.
 */
static void crosscall_x86(struct cfi_row *row)
{
	enum { RBX = 3, RBP = 6, R12 = 12 };
	unsigned int i;

	save(row, RBP, -224);
	save(row, RBX, -216);
	for (i = 0; i < 4; i++)
		save(row, R12 + i, -208 + 8 * (int)i);
}

#define CROSSCALL_INSNS 32 /* first instructions of crosscall2, in which it saves registers */

/*
 * Returns how far from sp crosscall2 saves x30 on arm64, with x29 below it. Its own code
 * tells that. Returns 0 if no instruction in front of @vaddr saves it.
 */
static int32_t saves_link(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr)
{
	const uint32_t str_x30 = 0xf90003fe, stp_x29_x30 = 0xa9007bfd;
	uint64_t at;

	for (at = f->entry; at < vaddr && at - f->entry < 4 * CROSSCALL_INSNS; at += 4) {
		size_t avail;
		const uint8_t *code = elf_image_at(g->img, at, &avail);
		uint32_t v;

		if (!code || avail < 4)
			return 0;
		memcpy(&v, code, 4);
		if ((v & 0xffc003ff) == str_x30)
			return (int32_t)(v >> 10 & 0xfff) * 8;
		if ((v & 0xffe07fff) == stp_x29_x30)
			return (int32_t)(v >> 15 & 0x3f) * 8 + 8;
	}
	return 0;
}

/*
 * Fills in the registers that crosscall2 saves on arm64. x19 to x28 lie at the same place in all
 * releases, x29 and x30 do not.
 */
static void crosscall_arm64(const struct machine *m, int32_t delta, int32_t link,
			    struct cfi_row *row)
{
	enum { X19 = 19, X28 = 28 };
	unsigned int i;

	if (!link || link >= delta) {
		memset(row->type, REG_SAME, sizeof(row->type)); /* nothing is saved yet */
		return;
	}
	save(row, m->ra, link - delta);
	save(row, m->fp, link - delta - 8);
	for (i = X19; i <= X28; i++)
		save(row, i, 32 - delta + 8 * (int)(i - X19));
}

static void crosscall_row(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
			  int32_t delta, struct cfi_row *row)
{
	enum { X86_SAVED = 232, ARM64_SAVED = 192 };
	const struct machine *m = g->img->m;

	if (m == &machine_x86 && delta >= X86_SAVED)
		crosscall_x86(row);
	else if (m == &machine_arm64 && delta >= ARM64_SAVED)
		crosscall_arm64(m, delta, saves_link(g, f, vaddr), row);
}

int gorule_row(const struct gopclntab *g, uint64_t vaddr, struct cfi_row *row)
{
	const struct machine *m = g->img->m;
	struct gofunc f;
	int32_t delta;

	if (!find(g, vaddr, &f, &delta))
		return -SHSTK_END_NO_RULE;
	memset(row, 0, sizeof(*row));
	/* Go's functions preserve no registers but sp, fp and the return address. */
	memset(row->type, REG_UNDEFINED, sizeof(row->type));
	row->type[m->sp] = REG_SAME;
	row->type[m->fp] = REG_SAME;
	row->type[m->ra] = REG_SAME;
	row->cfa_reg = m->sp;
	row->ra = m->ra;
	plain_row(g, &f, delta, row);
	if (gorule_role(g, &f) == GO_CROSSCALL)
		crosscall_row(g, &f, vaddr, delta, row);
	return 0;
}
