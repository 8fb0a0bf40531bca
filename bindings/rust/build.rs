// SPDX-License-Identifier: LGPL-2.1-or-later
//! SHSTK_LIB_DIR is where the libraries lie, if the linker does not look there by itself.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=SHSTK_LIB_DIR");
    if let Ok(folder) = std::env::var("SHSTK_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder);
    }
}
