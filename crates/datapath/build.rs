//! Compiles the packet programs and the shim to objects that the library carries within itself.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[path = "build/shim.rs"]
mod shim;

/// Name of the source, of the object, and what is defined for it.
const PROGRAMS: [(&str, &str, Option<&str>); 7] = [
    ("forwarder", "forwarder", None),
    ("guard", "guard", None),
    ("router", "router", None),
    ("switch", "switch_tc", None),
    ("tunnel_end", "tunnel_end", None),
    ("vlan_end", "vlan_end", None),
    ("switch", "switch_xdp", Some("-DSWITCH_XDP")),
];
/// Newest last, so that a plain `clang` comes first and then the newest that Debian and Ubuntu package.
const COMPILERS: [&str; 8] =
    ["clang", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = compiler()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this with cargo")?);
    for (source, object, define) in PROGRAMS {
        compile(&clang, source, define, &out.join(format!("{object}.bpf.o")))?;
    }
    shim::build(&out)
}

/// Compiles a packet program, with the headers of the libbpf that loads it.
fn compile(clang: &str, program: &str, define: Option<&str>, object: &Path) -> Result<(), Box<dyn Error>> {
    let headers =
        env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys does not say where libbpf's headers are")?;
    let source = format!("bpf/{program}.bpf.c");
    // Atomics need version 3 of the instruction set. `-g` is what makes clang write BTF, which libbpf reads. The path keeps out of the debug information, which libbpf skips.
    let status = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-fno-stack-protector"])
        .arg(format!("-ffile-prefix-map={}=.", env::current_dir()?.display()))
        .arg(format!("-I{headers}"))
        .args(kernel_headers())
        .args(define)
        .args(["-c", &source, "-o"])
        .arg(object)
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("{clang} cannot compile {source}: {status}").into()) }
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

/// Debian keeps the kernel's `asm` headers in a directory of the machine's architecture, in which a compiler for eBPF does not
/// look.
fn kernel_headers() -> Option<String> {
    let headers = format!("/usr/include/{}-linux-gnu", env::consts::ARCH);
    Path::new(&headers).is_dir().then(|| format!("-I{headers}"))
}
