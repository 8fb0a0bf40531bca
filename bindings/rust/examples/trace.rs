// SPDX-License-Identifier: LGPL-2.1-or-later
//! Prints the functions of its own stack: `cargo run --features names --example trace`

#[inline(never)]
fn inner() {
    let trace: shstk::Trace = shstk::Trace::capture();
    let names = shstk::Symbolizer::new().expect("no names");
    for frame in names.frames(&trace) {
        println!("{}", frame);
    }
}

fn main() {
    inner();
}
