/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk.h - stack traces from shadow stacks: the whole public API.
 *
 * A trace is an array of code addresses, innermost first. Where the thread has
 * a hardware shadow stack it is copied from there; elsewhere the library keeps
 * a software one (the last trace, verified slot by slot) over an exact unwinder.
 * The caller does not choose: the same call takes the best source there is and
 * says in struct shstk_info which one that was and how the trace ended.
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
 * @SHSTK_SOURCE_MEMO: the software shadow stack: youngest frames unwound, the
 *	others re-read from the slots of the thread's last trace and compared.
 * @SHSTK_SOURCE_WALK: every frame unwound by its rules.
 */
enum shstk_source {
	SHSTK_SOURCE_NONE = 0,
	SHSTK_SOURCE_HARDWARE = 1,
	/* 2 is SHSTK_SOURCE_MARKER of shstk_marker.h. */
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
 *	uses what the library does not support.
 * @SHSTK_END_BAD_STACK: the next slot lies outside the stack, is misaligned or
 *	does not lie further out than the last one.
 * @SHSTK_END_BAD_PC: the next return address is no code address.
 * @SHSTK_END_NO_REGISTER: the rule needs a register whose value is not known.
 * @SHSTK_END_READ: the memory could not be read (remote and offline captures).
 * @SHSTK_END_BOUNDS: a shadow stack whose end is unknown was cut at the last
 *	page that is safe to read.
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
 * One byte per entry, on request (&struct shstk_opts.marks).
 *
 * SHSTK_MARK_PC: the entry is an interrupted program counter, not a return
 *	address: symbolise it as it is, return addresses minus one.
 * SHSTK_MARK_SIGNAL: the entry is the signal return trampoline.
 * SHSTK_MARK_GUESS: the entry was found by a verified heuristic (frame-pointer
 *	record, return address on top of the stack), not by an unwind rule.
 * SHSTK_MARK_GAP: a signal interrupted a callee of this frame, and where it did
 *	is not known: one entry is missing in front of this one. riscv: where it
 *	interrupted may itself be known, but not whether that function's return
 *	address was on the shadow stack yet: one entry may be missing.
 */
#define SHSTK_MARK_PC 0x01
#define SHSTK_MARK_SIGNAL 0x02
#define SHSTK_MARK_GUESS 0x04
#define SHSTK_MARK_GAP 0x08

/*
 * Bytes of stack that a capture takes: room for this and for the kernel's signal frame
 * (see AT_MINSIGSTKSZ in getauxval(3)) is what stacks of threads and coroutines that are
 * sampled by a signal need below their own deepest frame.
 */
#define SHSTK_STACK_NEED 1536

/* Bits of &struct shstk_opts.sources. */
#define SHSTK_USE_HARDWARE (1u << SHSTK_SOURCE_HARDWARE)
#define SHSTK_USE_MEMO (1u << SHSTK_SOURCE_MEMO)
#define SHSTK_USE_WALK (1u << SHSTK_SOURCE_WALK)

/*
 * Bit of &struct shstk_opts.flags: ask the kernel whether all of the stack from the
 * capture's frame outwards can be read. Without it the thread's stack must stay readable
 * once it was captured; a program that takes the access from a page of it (a guard, a
 * collector's barrier) would be ended by SIGSEGV. It is one system call for each capture,
 * madvise(MADV_POPULATE_READ): 1.5 us and 33 ns for each page of 4 KiB, measured on Linux
 * 6.18 in a virtual machine (EPYC, Zen 5), where the capture itself takes 20 ns. Where
 * there is none (before Linux 5.14) the mapping is looked up each time. Other stacks
 * (sigaltstack(), coroutines) are looked up each time anyway. Of a hardware shadow stack
 * it is asked likewise: if part of it was unmapped the trace ends there, with
 * SHSTK_END_BOUNDS.
 */
#define SHSTK_CHECK_STACK 1u

/**
 * struct shstk_opts - what a capture may do; all zero but @size is the default
 * @size: sizeof(struct shstk_opts) as the caller was compiled.
 * @sources: mask of SHSTK_USE_*; 0 means all.
 * @skip: number of innermost entries to leave out.
 * @flags: SHSTK_CHECK_STACK or 0.
 * @marks: NULL, or as many bytes as the array of entries has elements: receives
 *	SHSTK_MARK_* of each entry.
 * @sps: NULL, or as many words as the array of entries has elements: receives the stack
 *	pointer of each entry's frame. Used by shstk_unwind() only.
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
 * @size: sizeof(struct shstk_info), set by the caller; no more is written.
 * @source: enum shstk_source; where a trace has several, the best one.
 * @end: enum shstk_end.
 * @reused: entries that were verified instead of unwound (MEMO).
 * @guessed: entries that carry SHSTK_MARK_GUESS.
 * @end_pc: the address at which the trace ended: the last entry, or the
 *	rejected return address (SHSTK_END_BAD_PC).
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
 * Context: async-signal-safe, reentrant; any thread, no registration; takes no
 * lock and allocates no heap memory. The first capture of a thread maps its
 * state (one mmap) and looks its stack up (one ioctl, or one read of
 * /proc/self/maps); the first time a module is met, its file is mapped. Does
 * not block on other threads. Takes at most SHSTK_STACK_NEED bytes of the stack it
 * is called on, shstk_capture_id() 128 more (built by gcc -O2; one that interrupts
 * another capture may take more). Not a cancellation point; the same holds for every
 * function here whose context is async-signal-safe.
 *
 * Return: number of entries written, 0 to @max, or -EINVAL (@pcs NULL with
 * @max > 0, unknown sources or flags), or -EOPNOTSUPP (only the hardware
 * is allowed, and the thread has no active shadow stack).
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
 * Exact at any instruction for which asynchronous unwind tables exist.
 *
 * Context: as shstk_capture().
 *
 * Return: as shstk_capture(); -EINVAL also for a NULL @ucontext.
 */
SHSTK_API int shstk_capture_context(const void *ucontext, uint64_t *pcs, unsigned int max,
				    const struct shstk_opts *opts, struct shstk_info *info);

/**
 * shstk_capture_id() - capture a trace and its identity
 * @pcs: room for the trace; its content is undefined afterwards.
 * @max: capacity of @pcs in entries.
 * @info: receives how the capture went, or NULL.
 * @id: receives the identity: equal traces have equal ones, different traces
 *	different ones as far as 64 bits go.
 *
 * Context: as shstk_capture().
 *
 * Return: the number of entries of the trace; -EINVAL; -E2BIG: it has more than
 * @max.
 */
SHSTK_API int shstk_capture_id(uint64_t *pcs, unsigned int max, struct shstk_info *info,
			       uint64_t *id);

/**
 * shstk_trace_id() - the identity of a trace that was captured
 * @pcs: the trace.
 * @n: number of entries.
 *
 * Context: async-signal-safe.
 *
 * Return: what shstk_capture_id() returns for that trace.
 */
SHSTK_API uint64_t shstk_trace_id(const uint64_t *pcs, unsigned int n);

/**
 * shstk_thread_init() - prepare the calling thread ahead of its first capture
 *
 * Never required. Does now what the first capture would do later, so that a
 * handler need not do it.
 *
 * Context: async-signal-safe.
 *
 * Return: 0, or -ENOMEM: captures of this thread will walk every frame.
 */
SHSTK_API int shstk_thread_init(void);

/**
 * shstk_modules_changed() - say that code may have been unmapped
 *
 * The library finds new modules by itself, and notices when the loader has put
 * one in another's place. A program that replaces code by other means (a JIT, an
 * own loader) calls this after unmapping the old code.
 *
 * Context: async-signal-safe; does not wait.
 */
SHSTK_API void shstk_modules_changed(void);

/**
 * shstk_register_frame() - unwind information of code made at run time
 * @eh_frame: entries in the format of .eh_frame, ended by one of length 0, as
 *	the program gives them to __register_frame(). They are copied.
 *
 * For JITs. Their code is stepped over exactly then; otherwise by frame
 * pointers, and marked SHSTK_MARK_GUESS. `shstk record` passes on what its target
 * gives to __register_frame().
 *
 * Context: maps memory, reads @eh_frame unchecked; not from a signal handler.
 *
 * Return: 0; -EINVAL if nothing can be made of it; -ENOSPC for more than 16384;
 * -ENOMEM.
 */
SHSTK_API int shstk_register_frame(const void *eh_frame);

/**
 * shstk_deregister_frame() - take back what was registered
 * @eh_frame: as given to shstk_register_frame(). It is not read.
 *
 * Call it before the code is freed; other code may then take its place.
 *
 * Context: not from a signal handler.
 *
 * Return: 0, or -ENOENT.
 */
SHSTK_API int shstk_deregister_frame(const void *eh_frame);

/**
 * struct shstk_stats - what the library holds, in bytes where not said otherwise
 * @size: sizeof(struct shstk_stats), set by the caller.
 * @threads: number of thread states.
 * @thread_bytes: memory of one thread state that is backed once it is full.
 * @modules: number of modules known.
 * @module_bytes: memory of all compiled unwind tables.
 * @cache_entries: number of return addresses in the rule cache.
 * @cache_bytes: memory of the rule cache.
 * @captures: captures so far, of all living threads.
 * @memo_hits: those that reused frames of the last trace.
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
 * @stats: filled up to @stats->size bytes.
 *
 * Context: async-signal-safe; the figures of other threads are approximate.
 *
 * Return: 0, or -EINVAL.
 */
SHSTK_API int shstk_get_stats(struct shstk_stats *stats);

/**
 * enum shstk_arch - an instruction set whose stacks the library can unwind
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
 * @known: bit n: @r[n] holds a value. The program counter and the stack pointer
 *	are always needed; what else is needed depends on the code.
 * @pc: program counter.
 * @pac_mask: arm64: bits that pointer authentication uses, 0 if unknown
 *	(NT_ARM_PAC_MASK insn_mask). Otherwise 0.
 * @r: registers by their DWARF numbers (x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx,
 *	4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15; arm64: 0-30 x0-x30, 31 sp; riscv: 0-31
 *	x0-x31).
 * @thread_pointer: where thread-local variables lie (x86-64: fs_base; arm64: tpidr_el0),
 *	0 if unknown. Go's goroutines are found by it.
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
 * Must return to its caller: it may not longjmp or throw.
 *
 * Return: 0, or a negative errno: nothing was read.
 */
typedef int (*shstk_read_fn)(void *arg, uint64_t addr, void *buf, size_t len);

/**
 * struct shstk_space - the modules of another program (opaque)
 *
 * Not tied to a living process: it is filled from /proc/PID/maps, or module by
 * module for a core file or a dump from another machine.
 *
 * A space may be used by one thread at a time.
 */
struct shstk_space;

/**
 * shstk_space_create() - make an empty space
 * @arch: enum shstk_arch of the program.
 * @ret: receives the space; give it to shstk_space_destroy().
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
 * struct shstk_section - bytes of a section
 * @data: the bytes, by malloc(3); NULL if there are none.
 * @size: their number.
 * @vaddr: virtual address in the file's own numbering.
 */
struct shstk_section {
	void *data;
	size_t size;
	uint64_t vaddr;
};

/**
 * struct shstk_debug - unwind information from outside of a mapped file
 * @size: sizeof(struct shstk_debug), set by the library.
 * @reserved: 0.
 * @eh_frame: .eh_frame.
 * @debug_frame: .debug_frame.
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
 * @path: the file, as given to shstk_space_add_file().
 * @image: its bytes.
 * @size: number of bytes.
 * @ret: receives sections, which become the library's.
 *
 * The command's one (libshstk/symbol/unwindinfo.c in the sources, not installed) reads
 * compressed sections, .gnu_debugdata and separate debug files. Must return to its caller.
 *
 * Return: 0, or a negative errno: there is nothing.
 */
typedef int (*shstk_debug_fn)(void *arg, const char *path, const void *image, size_t size,
			      struct shstk_debug *ret);

/**
 * shstk_space_set_debug() - where to look for what files do not have mapped
 * @space: the space.
 * @find: called at most once for each file that is added from now on, when
 *	nothing in it describes an address of its code; NULL: nothing is called.
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
 * One executable mapping is enough: the others follow from the file.
 *
 * Context: allocates and reads files; not from a signal handler.
 *
 * Return: 0; -EINVAL for a bad range; -ENOEXEC if the file is no ELF file of
 * this architecture or is corrupt; -ENOMEM; or the errno of open(2)/mmap(2).
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
 * Return: as shstk_space_add_file().
 */
SHSTK_API int shstk_space_add_image(struct shstk_space *space, const void *image, size_t size,
				    uint64_t start);

/**
 * shstk_space_add_code() - add executable memory that no file describes
 * @space: the space.
 * @start: first address.
 * @end: first address behind it.
 *
 * Code made at run time, or of a file that is not at hand: frames of it are
 * found by frame pointers, and carry SHSTK_MARK_GUESS.
 *
 * Context: allocates; not from a signal handler.
 *
 * Return: 0, -EINVAL for a bad range, -ENOMEM.
 */
SHSTK_API int shstk_space_add_code(struct shstk_space *space, uint64_t start, uint64_t end);

/**
 * struct shstk_frame_shape - a frame of code that no file describes
 * @size: sizeof(struct shstk_frame_shape), set by the caller.
 * @cfa: bytes from the stack pointer to behind the return address.
 * @fp_saved: the caller's frame pointer lies below the return address.
 * @slack: all may lie further out, by up to so many bytes (64 at most), as behind an alignment
 *	of the stack pointer. The first place that has a return address is taken.
 */
struct shstk_frame_shape {
	uint32_t size;
	uint32_t cfa;
	uint32_t fp_saved;
	uint32_t slack;
};

/**
 * typedef shstk_shape_fn - tell what a frame looks like
 * @arg: the argument given to shstk_space_set_shapes().
 * @pc: program counter, or a return address, in memory that was added by
 *	shstk_space_add_code().
 * @exact: @pc is where the thread stopped, no return address.
 * @ret: receives the shape, or NULL: only asked whether @pc is known.
 *
 * Must return to its caller: it may not longjmp or throw.
 *
 * Return: 0; -ENOENT: not known, frame pointers are followed; -ESRCH: no frame pointers are
 * kept there either.
 */
typedef int (*shstk_shape_fn)(void *arg, uint64_t pc, int exact, struct shstk_frame_shape *ret);

/**
 * shstk_space_set_shapes() - who knows frames of code that no file describes
 * @space: the space.
 * @find: called for each frame of such code; NULL: nothing is called.
 * @arg: passed to @find; must live as long as @space.
 *
 * What it says is verified as far as can be, and the entries carry SHSTK_MARK_GUESS.
 */
SHSTK_API void shstk_space_set_shapes(struct shstk_space *space, shstk_shape_fn find, void *arg);

/**
 * shstk_space_add_pid() - add all that a process has mapped
 * @space: the space; modules it has are kept.
 * @pid: process ID. Reading it needs ptrace access (PTRACE_MODE_READ).
 *
 * Files are opened through /proc/PID/root, so that containers work; the vdso
 * is read from the process.
 *
 * Context: allocates and reads files; not from a signal handler.
 *
 * Return: number of modules added, or a negative errno (-ESRCH, -EACCES, ...).
 */
SHSTK_API int shstk_space_add_pid(struct shstk_space *space, int pid);

/**
 * shstk_unwind() - unwind from registers, reading memory by a callback
 * @space: the program's modules.
 * @regs: registers to start from.
 * @read: reads the program's memory.
 * @arg: passed to @read.
 * @pcs: receives up to @max code addresses; entry 0 is @regs->pc.
 * @max: capacity of @pcs in entries.
 * @opts: options, or NULL; sources must be 0 or contain SHSTK_USE_WALK.
 * @info: receives how it went, or NULL.
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
 * @pc: program counter: entry 0.
 * @ssp: shadow stack pointer.
 * @end: first address behind the shadow stack; 0 if it is not known: the trace
 *	then ends at the first word that cannot be read, which may be too late.
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
 * Uses the register sets NT_PRSTATUS and NT_X86_SHSTK, NT_ARM_GCS or
 * NT_RISCV_USER_CFI, and /proc/TID/maps for the end.
 *
 * Context: not from a signal handler.
 *
 * Return: 0; -EINVAL; -ENODATA: its shadow stack is not on; -ESRCH or what else
 * ptrace(2) says.
 */
SHSTK_API int shstk_shadow_get(int tid, struct shstk_shadow *ret);

/**
 * shstk_shadow_pointer() - as shstk_shadow_get(), without the end
 * @tid: thread ID; the caller is its tracer and it is stopped.
 * @ret: filled but for @ret->end, which becomes 0; @ret->size is set by the
 *	caller.
 *
 * For callers that know the mappings of the process: it stays stopped for the
 * time of two system calls, not of reading its maps.
 *
 * Context: async-signal-safe.
 *
 * Return: as shstk_shadow_get().
 */
SHSTK_API int shstk_shadow_pointer(int tid, struct shstk_shadow *ret);

/**
 * shstk_unwind_shadow() - trace a stopped thread by its shadow stack
 * @shadow: where it lies.
 * @read: reads the program's memory.
 * @arg: passed to @read.
 * @pcs: receives up to @max code addresses; entry 0 is @shadow->pc.
 * @max: capacity of @pcs in entries.
 * @opts: options, or NULL; sources must be 0 or contain SHSTK_USE_HARDWARE.
 * @info: receives how it went, or NULL.
 *
 * Needs neither modules nor unwind information. The pc that a signal interrupted is
 * not on the shadow stack: the entry behind the gap carries SHSTK_MARK_GAP.
 *
 * Context: async-signal-safe if @read is.
 *
 * Return: number of entries written, or -EINVAL.
 */
SHSTK_API int shstk_unwind_shadow(const struct shstk_shadow *shadow, shstk_read_fn read, void *arg,
				  uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
				  struct shstk_info *info);

/**
 * shstk_read_process() - a shstk_read_fn for living processes
 * @arg: pointer to a pid_t.
 * @addr: address in that process.
 * @buf: receives the bytes.
 * @len: bytes wanted.
 *
 * Return: 0, or a negative errno of process_vm_readv(2).
 */
SHSTK_API int shstk_read_process(void *arg, uint64_t addr, void *buf, size_t len);

/**
 * shstk_source_name() - name of a source
 * @source: enum shstk_source.
 *
 * Return: a static string, such as "memo"; "unknown" for other values.
 */
SHSTK_API const char *shstk_source_name(int source);

/**
 * shstk_end_name() - a short sentence on how a trace ended
 * @end: enum shstk_end.
 *
 * Return: a static string, such as "complete".
 */
SHSTK_API const char *shstk_end_name(int end);

/**
 * DOC: control
 *
 * Shadow stacks of the calling thread, with one meaning on every architecture.
 * The bits are those of the kernel's generic prctl(PR_SET_SHADOW_STACK_STATUS).
 * On x86 that call is used if the kernel has it, arch_prctl() otherwise.
 *
 * SHSTK_STATUS_ENABLE: calls and returns use the shadow stack.
 * SHSTK_STATUS_WRITE: instructions that write to it are allowed.
 * SHSTK_STATUS_PUSH: instructions that push to it are allowed (arm64 only).
 */
#define SHSTK_STATUS_ENABLE 0x1ull
#define SHSTK_STATUS_WRITE 0x2ull
#define SHSTK_STATUS_PUSH 0x4ull
#define SHSTK_STATUS_ALL 0x7ull

/* Bits of shstk_stack_map(). */
#define SHSTK_STACK_TOKEN 0x1u
#define SHSTK_STACK_MARKER 0x2u

/* Bits of shstk_enable_here(). */
#define SHSTK_HERE_UNAWARE 0x1u

/**
 * struct shstk_stack - a mapped shadow stack
 * @base: lowest address.
 * @size: bytes, a multiple of the page size.
 * @token: address of the restore token, to give to shstk_stack_switch(); 0 if
 *	none was asked for.
 */
struct shstk_stack {
	uint64_t base;
	uint64_t size;
	uint64_t token;
};

/**
 * shstk_status_get() - which bits are on in the calling thread
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
 * Threads and processes made later inherit it; exec ends it. riscv can only
 * lock SHSTK_STATUS_ENABLE, and only while it is on.
 *
 * Context: async-signal-safe.
 *
 * Return: 0, -EINVAL (unknown bits), -EOPNOTSUPP (not here, or this kernel
 * can't lock these).
 */
SHSTK_API int shstk_status_lock(uint64_t mask);

/**
 * shstk_stack_map() - map a shadow stack
 * @size: bytes wanted, rounded up to whole pages.
 * @flags: SHSTK_STACK_TOKEN: write a restore token, so that it can be switched
 *	to. SHSTK_STACK_MARKER: keep a zero word above it, that marks the end
 *	(arm64 only).
 * @ret: receives it.
 *
 * munmap(2) of @ret->base and @ret->size releases it.
 *
 * Context: async-signal-safe.
 *
 * Return: 0, -EINVAL (@size 0, unknown flags), -EOPNOTSUPP (no shadow stacks
 * here, or no markers), -ENOMEM.
 */
SHSTK_API int shstk_stack_map(size_t size, unsigned int flags, struct shstk_stack *ret);

/**
 * shstk_stack_call() - call a function on another shadow stack
 * @token: address of a restore token, from &struct shstk_stack. It is used up;
 *	when the function has returned a new one lies there again.
 * @fn: function to call.
 * @arg: its argument.
 *
 * The ordinary stack stays the same. @fn must return.
 *
 * Context: async-signal-safe. A bad token is a fault (SIGSEGV).
 *
 * Return: 0, or -EOPNOTSUPP: shadow stacks are off in this thread, or this
 * architecture can't switch.
 */
SHSTK_API int shstk_stack_call(uint64_t token, void (*fn)(void *arg), void *arg);

/**
 * shstk_enable_here() - switch shadow stacks on and be able to return
 * @flags: SHSTK_HERE_UNAWARE: also if what is said below is not ensured.
 *
 * The return addresses of all frames that are active, found by unwinding, are
 * written to the new shadow stack; the permission to write is given up before
 * this call returns. All callers, up to the start of the thread, can then
 * return, and exceptions can be thrown through them. Called from a signal
 * handler it covers the interrupted code too (x86).
 *
 * What can't be made right: a jmp_buf or ucontext_t that was filled before. So
 * without SHSTK_HERE_UNAWARE this is refused
 * where the C library has no shadow-stack support (its longjmp() would end in
 * a fault), and on arm64 in threads other than the first one (pthread_exit()
 * uses a jmp_buf that was filled when the thread started).
 *
 * Other threads are not changed; threads made later inherit shadow stacks.
 *
 * Context: async-signal-safe. Blocks signals for a moment.
 *
 * Return: 0; -EINVAL (unknown flags); -EALREADY: they are on, or were and can't
 * be switched on again; -EOPNOTSUPP: not here; -EBUSY: locked; -EPERM: refused, see above; -ENODATA: the stack can't be unwound
 * completely, or only by guessing; -E2BIG: more than 2048 frames; -ENOMEM.
 */
SHSTK_API int shstk_enable_here(unsigned int flags);

/*
 * What changes the shadow stack under the running function can't be a function
 * of its own: it could not return. These are expanded where they are used.
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
 * Expanded in place. Where it switches SHSTK_STATUS_ENABLE on, the shadow stack
 * begins empty: the function that contains it must never return (let it end
 * with exit(), as the outermost function of a program or thread does). To
 * return, use shstk_enable_here().
 *
 * Context: async-signal-safe.
 *
 * Return: 0; -EINVAL: unknown bits, or others without SHSTK_STATUS_ENABLE;
 * -EOPNOTSUPP: not here, or not these bits; -EBUSY: a bit that would change is
 * locked; -EALREADY: they were on before and can't be switched on again (arm64);
 * -ENOMEM.
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
	/* What remains of -EINVAL, now that the bits are known to be good. */
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
 * shstk_stack_switch() - go on with another shadow stack
 * @token: address of its restore token, which is used up.
 *
 * Expanded in place. The function that contains it must not return before it
 * has switched back. A token is left on the old shadow stack. Only while shadow
 * stacks are on in this thread. On riscv the tokens are checked and written by
 * this code, not by one instruction: they protect from mistakes only.
 *
 * Return: address of that token, or 0 on another architecture.
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
	/* It lies below the old pointer, 8-byte aligned. */
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
 * /dev/shstk, made by the kernel module shstk.ko, tells about shadow stacks what
 * a program cannot find out by itself: those of running threads, of other
 * processes, and where a stack ends. The library works without it. Each call
 * is one ioctl; linux/shstk.h describes the structures and their fields, and
 * Documentation/uapi.rst the errors.
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
 * Return: a file descriptor (close-on-exec), -ENOENT without the module, or
 * another negative errno of open(2).
 */
SHSTK_API int shstk_device_open(void);

/**
 * shstk_device_info() - SHSTK_IOC_INFO: what the module offers
 * @fd: from shstk_device_open().
 * @info: filled.
 *
 * Context: async-signal-safe.
 *
 * Return: 0 or a negative errno.
 */
SHSTK_API int shstk_device_info(int fd, struct shstk_ioc_info *info);

/**
 * shstk_device_status() - SHSTK_IOC_STATUS: the shadow stack of one thread
 * @fd: from shstk_device_open().
 * @status: names the thread; filled.
 *
 * Context: async-signal-safe.
 *
 * Return: 0 or a negative errno.
 */
SHSTK_API int shstk_device_status(int fd, struct shstk_ioc_status *status);

/**
 * shstk_device_map() - SHSTK_IOC_MAP: bounds of the shadow stack at an address
 * @fd: from shstk_device_open().
 * @map: names process and address; filled.
 *
 * Context: async-signal-safe.
 *
 * Return: 0, -ENOENT if no shadow stack is there, or another negative errno.
 */
SHSTK_API int shstk_device_map(int fd, struct shstk_ioc_map *map);

/**
 * shstk_device_trace() - SHSTK_IOC_TRACE: traces of threads, without a stop
 * @fd: from shstk_device_open().
 * @trace: names process, threads and arrays; @trace->nr_threads is filled.
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
