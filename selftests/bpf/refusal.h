/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * refusal.h - the status with which a test ends whose BPF program could not be loaded: a machine may
 * permit none, but a program that the kernel's verifier refuses is a defect. "Invalid argument" is not
 * counted: a kernel that is built without such programs says it, too.
 *
 * selftests/loader/cases.sh and selftests/language/permitted.py say the same to scripts.
 */
#ifndef SELFTESTS_BPF_REFUSAL_H
#define SELFTESTS_BPF_REFUSAL_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the kernel is locked down so that no program may read its memory. */
static inline bool is_locked_down(void)
{
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char text[128] = "";
	bool ret;

	if (!file)
		return false;
	ret = fgets(text, sizeof(text), file) && strstr(text, "[confidentiality]");
	fclose(file);
	return ret;
}

/* Returns 1 if @why, which tools/bpf/load_object.c told, is a refusal by the verifier, else 4. */
static inline int status_without_program(const char *why)
{
	static const char failed[] = "BPF program load failed";
	const char *at = strstr(why, failed);
	bool refused = at && strncmp(at + strlen(failed), ": Invalid argument", 18);

	return refused && !is_locked_down() ? 1 : 4;
}

#endif
