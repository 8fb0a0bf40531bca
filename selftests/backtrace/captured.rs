// SPDX-License-Identifier: GPL-2.0-or-later
//! captured.rs - prints what Rust's std::backtrace captures at several depths, twice each.

use std::backtrace::Backtrace;

#[inline(never)]
fn deep(n: u32) -> u32 {
    if n > 0 {
        let inner = deep(n - 1);
        // What is done behind the call keeps it from becoming a loop.
        return unsafe { std::ptr::read_volatile(&inner) } + 1;
    }
    for _ in 0..2 {
        println!("{}", Backtrace::force_capture());
    }
    0
}

fn main() {
    for n in [0, 1, 10, 64, 200] {
        println!("{}", deep(n));
    }
}
