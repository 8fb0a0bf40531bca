/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk.h - stack traces from shadow stacks: the whole public API.
 *
 * A trace is an array of code addresses, innermost first. Where the thread has
 * a hardware shadow stack, the trace is copied from there. Elsewhere the library
 * keeps a software shadow stack (the last trace, verified slot by slot) on top of
 * an exact unwinder. The caller does not have to choose: the same call uses the
 * best source there is, and reports in struct shstk_info which source it used and
 * how the trace ended.
 *
 * Addresses: entry 0 of shstk_capture() is the return address into the caller
 * of shstk_capture(); entry 0 of the other calls is the program counter of the
 * given registers. All following entries are return addresses (the instruction
 * after the call), except those marked SHSTK_MARK_PC: the program counter of
 * code that a signal interrupted. Pointer authentication codes are stripped.
 *
 * Errors are returned as negative errno values; errno itself is never changed.
 */
#ifndef SHSTK_H
#define SHSTK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHSTK_VERSION_MAJOR 0
#define SHSTK_VERSION_MINOR 1

#ifndef SHSTK_API
#define SHSTK_API __attribute__((visibility("default")))
#endif

/**
 * enum shstk_source - where the entries of a trace came from
 * @SHSTK_SOURCE_NONE: no entries were captured.
 * @SHSTK_SOURCE_HARDWARE: copied from the shadow stack (x86 CET, arm64 GCS,
 *	riscv Zicfiss).
 * @SHSTK_SOURCE_MEMO: the software shadow stack: the youngest frames were unwound;
 *	the others were read again from the stack slots of the thread's last trace
 *	and found unchanged.
 * @SHSTK_SOURCE_WALK: every frame was unwound by its unwind rule.
 */
enum shstk_source {
	SHSTK_SOURCE_NONE = 0,
	SHSTK_SOURCE_HARDWARE = 1,
	/* shstk_marker.h defines SHSTK_SOURCE_MARKER as 2. */
	SHSTK_SOURCE_MEMO = 3,
	SHSTK_SOURCE_WALK = 4,
};

/**
 * enum shstk_end - how a trace ended
 * @SHSTK_END_COMPLETE: the outermost frame was reached and recognised.
 * @SHSTK_END_CAPACITY: the caller's array is full; there are more frames.
 * @SHSTK_END_NO_RULE: no unwind information covers the last entry, and no
 *	frame-pointer record could be verified there.
 * @SHSTK_END_BAD_RULE: the unwind information of the last entry is corrupt or
 *	uses a feature that the library does not support.
 * @SHSTK_END_BAD_STACK: the next stack slot lies outside the stack, is misaligned
 *	or does not lie further out than the last one.
 * @SHSTK_END_BAD_PC: the next return address is not an address of code.
 * @SHSTK_END_NO_REGISTER: the unwind rule needs a register whose value is not known.
 * @SHSTK_END_READ: the memory could not be read (remote and offline captures).
 * @SHSTK_END_BOUNDS: the end of the shadow stack is not known, so the trace was cut
 *	at the last page that is safe to read.
 */
enum shstk_end {
	SHSTK_END_COMPLETE = 0,
	SHSTK_END_CAPACITY = 1,
	SHSTK_END_NO_RULE = 2,
	SHSTK_END_BAD_RULE = 3,
	SHSTK_END_BAD_STACK = 4,
	SHSTK_END_BAD_PC = 5,
	SHSTK_END_NO_REGISTER = 6,
	SHSTK_END_READ = 7,
	SHSTK_END_BOUNDS = 8,
};

/**
 * DOC: marks
 *
 * A capture can store one byte of marks for each entry (&struct shstk_opts.marks).
 *
 * SHSTK_MARK_PC: the entry is an interrupted program counter, not a return
 *	address. Symbolise it as it is; subtract one from a return address first.
 * SHSTK_MARK_SIGNAL: the entry is the signal return trampoline.
 * SHSTK_MARK_GUESS: the entry was found by a verified heuristic (frame-pointer
 *	record, return address on top of the stack), not by an unwind rule.
 * SHSTK_MARK_GAP: a signal interrupted a callee of this frame, and the interrupted
 *	program counter is not known: one entry is missing in front of this one.
 *	On riscv the interrupted program counter may be known, but not whether the
 *	return address of that function was already on the shadow stack: one entry
 *	may be missing.
 */
#define SHSTK_MARK_PC 0x01
#define SHSTK_MARK_SIGNAL 0x02
#define SHSTK_MARK_GUESS 0x04
#define SHSTK_MARK_GAP 0x08

/*
 * The number of bytes of stack that a capture uses. A thread or coroutine that is sampled
 * by a signal needs this much stack below its own deepest frame, plus room for the kernel's
 * signal frame (see AT_MINSIGSTKSZ in getauxval(3)).
 */
#define SHSTK_STACK_NEED 1536

/* Bits of &struct shstk_opts.sources: the sources that a capture may use. */
#define SHSTK_USE_HARDWARE (1u << SHSTK_SOURCE_HARDWARE)
#define SHSTK_USE_MEMO (1u << SHSTK_SOURCE_MEMO)
#define SHSTK_USE_WALK (1u << SHSTK_SOURCE_WALK)

/*
 * Bit of &struct shstk_opts.flags: each capture asks the kernel whether all of the stack
 * from the capture's frame outwards can be read. Without this bit, a thread's stack must
 * stay readable after its first capture: if the program removes the access to a page of it
 * (for a guard page or a garbage collector's barrier), the next capture may die by SIGSEGV.
 * The check is one system call for each capture, madvise(MADV_POPULATE_READ). It takes
 * 1.5 us plus 33 ns for each page of 4 KiB, measured on Linux 6.18 in a virtual machine
 * (EPYC, Zen 5), where the capture itself takes 20 ns. Before Linux 5.14, which does not
 * have that call, the mapping is looked up each time. Other stacks (sigaltstack(),
 * coroutines) are looked up each time with or without this bit. A hardware shadow stack is
 * checked in the same way: if part of it was unmapped, the trace ends there with
 * SHSTK_END_BOUNDS.
 */
#define SHSTK_CHECK_STACK 1u

/**
 * struct shstk_opts - what a capture may do; all zero but @size is the default
 * @size: sizeof(struct shstk_opts) as the caller was compiled.
 * @sources: mask of SHSTK_USE_*; 0 means all.
 * @skip: number of innermost entries to leave out.
 * @flags: SHSTK_CHECK_STACK or 0.
 * @marks: NULL, or an array with as many elements as the array of entries; it receives
 *	the SHSTK_MARK_* bits of each entry.
 * @sps: NULL, or an array with as many elements as the array of entries; it receives the
 *	stack pointer of each entry's frame. Only shstk_unwind() and captures whose
 *	@sources is SHSTK_USE_WALK use it.
 */
struct shstk_opts {
	uint32_t size;
	uint32_t sources;
	uint32_t skip;
	uint32_t flags;
	uint8_t *marks;
	uint64_t *sps;
};

/**
 * struct shstk_info - what a capture did
 * @size: sizeof(struct shstk_info), set by the caller; the library writes no more than
 *	this many bytes.
 * @source: enum shstk_source; the best one where the trace comes from several sources.
 * @end: enum shstk_end.
 * @reused: number of entries that were verified instead of unwound
 *	(SHSTK_SOURCE_MEMO).
 * @guessed: number of entries that carry SHSTK_MARK_GUESS.
 * @end_pc: the address at which the trace ended: the last entry, or with
 *	SHSTK_END_BAD_PC the rejected return address.
 */
struct shstk_info {
	uint32_t size;
	uint16_t source;
	uint16_t end;
	uint32_t reused;
	uint32_t guessed;
	uint64_t end_pc;
};

/**
 * shstk_capture() - capture the stack of the calling thread
 * @pcs: receives up to @max code addresses, innermost first.
 * @max: capacity of @pcs in entries.
 * @opts: options, or NULL.
 * @info: receives how the capture went, or NULL.
 *
 * Context: async-signal-safe and reentrant; any thread may call it, without
 * registration. It takes no lock, allocates no heap memory and does not wait for
 * other threads. The first capture of a thread maps the thread's state (one mmap)
 * and looks up its stack (one ioctl, or one read of /proc/self/maps). The first
 * time a capture comes to a module, the module's file is mapped. A capture uses at
 * most SHSTK_STACK_NEED bytes of the stack it is called on, and shstk_capture_id()
 * 128 more (when built by gcc -O2; a capture that interrupts another capture may
 * use more). It is not a cancellation point; the same is true of every function
 * in this file whose context is async-signal-safe.
 *
 * Return: number of entries written, 0 to @max; -EINVAL: @pcs is NULL with
 * @max > 0, or sources or flags are unknown; -EOPNOTSUPP: only the hardware source
 * is allowed, and the thread has no active shadow stack.
 */
SHSTK_API int shstk_capture(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
			    struct shstk_info *info);

/**
 * shstk_capture_context() - capture from a signal handler's context
 * @ucontext: the third argument of an SA_SIGINFO handler, of this thread.
 * @pcs: receives up to @max code addresses; entry 0 is the interrupted
 *	program counter.
 * @max: capacity of @pcs in entries.
 * @opts: options, or NULL.
 * @info: receives how the capture went, or NULL.
 *
 * The trace is exact at any instruction for which asynchronous unwind tables exist.
 *
 * Context: as for shstk_capture().
 *
 * Return: as for shstk_capture(); also -EINVAL if @ucontext is NULL.
 */
SHSTK_API int shstk_capture_context(const void *ucontext, uint64_t *pcs, unsigned int max,
				    const struct shstk_opts *opts, struct shstk_info *info);

/**
 * shstk_capture_id() - capture a trace and its identity
 * @pcs: room for the trace; its content is undefined afterwards.
 * @max: capacity of @pcs in entries.
 * @info: receives how the capture went, or NULL.
 * @id: receives the identity. Equal traces have equal identities; different traces
 *	have different identities, as far as a hash of 64 bits can tell them apart.
 *
 * Context: as for shstk_capture().
 *
 * Return: the number of entries of the trace; -EINVAL; -E2BIG: the trace has more
 * than @max entries.
 */
SHSTK_API int shstk_capture_id(uint64_t *pcs, unsigned int max, struct shstk_info *info,
			       uint64_t *id);

/**
 * shstk_trace_id() - compute the identity of a trace that was captured
 * @pcs: the trace.
 * @n: number of entries.
 *
 * Context: async-signal-safe.
 *
 * Return: the identity that shstk_capture_id() stores for the same trace.
 */
SHSTK_API uint64_t shstk_trace_id(const uint64_t *pcs, unsigned int n);

/**
 * shstk_thread_init() - prepare the calling thread ahead of its first capture
 *
 * Calling this is never required. It does the preparation that the first capture
 * would do otherwise, so that a signal handler does not have to do it.
 *
 * Context: async-signal-safe.
 *
 * Return: 0; -ENOMEM: captures of this thread will unwind every frame.
 */
SHSTK_API int shstk_thread_init(void);

/**
 * shstk_modules_changed() - tell the library that code may have been unmapped
 *
 * The library finds new modules by itself, and notices when the loader has put
 * one module in the place of another. A program that replaces code by other means
 * (a JIT, its own loader) calls this after it has unmapped the old code.
 *
 * Context: async-signal-safe; does not wait.
 */
SHSTK_API void shstk_modules_changed(void);

/**
 * shstk_register_frame() - add the unwind information of code made at run time
 * @eh_frame: entries in the format of .eh_frame, ended by an entry of length 0, as
 *	a program gives them to __register_frame(). They are copied.
 *
 * This call is for JITs. The library unwinds frames of registered code exactly;
 * frames of other code without a file are found by frame pointers and carry
 * SHSTK_MARK_GUESS. `shstk record` registers by itself what its target gives to
 * __register_frame().
 *
 * Context: maps memory, reads @eh_frame unchecked; not from a signal handler.
 *
 * Return: 0; -EINVAL: @eh_frame describes no code that the library understands;
 * -ENOSPC: there are already 16384 registrations; -ENOMEM.
 */
SHSTK_API int shstk_register_frame(const void *eh_frame);

/**
 * shstk_deregister_frame() - remove unwind information that was registered
 * @eh_frame: the pointer that was given to shstk_register_frame(). It is not read.
 *
 * Call this before the code is freed. Other code may take its place afterwards.
 *
 * Context: not from a signal handler.
 *
 * Return: 0; -ENOENT: @eh_frame is not registered.
 */
SHSTK_API int shstk_deregister_frame(const void *eh_frame);

/**
 * struct shstk_stats - the library's memory use and counters
 * @size: sizeof(struct shstk_stats), set by the caller.
 * @threads: number of thread states.
 * @thread_bytes: bytes of memory that back one thread state when it is full.
 * @modules: number of modules known.
 * @module_bytes: bytes of memory of all compiled unwind tables.
 * @cache_entries: number of return addresses in the rule cache.
 * @cache_bytes: bytes of memory of the rule cache.
 * @captures: number of captures so far, of all living threads.
 * @memo_hits: number of these captures that reused frames of the thread's last trace.
 */
struct shstk_stats {
	uint32_t size;
	uint32_t threads;
	uint64_t thread_bytes;
	uint64_t modules;
	uint64_t module_bytes;
	uint64_t cache_entries;
	uint64_t cache_bytes;
	uint64_t captures;
	uint64_t memo_hits;
};

/**
 * shstk_get_stats() - report memory and counters
 * @stats: the library fills its first @stats->size bytes.
 *
 * Context: async-signal-safe; the figures of other threads are approximate.
 *
 * Return: 0, or -EINVAL.
 */
SHSTK_API int shstk_get_stats(struct shstk_stats *stats);

/**
 * enum shstk_arch - the instruction sets whose stacks the library can unwind
 * @SHSTK_ARCH_X86: x86-64.
 * @SHSTK_ARCH_ARM64: AArch64.
 * @SHSTK_ARCH_RISCV: RV64.
 */
enum shstk_arch {
	SHSTK_ARCH_X86 = 1,
	SHSTK_ARCH_ARM64 = 2,
	SHSTK_ARCH_RISCV = 3,
};

/**
 * struct shstk_regs - registers to unwind from
 * @size: sizeof(struct shstk_regs), set by the caller.
 * @known: bit n is set if @r[n] holds a value. The program counter and the stack
 *	pointer are always needed; which others are needed depends on the code.
 * @pc: program counter.
 * @pac_mask: on arm64 the address bits that pointer authentication uses
 *	(NT_ARM_PAC_MASK insn_mask), or 0 if they are not known; 0 elsewhere.
 * @r: registers by their DWARF numbers (x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx,
 *	4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15; arm64: 0-30 x0-x30, 31 sp; riscv: 0-31
 *	x0-x31).
 * @thread_pointer: the register that points to thread-local variables (x86-64: fs_base;
 *	arm64: tpidr_el0), or 0 if not known. The library finds Go's goroutines by it.
 */
struct shstk_regs {
	uint32_t size;
	uint32_t known;
	uint64_t pc;
	uint64_t pac_mask;
	uint64_t r[32];
	uint64_t thread_pointer;
};

/**
 * typedef shstk_read_fn - read memory of the unwound program
 * @arg: the argument given to shstk_unwind().
 * @addr: address in that program.
 * @buf: receives @len bytes.
 * @len: bytes wanted, at most 64.
 *
 * The function must return to its caller: it may not longjmp or throw.
 *
 * Return: 0, or a negative errno if nothing was read.
 */
typedef int (*shstk_read_fn)(void *arg, uint64_t addr, void *buf, size_t len);

/**
 * struct shstk_space - the modules of another program (opaque)
 *
 * A space is not tied to a living process: it is filled from /proc/PID/maps, or
 * module by module for a core file or a dump from another machine.
 *
 * Only one thread at a time may use a space.
 */
struct shstk_space;

/**
 * shstk_space_create() - make an empty space
 * @arch: enum shstk_arch of the program.
 * @ret: receives the space; release it by shstk_space_destroy().
 *
 * Context: allocates; not from a signal handler.
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
SHSTK_API int shstk_space_create(int arch, struct shstk_space **ret);

/**
 * shstk_space_destroy() - release a space and all that it holds
 * @space: a space, or NULL.
 *
 * Context: not from a signal handler.
 */
SHSTK_API void shstk_space_destroy(struct shstk_space *space);

/**
 * struct shstk_section - the contents of a section of an ELF file
 * @data: the bytes, in memory of malloc(3); NULL if there are none.
 * @size: number of bytes.
 * @vaddr: virtual address of the section as the file states it.
 */
struct shstk_section {
	void *data;
	size_t size;
	uint64_t vaddr;
};

/**
 * struct shstk_debug - unwind information that the mapped part of a file does not have
 * @size: sizeof(struct shstk_debug), set by the library.
 * @reserved: 0.
 * @eh_frame: the section .eh_frame.
 * @debug_frame: the section .debug_frame.
 */
struct shstk_debug {
	uint32_t size;
	uint32_t reserved;
	struct shstk_section eh_frame;
	struct shstk_section debug_frame;
};

/**
 * typedef shstk_debug_fn - look for more unwind information of a file
 * @arg: the argument given to shstk_space_set_debug().
 * @path: path of the file, as given to shstk_space_add_file().
 * @image: the bytes of the file.
 * @size: number of bytes.
 * @ret: receives sections; the library frees their data.
 *
 * The command shstk uses such a function (libshstk/symbol/unwindinfo.c in the sources, not
 * installed) that reads compressed sections, .gnu_debugdata and separate debug files. The
 * function must return to its caller: it may not longjmp or throw.
 *
 * Return: 0, or a negative errno if there is no more unwind information.
 */
typedef int (*shstk_debug_fn)(void *arg, const char *path, const void *image, size_t size,
			      struct shstk_debug *ret);

/**
 * shstk_space_set_debug() - set the function that looks for more unwind information
 * @space: the space.
 * @find: called at most once for each file that is added from now on: when the mapped
 *	part of the file does not describe an address of its code. NULL: no function
 *	is called.
 * @arg: passed to @find; must live as long as @space.
 *
 * Context: not from a signal handler.
 */
SHSTK_API void shstk_space_set_debug(struct shstk_space *space, shstk_debug_fn find, void *arg);

/**
 * shstk_space_add_file() - add a mapped ELF file
 * @space: the space.
 * @path: the ELF file as found on this machine.
 * @start: address at which it is mapped.
 * @end: first address behind that mapping.
 * @offset: offset in the file that is mapped at @start, in bytes.
 *
 * The caller gives one executable mapping; the library computes the others from the
 * file.
 *
 * Context: allocates and reads files; not from a signal handler.
 *
 * Return: 0; -EINVAL for a bad range; -ENOEXEC if the file is not an ELF file of
 * this architecture or is corrupt; -ENOMEM; or the errno of open(2) or mmap(2).
 */
SHSTK_API int shstk_space_add_file(struct shstk_space *space, const char *path, uint64_t start,
				   uint64_t end, uint64_t offset);

/**
 * shstk_space_add_image() - add an ELF image held in memory
 * @space: the space.
 * @image: the bytes, as they lie in the file (the vdso, a core's segment).
 *	They are copied.
 * @size: number of bytes.
 * @start: address at which they were mapped.
 *
 * Context: allocates; not from a signal handler.
 *
 * Return: as for shstk_space_add_file().
 */
SHSTK_API int shstk_space_add_image(struct shstk_space *space, const void *image, size_t size,
				    uint64_t start);

/**
 * shstk_space_add_code() - add executable memory that no file describes
 * @space: the space.
 * @start: first address.
 * @end: first address behind it.
 *
 * This is for code that was made at run time, or whose file is not at hand. Its
 * frames are found by frame pointers and carry SHSTK_MARK_GUESS.
 *
 * Context: allocates; not from a signal handler.
 *
 * Return: 0, -EINVAL for a bad range, -ENOMEM.
 */
SHSTK_API int shstk_space_add_code(struct shstk_space *space, uint64_t start, uint64_t end);

/**
 * struct shstk_frame_shape - the layout of a frame of code that no file describes
 * @size: sizeof(struct shstk_frame_shape), set by the caller.
 * @cfa: bytes from the stack pointer to the address behind the return address.
 * @fp_saved: not 0 if the caller's frame pointer lies just below the return address.
 * @slack: the number of bytes, at most 64, by which the saved words may lie further out
 *	than @cfa says, as they do where the function aligns the stack pointer. The first
 *	place that holds a return address is used.
 */
struct shstk_frame_shape {
	uint32_t size;
	uint32_t cfa;
	uint32_t fp_saved;
	uint32_t slack;
};

/**
 * typedef shstk_shape_fn - tell the layout of a frame
 * @arg: the argument given to shstk_space_set_shapes().
 * @pc: program counter, or a return address, in memory that was added by
 *	shstk_space_add_code().
 * @exact: 1 if @pc is a program counter, 0 if it is a return address.
 * @ret: receives the layout; NULL if the library only asks whether @pc is known.
 *
 * The function must return to its caller: it may not longjmp or throw.
 *
 * Return: 0; -ENOENT: the frame is not known, and the library follows frame pointers;
 * -ESRCH: the frame is not known, and the code does not keep frame pointers either.
 */
typedef int (*shstk_shape_fn)(void *arg, uint64_t pc, int exact, struct shstk_frame_shape *ret);

/**
 * shstk_space_set_shapes() - set the function that knows frames of code without a file
 * @space: the space.
 * @find: called for each frame of code that no file describes; NULL: no function is called.
 * @arg: passed to @find; must live as long as @space.
 *
 * The library verifies the layout that @find tells as far as it can. The entries carry
 * SHSTK_MARK_GUESS.
 */
SHSTK_API void shstk_space_set_shapes(struct shstk_space *space, shstk_shape_fn find, void *arg);

/**
 * shstk_space_add_pid() - add all modules that a process has mapped
 * @space: the space; it keeps the modules that it has already.
 * @pid: process ID. The caller needs ptrace access to it (PTRACE_MODE_READ).
 *
 * Files are opened through /proc/PID/root, so that processes in containers work; the
 * vdso is read from the process.
 *
 * Context: allocates and reads files; not from a signal handler.
 *
 * Return: number of modules added, or a negative errno (-ESRCH, -EACCES, ...).
 */
SHSTK_API int shstk_space_add_pid(struct shstk_space *space, int pid);

/**
 * shstk_unwind() - unwind from given registers, reading memory by a callback
 * @space: the program's modules.
 * @regs: registers to start from.
 * @read: reads the program's memory.
 * @arg: passed to @read.
 * @pcs: receives up to @max code addresses; entry 0 is @regs->pc.
 * @max: capacity of @pcs in entries.
 * @opts: options, or NULL; sources must be 0 or contain SHSTK_USE_WALK.
 * @info: receives how the unwinding went, or NULL.
 *
 * Context: not from a signal handler.
 *
 * Return: number of entries written, or -EINVAL.
 */
SHSTK_API int shstk_unwind(struct shstk_space *space, const struct shstk_regs *regs,
			   shstk_read_fn read, void *arg, uint64_t *pcs, unsigned int max,
			   const struct shstk_opts *opts, struct shstk_info *info);

/**
 * struct shstk_shadow - the shadow stack of a stopped thread
 * @size: sizeof(struct shstk_shadow), set by the caller.
 * @arch: enum shstk_arch.
 * @pc: program counter; it becomes entry 0 of the trace.
 * @ssp: shadow stack pointer (SSP, GCSPR).
 * @end: first address behind the shadow stack, or 0 if it is not known. With 0 the
 *	trace ends at the first word that cannot be read, which may lie behind the end.
 */
struct shstk_shadow {
	uint32_t size;
	uint32_t arch;
	uint64_t pc;
	uint64_t ssp;
	uint64_t end;
};

/**
 * shstk_shadow_get() - find the shadow stack of a ptrace-stopped thread
 * @tid: thread ID; the caller is its tracer and it is stopped.
 * @ret: filled; @ret->size is set by the caller.
 *
 * Reads the register sets NT_PRSTATUS and NT_X86_SHSTK, NT_ARM_GCS or
 * NT_RISCV_USER_CFI, and finds the end in /proc/TID/maps.
 *
 * Context: not from a signal handler.
 *
 * Return: 0; -EINVAL; -ENODATA: the thread's shadow stack is not on; -ESRCH or
 * another negative errno of ptrace(2).
 */
SHSTK_API int shstk_shadow_get(int tid, struct shstk_shadow *ret);

/**
 * shstk_shadow_pointer() - find a thread's shadow stack, but not the end of it
 * @tid: thread ID; the caller is its tracer and it is stopped.
 * @ret: filled as by shstk_shadow_get(), except that @ret->end becomes 0; @ret->size
 *	is set by the caller.
 *
 * This is for callers that know the mappings of the process: the thread must stay
 * stopped only for two system calls, not for a read of its maps.
 *
 * Context: async-signal-safe.
 *
 * Return: as for shstk_shadow_get().
 */
SHSTK_API int shstk_shadow_pointer(int tid, struct shstk_shadow *ret);

/**
 * shstk_unwind_shadow() - trace a stopped thread by its shadow stack
 * @shadow: the shadow stack, from shstk_shadow_get() or shstk_shadow_pointer().
 * @read: reads the program's memory.
 * @arg: passed to @read.
 * @pcs: receives up to @max code addresses; entry 0 is @shadow->pc.
 * @max: capacity of @pcs in entries.
 * @opts: options, or NULL; sources must be 0 or contain SHSTK_USE_HARDWARE.
 * @info: receives how the unwinding went, or NULL.
 *
 * Needs neither modules nor unwind information. The program counter that a signal
 * interrupted is not on the shadow stack, so the entry that should follow it carries
 * SHSTK_MARK_GAP.
 *
 * Context: async-signal-safe if @read is.
 *
 * Return: number of entries written, or -EINVAL.
 */
SHSTK_API int shstk_unwind_shadow(const struct shstk_shadow *shadow, shstk_read_fn read, void *arg,
				  uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
				  struct shstk_info *info);

/**
 * shstk_read_process() - read memory of a living process, as a shstk_read_fn
 * @arg: pointer to a pid_t.
 * @addr: address in that process.
 * @buf: receives the bytes.
 * @len: bytes wanted.
 *
 * Return: 0, or a negative errno of process_vm_readv(2).
 */
SHSTK_API int shstk_read_process(void *arg, uint64_t addr, void *buf, size_t len);

/**
 * shstk_source_name() - name a source
 * @source: enum shstk_source.
 *
 * Return: a static string, such as "memo"; "unknown" for other values.
 */
SHSTK_API const char *shstk_source_name(int source);

/**
 * shstk_end_name() - describe how a trace ended
 * @end: enum shstk_end.
 *
 * Return: a static string, such as "complete".
 */
SHSTK_API const char *shstk_end_name(int end);

/**
 * DOC: control
 *
 * These functions control the shadow stacks of the calling thread, with the same
 * meaning on every architecture. The bits are the ones of the kernel's generic
 * prctl(PR_SET_SHADOW_STACK_STATUS). On x86 that call is used if the kernel has it,
 * and arch_prctl() otherwise.
 *
 * SHSTK_STATUS_ENABLE: calls and returns use the shadow stack.
 * SHSTK_STATUS_WRITE: instructions that write to it are allowed.
 * SHSTK_STATUS_PUSH: instructions that push to it are allowed (arm64 only).
 */
#define SHSTK_STATUS_ENABLE 0x1ull
#define SHSTK_STATUS_WRITE 0x2ull
#define SHSTK_STATUS_PUSH 0x4ull
#define SHSTK_STATUS_ALL 0x7ull

/* Bits of the flags of shstk_stack_map(). */
#define SHSTK_STACK_TOKEN 0x1u
#define SHSTK_STACK_MARKER 0x2u

/* Bits of the flags of shstk_enable_here(). */
#define SHSTK_HERE_UNAWARE 0x1u

/**
 * struct shstk_stack - a mapped shadow stack
 * @base: lowest address.
 * @size: bytes, a multiple of the page size.
 * @token: address of the restore token, for shstk_stack_switch() and
 *	shstk_stack_call(); 0 if the caller did not ask for a token.
 */
struct shstk_stack {
	uint64_t base;
	uint64_t size;
	uint64_t token;
};

/**
 * shstk_status_get() - read which bits are on in the calling thread
 * @status: receives SHSTK_STATUS_*.
 *
 * Context: async-signal-safe.
 *
 * Return: 0, or -EOPNOTSUPP: the kernel does not know shadow stacks.
 */
SHSTK_API int shstk_status_get(uint64_t *status);

/**
 * shstk_status_lock() - make bits unchangeable for the rest of the thread's life
 * @mask: SHSTK_STATUS_*; these bits stay as they are now.
 *
 * Threads and processes made later inherit the lock; exec removes it. riscv can only
 * lock SHSTK_STATUS_ENABLE, and only while it is on.
 *
 * Context: async-signal-safe.
 *
 * Return: 0; -EINVAL: unknown bits; -EOPNOTSUPP: there are no shadow stacks here, or
 * this kernel can't lock these bits.
 */
SHSTK_API int shstk_status_lock(uint64_t mask);

/**
 * shstk_stack_map() - map a shadow stack
 * @size: bytes wanted, rounded up to whole pages.
 * @flags: SHSTK_STACK_TOKEN: write a restore token, so that a thread can switch to
 *	this shadow stack. SHSTK_STACK_MARKER: keep a zero word above the token that
 *	marks the end of the shadow stack (arm64 only).
 * @ret: receives the shadow stack.
 *
 * munmap(2) of @ret->base and @ret->size releases it.
 *
 * Context: async-signal-safe.
 *
 * Return: 0; -EINVAL: @size is 0, or flags are unknown; -EOPNOTSUPP: there are no
 * shadow stacks here, or no markers; -ENOMEM.
 */
SHSTK_API int shstk_stack_map(size_t size, unsigned int flags, struct shstk_stack *ret);

/**
 * shstk_stack_call() - call a function on another shadow stack
 * @token: address of a restore token, from &struct shstk_stack. The call uses the
 *	token up; when the function has returned, a new token lies at this address.
 * @fn: function to call. It must return.
 * @arg: its argument.
 *
 * The ordinary stack stays the same.
 *
 * Context: async-signal-safe. A bad token is a fault (SIGSEGV).
 *
 * Return: 0, or -EOPNOTSUPP: shadow stacks are off in this thread, or this
 * architecture can't switch.
 */
SHSTK_API int shstk_stack_call(uint64_t token, void (*fn)(void *arg), void *arg);

/**
 * shstk_enable_here() - switch shadow stacks on in a function that can still return
 * @flags: 0, or SHSTK_HERE_UNAWARE: switch them on also where this call would be
 *	refused because of a jmp_buf, as described below.
 *
 * This call unwinds the stack and writes the return addresses of all active frames
 * to the new shadow stack. It gives the permission to write up before it returns.
 * All callers, up to the start of the thread, can then return, and exceptions can
 * be thrown through them. When called from a signal handler, it covers the
 * interrupted code too (x86).
 *
 * A jmp_buf or ucontext_t that was filled before this call can't be used after it.
 * So without SHSTK_HERE_UNAWARE the call is refused where the C library has no
 * support for shadow stacks (its longjmp() would end in a fault), and on arm64 in
 * threads other than the first one (pthread_exit() uses a jmp_buf that was filled
 * when the thread started).
 *
 * Other threads are not changed; threads made later inherit shadow stacks.
 *
 * Context: async-signal-safe. Blocks signals for a moment.
 *
 * Return: 0; -EINVAL: unknown flags; -EALREADY: shadow stacks are on, or they were
 * on before and can't be switched on again; -EOPNOTSUPP: there are no shadow stacks
 * here; -EBUSY: the bit is locked; -EPERM: refused as described above; -ENODATA: the
 * stack can't be unwound completely, or only by guessing; -E2BIG: more than 2048
 * frames; -ENOMEM.
 */
SHSTK_API int shstk_enable_here(unsigned int flags);

/*
 * Code that changes the shadow stack under the running function can't be a function
 * of its own, because that function could not return. So the functions below are
 * expanded where they are used. shstk_inline_call() makes a system call in place.
 */
#if defined(__x86_64__)
static inline __attribute__((always_inline)) long shstk_inline_call(long nr, long a, long b)
{
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(0l), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}
#define SHSTK_NR_PRCTL 157
#define SHSTK_NR_ARCH_PRCTL 158
#elif defined(__aarch64__)
static inline __attribute__((always_inline)) long shstk_inline_call(long nr, long a, long b)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}
#define SHSTK_NR_PRCTL 167
#elif defined(__riscv) && __riscv_xlen == 64
static inline __attribute__((always_inline)) long shstk_inline_call(long nr, long a, long b)
{
	register long a7 __asm__("a7") = nr;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = 0;
	register long a3 __asm__("a3") = 0;
	register long a4 __asm__("a4") = 0;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4)
			 : "memory");
	return a0;
}
#define SHSTK_NR_PRCTL 167
#endif

/**
 * shstk_status_set() - switch bits on and off in the calling thread
 * @status: SHSTK_STATUS_*; all others are switched off.
 *
 * The call is expanded in place. Where it switches SHSTK_STATUS_ENABLE on, the
 * shadow stack begins empty: the function that contains the call must never return
 * (let it end with exit(), as the outermost function of a program or thread can).
 * Use shstk_enable_here() in a function that must return.
 *
 * Context: async-signal-safe.
 *
 * Return: 0; -EINVAL: unknown bits, or other bits without SHSTK_STATUS_ENABLE;
 * -EOPNOTSUPP: there are no shadow stacks here, or not these bits; -EBUSY: a bit that
 * would change is locked; -EALREADY: shadow stacks were on before and can't be
 * switched on again (arm64); -ENOMEM.
 */
static inline __attribute__((always_inline)) int shstk_status_set(uint64_t status)
{
#ifdef SHSTK_NR_PRCTL
	uint64_t now = 0;
	long ret;

	if (status & ~SHSTK_STATUS_ALL || (status && !(status & SHSTK_STATUS_ENABLE)))
		return -22;
	ret = shstk_inline_call(SHSTK_NR_PRCTL, 74, (long)&now);
#ifdef __riscv
	if (status & ~SHSTK_STATUS_ENABLE)
		return -95;
#endif
#ifdef SHSTK_NR_ARCH_PRCTL
	if (status & SHSTK_STATUS_PUSH)
		return -95;
	if (ret == -22) {
		ret = shstk_inline_call(SHSTK_NR_ARCH_PRCTL, 0x5005, (long)&now);
		if (ret)
			return -95;
		if (status & ~now & 1)
			ret = shstk_inline_call(SHSTK_NR_ARCH_PRCTL, 0x5001, 1);
		if (!ret && status & ~now & 2)
			ret = shstk_inline_call(SHSTK_NR_ARCH_PRCTL, 0x5001, 2);
		if (!ret && now & ~status & 2)
			ret = shstk_inline_call(SHSTK_NR_ARCH_PRCTL, 0x5002, 2);
		if (!ret && now & ~status & 1)
			ret = shstk_inline_call(SHSTK_NR_ARCH_PRCTL, 0x5002, 1);
		return ret == -1 ? -16 : (int)ret;
	}
#endif
	if (ret)
		return -95;
	if (now == status)
		return 0;
	ret = shstk_inline_call(SHSTK_NR_PRCTL, 75, (long)status);
	/* The bits are known to be good, so -EINVAL means that they can't be switched now. */
	if (ret == -22 && status & ~now & SHSTK_STATUS_ENABLE)
		return -114;
	if (ret == -22)
#ifdef __riscv
		return -16;
#else
		return -95;
#endif
	return (int)ret;
#else
	(void)status;
	return -95;
#endif
}

/**
 * shstk_stack_switch() - switch to another shadow stack
 * @token: address of the restore token of that shadow stack. The call uses the token
 *	up.
 *
 * The call is expanded in place. The function that contains it must not return
 * before it has switched back. The call leaves a token on the old shadow stack. It
 * may only be used while shadow stacks are on in this thread. On riscv this code
 * checks and writes the tokens, not a single instruction: they only protect against
 * mistakes.
 *
 * Return: address of the token on the old shadow stack, or 0 on an architecture that
 * has no shadow stacks.
 */
static inline __attribute__((always_inline)) uint64_t shstk_stack_switch(uint64_t token)
{
#if defined(__x86_64__)
	uint64_t old = 0;

	__asm__ volatile("rdsspq %0\n\t"
			 "rstorssp (%1)\n\t"
			 "saveprevssp"
			 : "+&r"(old)
			 : "r"(token)
			 : "memory", "cc");
	/* The token lies in the word below the old shadow stack pointer. */
	return old - 8;
#elif defined(__aarch64__)
	uint64_t old;

	__asm__ volatile("sys #3, c7, c7, #2, %1\n\t" /* GCSSS1 */
			 "sysl %0, #3, c7, c7, #3" /* GCSSS2 */
			 : "=&r"(old)
			 : "r"(token)
			 : "memory");
	return old;
#elif defined(__riscv) && __riscv_xlen == 64
	uint64_t old, was, to = token + 8;

	__asm__ volatile(".insn i 0x73, 4, %0, x0, -804\n\t" /* SSRDP */
			 ".insn r 0x2f, 3, 0x24, %1, %3, x0\n\t" /* SSAMOSWAP.D */
			 "beq %1, %2, 1f\n\t"
			 "sd zero, 0(zero)\n"
			 "1:\tcsrw 0x011, %2\n\t" /* ssp */
			 "addi %0, %0, -8\n\t"
			 "addi %1, %0, 8\n\t"
			 ".insn r 0x2f, 3, 0x24, x0, %0, %1"
			 : "=&r"(old), "=&r"(was)
			 : "r"(to), "r"(token)
			 : "memory");
	return old;
#else
	(void)token;
	return 0;
#endif
}

/**
 * DOC: device
 *
 * The device /dev/shstk of the kernel module shstk.ko tells what a program cannot
 * find out by itself: the shadow stacks of running threads and of other processes,
 * and where a shadow stack ends. The library works without the device. Each call is
 * one ioctl; linux/shstk.h describes the structures and their fields, and
 * Documentation/uapi.rst describes the errors.
 */
struct shstk_ioc_info;
struct shstk_ioc_status;
struct shstk_ioc_map;
struct shstk_ioc_trace;

/**
 * shstk_device_open() - open /dev/shstk
 *
 * Context: async-signal-safe.
 *
 * Return: a file descriptor (close-on-exec); -ENOENT: the module is not loaded; or
 * another negative errno of open(2).
 */
SHSTK_API int shstk_device_open(void);

/**
 * shstk_device_info() - SHSTK_IOC_INFO: read what the module offers
 * @fd: from shstk_device_open().
 * @info: filled.
 *
 * Context: async-signal-safe.
 *
 * Return: 0 or a negative errno.
 */
SHSTK_API int shstk_device_info(int fd, struct shstk_ioc_info *info);

/**
 * shstk_device_status() - SHSTK_IOC_STATUS: read the state of one thread's shadow stack
 * @fd: from shstk_device_open().
 * @status: the caller sets the thread in it; the module fills in the rest.
 *
 * Context: async-signal-safe.
 *
 * Return: 0 or a negative errno.
 */
SHSTK_API int shstk_device_status(int fd, struct shstk_ioc_status *status);

/**
 * shstk_device_map() - SHSTK_IOC_MAP: read the bounds of the shadow stack at an address
 * @fd: from shstk_device_open().
 * @map: the caller sets the process and the address in it; the module fills in the rest.
 *
 * Context: async-signal-safe.
 *
 * Return: 0; -ENOENT: no shadow stack lies at that address; or another negative errno.
 */
SHSTK_API int shstk_device_map(int fd, struct shstk_ioc_map *map);

/**
 * shstk_device_trace() - SHSTK_IOC_TRACE: read traces of threads without stopping them
 * @fd: from shstk_device_open().
 * @trace: the caller sets the process, the threads and the arrays in it; the module sets
 *	@trace->nr_threads and fills the arrays.
 *
 * Context: async-signal-safe.
 *
 * Return: 0 or a negative errno.
 */
SHSTK_API int shstk_device_trace(int fd, struct shstk_ioc_trace *trace);

#ifdef __cplusplus
}
#endif
#endif /* SHSTK_H */
