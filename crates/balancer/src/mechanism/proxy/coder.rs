//! The coders of content. `benches/compression` measures this very file, so it uses nothing else of this crate.

use std::io;

use flate2::{Compress, Compression, FlushCompress, Status};
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation as _, OutBuffer};

/// How far back gzip looks, as a power of two: as far as it can.
const GZIP_WINDOW: u8 = 15;
/// How far back zstd looks, as a power of two. All clients can hold that (RFC 9659), and so can this front-end for each body.
pub(super) const ZSTD_WINDOW: u32 = 17;
/// Entries of its tables, as a power of two.
const ZSTD_TABLE: u32 = 16;

/// A coder, for one body at a time.
pub(super) enum Coder {
    Gzip(Compress),
    Zstd(Encoder<'static>),
}

impl Coder {
    pub(super) fn gzip(level: u32) -> Self {
        Self::Gzip(Compress::new_gzip(Compression::new(level), GZIP_WINDOW))
    }

    /// # Errors
    /// When there is no memory for it.
    pub(super) fn zstd(level: u32) -> io::Result<Self> {
        let mut encoder = Encoder::new(i32::try_from(level).unwrap_or(i32::MAX))?;
        for parameter in [
            CParameter::WindowLog(ZSTD_WINDOW),
            CParameter::HashLog(ZSTD_TABLE),
            CParameter::ChainLog(ZSTD_TABLE),
        ] {
            encoder.set_parameter(parameter)?;
        }
        Ok(Self::Zstd(encoder))
    }

    /// Makes it ready for another body.
    ///
    /// # Errors
    /// The coder's.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(compress) => compress.reset(),
            Self::Zstd(encoder) => encoder.reinit()?,
        }
        Ok(())
    }

    /// Takes a piece of content, the last one if it `ends`, and puts into `out` that by which a reader has all of it.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn code(&mut self, content: &[u8], ends: bool, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Gzip(compress) => gzip(compress, content, ends, out),
            Self::Zstd(encoder) => zstd(encoder, content, ends, out),
        }
    }
}

/// Room for what comes next.
fn make_room(out: &mut Vec<u8>, content_bytes: usize) {
    out.reserve(content_bytes / 2 + 256);
}

fn gzip(compress: &mut Compress, content: &[u8], ends: bool, out: &mut Vec<u8>) -> io::Result<()> {
    let before = compress.total_in();
    let flush = if ends { FlushCompress::Finish } else { FlushCompress::Sync };
    loop {
        let used = usize::try_from(compress.total_in() - before).unwrap_or(usize::MAX);
        let rest = content.get(used..).unwrap_or_default();
        make_room(out, rest.len());
        let status = compress.compress_vec(rest, out, flush)?;
        // Where room is left, all that there was has come out.
        if status == Status::StreamEnd || (!ends && out.len() < out.capacity()) {
            return Ok(());
        }
    }
}

fn zstd(encoder: &mut Encoder<'static>, content: &[u8], ends: bool, out: &mut Vec<u8>) -> io::Result<()> {
    let mut input = InBuffer::around(content);
    loop {
        make_room(out, content.len() - input.pos());
        let at = out.len();
        let mut output = OutBuffer::around_pos(out, at);
        if input.pos() < content.len() {
            encoder.run(&mut input, &mut output)?;
            continue;
        }
        let left = if ends { encoder.finish(&mut output, true)? } else { encoder.flush(&mut output)? };
        if left == 0 {
            return Ok(());
        }
    }
}
