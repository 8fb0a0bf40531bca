/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pass_object.h - hand a BPF program that was loaded, with its maps, to another process. Both are
 * ours, connected by a pair of sockets that keep packets apart (SOCK_SEQPACKET).
 */
#ifndef TOOLS_BPF_PASS_OBJECT_H
#define TOOLS_BPF_PASS_OBJECT_H

#include <stdbool.h>

#include "tools/bpf/load_object.h"

/*
 * Sends a program; or, if @err is not 0, this error and its reason @why. Returns 0 or a negative
 * errno.
 */
int bpf_loaded_send(int socket, const struct bpf_loaded *l, int err, const struct reason *why);

/**
 * bpf_loaded_receive() - receive what bpf_loaded_send() sent
 * @socket: the socket.
 * @wait: wait for it.
 * @what: name of the program in messages; it must stay.
 * @ret: receives the program.
 * @why: receives the reason of a failure.
 *
 * Return: 0; -EAGAIN without @wait if nothing was sent yet; or another negative errno.
 * bpf_loaded_close() is to be called in all cases.
 */
int bpf_loaded_receive(int socket, bool wait, const char *what, struct bpf_loaded *ret,
		       struct reason *why);

#endif
