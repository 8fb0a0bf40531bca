/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/status/support.h - what supports shadow stacks on this machine: processor, kernel,
 * C library.
 */
#ifndef TOOLS_STATUS_SUPPORT_H
#define TOOLS_STATUS_SUPPORT_H

#include <stdbool.h>

/**
 * enum kernel_config - an option of the running kernel
 * @CONFIG_UNKNOWN: no configuration file could be read.
 */
enum kernel_config {
	CONFIG_UNKNOWN,
	CONFIG_OFF,
	CONFIG_ON,
};

/**
 * struct support - what there is of it
 * @arch: the kernel's word for the architecture.
 * @cpu: the processor has shadow stacks and the kernel tells so.
 * @cpu_flag: how that is called in /proc/cpuinfo or in the hardware capabilities.
 * @config: the kernel was built with them.
 * @config_name: name of that option.
 * @call: shadow stacks can be switched on with this system call: "prctl",
 *	"arch_prctl", or NULL. Tried out in a child process.
 * @call_error: why not, an errno.
 * @generic: prctl(PR_GET_SHADOW_STACK_STATUS) is known to the kernel.
 * @module: the shstk module is loaded.
 * @glibc: version of the C library, or "".
 * @glibc_ready: ld.so can switch them on by itself (it is marked).
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
 * support_try_call() - try whether shadow stacks can be switched on, in a child
 * @call: receives the name of the system call, or NULL.
 *
 * Return: 0, or a negative errno saying why not.
 */
int support_try_call(const char **call);

/**
 * support_read() - find out everything
 * @ret: receives it.
 */
void support_read(struct support *ret);

#endif
