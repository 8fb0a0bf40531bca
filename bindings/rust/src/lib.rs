// SPDX-License-Identifier: LGPL-2.1-or-later
//! Stack traces from shadow stacks, by libshstk.
//!
//! ```no_run
//! let trace: shstk::Trace = shstk::Trace::capture();
//! for address in &trace {
//!     println!("{:#x}", address);
//! }
//! ```
//!
//! The crate needs neither `std` nor an allocator, and no other crate. A capture may be taken in a
//! signal handler. The feature `names` adds [`Symbolizer`], which allocates.
#![no_std]
#![warn(missing_docs)]

#[cfg(feature = "names")]
extern crate alloc;

#[cfg(feature = "names")]
mod names;
pub mod sys;

use core::ffi::c_void;
use core::fmt;
use core::mem::{size_of, MaybeUninit};
use core::ptr;
use core::slice;

#[cfg(feature = "names")]
pub use names::{Frame, Symbolizer};

/// The entry is an interrupted instruction, not a return address.
pub const MARK_PC: u8 = 1;
/// The entry is the signal return trampoline.
pub const MARK_SIGNAL: u8 = 2;
/// The entry was found by a verified heuristic, not by an unwind rule.
pub const MARK_GUESS: u8 = 4;
/// One entry may be missing in front of this one.
pub const MARK_GAP: u8 = 8;

/// The trace was copied from the shadow stack of the CPU.
pub const SOURCE_HARDWARE: u16 = 1;
/// Part of the trace is that of the thread's last one, found unchanged.
pub const SOURCE_MEMO: u16 = 3;
/// Every frame was unwound.
pub const SOURCE_WALK: u16 = 4;

/// The outermost frame was reached.
pub const END_COMPLETE: u16 = 0;
/// There are more frames than the trace has room for.
pub const END_CAPACITY: u16 = 1;

/// A negative `errno` of the library, made positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub i32);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "libshstk: errno {}", self.0)
    }
}

/// What a capture may do; the default is everything that the library does by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Sources that may be used, a bit `1 << SOURCE_...` for each; 0 means all.
    pub sources: u32,
    /// Number of innermost entries to leave out.
    pub skip: u32,
    /// `SHSTK_CHECK_STACK` (1): ask the kernel each time whether the stack can be read.
    pub flags: u32,
}

/// The stack of a thread: up to `N` code addresses, innermost first.
///
/// The addresses lie in the value itself, 9 bytes for each. On the stack a capture needs room for
/// that, in debug builds twice, and for `SHSTK_STACK_NEED` (1536) bytes.
#[derive(Clone, Copy)]
pub struct Trace<const N: usize = 128> {
    pcs: [MaybeUninit<u64>; N],
    marks: [MaybeUninit<u8>; N],
    info: sys::Info,
    len: usize,
}

impl<const N: usize> Trace<N> {
    /// Captures the stack of the calling thread. Entry 0 is the address behind this call, in the
    /// function that contains it.
    ///
    /// It is async-signal-safe: it takes no lock and allocates nothing.
    #[inline(always)]
    pub fn capture() -> Self {
        let mut trace = Self::empty();
        let opts = trace.options(&Options::default());
        // SAFETY: the arrays have room for N entries, as the call is told.
        let n = unsafe { sys::shstk_capture(trace.pcs(), N as u32, &opts, &mut trace.info) };
        // The default options cannot be refused.
        trace.len = if n < 0 { 0 } else { n as usize };
        trace
    }

    /// Captures as [`Trace::capture`] does, but as the options say, which may be refused.
    #[inline(always)]
    pub fn capture_with(options: &Options) -> Result<Self, Error> {
        let mut trace = Self::empty();
        let opts = trace.options(options);
        // SAFETY: the arrays have room for N entries, as the call is told.
        let n = unsafe { sys::shstk_capture(trace.pcs(), N as u32, &opts, &mut trace.info) };
        trace.finished(n)
    }

    /// Captures the stack that a signal interrupted. Entry 0 is the interrupted instruction.
    ///
    /// It is async-signal-safe.
    ///
    /// # Safety
    ///
    /// `ucontext` is the third argument of a handler with `SA_SIGINFO`, of this thread, which has
    /// not returned.
    pub unsafe fn capture_context(
        ucontext: *const c_void,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut trace = Self::empty();
        let opts = trace.options(options);
        let n = sys::shstk_capture_context(ucontext, trace.pcs(), N as u32, &opts, &mut trace.info);
        trace.finished(n)
    }

    #[inline(always)]
    fn empty() -> Self {
        assert!(N > 0 && N <= i32::MAX as usize);
        Trace {
            pcs: [MaybeUninit::uninit(); N],
            marks: [MaybeUninit::uninit(); N],
            info: sys::Info {
                size: size_of::<sys::Info>() as u32,
                ..sys::Info::default()
            },
            len: 0,
        }
    }

    #[inline(always)]
    fn pcs(&mut self) -> *mut u64 {
        self.pcs.as_mut_ptr().cast()
    }

    #[inline(always)]
    fn options(&mut self, options: &Options) -> sys::Opts {
        sys::Opts {
            size: size_of::<sys::Opts>() as u32,
            sources: options.sources,
            skip: options.skip,
            flags: options.flags,
            marks: self.marks.as_mut_ptr().cast(),
            sps: ptr::null_mut(),
        }
    }

    #[inline(always)]
    fn finished(mut self, n: i32) -> Result<Self, Error> {
        if n < 0 {
            return Err(Error(-n));
        }
        self.len = n as usize;
        Ok(self)
    }

    /// The addresses, innermost first.
    pub fn addresses(&self) -> &[u64] {
        // SAFETY: the library has written `len` entries.
        unsafe { slice::from_raw_parts(self.pcs.as_ptr().cast(), self.len) }
    }

    /// The bits `MARK_...` of each address.
    pub fn marks(&self) -> &[u8] {
        // SAFETY: the library has written the marks of each entry.
        unsafe { slice::from_raw_parts(self.marks.as_ptr().cast(), self.len) }
    }

    /// The number of addresses.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The addresses one by one, innermost first.
    pub fn iter(&self) -> slice::Iter<'_, u64> {
        self.addresses().iter()
    }

    /// Where the addresses came from: `SOURCE_...`.
    pub fn source(&self) -> u16 {
        self.info.source
    }

    /// How the trace ended: `END_...`; `shstk.h` has the others.
    pub fn end(&self) -> u16 {
        self.info.end
    }

    /// Whether the outermost frame was reached.
    pub fn is_complete(&self) -> bool {
        self.len > 0 && self.info.end == END_COMPLETE
    }

    /// A hash of the addresses: equal traces have equal identities.
    pub fn id(&self) -> u64 {
        // SAFETY: there are `len` entries.
        unsafe { sys::shstk_trace_id(self.pcs.as_ptr().cast(), self.len as u32) }
    }
}

impl<'a, const N: usize> IntoIterator for &'a Trace<N> {
    type Item = &'a u64;
    type IntoIter = slice::Iter<'a, u64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<const N: usize> AsRef<[u64]> for Trace<N> {
    fn as_ref(&self) -> &[u64] {
        self.addresses()
    }
}

impl<const A: usize, const B: usize> PartialEq<Trace<B>> for Trace<A> {
    fn eq(&self, other: &Trace<B>) -> bool {
        self.addresses() == other.addresses()
    }
}

impl<const N: usize> Eq for Trace<N> {}

/// The addresses as a list of hexadecimal numbers.
impl<const N: usize> fmt::Debug for Trace<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|address| Hex(*address)))
            .finish()
    }
}

struct Hex(u64);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Prepares the calling thread, so that no capture in a signal handler has to do it. That is never
/// required.
pub fn thread_init() -> Result<(), Error> {
    // SAFETY: the call has no arguments and may be made at any time.
    match unsafe { sys::shstk_thread_init() } {
        0 => Ok(()),
        n => Err(Error(-n)),
    }
}
