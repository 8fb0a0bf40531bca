/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol.h - names, files and lines of code addresses.
 *
 * A store (struct shstk_symbols) holds what was learnt about ELF files, shared by all processes
 * that map them. A process view (struct shstk_symproc) holds which file was mapped where. Addresses
 * are resolved in two steps, because the first depends on time and the second does not:
 *
 *    map = shstk_symproc_find(proc, pc);          as soon as the address is known
 *    sym = shstk_symbols_lookup(symbols, map, pc, how);       whenever it suits
 *
 * A map that was found stays valid until the store is destroyed, also when its range is unmapped or
 * used for something else later. So a profile that keeps (map, pc) is right across dlclose() and
 * dlopen() of another library at the same addresses.
 *
 * All input is taken as hostile: ELF files, debug information, perf-map files and maps texts of
 * other programs cost bounded time and memory, and the worst result is an unresolved address. All
 * returned strings are valid UTF-8 without control characters.
 *
 * Part of libshstk-symbol.a (elfutils, libiberty, protobuf-c, zlib), internal to this tree. Not
 * thread safe: one thread at a time per store, which starts others for many addresses at once
 * (readers.h). Nothing here may be called from a signal handler.
 */
#ifndef SHSTK_SYMBOL_H
#define SHSTK_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_debug;
struct shstk_known_names;
struct shstk_symbols;
struct shstk_symproc;

/**
 * struct shstk_symbols_opts - how to resolve; all zero is the default
 * @debug_dirs: colon-separated folders with separate debug files (below them
 *	.build-id/xx/yyyy.debug and copies of the file system tree); NULL means /usr/lib/debug. They
 *	are looked for in this process's file system, then in that of the process, where a debug
 *	file must belong to root, to the user of this process, or to the owner of the file. If the
 *	environment has DEBUGINFOD_URLS, its servers are asked for what is not there, by
 *	libdebuginfod if it is installed.
 * @no_servers: do not ask the servers of DEBUGINFOD_URLS.
 * @no_inline: leave inlined frames out.
 * @no_lines: leave files and lines out, do not read .debug_line.
 * @kernel: addresses with the top bit set are addresses of the running kernel.
 * @memory: bytes that reading files for their names may take at a time; 0: a default, which is
 *	enough for the largest programs' debug information.
 * @time: CPU time that reading files may take, in ns; 0: a default.
 * @full_names: show C++ names with all arguments of templates, also with those that are defaults of
 *	the standard library.
 * @known: names that stores before this one found, with the same options (known_names.h); or NULL.
 */
struct shstk_symbols_opts {
	const char *debug_dirs;
	bool no_servers;
	bool no_inline;
	bool no_lines;
	bool kernel;
	bool full_names;
	uint64_t memory;
	uint64_t time;
	struct shstk_known_names *known;
};

/**
 * enum shstk_symmap_kind - what a mapping is
 * @SHSTK_SYMMAP_FILE: a file, by its path.
 * @SHSTK_SYMMAP_VDSO: the kernel's vdso.
 * @SHSTK_SYMMAP_ANON: memory without a usable file: code made at run time, named by the process's
 *	perf-map if there is one.
 * @SHSTK_SYMMAP_NONE: no mapping is known at the address. It is resolved like ANON.
 * @SHSTK_SYMMAP_NAMED: there is no address, only a function's name that was read.
 * @SHSTK_SYMMAP_LANGUAGE: there is no address, but a function that an interpreter ran;
 *	&shstk_symmap.name is that of the language.
 */
enum shstk_symmap_kind {
	SHSTK_SYMMAP_FILE,
	SHSTK_SYMMAP_VDSO,
	SHSTK_SYMMAP_ANON,
	SHSTK_SYMMAP_NONE,
	SHSTK_SYMMAP_NAMED,
	SHSTK_SYMMAP_LANGUAGE,
};

/**
 * struct shstk_symmap - a mapping of a process
 * @proc: the process.
 * @kind: enum shstk_symmap_kind.
 * @start: first address.
 * @end: first address behind it.
 * @offset: offset of @start in the file, in bytes.
 * @path: as the kernel names it ("" if it has no name), without " (deleted)".
 * @name: last component of @path, as shown in frames: "libc.so.6", "[vdso]",
 *	"[anon]", "[unknown]".
 * @build_id: GNU build id of the file, or NULL; known after
 *	shstk_symmap_build_id() or the first lookup.
 * @build_id_size: bytes in @build_id.
 * @htlhash: OpenTelemetry's id of the file, SHSTK_HTLHASH bytes (htlhash.h), or NULL; known after
 *	shstk_symmap_htlhash().
 */
struct shstk_symmap {
	struct shstk_symproc *proc;
	int kind;
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	const char *path;
	const char *name;
	const uint8_t *build_id;
	size_t build_id_size;
	const uint8_t *htlhash;
};

/**
 * struct shstk_symmap_info - a mapping to add
 * @start: first address.
 * @end: first address behind it.
 * @offset: offset of @start in the file, in bytes.
 * @path: path as in /proc/PID/maps (also one that ends in " (deleted)"), "[vdso]", or "" or NULL
 *	for anonymous memory. Line breaks in it are not escaped.
 * @build_id: GNU build id where the caller knows it (mmap events), or NULL. A file at @path with
 *	another build id is not used.
 * @build_id_size: bytes in @build_id.
 * @dev: device of the file as makedev(3) has it, where known; otherwise 0.
 * @inode: inode number of the file, where known; otherwise 0.
 * @image: ELF image of "[vdso]" or of code that is in no file, or NULL. It is copied.
 * @image_size: bytes in @image.
 */
struct shstk_symmap_info {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	const char *path;
	const void *build_id;
	size_t build_id_size;
	uint64_t dev;
	uint64_t inode;
	const void *image;
	size_t image_size;
};

/**
 * struct shstk_symframe - one function at an address
 * @function: demangled name, never NULL. Where no symbol covers the address, the name is
 *	"[libfoo.so+0x1234]", with an address as addr2line -e libfoo.so takes it: the start of the
 *	function if .eh_frame_hdr tells it, else the address of the code itself. If the file cannot
 *	be read, the number is the offset in the file; without a file it is the address in the
 *	process, "[0x7f0012345678]".
 * @linkage: the name as it is in the symbol table or debug information.
 * @file: source file, or NULL.
 * @line: line in @file, or 0. In an outer frame it is the line of the inlined call.
 * @start_line: line at which the function is declared, or 0.
 * @inlined: the function was inlined into the next frame.
 */
struct shstk_symframe {
	const char *function;
	const char *linkage;
	const char *file;
	unsigned int line;
	unsigned int start_line;
	bool inlined;
};

/**
 * struct shstk_symbol - what is known about an address
 * @map: the mapping it was looked up in.
 * @resolved: a symbol, debug information or a perf-map entry named it.
 * @start: address at which the function starts in the process, or 0.
 * @offset: the address minus @start, in bytes (0 if @start is 0).
 * @nr: number of elements of @frames, at least 1.
 * @frames: innermost inlined function first; the last one is the function
 *	that was really called.
 */
struct shstk_symbol {
	const struct shstk_symmap *map;
	bool resolved;
	uint64_t start;
	uint64_t offset;
	unsigned int nr;
	const struct shstk_symframe *frames;
};

/**
 * enum shstk_symaddr - how to take an address
 * @SHSTK_SYMADDR_RETURN: a return address: the call before it is meant.
 * @SHSTK_SYMADDR_PC: a program counter (SHSTK_MARK_PC, SHSTK_MARK_SIGNAL).
 */
enum shstk_symaddr {
	SHSTK_SYMADDR_RETURN = 0,
	SHSTK_SYMADDR_PC = 1,
};

/**
 * shstk_symbols_create() - make an empty store
 * @opts: options, or NULL.
 * @ret: receives the store; give it to shstk_symbols_destroy().
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_symbols_create(const struct shstk_symbols_opts *opts, struct shstk_symbols **ret);

/**
 * shstk_symbols_destroy() - release a store with all that was made from it
 * @symbols: a store, or NULL.
 */
void shstk_symbols_destroy(struct shstk_symbols *symbols);

/**
 * shstk_symproc_create() - make the view of a process, without mappings
 * @symbols: the store, which owns the view.
 * @pid: process ID, or 0 if there is none (a saved maps text from elsewhere).
 * @ret: receives the view.
 *
 * If the process lives, its root folder is pinned, so that files of another container are found
 * later, also after its death. It is no error if the process is gone or must not be looked at:
 * files are then looked up in the root of this process.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_symproc_create(struct shstk_symbols *symbols, int pid, struct shstk_symproc **ret);

/**
 * shstk_symproc_create_past() - make the view of a process that is gone
 * @symbols: the store, which owns the view.
 * @pid: process ID that the process had; another process may have it now.
 * @ret: receives the view.
 *
 * @pid is used for nothing but the name /tmp/perf-PID.map.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_symproc_create_past(struct shstk_symbols *symbols, int pid, struct shstk_symproc **ret);

/**
 * shstk_symproc_fork() - make the view of a forked child
 * @parent: view of the parent; its present mappings are copied.
 * @pid: process ID of the child.
 * @ret: receives the view.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_symproc_fork(struct shstk_symproc *parent, int pid, struct shstk_symproc **ret);

/**
 * shstk_symproc_pid() - get the process ID of a view
 * @proc: the view.
 *
 * Return: the process ID.
 */
int shstk_symproc_pid(const struct shstk_symproc *proc);

/**
 * shstk_symproc_set_labels() - say more about a process
 * @proc: the view.
 * @labels: keys and values, each followed by a zero byte: key, value, next key.
 * @size: bytes in @labels.
 *
 * All samples of the view have these labels from now on, besides their own.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_symproc_set_labels(struct shstk_symproc *proc, const char *labels, size_t size);

/**
 * shstk_symproc_set_maps() - replace the mappings by those of a maps text
 * @proc: the view.
 * @text: text as in /proc/PID/maps; it may end anywhere. Lines that cannot be
 *	understood are left out. Only executable mappings are kept.
 * @size: bytes in @text.
 *
 * Mappings that did not change keep their identity. After exec, clear first.
 *
 * Return: number of executable mappings, or -ENOMEM.
 */
int shstk_symproc_set_maps(struct shstk_symproc *proc, const char *text, size_t size);

/**
 * shstk_symproc_read_maps() - replace the mappings by those of the living process
 * @proc: the view.
 *
 * Return: the same as shstk_symproc_set_maps(), or a negative errno of /proc/PID/maps; the mappings
 * are then unchanged.
 */
int shstk_symproc_read_maps(struct shstk_symproc *proc);

/**
 * shstk_symproc_add() - add one executable mapping
 * @proc: the view.
 * @info: the mapping. What overlapped it before is cut.
 *
 * Return: 0, -EINVAL for an empty or overlong range, -ENOMEM.
 */
int shstk_symproc_add(struct shstk_symproc *proc, const struct shstk_symmap_info *info);

/**
 * shstk_symproc_remove() - note that a range was unmapped
 * @proc: the view.
 * @start: first address.
 * @end: first address behind it.
 *
 * Addresses in the range still resolve to what was there last, until something new is mapped. With
 * 0 and UINT64_MAX, for a process that executes another program, all is forgotten.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_symproc_remove(struct shstk_symproc *proc, uint64_t start, uint64_t end);

/**
 * shstk_symproc_end() - note that the process has ended
 * @proc: the view. Nothing may be looked for in it any more; what was found in it stays.
 */
void shstk_symproc_end(struct shstk_symproc *proc);

/**
 * shstk_symproc_add_perf_map() - name code made at run time
 * @proc: the view.
 * @path: a perf-map file (lines of hexadecimal start, hexadecimal size, name); NULL: the file that
 *	the process writes, /tmp/perf-PID.map in its own root and with its own process ID there, or
 *	else in this process's root.
 *
 * Without this call the process's own file is read at the first address that needs it. Call it
 * again to take later entries; newer lines win. The process's own file is read only if it belongs
 * to root, to the user of this process or to the process's user, and was not last written before
 * the process started. All such files together take at most a sixth of @memory in the options, and
 * one file takes at most half of what is left of that.
 *
 * Return: number of entries now known, or a negative errno.
 */
int shstk_symproc_add_perf_map(struct shstk_symproc *proc, const char *path);

/**
 * shstk_symproc_add_generated() - name one piece of code made at run time
 * @proc: the view.
 * @start: first address of the code.
 * @end: first address behind it.
 * @name: name of the code; copied. Entries of the process's own perf-map file come before it, and
 *	names that are added later come before names that were added earlier.
 *
 * Return: 0, -EINVAL for a bad range, -ENOMEM.
 */
int shstk_symproc_add_generated(struct shstk_symproc *proc, uint64_t start, uint64_t end,
				const char *name);

/* Entries of stacks from here to half of all addresses stand for functions without code. */
#define SHSTK_FUNCTION_BASE (1ull << 62)

/*
 * Of these, the entry that stands for frames that were left out of a stack. Those behind it, up to
 * SHSTK_FUNCTION_REPEATED of them, stand for further repetitions of so many entries that are before
 * them in the stack.
 */
#define SHSTK_FUNCTION_LEFT_OUT (SHSTK_FUNCTION_BASE + (1ull << 61))
#define SHSTK_FUNCTION_REPEATED 16

/**
 * typedef shstk_function_fn - tell what an entry of a stack stands for that is no code
 * @arg: the last argument of shstk_symbols_set_functions().
 * @pc: the entry, at least SHSTK_FUNCTION_BASE.
 * @ret: receives the function, with its line.
 * @module: receives the name of the language, in brackets.
 *
 * Strings are copied.
 *
 * Return: false if it stands for nothing.
 */
typedef bool (*shstk_function_fn)(void *arg, uint64_t pc, struct shstk_symframe *ret,
				  const char **module);

/**
 * shstk_symbols_set_functions() - set who knows functions that are not found by addresses
 * @symbols: the store.
 * @fn: called when an entry is met first.
 * @arg: its first argument.
 */
void shstk_symbols_set_functions(struct shstk_symbols *symbols, shstk_function_fn fn, void *arg);

/**
 * shstk_remote_open() - open a mapped file that cannot be opened by its name
 * @symbols: the store whose limits of memory and time apply.
 * @pid: the process that has it mapped.
 * @addr: an address in a mapping of the file.
 *
 * The file may have been deleted. If it is the process's program, it is opened as /proc/PID/exe.
 * Otherwise a file in memory is made: it holds those parts that lie in the process's memory and are
 * not writable, at the same offsets, with the names of what the file exports. The caller needs the
 * rights of ptrace(2), no others.
 *
 * Return: a descriptor, or a negative errno: -ENOEXEC: it is no ELF file, -EFBIG: it is too large,
 * or too much was read of this process.
 */
int shstk_remote_open(struct shstk_symbols *symbols, int pid, uint64_t addr);

/**
 * shstk_symproc_find() - find the mapping that an address has now
 * @proc: the view.
 * @pc: the address. Callers who want the mapping of the call before a return address pass the byte
 *	before it; that hardly ever matters, as a mapping almost never starts right behind a call.
 *
 * Return: never NULL; a SHSTK_SYMMAP_NONE mapping where nothing is known. A mapping of that kind
 * also stands for the running kernel.
 */
const struct shstk_symmap *shstk_symproc_find(struct shstk_symproc *proc, uint64_t pc);

/**
 * shstk_symmap_build_id() - read a mapping's build id if it is not known yet
 * @symbols: the store.
 * @map: the mapping; its @build_id is filled if the file has one.
 */
void shstk_symmap_build_id(struct shstk_symbols *symbols, const struct shstk_symmap *map);
/* Computes OpenTelemetry's id of a mapping's file if it is not known yet: @htlhash. */
void shstk_symmap_htlhash(const struct shstk_symmap *map);

/**
 * shstk_symbols_lookup() - resolve an address
 * @symbols: the store.
 * @map: the mapping that the address lies in.
 * @pc: address in the process.
 * @how: enum shstk_symaddr.
 *
 * The first lookup in a file reads its tables; results are kept.
 *
 * Return: never NULL, valid until the store is destroyed.
 */
const struct shstk_symbol *shstk_symbols_lookup(struct shstk_symbols *symbols,
						const struct shstk_symmap *map, uint64_t pc,
						int how);

/**
 * shstk_symbols_missing() - count split debug information that was needed and not found
 * @symbols: the store.
 * @first: receives the path of the first file that was looked for, or NULL.
 *
 * Programs that were built with split debug information (-gsplit-dwarf) have the description of
 * each source file in a .dwo file, or all in one .dwp file. Without it inlined functions are
 * missing from what lookups return.
 *
 * Return: number of source files whose description was looked for and not found.
 */
size_t shstk_symbols_missing(const struct shstk_symbols *symbols, const char **first);

/**
 * shstk_symbols_lost() - count files whose separate debug file was not found
 * @symbols: the store.
 * @name: receives the name of the first such file, or NULL.
 * @debug: receives the name of its debug file, which its .gnu_debuglink has, or NULL.
 *
 * Debug files whose name is made of a build id are not counted: files of Debian's packages name
 * such, and most systems do not have them.
 *
 * Return: number of files.
 */
size_t shstk_symbols_lost(const struct shstk_symbols *symbols, const char **name,
			  const char **debug);

/**
 * enum shstk_excess - a resource that a file would have taken more of than it may
 * @SHSTK_EXCESS_MEMORY: memory.
 * @SHSTK_EXCESS_TIME: CPU time.
 */
enum shstk_excess {
	SHSTK_EXCESS_MEMORY = 1,
	SHSTK_EXCESS_TIME = 2,
};

/**
 * shstk_symbols_excess() - get a file that takes more to read than the options allow
 * @symbols: the store.
 * @i: index among such files, from 0.
 * @what: receives enum shstk_excess, or'ed.
 *
 * The options' @memory and @time set the bounds. Lookups in such a file have returned less than the
 * file could tell: functions without lines or without those inlined into them, or addresses.
 *
 * Return: the path of the file, or NULL: there are no more.
 */
const char *shstk_symbols_excess(const struct shstk_symbols *symbols, size_t i, unsigned int *what);

/**
 * shstk_symproc_lookup() - find the mapping of an address and resolve the address
 * @proc: the view.
 * @pc: address in the process.
 * @how: enum shstk_symaddr.
 *
 * It calls shstk_symproc_find() and shstk_symbols_lookup().
 *
 * Return: the same as shstk_symbols_lookup().
 */
const struct shstk_symbol *shstk_symproc_lookup(struct shstk_symproc *proc, uint64_t pc, int how);

/* Bytes of a buffer that any label fits in, and bytes that a line of text has for one label. */
#define SHSTK_LABEL_MAX 16384
#define SHSTK_LABEL_ROOM 100

/**
 * shstk_label() - shorten a function's name for people, where there is little room
 * @name: the function's name.
 * @room: bytes that the label should have at most; it is longer if the name has no parts that can
 *	be dropped.
 * @buf: buffer for the label, used if the label differs from @name.
 * @size: bytes in @buf: SHSTK_LABEL_MAX is enough for any name.
 *
 * Return: @name, or @buf with the C++ or Rust name without the parts that tell least.
 */
const char *shstk_label(const char *name, size_t room, char *buf, size_t size);

/**
 * shstk_short_name() - shorten a function's name so that it fits
 * @name: the function's name, in UTF-8.
 * @room: characters that fit; at least 8 are used.
 * @buf: buffer for the shortened name, SHSTK_LABEL_MAX bytes.
 *
 * The name is shortened as by shstk_label(); if it is still too long, it is cut in its middle.
 *
 * Return: @name or @buf.
 */
const char *shstk_short_name(const char *name, size_t room, char *buf);

/**
 * shstk_debug_find() - find unwind information that is not mapped: a shstk_debug_fn
 * @debug_dirs: as in struct shstk_symbols_opts (a const char *).
 * @path: the file.
 * @image: bytes of the file.
 * @size: number of bytes.
 * @ret: receives sections: compressed ones of the file itself; those packed in its .gnu_debugdata;
 *	and those of its separate debug file, found by build ID or .gnu_debuglink.
 *
 * Context: allocates and reads files; not from a signal handler.
 *
 * Return: 0, -ENOENT if there is nothing, -ENOEXEC.
 */
int shstk_debug_find(void *debug_dirs, const char *path, const void *image, size_t size,
		     struct shstk_debug *ret);

#endif /* SHSTK_SYMBOL_H */
