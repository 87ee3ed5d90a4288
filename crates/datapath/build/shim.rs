//! Compiles the shim to the shared object that the library carries within itself.

use std::error::Error;
use std::path::Path;

const SOURCES: [&str; 10] = [
    "shim.c",
    "closing.c",
    "table.c",
    "connection.c",
    "cookie.c",
    "limit.c",
    "answer.c",
    "channel.c",
    "listen.c",
    "real.c",
];

/// Writes `libplimsoll_shim.so` to the directory.
pub(crate) fn build(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-changed=build/shim.rs");
    let mut compile = cc::Build::new()
        .cargo_metadata(false)
        .opt_level(2)
        .debug(true)
        .warnings_into_errors(true)
        .extra_warnings(true)
        .pic(true)
        .get_compiler()
        .to_command();
    compile.args(["-std=c11", "-D_GNU_SOURCE", "-fvisibility=hidden", "-shared", "-o"]);
    compile.arg(out.join("libplimsoll_shim.so"));
    compile.args(SOURCES.map(|source| format!("shim/{source}")));
    compile.args(["-pthread", "-ldl"]);
    let status = compile.status().map_err(|error| format!("cannot run {compile:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{compile:?} failed: {status}").into()) }
}
