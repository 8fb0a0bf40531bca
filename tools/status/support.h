/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * support.h - finds out what supports shadow stacks on this machine: processor, kernel, C library.
 */
#ifndef TOOLS_STATUS_SUPPORT_H
#define TOOLS_STATUS_SUPPORT_H

#include <stdbool.h>

/**
 * enum kernel_config - an option of the running kernel
 * @CONFIG_UNKNOWN: no configuration file could be read.
 * @CONFIG_OFF: the option is off.
 * @CONFIG_ON: the option is on.
 */
enum kernel_config {
	CONFIG_UNKNOWN,
	CONFIG_OFF,
	CONFIG_ON,
};

/**
 * struct support - what supports shadow stacks
 * @arch: the kernel's name of the architecture.
 * @cpu: the processor has shadow stacks, and the kernel reports it.
 * @cpu_flag: name of that feature in /proc/cpuinfo or in the hardware capabilities.
 * @config: whether the kernel was built with shadow stacks.
 * @config_name: name of that option.
 * @call: system call that enables a shadow stack, "prctl" or "arch_prctl", or NULL. It was tried in
 *	a child process.
 * @call_error: errno of that system call.
 * @generic: the kernel knows prctl(PR_GET_SHADOW_STACK_STATUS).
 * @module: the shstk module is loaded.
 * @glibc: version of the C library, or "".
 * @glibc_ready: ld.so can enable shadow stacks by itself (it is marked).
 */
struct support {
	const char *arch;
	bool cpu;
	const char *cpu_flag;
	enum kernel_config config;
	const char *config_name;
	const char *call;
	int call_error;
	bool generic;
	bool module;
	char glibc[64];
	bool glibc_ready;
};

/**
 * support_try_call() - try in a child whether shadow stacks can be enabled
 * @call: receives the name of the system call, or NULL.
 *
 * Return: 0, or a negative errno that says why not.
 */
int support_try_call(const char **call);

/**
 * support_read() - find out everything
 * @ret: receives the result.
 */
void support_read(struct support *ret);

#endif
