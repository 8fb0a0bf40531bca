// SPDX-License-Identifier: GPL-2.0-only
/*
 * lend_language.bpf.c - reads the frames of ordinary users' own processes that are in the heap, where lend.bpf.c
 * does not do that itself: on arm64.
 */
#include "lent_reader.h"

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event")
int walk_lent_language(struct bpf_perf_event_data *ctx)
{
	return read_lent(ctx);
}
