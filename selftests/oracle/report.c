// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * report.c - names, causes of misses, KTAP and the table.
 *
 * Misses are grouped by the frame that was unwound wrongly: its module and
 * function (or section where there is no symbol). elfutils answers whether any
 * unwind information covers that frame, and evaluates it for the innermost one:
 * a third opinion beside the two unwinders.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <dwarf.h>

#include "oracle.h"

#define GROUPS 65536
#define KNOWN 512

struct group {
	bool used;
	struct miss miss;
	enum cause cause;
	char module[64];
	char symbol[64];
	u64 count;
	u64 silent;
	u64 guessed;
	u64 switching;
};

struct known {
	char kind[16];
	char module[64];
	char symbol[64];
	char program[64];
	char *why;
	u64 used;
};

static struct group groups[GROUPS];
static unsigned int group_count;
static u64 groups_lost[PEERS];
static struct known known[KNOWN];
static unsigned int known_count;
int verbose;

static const char *const peer_names[] = { "shstk", "libunwind", "framehop" };
static const char *const miss_names[] = { "short", "wrong", "long" };
static const char *const cause_names[] = {
	[CAUSE_NO_INFO] = "no-info", [CAUSE_TABLE] = "table",	[CAUSE_END] = "end",
	[CAUSE_OWN] = "own",	     [CAUSE_SWITCH] = "switch",
};

/* ---- Names ---- */

static Dwfl *dwfl;
static pid_t names_of;

static int no_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **ret)
{
	(void)mod;
	(void)data;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)ret;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = no_debuginfo,
};

void report_forget_names(struct process *p)
{
	if (dwfl && names_of == p->pid) {
		dwfl_end(dwfl);
		dwfl = NULL;
	}
}

static Dwfl_Module *module_at(struct process *p, u64 pc)
{
	if (dwfl && names_of != p->pid) {
		dwfl_end(dwfl);
		dwfl = NULL;
	}
	if (!dwfl) {
		dwfl = dwfl_begin(&callbacks);
		names_of = p->pid;
		if (!dwfl || dwfl_linux_proc_report(dwfl, p->pid) ||
		    dwfl_report_end(dwfl, NULL, NULL))
			return NULL;
	}
	return dwfl_addrmodule(dwfl, pc);
}

static const char *section_at(Dwfl_Module *mod, u64 pc)
{
	GElf_Addr addr = pc, bias;
	Elf_Scn *scn = dwfl_module_address_section(mod, &addr, &bias);
	GElf_Shdr shdr;
	size_t names;

	if (!scn || !gelf_getshdr(scn, &shdr) ||
	    elf_getshdrstrndx(dwfl_module_getelf(mod, &bias), &names))
		return NULL;
	return elf_strptr(dwfl_module_getelf(mod, &bias), names, shdr.sh_name);
}

static void name_of(struct process *p, u64 pc, char *module, char *symbol, size_t size)
{
	Dwfl_Module *mod = module_at(p, pc);
	const char *name, *base, *section;
	GElf_Off off;
	GElf_Sym sym;

	snprintf(module, size, "-");
	snprintf(symbol, size, "-");
	if (!mod)
		return;
	name = dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	base = strrchr(name, '/');
	snprintf(module, size, "%s", base ? base + 1 : name);
	section = section_at(mod, pc);
	name = dwfl_module_addrinfo(mod, pc, &off, &sym, NULL, NULL, NULL);
	if (name && (!sym.st_size || off < sym.st_size) &&
	    (!section || strncmp(section, ".plt", 4)))
		snprintf(symbol, size, "%s", name);
	else if (section)
		snprintf(symbol, size, "%s", section);
}

/**
 * report_never_returns() - tell if a function ends by other means than returning
 * @p: process.
 * @function: its first instruction, or a PLT entry (which is never known).
 */
bool report_never_returns(struct process *p, u64 function)
{
	static const char *const patterns[] = {
		"*longjmp*",
		"_Unwind_*",
		"__cxa_*throw*",
		"exit",
		"_exit",
		"_Exit",
		"abort",
		"*setcontext*",
		"swapcontext*",
		"quick_exit",
		"pthread_exit*",
		"__pthread_exit*",
		"*_croak*",
		"*_die*",
		"__stack_chk_fail",
		"*assert_fail*",
		"exec*",
		"fexecve",
		"setjmp",
		"_setjmp",
		"__sigsetjmp",
		".plt*",
		"-",
	};
	char module[64], symbol[64];

	name_of(p, function, module, symbol, sizeof(symbol));
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		if (!fnmatch(patterns[i], symbol, 0))
			return true;
	return false;
}

/* ---- Causes ---- */

static u64 dwarf_reg(const struct user_regs_struct *r, int n)
{
	const unsigned long long *value = dwarf_register(r, n);

	return value ? *value : 0;
}

/* Evaluates a CFI expression. Returns false for operations that no CFI seen so far uses. */
static bool evaluate(struct process *p, const Dwarf_Op *ops, size_t n,
		     const struct user_regs_struct *r, u64 cfa, u64 *ret)
{
	u64 stack[16] = { 0 };
	int top = -1;

	for (size_t i = 0; i < n; i++) {
		const Dwarf_Op *op = &ops[i];
		bool binary = false;
		u64 right = 0;

		if (top >= 14)
			return false;
		switch (op->atom) {
		case DW_OP_plus:
		case DW_OP_minus:
		case DW_OP_and:
		case DW_OP_mul:
		case DW_OP_shl:
		case DW_OP_ge:
			binary = true;
		}
		if (binary) {
			if (top < 1)
				return false;
			right = stack[top--];
		}
		if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
			stack[++top] = op->atom - DW_OP_lit0;
			continue;
		}
		if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg16) {
			stack[++top] = dwarf_reg(r, op->atom - DW_OP_breg0) + op->number;
			continue;
		}
		switch (op->atom) {
		case DW_OP_call_frame_cfa:
			stack[++top] = cfa;
			break;
		case DW_OP_const1u ... DW_OP_consts:
			stack[++top] = op->number;
			break;
		case DW_OP_bregx:
			stack[++top] = dwarf_reg(r, op->number) + op->number2;
			break;
		case DW_OP_plus_uconst:
			if (top < 0)
				return false;
			stack[top] += op->number;
			break;
		case DW_OP_plus:
			stack[top] += right;
			break;
		case DW_OP_minus:
			stack[top] -= right;
			break;
		case DW_OP_and:
			stack[top] &= right;
			break;
		case DW_OP_mul:
			stack[top] *= right;
			break;
		case DW_OP_shl:
			stack[top] <<= right & 63;
			break;
		case DW_OP_ge:
			stack[top] = (int64_t)stack[top] >= (int64_t)right;
			break;
		case DW_OP_deref:
			if (top < 0 || memory_read(p->memory, stack[top], &stack[top], 8))
				return false;
			break;
		case DW_OP_stack_value:
			break;
		default:
			return false;
		}
	}
	*ret = stack[0];
	return top == 0;
}

/*
 * What elfutils makes of one frame: 0 no information; 1 information that was
 * not evaluated; 2 evaluated to *@ra (0: outermost frame).
 */
static int third_opinion(struct process *p, const struct miss *miss,
			 const struct user_regs_struct *regs, u64 *ra)
{
	u64 pc = miss->pc - miss->is_return, cfa, slot;
	Dwfl_Module *mod = module_at(p, pc);
	Dwarf_Op *ops, mem[3];
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;
	bool signal;
	size_t n;
	int result = 1;

	cfi = mod ? dwfl_module_eh_cfi(mod, &bias) : NULL;
	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame))
		return 0;
	if (miss->is_return || miss->pc != regs->rip)
		goto out;
	if (dwarf_frame_info(frame, NULL, NULL, &signal) < 0)
		goto out;
	if (dwarf_frame_cfa(frame, &ops, &n) || !evaluate(p, ops, n, regs, 0, &cfa))
		goto out;
	if (dwarf_frame_register(frame, 16, mem, &ops, &n))
		goto out;
	if (!n && !ops) { /* an undefined return address: the outermost frame */
		*ra = 0;
		result = 2;
	} else if (n && evaluate(p, ops, n, regs, cfa, &slot) &&
		   (ops[n - 1].atom == DW_OP_stack_value ? (*ra = slot, true) :
							   !memory_read(p->memory, slot, ra, 8))) {
		result = 2;
	}
out:
	free(frame);
	return result;
}

static enum cause find_cause(struct process *p, const struct miss *miss, bool other_right,
			     u64 expected, const struct user_regs_struct *regs)
{
	u64 ra = 0;
	int opinion = third_opinion(p, miss, regs, &ra);

	if (!opinion)
		return miss->kind == MISS_LONG ? CAUSE_END : CAUSE_NO_INFO;
	if (opinion == 2)
		return ra == expected ? CAUSE_OWN : CAUSE_TABLE;
	if (other_right)
		return CAUSE_OWN;
	return miss->kind == MISS_LONG ? CAUSE_END : CAUSE_TABLE;
}

static void print_trace(const char *what, struct process *p, const u64 *pcs, unsigned int n)
{
	char module[64], symbol[64];

	fprintf(stderr, "#   %s\n", what);
	for (unsigned int i = 0; i < n && i < 24; i++) {
		name_of(p, pcs[i], module, symbol, sizeof(symbol));
		fprintf(stderr, "#     %2u %#14lx %s %s\n", i, pcs[i], module, symbol);
	}
}

/**
 * report_switched() - the innermost function loaded another stack pointer
 * @s: its stack.
 * @since: truth_now when the function was entered.
 *
 * What was missed in it since then is counted apart.
 */
void report_switched(struct stack *s, u64 since)
{
	for (enum peer i = 0; i < PEERS; i++) {
		while (s->npending[i]) {
			struct pending *m = &s->pending[i][--s->npending[i]];

			if (m->when < since)
				break;
			m->group->count--;
			m->group->silent -= m->silent;
			m->group->guessed -= m->guessed;
			m->group->switching++;
			tally[i].switching++;
		}
		s->npending[i] = 0;
	}
}

/* Returns the group of a miss, or an unused one; NULL if there are too many groups. */
static struct group *find_group(const struct miss *miss)
{
	unsigned int at = miss->pc * 31 + miss->peer * 7 + miss->kind;

	for (unsigned int tries = 0; tries < 64; tries++) {
		struct group *g = &groups[(at + tries) % GROUPS];

		if (!g->used ||
		    (g->miss.pc == miss->pc && g->miss.peer == miss->peer &&
		     g->miss.kind == miss->kind && g->miss.is_return == miss->is_return))
			return g;
	}
	return NULL;
}

/* Keeps a miss until the function ends in one way or the other. */
static void keep(struct stack *s, struct group *g, const struct miss *miss)
{
	struct pending *all = s->pending[miss->peer];
	unsigned int *n = &s->npending[miss->peer];

	if (*n == MAX_PENDING) {
		memmove(all, all + MAX_PENDING / 2, MAX_PENDING / 2 * sizeof(*all));
		*n = MAX_PENDING / 2;
	}
	all[(*n)++] = (struct pending){
		g,
		truth_now,
		miss->silent,
		miss->guessed,
	};
}

/**
 * report_miss() - count a trace that differs from the truth
 * @p: process.
 * @s: its stack.
 * @miss: which frame, and how.
 * @other_right: the other unwinder had it right.
 * @trace: the unwinder's answer.
 * @count: its entries.
 * @truth: the true trace.
 * @depth: its entries.
 * @regs: registers.
 * @end: how the unwinder says that the trace ended.
 */
void report_miss(struct process *p, struct stack *s, const struct miss *miss, bool other_right,
		 const u64 *trace, unsigned int count, const u64 *truth, unsigned int depth,
		 const struct user_regs_struct *regs, const char *end)
{
	unsigned int i;
	u64 expected = 0;
	struct group *g;

	for (i = 0; i < depth && truth[i] != miss->pc; i++)
		;
	if (i + 1 < depth)
		expected = truth[i + 1];
	g = find_group(miss);
	if (!g) {
		groups_lost[miss->peer]++;
		return;
	}
	if (!g->used) {
		g->used = true;
		g->miss = *miss;
		g->cause = find_cause(p, miss, other_right, expected, regs);
		name_of(p, miss->pc - miss->is_return, g->module, g->symbol, sizeof(g->symbol));
		if (verbose > (int)miss->peer) {
			fprintf(stderr, "# %s %s at %#lx in %s %s (%s), rsp %#llx, end: %s\n",
				peer_names[miss->peer], miss_names[miss->kind], miss->pc, g->module,
				g->symbol, cause_names[g->cause], regs->rsp, end);
			print_trace("true:", p, truth, depth);
			print_trace("got:", p, trace, count);
		}
	}
	if (s->landing) {
		g->switching++;
		tally[miss->peer].switching++;
		return;
	}
	g->count++;
	g->silent += miss->silent;
	g->guessed += miss->guessed;
	keep(s, g, miss);
}

/* ---- Explained misses ---- */

/**
 * report_read_known() - read the list of explained misses
 * @path: lines of: kind module symbol program explanation.
 *
 * Return: 0 or a negative errno; a bad line is named on stderr.
 */
int report_read_known(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];
	int number = 0, n;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		struct known *k = &known[known_count];

		number++;
		line[strcspn(line, "\n")] = 0;
		if (!line[0] || line[0] == '#')
			continue;
		if (known_count == KNOWN ||
		    sscanf(line, "%15s %63s %63s %63s %n", k->kind, k->module, k->symbol,
			   k->program, &n) != 4 ||
		    !line[n]) {
			fprintf(stderr, "%s:%d: want: kind module symbol program explanation\n",
				path, number);
			fclose(f);
			return -EINVAL;
		}
		k->why = strdup(line + n);
		known_count++;
	}
	fclose(f);
	return 0;
}

static struct known *find_known(const struct group *g, const char *program)
{
	for (unsigned int i = 0; i < known_count; i++) {
		struct known *k = &known[i];

		if (!fnmatch(k->kind, miss_names[g->miss.kind], 0) &&
		    !fnmatch(k->module, g->module, 0) && !fnmatch(k->symbol, g->symbol, 0) &&
		    !fnmatch(k->program, program, 0))
			return k;
	}
	return NULL;
}

static int by_function(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int d = x->miss.peer - y->miss.peer;

	if (!d)
		d = x->cause - y->cause;
	if (!d)
		d = strcmp(x->module, y->module);
	if (!d)
		d = strcmp(x->symbol, y->symbol);
	return d ? d : (int)x->miss.kind - (int)y->miss.kind;
}

/* Merges the groups of all places in a function that were missed alike into one line. */
static void merge(void)
{
	unsigned int to = 0;

	for (unsigned int i = 0; i < GROUPS; i++)
		if (groups[i].used)
			groups[group_count++] = groups[i];
	qsort(groups, group_count, sizeof(*groups), by_function);
	for (unsigned int i = 1; i < group_count; i++) {
		if (by_function(&groups[to], &groups[i])) {
			groups[++to] = groups[i];
			continue;
		}
		groups[to].count += groups[i].count;
		groups[to].silent += groups[i].silent;
		groups[to].guessed += groups[i].guessed;
		groups[to].switching += groups[i].switching;
	}
	if (group_count)
		group_count = to + 1;
}

static void print_share(FILE *out, const struct tally *t)
{
	u64 missed = t->checked - t->exact;

	/* The percentage is never rounded up to 100 if there are misses. */
	if (!t->checked)
		fprintf(out, "%11s", "-");
	else
		fprintf(out, "%10.4f%%", missed ? 100.0 * t->exact / t->checked - 0.00005 : 100.0);
}

/**
 * report_finish() - print what was found, as comments, and one line of table
 * @plan: what was run.
 * @stats: how far.
 * @table: receives a line of tab-separated values, or NULL.
 *
 * Return: number of libshstk's misses that are not explained.
 */
unsigned int report_finish(const struct plan *plan, const struct run_stats *stats, FILE *table)
{
	u64 causes[PEERS][CAUSES] = { 0 }, explained = 0, unexplained = 0;

	merge();
	printf("# %s: %lu instructions, %lu calls skipped, %lu threads, %lu processes, %lu lost, %.1f s, %.1f us each\n",
	       plan->name, stats->steps, stats->skipped_calls, stats->threads + stats->processes,
	       stats->processes, stats->lost, stats->seconds,
	       stats->steps ? stats->seconds * 1e6 / stats->steps : 0);
	printf("#   truth: %lu calls, %lu returns, %lu of them odd, %lu signals, %lu stack switches\n",
	       truth_stats.calls, truth_stats.returns, truth_stats.odd_returns, truth_stats.signals,
	       truth_stats.switches);
	for (int i = 0; i < PEERS; i++) {
		if (!tally[i].checked)
			continue;
		printf("#   %-10s exact", peer_names[i]);
		print_share(stdout, &tally[i]);
		printf(" of %lu; end not recognised %lu, with a marked guess %lu, held %lu, missed in a switch %lu\n",
		       tally[i].checked, tally[i].exact_open, tally[i].guessed, tally[i].held,
		       tally[i].switching);
	}
	for (unsigned int i = 0; i < group_count; i++) {
		struct group *g = &groups[i];
		struct known *k = NULL;

		causes[g->miss.peer][g->cause] += g->count;
		causes[g->miss.peer][CAUSE_SWITCH] += g->switching;
		if (verbose && g->switching)
			printf("#   %-9s %-7s %-5s %8lu %s %s\n", peer_names[g->miss.peer],
			       cause_names[CAUSE_SWITCH], miss_names[g->miss.kind], g->switching,
			       g->module, g->symbol);
		if (!g->count)
			continue;
		if (g->miss.peer == PEER_SHSTK) {
			k = find_known(g, plan->name);
			*(k ? &explained : &unexplained) += g->count;
		}
		printf("#   %-9s %-7s %-5s %8lu (%lu silent, %lu marked) %s %s%s%s\n",
		       peer_names[g->miss.peer], cause_names[g->cause], miss_names[g->miss.kind],
		       g->count, g->silent, g->guessed, g->module, g->symbol, k ? ": " : "",
		       k			  ? k->why :
		       g->miss.peer == PEER_SHSTK ? ": NOT EXPLAINED" :
						    "");
	}
	for (int i = 0; i < PEERS; i++)
		if (groups_lost[i])
			printf("#   %lu misses of %s were not grouped\n", groups_lost[i],
			       peer_names[i]);
	unexplained += groups_lost[PEER_SHSTK];
	if (table) {
		fprintf(table, "%s\t%lu", plan->name, stats->steps);
		for (int i = 0; i < PEERS; i++) {
			fprintf(table, "\t%lu\t%lu", tally[i].checked, tally[i].exact);
			for (int c = 0; c < CAUSES; c++)
				fprintf(table, "\t%lu", causes[i][c]);
		}
		fprintf(table, "\t%lu\t%lu\t%lu\n", tally[PEER_SHSTK].exact_open, explained,
			unexplained);
	}
	return unexplained;
}
