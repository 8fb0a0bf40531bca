/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * supervise.h - shadow stacks for programs that nothing can be loaded into: a tracer enables them
 * and repairs violations.
 */
#ifndef TOOLS_RUN_SUPERVISE_H
#define TOOLS_RUN_SUPERVISE_H

#include <stdbool.h>

#include "tools/run/violations.h"

/**
 * supervise() - start a program under ptrace(2) with shadow stacks
 * @argv: the program and its arguments.
 * @lock: lock the shadow stack's status.
 * @reporter: takes the violations.
 * @started: called with 0 or an errno once it is known whether shadow stacks are enabled.
 *
 * Children and the programs that they execute get shadow stacks too. x86 only.
 *
 * Return: the exit status of the program as a shell reports it, or EXIT_OWN.
 */
int supervise(char **argv, bool lock, struct reporter *reporter, void (*started)(int err));

#endif
