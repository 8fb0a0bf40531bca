// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * support.c - finds out what supports shadow stacks on this machine. The answer that counts is
 * found by a test: a child enables its own shadow stack.
 */
#include <elf.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/elf/objects.h"
#include "tools/status/support.h"

#ifndef PR_GET_SHADOW_STACK_STATUS
#define PR_GET_SHADOW_STACK_STATUS 74
#define PR_SET_SHADOW_STACK_STATUS 75
#endif
#define ARCH_SHSTK_ENABLE 0x5001

/*
 * Enables a shadow stack and exits, in one frame, because it must not return. The exit status is
 * the errno.
 */
#if defined(__x86_64__)
#define CALL_NAME "arch_prctl"
#define CONFIG_NAME "CONFIG_X86_USER_SHADOW_STACK"
#define CPU_FLAG "user_shstk"
static __attribute__((noinline, noreturn)) void try_here(void)
{
	long ret;

	__asm__ volatile("syscall\n\t"
			 "neg %%eax\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov $231, %%eax\n\t"
			 "syscall"
			 : "=a"(ret)
			 : "0"((long)SYS_arch_prctl), "D"((long)ARCH_SHSTK_ENABLE), "S"(1l)
			 : "rcx", "r11", "memory");
	__builtin_unreachable();
}
#elif defined(__aarch64__)
#define CALL_NAME "prctl"
#define CONFIG_NAME "CONFIG_ARM64_GCS"
#define CPU_FLAG "gcs"
static __attribute__((noinline, noreturn)) void try_here(void)
{
	register long x0 __asm__("x0") = PR_SET_SHADOW_STACK_STATUS;
	register long x1 __asm__("x1") = 1;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;
	register long x8 __asm__("x8") = SYS_prctl;

	__asm__ volatile("svc #0\n\t"
			 "neg w0, w0\n\t"
			 "mov x8, #94\n\t"
			 "svc #0"
			 : "+r"(x0), "+r"(x8)
			 : "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	__builtin_unreachable();
}
#else
#define CALL_NAME "prctl"
#define CONFIG_NAME "CONFIG_RISCV_USER_CFI"
#define CPU_FLAG "zicfiss"
static __attribute__((noreturn)) void try_here(void)
{
	_exit(EOPNOTSUPP);
}
#endif

int support_try_call(const char **call)
{
	int status;
	pid_t pid;

	*call = NULL;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		try_here();
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	if (!WIFEXITED(status))
		return -EFAULT;
	if (WEXITSTATUS(status))
		return -WEXITSTATUS(status);
	*call = CALL_NAME;
	return 0;
}

/* Returns whether @word is one of the blank-separated words of a line that begins with @key. */
static bool file_has_word(const char *path, const char *key, const char *word)
{
	char *line = NULL, *save, *w;
	bool found = false;
	size_t room = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return false;
	while (!found && getline(&line, &room, file) > 0) {
		if (strncmp(line, key, strlen(key)))
			continue;
		for (w = strtok_r(line, " \t\n", &save); w && !found;
		     w = strtok_r(NULL, " \t\n", &save))
			found = !strcmp(w, word);
	}
	free(line);
	fclose(file);
	return found;
}

static bool cpu_has(void)
{
#if defined(__aarch64__)
	return getauxval(AT_HWCAP) & 1ul << 32;
#elif defined(__x86_64__)
	return file_has_word("/proc/cpuinfo", "flags", CPU_FLAG);
#else
	return file_has_word("/proc/cpuinfo", "isa", CPU_FLAG);
#endif
}

/*
 * Reads the kernel's configuration from /boot, where Debian installs it beside the kernel, or from
 * its modules' folder.
 */
static enum kernel_config config_of_kernel(void)
{
	struct utsname name;
	char path[200], on[64];

	if (uname(&name))
		return CONFIG_UNKNOWN;
	snprintf(path, sizeof(path), "/boot/config-%s", name.release);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), "/lib/modules/%s/config", name.release);
	if (access(path, R_OK))
		return CONFIG_UNKNOWN;
	snprintf(on, sizeof(on), "%s=y", CONFIG_NAME);
	return file_has_word(path, CONFIG_NAME, on) ? CONFIG_ON : CONFIG_OFF;
}

/* Returns whether the C library that this command uses, which is that of the system, is marked. */
static bool libc_marked(void)
{
	const struct object *libc;
	struct objects set;
	bool marked;

	if (objects_load("/proc/self/exe", NULL, &set))
		return false;
	libc = objects_find(&set, "libc.so.6");
	marked = libc && libc->marked;
	objects_deinit(&set);
	return marked;
}

void support_read(struct support *ret)
{
	uint64_t status;

	memset(ret, 0, sizeof(*ret));
	ret->arch = machine_name(machine_own());
	ret->cpu = cpu_has();
	ret->cpu_flag = CPU_FLAG;
	ret->config = config_of_kernel();
	ret->config_name = CONFIG_NAME;
	ret->call_error = -support_try_call(&ret->call);
	ret->generic = !prctl(PR_GET_SHADOW_STACK_STATUS, &status, 0, 0, 0);
	ret->module = !access("/sys/module/shstk", F_OK);
	snprintf(ret->glibc, sizeof(ret->glibc), "%s", gnu_get_libc_version());
	ret->glibc_ready = libc_marked();
}
