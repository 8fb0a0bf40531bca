// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * no_batch.c - executes a command for which the kernel puts nothing into BPF maps by one call for
 * several places, as if it had no memory for that
 *
 *	no_batch COMMAND [ARGUMENT...]
 *
 * Ends with 4 if there are no filters of system calls here.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER offsetof(struct seccomp_data, nr)
#define FIRST \
	offsetof(struct seccomp_data, args) /* its lower half: both machines are little-endian */

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIRST),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_MAP_UPDATE_BATCH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	if (argc < 2)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 4;
	execvp(argv[1], argv + 1);
	return 127;
}
