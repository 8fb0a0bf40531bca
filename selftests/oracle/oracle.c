// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oracle.c - compare unwinders with the true stack, instruction by instruction.
 *
 *	oracle [options] [--] PROGRAM [ARGUMENT...]
 *
 *	-n NAME     how the program is called in the report
 *	-i FILE     its standard input
 *	-f start    from the first instruction of the process (default), or
 *	-f entry    from the program's entry point
 *	-s STEPS    instructions to check at most
 *	-c COUNT    step that many calls of each function, then sample; 0: all
 *	-w STEPS    after so many, run on until one of the frames returns
 *	-j STEPS    send SIGUSR1 before every so many instructions
 *	-t SECONDS  wall clock limit
 *	-b HOW      breakpoints: "best" (default), "hardware", "int3" or "step"
 *	-k FILE     explained misses
 *	-o FILE     append a line of the table
 *	-u PEERS    "shstk", "libunwind", "both", or "all": framehop too
 *	-m COUNT    fail if fewer instructions were checked
 *	-v          print the first trace of each miss of libshstk; -vv of libunwind,
 *		    -vvv of framehop too
 *
 * Ends with 0 if every miss of libshstk is explained, 1 if not, 4 if nothing
 * could be checked.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

static int usage(void)
{
	fprintf(stderr, "usage: oracle [options] [--] PROGRAM [ARGUMENT...]\n");
	return 2;
}

static int choose_breakpoints(const char *name, enum breakpoints *ret)
{
	static const char *const names[] = {
		[BREAK_BEST] = "best",
		[BREAK_HARDWARE] = "hardware",
		[BREAK_INT3] = "int3",
		[BREAK_STEP] = "step",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(name, names[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int choose_peers(const char *name)
{
	bool all = !strcmp(name, "all");
	bool both = all || !strcmp(name, "both");

	use_peer[PEER_SHSTK] = both || !strcmp(name, "shstk");
	use_peer[PEER_LIBUNWIND] = both || !strcmp(name, "libunwind");
	if (all && framehop_choose()) {
		fprintf(stderr, "oracle: no libframehop-peer.so\n");
		return -ENOENT;
	}
	return use_peer[PEER_SHSTK] || use_peer[PEER_LIBUNWIND] ? 0 : -EINVAL;
}

/* Keeps all on one CPU, as stopping and resuming are cheapest without a wake-up across CPUs. */
static void stay_on_one_cpu(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	struct plan plan = {
		.from = "start",
		.steps = UINT64_MAX,
		.seconds = 86400,
	};
	const char *known = NULL, *output = NULL;
	struct run_stats stats;
	u64 at_least = 1;
	FILE *table = NULL;
	unsigned int bad;
	int opt, err;

	while ((opt = getopt(argc, argv, "+n:i:f:s:c:w:j:t:k:o:u:m:b:v")) != -1) {
		switch (opt) {
		case 'n':
			plan.name = optarg;
			break;
		case 'i':
			plan.input = optarg;
			break;
		case 'f':
			plan.from = optarg;
			break;
		case 's':
			plan.steps = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			plan.fresh = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			plan.window = strtoul(optarg, NULL, 0);
			break;
		case 'j':
			plan.inject = strtoul(optarg, NULL, 0);
			break;
		case 't':
			plan.seconds = strtoul(optarg, NULL, 0);
			break;
		case 'k':
			known = optarg;
			break;
		case 'o':
			output = optarg;
			break;
		case 'u':
			if (choose_peers(optarg))
				return usage();
			break;
		case 'b':
			if (choose_breakpoints(optarg, &plan.breakpoints))
				return usage();
			break;
		case 'm':
			at_least = strtoull(optarg, NULL, 0);
			break;
		case 'v':
			verbose++;
			break;
		default:
			return usage();
		}
	}
	if (optind == argc)
		return usage();
	plan.argv = argv + optind;
	if (!plan.name)
		plan.name = argv[optind];
	err = known ? report_read_known(known) : 0;
	if (err) {
		fprintf(stderr, "oracle: %s: %s\n", known, strerror(-err));
		return 2;
	}
	if (output && !(table = fopen(output, "a"))) {
		fprintf(stderr, "oracle: %s: %s\n", output, strerror(errno));
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	stay_on_one_cpu();
	err = run_plan(&plan, &stats);
	if (err) {
		fprintf(stderr, "oracle: %s: %s\n", plan.argv[0], strerror(-err));
		return 4;
	}
	bad = report_finish(&plan, &stats, table);
	if (table)
		fclose(table);
	if (stats.steps < at_least) {
		printf("# only %lu instructions, want %lu; wait status %#x\n", stats.steps,
		       at_least, stats.exit_status);
		return 1;
	}
	return bad ? 1 : 0;
}
