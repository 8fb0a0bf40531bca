// SPDX-License-Identifier: LGPL-2.1-or-later
//! The functions of the library as they are. `shstk.h` and `shstk_symbolize.h` describe them.

use core::ffi::c_void;

/// `struct shstk_opts`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Opts {
    /// `size_of::<Opts>()`
    pub size: u32,
    /// Mask of sources; 0 means all.
    pub sources: u32,
    /// Number of innermost entries to leave out.
    pub skip: u32,
    /// `SHSTK_CHECK_STACK` or 0.
    pub flags: u32,
    /// Null, or room for the marks of each entry.
    pub marks: *mut u8,
    /// Null, or room for the stack pointer of each entry.
    pub sps: *mut u64,
}

/// `struct shstk_info`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    /// `size_of::<Info>()`
    pub size: u32,
    /// Where the entries came from.
    pub source: u16,
    /// How the trace ended.
    pub end: u16,
    /// Number of entries that were verified instead of unwound.
    pub reused: u32,
    /// Number of entries with `MARK_GUESS`.
    pub guessed: u32,
    /// The address at which the trace ended.
    pub end_pc: u64,
}

#[link(name = "shstk")]
extern "C" {
    /// Captures the stack of the calling thread.
    pub fn shstk_capture(pcs: *mut u64, max: u32, opts: *const Opts, info: *mut Info) -> i32;
    /// Captures what a signal interrupted.
    pub fn shstk_capture_context(
        ucontext: *const c_void,
        pcs: *mut u64,
        max: u32,
        opts: *const Opts,
        info: *mut Info,
    ) -> i32;
    /// The identity of a trace.
    pub fn shstk_trace_id(pcs: *const u64, n: u32) -> u64;
    /// Prepares the calling thread.
    pub fn shstk_thread_init() -> i32;
}

/// `struct shstk_name`; its strings live as long as the symbolizer.
#[cfg(feature = "names")]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Name {
    /// Set by the library.
    pub size: u32,
    /// Line in the file, or 0.
    pub line: u32,
    /// 1 if the function was inlined into the next one.
    pub inlined: u32,
    /// 0
    pub reserved: u32,
    /// Bytes from the start of the function.
    pub offset: u64,
    /// Readable name, never null.
    pub function: *const u8,
    /// The name in the symbol table, or null.
    pub linkage: *const u8,
    /// Source file, or null.
    pub file: *const u8,
    /// Name of the file that is mapped, or null.
    pub module: *const u8,
}

#[cfg(feature = "names")]
#[link(name = "shstk-symbolize")]
extern "C" {
    /// Makes a symbolizer.
    pub fn shstk_symbolizer_create(pid: i32, ret: *mut *mut c_void) -> i32;
    /// Releases it and its strings.
    pub fn shstk_symbolizer_destroy(symbolizer: *mut c_void);
    /// Finds the functions at an address.
    pub fn shstk_symbolize(
        symbolizer: *mut c_void,
        pc: u64,
        mark: u8,
        names: *mut Name,
        max: u32,
        name_size: usize,
    ) -> i32;
}
