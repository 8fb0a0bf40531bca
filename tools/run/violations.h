/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * violations.h - turns violations, as the start-up object of `shstk run` sends them
 * (tools/inject/preload/fault.c), into lines for people.
 */
#ifndef TOOLS_RUN_VIOLATIONS_H
#define TOOLS_RUN_VIOLATIONS_H

#include <stddef.h>
#include <stdint.h>

struct reporter;
struct shstk_symproc;

/**
 * report_address() - name an address as reports do
 * @proc: the process, from libshstk/symbol/symbol.h.
 * @addr: the address.
 * @how: enum shstk_symaddr.
 * @buf: receives "function+0x1c (program+0x115c) at file.c:20", or the parts of it that are known.
 * @size: bytes of @buf.
 */
void report_address(struct shstk_symproc *proc, uint64_t addr, int how, char *buf, size_t size);

/**
 * reporter_create() - open the file that reports are written to
 * @path: file to append to, or NULL for stderr.
 * @ret: receives the reporter; give it to reporter_destroy().
 *
 * Return: 0, or a negative errno.
 */
int reporter_create(const char *path, struct reporter **ret);

/**
 * reporter_take() - print one report, unless its place was reported before
 * @reporter: the reporter.
 * @text: the message, which is changed. It comes from another program: a message that cannot be
 *	parsed is left out.
 */
void reporter_take(struct reporter *reporter, char *text);

/**
 * reporter_destroy() - close the file and free the reporter
 * @reporter: a reporter, or NULL.
 */
void reporter_destroy(struct reporter *reporter);

#endif
