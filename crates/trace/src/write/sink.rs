//! An output file, compressed according to its name.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use crate::error::TraceError;

/// Preset of xz: beyond it time grows faster than the files shrink.
const XZ_PRESET: u32 = 6;

const BUFFER_BYTES: usize = 256 * 1024;

type Plain = BufWriter<Box<dyn Write + Send>>;

enum Packed {
    Plain(Plain),
    Gzip(GzEncoder<Plain>),
    Zstd(zstd::Encoder<'static, Plain>),
    Xz(XzEncoder<Plain>),
}

/// Where a writer puts its bytes.
pub(crate) struct Sink {
    path: String,
    packed: Packed,
    /// Whether the reader of standard output is gone; the errors of compressors hide the reason.
    closed: bool,
}

impl Sink {
    /// Into the file of this name, or into `opened`, which replaces its contents.
    pub(crate) fn create(output: &Path, opened: Option<File>) -> Result<Self, TraceError> {
        let path = output.display().to_string();
        let failed = |error: io::Error| TraceError::write(&path, error.to_string());
        let file: Box<dyn Write + Send> = match opened {
            Some(file) => {
                file.set_len(0).map_err(failed)?;
                Box::new(file)
            }
            None if path == "-" => Box::new(io::stdout()),
            None => Box::new(File::create(output).map_err(failed)?),
        };
        let plain = BufWriter::with_capacity(BUFFER_BYTES, file);
        let ending = output.extension().and_then(|e| e.to_str()).unwrap_or("");
        let packed = match ending.to_ascii_lowercase().as_str() {
            "gz" => Packed::Gzip(GzEncoder::new(plain, Compression::default())),
            "zst" => Packed::Zstd(
                zstd::Encoder::new(plain, zstd::DEFAULT_COMPRESSION_LEVEL)
                    .map_err(|e| TraceError::write(&path, e.to_string()))?,
            ),
            "xz" => Packed::Xz(XzEncoder::new(plain, XZ_PRESET)),
            _ => Packed::Plain(plain),
        };
        Ok(Self { path, packed, closed: false })
    }

    /// Output as the user named it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Writes all of `bytes`.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.write_all(bytes).map_err(|e| TraceError::write(&self.path, e.to_string()))
    }

    /// An error that names this output.
    pub(crate) fn error(&self, reason: impl Into<String>) -> TraceError {
        TraceError::write(&self.path, reason)
    }

    /// The error of a failed write; distinguishes a closed standard output.
    pub(crate) fn explain(&self, error: TraceError) -> TraceError {
        if self.closed { TraceError::ClosedPipe } else { error }
    }

    /// Completes the compressed stream and the file.
    pub(crate) fn finish(self) -> Result<(), TraceError> {
        let plain = match self.packed {
            Packed::Plain(plain) => Ok(plain),
            Packed::Gzip(encoder) => encoder.finish(),
            Packed::Zstd(encoder) => encoder.finish(),
            Packed::Xz(encoder) => encoder.finish(),
        };
        plain.and_then(|mut plain| plain.flush()).map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe if self.path == "-" => TraceError::ClosedPipe,
            _ => TraceError::write(&self.path, e.to_string()),
        })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.packed {
            Packed::Plain(writer) => writer.write(bytes),
            Packed::Gzip(writer) => writer.write(bytes),
            Packed::Zstd(writer) => writer.write(bytes),
            Packed::Xz(writer) => writer.write(bytes),
        };
        if let Err(error) = &written {
            self.closed |= error.kind() == io::ErrorKind::BrokenPipe && self.path == "-";
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        // Flushing a compressor in mid-stream would only make the output larger.
        Ok(())
    }
}
