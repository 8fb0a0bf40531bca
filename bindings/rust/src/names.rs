// SPDX-License-Identifier: LGPL-2.1-or-later
//! Names for addresses, by libshstk-symbolize.

use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt;
use core::mem::size_of;
use core::ptr;
use core::slice;

use crate::sys;
use crate::{Error, Trace};

/// Room for the functions that were inlined at one address, before more is made.
const NAMES_AT_FIRST: usize = 8;

/// A function at an entry of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The entry of the trace.
    pub address: u64,
    /// Bytes from the start of the function; 0 if that is not known.
    pub offset: u64,
    /// Readable name, never empty.
    pub function: String,
    /// The name in the symbol table or the debug information.
    pub linkage: String,
    /// Source file, or empty.
    pub file: String,
    /// Line in it, or 0.
    pub line: u32,
    /// Name of the file that is mapped at the address.
    pub module: String,
    /// Whether the function was inlined into the next frame.
    pub inlined: bool,
}

/// `main+0x1f (example.rs:12)`, as much of it as is known.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        if self.offset != 0 {
            write!(f, "+{:#x}", self.offset)?;
        }
        if !self.file.is_empty() {
            write!(f, " ({}:{})", self.file, self.line)?;
        }
        Ok(())
    }
}

/// Names for the addresses of a process. Not for signal handlers.
pub struct Symbolizer {
    handle: *mut c_void,
}

// SAFETY: several threads may use a symbolizer at once, as shstk_symbolize.h says.
unsafe impl Send for Symbolizer {}
unsafe impl Sync for Symbolizer {}

impl Symbolizer {
    /// For this process.
    pub fn new() -> Result<Self, Error> {
        Self::of_process(0)
    }

    /// For another process; 0: this one.
    pub fn of_process(pid: i32) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer receives the symbolizer.
        match unsafe { sys::shstk_symbolizer_create(pid, &mut handle) } {
            0 => Ok(Symbolizer { handle }),
            n => Err(Error(-n)),
        }
    }

    /// The functions at all entries of a trace, innermost first.
    pub fn frames<const N: usize>(&self, trace: &Trace<N>) -> Vec<Frame> {
        let mut frames = Vec::with_capacity(trace.len());
        for (address, mark) in trace.iter().zip(trace.marks()) {
            self.add(&mut frames, *address, *mark);
        }
        frames
    }

    /// The functions at one entry: those that were inlined first, the one called last.
    pub fn frames_at(&self, address: u64, mark: u8) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.add(&mut frames, address, mark);
        frames
    }

    fn add(&self, frames: &mut Vec<Frame>, address: u64, mark: u8) {
        let mut names = Vec::with_capacity(NAMES_AT_FIRST);
        let count = self.look_up(&mut names, address, mark);
        if count > names.len() {
            names.reserve(count);
            self.look_up(&mut names, address, mark);
        }
        frames.extend(names.iter().map(|name| frame(address, name)));
    }

    /// Fills a vector as far as it has room; the number of functions that there are.
    fn look_up(&self, names: &mut Vec<sys::Name>, address: u64, mark: u8) -> usize {
        names.clear();
        // SAFETY: there is room for as many names as the call is told; it writes them in order.
        unsafe {
            let count = sys::shstk_symbolize(
                self.handle,
                address,
                mark,
                names.as_mut_ptr(),
                names.capacity() as u32,
                size_of::<sys::Name>(),
            );
            let count = if count < 0 { 0 } else { count as usize };
            names.set_len(count.min(names.capacity()));
            count
        }
    }
}

impl Drop for Symbolizer {
    fn drop(&mut self) {
        // SAFETY: it was made by shstk_symbolizer_create(), and frames own their strings.
        unsafe { sys::shstk_symbolizer_destroy(self.handle) }
    }
}

fn frame(address: u64, name: &sys::Name) -> Frame {
    Frame {
        address,
        offset: name.offset,
        function: text(name.function),
        linkage: text(name.linkage),
        file: text(name.file),
        line: name.line,
        module: text(name.module),
        inlined: name.inlined != 0,
    }
}

/// A copy of a string of the library; empty for a null pointer.
fn text(string: *const u8) -> String {
    if string.is_null() {
        return String::new();
    }
    let mut len = 0;
    // SAFETY: strings of the library end with a byte of 0.
    let bytes = unsafe {
        while *string.add(len) != 0 {
            len += 1;
        }
        slice::from_raw_parts(string, len)
    };
    String::from_utf8_lossy(bytes).into_owned()
}
