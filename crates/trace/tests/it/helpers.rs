//! What several tests need.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_trace::{ReadOptions, Record, Trace, TraceError, TraceInput, load};

/// Path of a real trace, or `None` outside continuous integration when the traces are not there.
pub(crate) fn real_trace(name: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")).join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "the trace {} is missing; put the real traces beside the checkout, in ../shared/traces",
        path.display()
    );
    eprintln!("skipped: {} is missing", path.display());
    None
}

/// A file with `content` in a directory of its own, which goes when the value does.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

pub(crate) fn load_path(path: &Path, options: &ReadOptions) -> Result<Trace, TraceError> {
    load(&[TraceInput::File(path.to_owned())], options)
}

/// Loads `content` as if it were a file called `trace`.
pub(crate) fn load_bytes(content: &[u8], options: &ReadOptions) -> Result<Trace, TraceError> {
    let scratch = Scratch::new();
    load_path(&scratch.file("trace", content), options)
}

/// Loads `content` with default options.
pub(crate) fn load_text(content: &str) -> Result<Trace, TraceError> {
    load_bytes(content.as_bytes(), &ReadOptions::default())
}

pub(crate) fn stamped(trace: &Trace) -> Vec<Record> {
    trace.open_as_stamped().map(Result::unwrap).collect()
}

/// Time, target name and size of every record, as stamped.
pub(crate) fn listed(trace: &Trace) -> Vec<(u64, String, u64)> {
    stamped(trace)
        .iter()
        .map(|r| {
            let name = String::from_utf8_lossy(trace.targets.name(r.target)).into_owned();
            (r.time_ns, name, r.size_bytes)
        })
        .collect()
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).unwrap()
}

pub(crate) fn xz(content: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
