//! Finds the libraries of the features: in the folder TRAIL_LIB_DIR, or else by pkg-config.

use std::env;
use std::process::{self, Command};

fn main() {
    println!("cargo:rerun-if-env-changed=TRAIL_LIB_DIR");
    for (feature, library) in [("READ", "trail"), ("RECORD", "trail-record")] {
        if env::var_os(format!("CARGO_FEATURE_{feature}")).is_none() {
            continue;
        }
        for folder in folders(library) {
            println!("cargo:rustc-link-search=native={folder}");
        }
        println!("cargo:rustc-link-lib=dylib={library}");
    }
}

/// The folders to search for a library besides the linker's own.
fn folders(library: &str) -> Vec<String> {
    if let Ok(folder) = env::var("TRAIL_LIB_DIR") {
        return vec![folder];
    }
    let found = Command::new("pkg-config").args(["--libs-only-L", library]).output();
    match found {
        Ok(output) if output.status.success() => {
            let flags = String::from_utf8_lossy(&output.stdout).into_owned();
            flags.split_whitespace().filter_map(|flag| flag.strip_prefix("-L")).map(str::to_owned).collect()
        }
        _ => {
            eprintln!("{library} was not found by pkg-config: install lib{library}-dev, or set TRAIL_LIB_DIR to the folder of lib{library}.so");
            process::exit(1);
        }
    }
}
