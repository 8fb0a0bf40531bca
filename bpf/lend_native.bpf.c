// SPDX-License-Identifier: GPL-2.0-only
/*
 * lend_native.bpf.c - reads the frames of ordinary users' own processes that are on the native stack
 * (native.h).
 *
 * It is a program of its own because it is large, as native.bpf.c is: where the kernel refuses it, the broker
 * lends the rest.
 */
#define LANGUAGE_NATIVE
#include "lent_reader.h"

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event")
int walk_lent_native(struct bpf_perf_event_data *ctx)
{
	return read_lent(ctx);
}
