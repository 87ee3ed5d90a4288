//! Packs plotly.js for embedding into reports: taken unmodified from the `plotly` package, gzip, base64.
//!
//! Why plotly and why packed: docs/decisions/0003-plots.md.

use std::{env, error::Error, fs, io::Write, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, GzBuilder};

/// What the package puts before and after each library it hands out.
const OPEN: &str = "<script type=\"text/javascript\">";
const CLOSE: &str = "</script>";

/// How plotly.js starts; guards against embedding something else after an upgrade of the package.
const BANNER: &str = "/**\n* plotly.js v";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let sources = plotly::Plot::offline_js_sources();
    let library = sources
        .split_once(OPEN)
        .and_then(|(_, rest)| rest.split_once(CLOSE))
        .map(|(library, _)| library)
        .filter(|library| library.starts_with(BANNER))
        .ok_or(
            "the `plotly` package no longer gives plotly.js as its first script: \
             adapt crates/report/build.rs or go back to the version in Cargo.lock",
        )?;

    // No name and no time in the header: the same bytes from every build.
    let mut packer = GzBuilder::new().write(Vec::new(), Compression::best());
    packer.write_all(library.as_bytes())?;
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out_dir.join("plotly.min.js.gz.base64"), STANDARD.encode(packer.finish()?))?;
    Ok(())
}
