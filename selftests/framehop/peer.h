/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peer.h - framehop, for programs in C that compare it with libshstk.
 *
 * peer.rs is built into libframehop-peer.so where Debian packages framehop, and
 * loaded at run time; modules.c tells it what a process has mapped.
 */
#ifndef FRAMEHOP_PEER_H
#define FRAMEHOP_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct framehop;

/**
 * struct framehop_section - a section of a module, copied when it is added
 * @data: its bytes, or NULL: there is none.
 * @size: their number.
 * @addr: its address as the file states it.
 */
struct framehop_section {
	const void *data;
	size_t size;
	uint64_t addr;
};

/**
 * struct framehop_module - what framehop is told of a mapped file
 * @start: first address, in the process.
 * @end: behind the last one.
 * @bias: addresses in the process minus those that the file states.
 * @eh_frame: .eh_frame.
 * @eh_frame_hdr: .eh_frame_hdr; without, framehop makes an index.
 * @debug_frame: .debug_frame; framehop reads it if there is no .eh_frame.
 * @text: .text, only the address and the size.
 * @got: .got, only the address and the size.
 */
struct framehop_module {
	uint64_t start;
	uint64_t end;
	uint64_t bias;
	struct framehop_section eh_frame;
	struct framehop_section eh_frame_hdr;
	struct framehop_section debug_frame;
	struct framehop_section text;
	struct framehop_section got;
};

struct framehop_regs {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
};

/**
 * typedef framehop_read_fn - read one word of the traced process
 *
 * Return: 0, anything else if it cannot be read.
 */
typedef int (*framehop_read_fn)(void *arg, uint64_t addr, uint64_t *word);

/**
 * struct framehop_api - the functions of libframehop-peer.so
 * @create: an unwinder without modules.
 * @destroy: and its end.
 * @add: tell it of a module.
 * @miss: make its cache of rules worthless.
 * @trace: a trace from @regs; without @read, of the calling thread, whose stack
 *	ends at @arg. Returns the number of addresses, *@end what framehop said: 0
 *	the end, or an error.
 */
struct framehop_api {
	struct framehop *(*create)(void);
	void (*destroy)(struct framehop *f);
	void (*add)(struct framehop *f, const struct framehop_module *m);
	void (*miss)(struct framehop *f);
	unsigned int (*trace)(struct framehop *f, const struct framehop_regs *regs,
			      framehop_read_fn read, void *arg, uint64_t *pcs, unsigned int max,
			      int *end);
};

/* modules.c */
const struct framehop_api *framehop_load(void);
int framehop_add_process(const struct framehop_api *api, struct framehop *f, pid_t pid);

#endif /* FRAMEHOP_PEER_H */
