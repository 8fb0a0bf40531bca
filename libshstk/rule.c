// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rule.c - makes a 64-bit unwind rule from a row of call frame information; see rule.h.
 */
#include "rule.h"

uint64_t rule_from_row(const struct machine *m, const struct cfi_row *row)
{
	uint8_t ra_type = row->type[row->ra];
	uint8_t fp_type = row->type[m->fp];
	uint8_t sp_type = row->type[m->sp];
	int64_t fp_off = 0, ra_off = 0;
	uint64_t r;

	if (ra_type == REG_UNDEFINED)
		return RULE_END;
	if (row->signal_frame || row->cfa_expr || row->cfa_load || row->ra != m->ra ||
	    row->cfa_off & 7 || row->cfa_off < 0 || row->cfa_off >= RULE_CFA_MAX ||
	    (sp_type != REG_SAME && !(sp_type == REG_IS_CFA && row->val[m->sp] == 0)))
		return RULE_FULL;

	if (row->cfa_reg == m->sp)
		r = RULE_SP;
	else if (row->cfa_reg == m->fp)
		r = RULE_FP;
	else
		return RULE_FULL;

	if (ra_type == REG_AT_CFA && rule_off_fits(row->val[row->ra])) {
		r |= RULE_RA_SAVED;
		ra_off = row->val[row->ra];
		if (!m->ra_in_reg && ra_off != 8 * m->ra_off)
			return RULE_FULL;
	} else if (ra_type != REG_SAME || !m->ra_in_reg) {
		return RULE_FULL;
	}

	if (fp_type == REG_AT_CFA && rule_off_fits(row->val[m->fp])) {
		r |= RULE_FP_SAVED;
		fp_off = row->val[m->fp];
	} else if (fp_type != REG_SAME) {
		return RULE_FULL;
	}
	return r | RULE_CFA(row->cfa_off) | RULE_RA_AT(ra_off) | RULE_FP_AT(fp_off);
}
