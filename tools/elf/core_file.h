/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * core_file.h - reading core files of x86-64, arm64 and riscv64, on any of these machines.
 *
 * A core file may be cut off anywhere and may hold anything. The reader takes only what is in the
 * file, and reads memory only when it is asked for.
 */
#ifndef TOOLS_ELF_CORE_FILE_H
#define TOOLS_ELF_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshstk/shstk.h"
#include "tools/reason.h"

#define CORE_MAX_THREADS 65536
#define CORE_MAX_MAPS 65536

/**
 * struct core_segment - a range of the process's memory (PT_LOAD)
 * @start: first address.
 * @end: first address after it.
 * @dumped: number of bytes from @start that the kernel wrote to the core file; the bytes after them
 *	are the same as in the mapped file.
 * @held: number of bytes from @start that the core file holds: less than @dumped if the file is cut
 *	off.
 * @offset: offset of these bytes in the core file.
 * @exec: the memory was executable.
 * @write: the memory was writable.
 */
struct core_segment {
	uint64_t start;
	uint64_t end;
	uint64_t dumped;
	uint64_t held;
	uint64_t offset;
	bool exec;
	bool write;
};

/**
 * struct core_map - a mapped file (NT_FILE)
 * @start: first address.
 * @end: first address after it.
 * @offset: offset of @start in the file, in bytes.
 * @path: path of the file; lies in struct core's @strings.
 */
struct core_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	const char *path;
};

/**
 * struct core_thread - a thread (NT_PRSTATUS and the notes that follow it)
 * @tid: thread ID.
 * @own_tid: the same in the process's own PID namespace, as its memory has it.
 * @signo: number of the signal that the thread had received.
 * @regs: registers.
 * @call: number of the system call that the thread may have been in.
 * @shadow_on: the thread's shadow stack was on.
 * @shadow: the shadow stack. @shadow.end is the end of the segment that contains it; valid if
 *	@shadow_on.
 */
struct core_thread {
	int tid;
	int own_tid;
	int signo;
	struct shstk_regs regs;
	int64_t call;
	bool shadow_on;
	struct shstk_shadow shadow;
};

/**
 * struct core_signal - the signal that ended the process (NT_SIGINFO)
 * @signo: its number; 0 if the core file does not tell.
 * @code: si_code, which tells where it came from.
 * @addr: address of a fault; valid if @code is positive.
 * @sender: process that sent it; valid if @code is not positive.
 */
struct core_signal {
	int signo;
	int code;
	uint64_t addr;
	int sender;
};

/**
 * struct core - a core file
 * @path: path as given to core_open(); not a copy.
 * @fd: descriptor of the open file.
 * @memory: descriptor of the memory of the process, which still exists (/proc/PID/mem): it has what
 *	the file does not hold. -1 if there is none. Set and closed by who opened the core.
 * @living: number of that process in /proc; valid if @memory is not -1. @pid may differ, as it is of
 *	the process's own PID namespace.
 * @arch: enum shstk_arch.
 * @size: bytes in the file.
 * @wanted: bytes that the file would have if it were complete.
 * @segments: the memory of the process; sorted by address, disjoint.
 * @nr_segments: number of @segments.
 * @maps: the mapped files; sorted by address, disjoint.
 * @nr_maps: number of @maps.
 * @threads: the threads, in the order of the file.
 * @nr_threads: number of @threads.
 * @pid: process ID, 0 if the core file does not tell it.
 * @comm: name of the process, "" if the core file does not tell it.
 * @entry: AT_ENTRY, the address at which the program starts; 0 if not told.
 * @vdso: AT_SYSINFO_EHDR, the address of the vDSO; 0 if not told.
 * @signal: what ended the process.
 * @damaged: number of notes and segments that could not be used.
 * @strings: the paths of NT_FILE, to be freed.
 */
struct core {
	const char *path;
	int fd;
	int memory;
	int living;
	int arch;
	uint64_t size;
	uint64_t wanted;
	struct core_segment *segments;
	size_t nr_segments;
	struct core_map *maps;
	size_t nr_maps;
	struct core_thread *threads;
	size_t nr_threads;
	int pid;
	char comm[17];
	uint64_t entry;
	uint64_t vdso;
	struct core_signal signal;
	unsigned int damaged;
	char *strings;
};

/**
 * core_open() - open a core file and read its headers and notes
 * @path: the file.
 * @ret: receives the core; give it to core_close().
 * @why: receives the reason of a failure, with @path in it.
 *
 * Return: 0 or a negative errno.
 */
int core_open(const char *path, struct core **ret, struct reason *why);

/**
 * core_open_fd() - open a core file by its descriptor
 * @path: name of the file, for messages.
 * @fd: the open file. This function takes it over, also on failure.
 * @ret: receives the core; give it to core_close().
 * @why: receives the reason of a failure, with @path in it.
 *
 * Return: 0 or a negative errno.
 */
int core_open_fd(const char *path, int fd, struct core **ret, struct reason *why);

/**
 * core_close() - release a core
 * @core: a core, or NULL.
 */
void core_close(struct core *core);

/* Returns the name of the core file's machine, such as "x86-64". */
const char *core_machine(const struct core *core);

/**
 * core_signal_name() - name a signal
 * @signo: its number.
 * @buf: receives the name, such as "SIGSEGV", or "signal 40".
 *
 * Return: @buf; NULL if @signo is no signal.
 */
const char *core_signal_name(int signo, char buf[32]);

/**
 * core_segment() - find the segment that contains an address
 * @core: the core.
 * @addr: the address.
 *
 * Return: the segment, or NULL.
 */
const struct core_segment *core_segment(const struct core *core, uint64_t addr);

/**
 * core_map() - find the mapped file at an address
 * @core: the core.
 * @addr: the address.
 *
 * Return: the mapping, or NULL.
 */
const struct core_map *core_map(const struct core *core, uint64_t addr);

/**
 * core_read() - read memory that the core file holds, or that the process still has
 * @core: the core.
 * @addr: address of the first byte.
 * @buf: receives the bytes.
 * @len: bytes wanted.
 *
 * Return: 0, or -EFAULT if not all the bytes are there.
 */
int core_read(const struct core *core, uint64_t addr, void *buf, size_t len);

#endif
