/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/run/supervise.h - shadow stacks for programs that nothing can be loaded
 * into: a tracer switches them on, and repairs violations.
 */
#ifndef TOOLS_RUN_SUPERVISE_H
#define TOOLS_RUN_SUPERVISE_H

#include <stdbool.h>

#include "tools/run/report.h"

/**
 * supervise() - start a program under ptrace(2), with shadow stacks on
 * @argv: the program and its arguments.
 * @lock: lock the status.
 * @reporter: where violations go.
 * @started: called once it is known whether they are on: 0 or an errno.
 *
 * Children and what they execute get shadow stacks too. x86 only.
 *
 * Return: the exit status of the program as a shell gives it, or EXIT_OWN.
 */
int supervise(char **argv, bool lock, struct reporter *reporter, void (*started)(int err));

#endif
