// SPDX-License-Identifier: GPL-2.0-or-later
//! framehop behind a C interface, see peer.h.
//!
//! Without Rust's standard library, so that what is built with a newer C library
//! can be loaded with an older one.
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_uint, c_void};
use core::ops::Range;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};

extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn free(p: *mut c_void);
    fn abort() -> !;
}

struct Malloc;

unsafe impl GlobalAlloc for Malloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let align = layout.align().max(16);
        aligned_alloc(align, layout.size().next_multiple_of(align)) as *mut u8
    }

    unsafe fn dealloc(&self, p: *mut u8, _: Layout) {
        free(p as *mut c_void)
    }
}

#[global_allocator]
static MALLOC: Malloc = Malloc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { abort() }
}

#[repr(C)]
pub struct Section {
    data: *const u8,
    size: usize,
    addr: u64,
}

impl Section {
    fn range(&self) -> Option<Range<u64>> {
        (self.size != 0).then(|| self.addr..self.addr + self.size as u64)
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        (!self.data.is_null())
            .then(|| unsafe { core::slice::from_raw_parts(self.data, self.size) }.to_vec())
    }
}

#[repr(C)]
pub struct ModuleInfo {
    start: u64,
    end: u64,
    bias: u64,
    eh_frame: Section,
    eh_frame_hdr: Section,
    debug_frame: Section,
    text: Section,
    got: Section,
}

#[repr(C)]
pub struct Regs {
    pc: u64,
    sp: u64,
    fp: u64,
}

type ReadFn = extern "C" fn(*mut c_void, u64, *mut u64) -> c_int;

pub struct Peer {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
}

#[no_mangle]
pub extern "C" fn framehop_create() -> *mut Peer {
    Box::into_raw(Box::new(Peer {
        unwinder: UnwinderX86_64::new(),
        cache: CacheX86_64::new(),
    }))
}

/// # Safety
/// `peer` is what framehop_create() returned, and is not used again.
#[no_mangle]
pub unsafe extern "C" fn framehop_destroy(peer: *mut Peer) {
    drop(Box::from_raw(peer))
}

/// # Safety
/// The sections that `info` names can be read.
#[no_mangle]
pub unsafe extern "C" fn framehop_add(peer: *mut Peer, info: *const ModuleInfo) {
    let info = &*info;
    let sections = ExplicitModuleSectionInfo {
        text_svma: info.text.range(),
        got_svma: info.got.range(),
        eh_frame_svma: info.eh_frame.range(),
        eh_frame: info.eh_frame.bytes(),
        eh_frame_hdr_svma: info.eh_frame_hdr.range(),
        eh_frame_hdr: info.eh_frame_hdr.bytes(),
        debug_frame: info.debug_frame.bytes(),
        ..Default::default()
    };
    (*peer).unwinder.add_module(Module::new(
        String::new(),
        info.start..info.end,
        info.bias,
        sections,
    ));
}

/// Rules in the cache are of one generation of the list of modules.
///
/// # Safety
/// `peer` is what framehop_create() returned.
#[no_mangle]
pub unsafe extern "C" fn framehop_miss(peer: *mut Peer) {
    let last = !0;

    (*peer).unwinder.add_module(Module::new(
        String::new(),
        last..last,
        last,
        ExplicitModuleSectionInfo::default(),
    ));
    (*peer).unwinder.remove_module(last);
}

/// # Safety
/// `pcs` has room for `max` addresses; without `read`, the calling thread's stack
/// goes from `regs.sp` to `arg`.
#[no_mangle]
pub unsafe extern "C" fn framehop_trace(
    peer: *mut Peer,
    regs: *const Regs,
    read: Option<ReadFn>,
    arg: *mut c_void,
    pcs: *mut u64,
    max: c_uint,
    end: *mut c_int,
) -> c_uint {
    match read {
        Some(read) => trace(&mut *peer, &*regs, pcs, max, end, |addr| {
            let mut word = 0;
            match read(arg, addr, &mut word) {
                0 => Ok(word),
                _ => Err(()),
            }
        }),
        None => {
            let (low, high) = ((*regs).sp, arg as u64);

            trace(&mut *peer, &*regs, pcs, max, end, |addr| {
                if addr < low || addr > high - 8 || addr & 7 != 0 {
                    return Err(());
                }
                Ok(*(addr as *const u64))
            })
        }
    }
}

unsafe fn trace(
    peer: &mut Peer,
    regs: &Regs,
    pcs: *mut u64,
    max: c_uint,
    end: *mut c_int,
    mut read: impl FnMut(u64) -> Result<u64, ()>,
) -> c_uint {
    let first = UnwindRegsX86_64::new(regs.pc, regs.sp, regs.fp);
    let mut frames = peer
        .unwinder
        .iter_frames(regs.pc, first, &mut peer.cache, &mut read);
    let mut n = 0;

    *end = 0;
    while n < max {
        match frames.next() {
            Ok(Some(address)) => {
                *pcs.add(n as usize) = FrameAddress::address(address);
                n += 1;
            }
            Ok(None) => break,
            Err(error) => {
                *end = match error {
                    Error::CouldNotReadStack(_) => 1,
                    Error::FramepointerUnwindingMovedBackwards => 2,
                    Error::DidNotAdvance => 3,
                    Error::IntegerOverflow => 4,
                    Error::ReturnAddressIsNull => 5,
                };
                break;
            }
        }
    }
    n
}
