// SPDX-License-Identifier: LGPL-2.1-or-later
//! The crate beside the C functions, at every depth of a recursion and in a signal handler.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use shstk::{sys, Error, Options, Trace};

const MOST: usize = 256;
const EINVAL: i32 = 22;

/// What C captures.
struct ByC {
    pcs: [u64; MOST],
    marks: [u8; MOST],
    info: sys::Info,
    n: usize,
}

impl ByC {
    fn new() -> Self {
        ByC {
            pcs: [0; MOST],
            marks: [0; MOST],
            info: sys::Info {
                size: size_of::<sys::Info>() as u32,
                ..sys::Info::default()
            },
            n: 0,
        }
    }

    #[inline(always)]
    fn options(&mut self) -> sys::Opts {
        sys::Opts {
            size: size_of::<sys::Opts>() as u32,
            sources: 0,
            skip: 0,
            flags: 0,
            marks: self.marks.as_mut_ptr(),
            sps: ptr::null_mut(),
        }
    }

    #[inline(always)]
    fn capture(&mut self) {
        let opts = self.options();
        let n = unsafe {
            sys::shstk_capture(self.pcs.as_mut_ptr(), MOST as u32, &opts, &mut self.info)
        };
        self.n = usize::try_from(n).unwrap();
    }

    unsafe fn capture_context(&mut self, ucontext: *const c_void) {
        let opts = self.options();
        let pcs = self.pcs.as_mut_ptr();
        let n = sys::shstk_capture_context(ucontext, pcs, MOST as u32, &opts, &mut self.info);
        self.n = usize::try_from(n).unwrap();
    }
}

fn same<const N: usize>(trace: &Trace<N>, c: &ByC, first: usize) {
    assert!(c.n > first);
    assert_eq!(trace.addresses()[first..], c.pcs[first..c.n]);
    assert_eq!(trace.marks(), &c.marks[..c.n]);
    assert_eq!(trace.end(), c.info.end);
    assert_eq!(trace.is_complete(), c.info.end == shstk::END_COMPLETE);
}

#[inline(never)]
fn descend(depth: usize) -> usize {
    let mut c = ByC::new();
    c.capture();
    let trace = Trace::<MOST>::capture();
    same(&trace, &c, 1);
    assert!(c.n > depth);
    same_function(trace.addresses()[0], c.pcs[0]);
    let few = Trace::<2>::capture();
    assert_eq!(few.len(), 2);
    assert_eq!(few.addresses()[1], trace.addresses()[1]);
    assert_eq!(few.end(), shstk::END_CAPACITY);
    let skip = Options {
        skip: 1,
        ..Options::default()
    };
    let without = Trace::<MOST>::capture_with(&skip).unwrap();
    assert_eq!(without.addresses(), &trace.addresses()[1..]);
    if depth == 20 {
        return depth;
    }
    let deeper = descend(depth + 1);
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    deeper + trace.len() - c.n + 1
}

/// Two calls in one function return to two places in it.
fn same_function(a: u64, b: u64) {
    assert_ne!(a, b);
    #[cfg(feature = "names")]
    {
        let names = shstk::Symbolizer::new().unwrap();
        let function = |address| names.frames_at(address, 0).pop().unwrap().function;
        assert!(function(a).contains("descend"), "{}", function(a));
        assert_eq!(function(a), function(b));
    }
}

#[test]
fn every_entry_is_what_c_gives() {
    assert_eq!(descend(1), 20 + 19);
}

extern "C" {
    fn sigaction(signal: i32, action: *const Action, old: *mut Action) -> i32;
    fn raise(signal: i32) -> i32;
}

const SIGUSR1: i32 = 10;
const SA_SIGINFO: i32 = 4;

/// `struct sigaction` of glibc and musl on 64-bit machines.
#[repr(C)]
struct Action {
    handler: unsafe extern "C" fn(i32, *mut c_void, *mut c_void),
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
}

static HANDLED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn handler(_signal: i32, _info: *mut c_void, ucontext: *mut c_void) {
    let mut c = ByC::new();
    c.capture_context(ucontext);
    let trace = Trace::<MOST>::capture_context(ucontext, &Options::default()).unwrap();
    let differs = trace.addresses() != &c.pcs[..c.n]
        || trace.marks() != &c.marks[..c.n]
        || trace.marks()[0] & shstk::MARK_PC == 0;
    HANDLED.store(!differs, Ordering::SeqCst);
}

#[test]
fn handler_gives_what_c_gives() {
    let action = Action {
        handler,
        mask: [0; 16],
        flags: SA_SIGINFO,
        restorer: 0,
    };
    assert_eq!(shstk::thread_init(), Ok(()));
    unsafe {
        assert_eq!(sigaction(SIGUSR1, &action, ptr::null_mut()), 0);
        assert_eq!(raise(SIGUSR1), 0);
    }
    assert!(HANDLED.load(Ordering::SeqCst));
}

#[test]
fn traces_are_values() {
    let trace: Trace = Trace::capture();
    let copy = trace;
    assert!(copy == trace && copy.id() == trace.id());
    assert_eq!(trace.iter().count(), trace.len());
    assert_eq!((&trace).into_iter().next(), trace.as_ref().first());
    assert!(!trace.is_empty());
    let text = format!("[{:#x}, ", trace.addresses()[0]);
    assert!(format!("{:?}", trace).starts_with(&text));
}

#[test]
fn nonsense_is_refused() {
    let wrong = Options {
        sources: 1 << 31,
        ..Options::default()
    };
    assert_eq!(Trace::<8>::capture_with(&wrong).err(), Some(Error(EINVAL)));
}

#[cfg(feature = "names")]
#[inline(never)]
fn capture_here() -> Trace<MOST> {
    Trace::capture()
}

#[cfg(feature = "names")]
#[test]
fn names_are_of_the_entries() {
    let names = shstk::Symbolizer::new().unwrap();
    let trace = capture_here();
    let frames = names.frames(&trace);
    let mut addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
    let mut entries = trace.addresses().to_vec();
    addresses.dedup();
    entries.dedup();
    assert_eq!(addresses, entries);
    // Behind what was inlined, the capture itself, comes the function that was called.
    let called = names.frames_at(trace.addresses()[0], 0).pop().unwrap();
    assert!(called.function.contains("capture_here"));
    assert!(called.to_string().starts_with(&called.function));
    assert!(frames.contains(&called));
    assert!(shstk::Symbolizer::of_process(i32::MAX).is_err());
}
