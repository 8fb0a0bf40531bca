// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * broker_seed.c - packets for broker_fuzz to start from: a request for an event, for a lease and what belongs to it,
 * and answers, as broker_fuzz.c describes inputs.
 *
 * usage: broker_seed FILE
 */
#include <err.h>
#include <stdio.h>
#include <sys/types.h>

#include "tools/perf/borrow_protocol.h"

/* The lease that is given first. */
#define FIRST (2 * LEASES - 1)

/* Steps in broker_fuzz.c: asks, asks and leaves, answers; of these further by the number of descriptors. */
enum { ASKS, ASKS_AND_LEAVES, ANSWERS, KINDS };

static void put(FILE *out, uint8_t what, const void *packet, size_t size)
{
	const struct {
		uint8_t what, kernel;
		uint16_t size;
	} step = { what, 0, (uint16_t)size };

	if (fwrite(&step, sizeof(step), 1, out) != 1 || fwrite(packet, size, 1, out) != 1)
		err(1, "write");
}

static void put_requests(FILE *out)
{
	static const struct broker_request requests[] = {
		{
			.kind = BROKER_CPU_CLOCK,
			.tid = 7,
			.freq = 99,
			.copy = 512,
			.max_stack = 127,
		},
		{ .kind = BROKER_SWITCHES, .flags = BROKER_TELLS, .tid = 7, .freq = 1 },
		{ .kind = BROKER_LEASE, .max_stack = 127 },
		{ .kind = BROKER_OUTPUT, .cpu = 1, .lease = FIRST },
	};

	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		struct broker_request r = requests[i];

		r.version = BROKER_VERSION;
		put(out, ASKS, &r, sizeof(r));
	}
}

/* What is told of a process is taken when its maps are shown, which is the second time. */
static void put_processes(FILE *out)
{
	struct broker_process p = {
		.request = {
			.version = BROKER_VERSION,
			.kind = BROKER_PROCESS,
			.tid = 7,
			.lease = FIRST,
		},
		.layout = LANGUAGE_LAYOUT,
		.process = { .number = 1 },
	};

	put(out, ASKS, &p, sizeof(p));
	put(out, ASKS, &p, sizeof(p));
	/* By another user. */
	put(out, ASKS + KINDS, &p, sizeof(p));
	put(out, ASKS_AND_LEAVES, &p, sizeof(p));
}

/* More leases than two ids have that count as one user, first by one of them and then by the other. */
static void put_leases(FILE *out)
{
	const struct broker_request r = {
		.version = BROKER_VERSION,
		.kind = BROKER_LEASE,
		.max_stack = 127,
	};

	for (int i = 0; i < 24; i++)
		put(out, ASKS, &r, sizeof(r));
	for (int i = 0; i < 20; i++)
		put(out, ASKS + KINDS, &r, sizeof(r));
}

static void put_answers(FILE *out)
{
	struct broker_reply reply = { .version = BROKER_VERSION };

	for (unsigned int nr = 0; nr < 4; nr++)
		put(out, (uint8_t)(ANSWERS + nr * KINDS), &reply, sizeof(reply));
	reply.flags = BROKER_DONE;
	put(out, ANSWERS, &reply, sizeof(reply));
}

int main(int argc, char **argv)
{
	FILE *out;

	if (argc != 2)
		errx(2, "usage: broker_seed FILE");
	out = fopen(argv[1], "w");
	if (!out)
		err(1, "%s", argv[1]);
	put_requests(out);
	put_processes(out);
	put_answers(out);
	put_leases(out);
	if (fclose(out))
		err(1, "%s", argv[1]);
	return 0;
}
