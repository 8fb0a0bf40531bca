/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/run/report.h - violations, as the start-up object of `shstk run` sends
 * them (tools/inject/preload/fault.c), to lines that a person reads.
 */
#ifndef TOOLS_RUN_REPORT_H
#define TOOLS_RUN_REPORT_H

#include <stddef.h>
#include <stdint.h>

struct reporter;
struct shstk_symproc;

/**
 * report_address() - name an address as reports do
 * @proc: the process, from libshstk/symbol/symbol.h.
 * @addr: the address.
 * @how: enum shstk_symaddr.
 * @buf: receives "function+0x1c (program+0x115c) at file.c:20", or as much of
 *	that as is known.
 * @size: bytes in @buf.
 */
void report_address(struct shstk_symproc *proc, uint64_t addr, int how, char *buf, size_t size);

/**
 * reporter_create() - open the place reports go to
 * @path: file to append to, or NULL: stderr.
 * @ret: receives the reporter; give it to reporter_destroy().
 *
 * Return: 0, or a negative errno.
 */
int reporter_create(const char *path, struct reporter **ret);

/**
 * reporter_take() - print one report, if its site was not reported before
 * @reporter: the reporter.
 * @text: the message; it is cut up in place. Comes from another program:
 *	whatever can't be understood is left out.
 */
void reporter_take(struct reporter *reporter, char *text);

/**
 * reporter_destroy() - close
 * @reporter: a reporter, or NULL.
 */
void reporter_destroy(struct reporter *reporter);

#endif
