// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gorule.c - rules from Go's table of functions; see gorule.h.
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

/* Written in assembler: a function of that name may have been in Go before. */
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
	return roles[i].role != GO_VDSO_CALL || is_assembler(g, f) ? roles[i].role : GO_ORDINARY;
}

/* How a frame that is @delta bytes large is left, on x86: frames keep rbp at their top. */
static uint64_t rule_x86(int32_t delta)
{
	uint64_t rule = RULE_SP | RULE_CFA(delta + 8) | RULE_RA_SAVED | RULE_RA_AT(-8);

	return delta ? rule | RULE_FP_SAVED | RULE_FP_AT(-16) : rule;
}

/*
 * On arm64: the return address lies at sp. The frame pointer lies below sp, outside of what
 * may be read as the frame, and is not followed: no rule of Go's needs it.
 */
static uint64_t rule_arm64(int32_t delta)
{
	return delta ? RULE_SP | RULE_CFA(delta) | RULE_RA_SAVED | RULE_RA_AT(-delta) : RULE_SP;
}

static uint64_t rule_of(const struct gopclntab *g, int32_t delta)
{
	if (delta + 8 >= RULE_OFF_MAX)
		return RULE_FULL;
	return g->img->m == &machine_x86 ? rule_x86(delta) : rule_arm64(delta);
}

/* The function at @vaddr and how far sp is from its start. */
static bool find(const struct gopclntab *g, uint64_t vaddr, struct gofunc *f, int32_t *delta)
{
	return shstk_gopclntab_find(g, vaddr, f) && shstk_gopclntab_spdelta(g, f, vaddr, delta);
}

uint64_t gorule_plain(const struct gopclntab *g, uint64_t vaddr)
{
	struct gofunc f;
	int32_t delta;

	return find(g, vaddr, &f, &delta) ? rule_of(g, delta) : RULE_NONE;
}

uint64_t gorule_at(const struct gopclntab *g, uint64_t vaddr)
{
	struct gofunc f;
	int32_t delta;

	if (!find(g, vaddr, &f, &delta))
		return RULE_NONE;
	switch (gorule_role(g, &f)) {
	case GO_ORDINARY:
		return rule_of(g, delta);
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

/* A frame as Go's compiler makes it. */
static void plain_row(const struct machine *m, int32_t delta, struct cfi_row *row)
{
	if (m == &machine_x86) {
		row->cfa_off = delta + 8;
		save(row, m->ra, -8);
		if (delta)
			save(row, m->fp, -16);
	} else if (delta) {
		row->cfa_off = delta;
		save(row, m->ra, -delta);
	}
}

/*
 * crosscall2 saves what C wants to have back, since Go 1.17 on x86 by a macro for all such
 * functions: flags, rdi, rsi, rbp, rbx, r12 to r15, and others.
 */
static void crosscall_row(const struct machine *m, int32_t delta, struct cfi_row *row)
{
	enum { RBX = 3, RBP = 6, R12 = 12, X86_SAVED = 232, X19 = 19, X28 = 28, ARM64_SAVED = 192 };
	unsigned int i;

	if (m == &machine_x86 && delta >= X86_SAVED) {
		save(row, RBP, -224);
		save(row, RBX, -216);
		for (i = 0; i < 4; i++)
			save(row, R12 + i, -208 + 8 * (int)i);
	} else if (m == &machine_arm64 && delta >= ARM64_SAVED) {
		save(row, m->ra, -8);
		save(row, m->fp, -16);
		for (i = X19; i <= X28; i++)
			save(row, i, -160 + 8 * (int)(i - X19));
	}
}

int gorule_row(const struct gopclntab *g, uint64_t vaddr, struct cfi_row *row)
{
	const struct machine *m = g->img->m;
	struct gofunc f;
	int32_t delta;

	if (!find(g, vaddr, &f, &delta))
		return -SHSTK_END_NO_RULE;
	memset(row, 0, sizeof(*row));
	/* Go's functions preserve nothing else. */
	memset(row->type, REG_UNDEFINED, sizeof(row->type));
	row->type[m->sp] = REG_SAME;
	row->type[m->fp] = REG_SAME;
	row->type[m->ra] = REG_SAME;
	row->cfa_reg = m->sp;
	row->ra = m->ra;
	plain_row(m, delta, row);
	if (gorule_role(g, &f) == GO_CROSSCALL)
		crosscall_row(m, delta, row);
	return 0;
}
