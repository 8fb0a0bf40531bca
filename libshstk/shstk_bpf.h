/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_bpf.h - what a loader of BPF programs with exact user stacks needs (libshstk-bpf).
 *
 * A BPF program that is linked with shstk-stack.bpf.o (shstk_stack.bpf.h) walks stacks by tables of
 * unwind rules. The loader of that program calls shstk_bpf_open(): a process is started that makes
 * these tables for it, of each file that a walk meets, until shstk_bpf_close() or the end of the
 * loader. Names of addresses are found by libshstk-symbolize (shstk_symbolize.h).
 *
 * See shstk_bpf(3).
 */
#ifndef SHSTK_BPF_H
#define SHSTK_BPF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHSTK_BPF_API __attribute__((visibility("default")))

/* A process that makes tables. */
struct shstk_bpf;

/**
 * struct shstk_bpf_opts - how tables are made
 * @size: sizeof(struct shstk_bpf_opts), set by the caller.
 * @timeout: seconds that the beginning may take; 0: 60.
 * @command: path of the command shstk; NULL: where it was installed with the library.
 * @cache: absolute path of a folder in which tables are kept; NULL: that of all of the machine.
 * @messages: descriptor to which the process writes what it has to say, as 2, standard error; 0: to
 *	none.
 * @reserved: 0.
 *
 * Fields behind @size are never read.
 */
struct shstk_bpf_opts {
	uint32_t size;
	uint32_t timeout;
	const char *command;
	const char *cache;
	int32_t messages;
	uint32_t reserved;
};

/**
 * shstk_bpf_open() - have tables made for the BPF programs of this process
 * @opts: how, or NULL.
 * @ret: receives the handle of the process that makes them; NULL if there is none.
 * @why: receives the reason of a failure, one line, or an empty string; may be NULL.
 * @why_size: bytes of @why.
 *
 * Starts `shstk rules serve --bpf`, which ends when this process ends, in whatever way, or calls
 * shstk_bpf_close(). The maps with the tables are pinned in /sys/fs/bpf: all programs on the machine
 * share them. If another process makes tables already, that is as good, and the new one takes its
 * place when it ends. The BPF program may be loaded before this call or after it.
 *
 * The process is no child of this one: no wait(2) finds it. It needs the rights that the BPF program
 * needs, and that of reading the files of the processes that are walked: those of root.
 *
 * Context: several threads may call it at once. Not async-signal-safe. Not a cancellation point.
 * Blocks until tables are made, at most @opts->timeout seconds, and after a failure until the process has
 * ended, at most 10 more.
 * Return: 0; -EINVAL: @opts is not valid; -ENOENT: the command is not there; -EPERM: missing rights;
 * -EOPNOTSUPP: the kernel is too old or has no BTF, or libbpf.so.1 is missing; -ENODEV: no BPF file
 * system is mounted in /sys/fs/bpf; -EPROTO: the maps there are of another version; -ETIMEDOUT;
 * -ECHILD: the process ended without a reason; or another negative errno.
 */
SHSTK_BPF_API int shstk_bpf_open(const struct shstk_bpf_opts *opts, struct shstk_bpf **ret,
				 char *why, size_t why_size);

/**
 * shstk_bpf_fd() - get a descriptor that tells when to call shstk_bpf_check()
 * @b: the handle.
 *
 * Return: a descriptor for poll(2) and epoll(7): it can be read when something has changed.
 */
SHSTK_BPF_API int shstk_bpf_fd(const struct shstk_bpf *b);

/**
 * shstk_bpf_check() - find out whether tables are still made
 * @b: the handle.
 * @why: receives the reason if not, as in shstk_bpf_open().
 * @why_size: bytes of @why.
 *
 * Where they are not, walks go on with the tables that there are. Close the handle, and open another
 * one.
 *
 * Context: one thread at a time for each handle. Does not block.
 * Return: 0: they are; -ECHILD: the process has ended, as if it was killed, or this process was made
 * by fork(2) after shstk_bpf_open(); or the negative errno with which it ended.
 */
SHSTK_BPF_API int shstk_bpf_check(struct shstk_bpf *b, char *why, size_t why_size);

/**
 * shstk_bpf_close() - end the process that makes tables, and release the handle
 * @b: the handle, which becomes NULL; if it is NULL already, nothing is done.
 *
 * The tables stay in their maps. In a process that was made by fork(2) after shstk_bpf_open(), the handle
 * is released, and tables are made on for the process that opened it.
 *
 * Context: not a cancellation point. Blocks until the process has ended, at most 10 seconds.
 */
SHSTK_BPF_API void shstk_bpf_close(struct shstk_bpf **b);

#ifdef __cplusplus
}
#endif

#endif
