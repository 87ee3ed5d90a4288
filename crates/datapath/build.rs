//! Compiles the packet programs and the shim to objects that the library carries within itself.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libbpf_cargo::SkeletonBuilder;

#[path = "build/shim.rs"]
mod shim;

const PROGRAMS: [&str; 2] = ["forwarder", "guard"];
/// Newest last, so that a plain `clang` comes first and then the newest that Debian and Ubuntu package.
const COMPILERS: [&str; 8] =
    ["clang", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = compiler()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this with cargo")?);
    for program in PROGRAMS {
        SkeletonBuilder::new()
            .source(format!("bpf/{program}.bpf.c"))
            .obj(out.join(format!("{program}.bpf.o")))
            .clang(&clang)
            .clang_args(arguments())
            .build()
            .map_err(|error| format!("{clang} cannot compile bpf/{program}.bpf.c: {error:#}"))?;
    }
    shim::build(&out)
}

fn compiler() -> Result<String, String> {
    println!("cargo::rerun-if-env-changed=PATH");
    if let Ok(clang) = env::var("CLANG") {
        return Ok(clang);
    }
    let works = |clang: &&str| {
        let run = Command::new(clang).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    };
    let found = COMPILERS.iter().find(|clang| works(clang));
    found.map(ToString::to_string).ok_or_else(|| {
        "the packet programs need clang 14 or later: install the package clang-14 (or clang), or name it in CLANG"
            .to_owned()
    })
}

/// Atomics need version 3 of the instruction set. Debian keeps the kernel's `asm` headers in a directory of the machine's
/// architecture, in which a compiler for eBPF does not look.
fn arguments() -> Vec<String> {
    let mut arguments: Vec<String> = ["-mcpu=v3", "-Wall", "-Wextra"].map(str::to_owned).to_vec();
    let architecture = env::consts::ARCH;
    let headers = format!("/usr/include/{architecture}-linux-gnu");
    if Path::new(&headers).is_dir() {
        arguments.push(format!("-I{headers}"));
    }
    arguments
}
