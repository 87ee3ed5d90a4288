//! Raw inputs: hashing, decompression by magic bytes, and bounded lines.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::error::TraceError;
use crate::input::TraceInput;

/// Bytes held at a time; at least twice the longest line.
const BUFFER_BYTES: usize = 256 * 1024;

/// Longest line that is read, in bytes; common servers refuse request lines beyond 8 KiB.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;

/// Memory an xz stream may ask for: the largest preset needs 65 MiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;

/// Largest window of a zstd stream: 2^27 bytes, the tool's own default limit.
const ZSTD_WINDOW_LOG: u32 = 27;

/// SHA-256 over the inputs, shared because the decompressor owns its reader.
#[derive(Clone, Default)]
pub(crate) struct InputDigest(Arc<Mutex<Sha256>>);

impl InputDigest {
    fn update(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).update(bytes);
    }

    /// The digest of everything read so far, in hexadecimal.
    pub(crate) fn hex(&self) -> String {
        let digest = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().finalize();
        digest.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// The raw bytes, not yet decompressed; clones share the position.
#[derive(Clone)]
struct RawInput {
    reader: Arc<Mutex<Box<dyn Read + Send>>>,
    digest: InputDigest,
}

impl Read for RawInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let count = reader.read(buffer)?;
        self.digest.update(&buffer[..count]);
        Ok(count)
    }
}

/// The result of reading a line.
pub(crate) enum Framed<'a> {
    /// A line without its end (`\n` or `\r\n`).
    Line(&'a [u8]),
    /// A line longer than the limit; it was skipped.
    TooLong,
    /// Nothing is left.
    End,
}

/// An opened input: decompressed bytes through a buffer of fixed size.
pub(crate) struct InputSource {
    path: String,
    packing: &'static str,
    raw: RawInput,
    reader: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    ended: bool,
}

impl InputSource {
    /// Opens `input` and detects its compression by its first bytes.
    pub(crate) fn open(input: &TraceInput, digest: &InputDigest) -> Result<Self, TraceError> {
        let path = input.to_string();
        let open_error = |source| TraceError::Open { path: path.clone(), source };
        let reader: Box<dyn Read + Send> = match input {
            TraceInput::Stdin => Box::new(io::stdin()),
            TraceInput::File(file) => {
                let file = File::open(file).map_err(open_error)?;
                if file.metadata().map_err(open_error)?.is_dir() {
                    return Err(TraceError::read(&path, "it is a directory; name the files in it"));
                }
                Box::new(file)
            }
        };
        Self::from_reader(path, reader, digest)
    }

    pub(crate) fn from_reader(
        path: String,
        reader: Box<dyn Read + Send>,
        digest: &InputDigest,
    ) -> Result<Self, TraceError> {
        let mut raw = RawInput { reader: Arc::new(Mutex::new(reader)), digest: digest.clone() };
        let mut magic = Vec::with_capacity(6);
        (&mut raw).take(6).read_to_end(&mut magic).map_err(|e| TraceError::read(&path, e.to_string()))?;
        let (packing, reader) = unpack(magic, raw.clone())
            .map_err(|e| TraceError::read(&path, format!("it cannot be decompressed: {e}")))?;
        Ok(Self {
            path,
            packing,
            raw,
            reader,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            ended: false,
        })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn is_compressed(&self) -> bool {
        !self.packing.is_empty()
    }

    /// Reads more into the buffer; false at the end of the input or when the buffer is full.
    fn fill(&mut self) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Ok(false);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.read_error(&e)),
            }
        }
    }

    fn read_error(&self, error: &io::Error) -> TraceError {
        let reason = match (self.packing, error.kind()) {
            ("", _) => error.to_string(),
            (packing, io::ErrorKind::UnexpectedEof) => {
                format!("its {packing} data end before the stream is complete; fetch or write the file again")
            }
            (packing, _) => format!(
                "its {packing} data are damaged ({error}); check it with the {packing} tool, or fetch it again"
            ),
        };
        TraceError::read(&self.path, reason)
    }

    /// The first bytes, up to `count` of them, without consuming any.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], TraceError> {
        while self.end - self.start < count && self.fill()? {}
        let end = self.end.min(self.start + count);
        Ok(&self.buffer[self.start..end])
    }

    /// The buffered bytes, at least one unless the input has ended.
    pub(crate) fn chunk(&mut self) -> Result<&[u8], TraceError> {
        if self.start == self.end {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Marks `count` bytes of the last chunk as read.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// The next line.
    pub(crate) fn next_line(&mut self) -> Result<Framed<'_>, TraceError> {
        let mut searched = 0;
        loop {
            let pending = &self.buffer[self.start + searched..self.end];
            if let Some(at) = memchr::memchr(b'\n', pending) {
                let length = searched + at;
                let start = self.start;
                self.start += length + 1;
                return Ok(frame(&self.buffer[start..start + length]));
            }
            searched = self.end - self.start;
            if searched > MAX_LINE_BYTES {
                self.skip_line()?;
                return Ok(Framed::TooLong);
            }
            if !self.fill()? {
                let start = self.start;
                self.start = self.end;
                return Ok(if searched == 0 { Framed::End } else { frame(&self.buffer[start..self.end]) });
            }
        }
    }

    /// Drops everything up to and including the next line feed.
    pub(crate) fn skip_line(&mut self) -> Result<(), TraceError> {
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(());
            }
            let length = chunk.len();
            if let Some(at) = memchr::memchr(b'\n', chunk) {
                self.consume(at + 1);
                return Ok(());
            }
            self.consume(length);
        }
    }

    /// The next `bytes` bytes; fewer only at the end.
    pub(crate) fn next_block(&mut self, bytes: usize) -> Result<&[u8], TraceError> {
        while self.end - self.start < bytes && self.fill()? {}
        let start = self.start;
        self.start = self.end.min(start + bytes);
        Ok(&self.buffer[start..self.start])
    }

    /// Reads the raw bytes to their end, so that the digest covers all of them.
    pub(crate) fn drain(&mut self) -> Result<(), TraceError> {
        io::copy(&mut self.raw, &mut io::sink())
            .map(|_| ())
            .map_err(|e| TraceError::read(&self.path, e.to_string()))
    }

    /// Copies the decompressed bytes that are left to `file`.
    pub(crate) fn copy_to(&mut self, file: &mut File) -> Result<(), TraceError> {
        use std::io::Write as _;
        loop {
            let chunk = self.chunk()?;
            let length = chunk.len();
            if length == 0 {
                return file.flush().map_err(|source| TraceError::Spool { source });
            }
            file.write_all(chunk).map_err(|source| TraceError::Spool { source })?;
            self.consume(length);
        }
    }
}

fn frame(line: &[u8]) -> Framed<'_> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > MAX_LINE_BYTES { Framed::TooLong } else { Framed::Line(line) }
}

/// Wraps the input, whose first bytes are `magic`, in its decompressor.
fn unpack(magic: Vec<u8>, raw: RawInput) -> io::Result<(&'static str, Box<dyn Read + Send>)> {
    let kind = match magic.as_slice() {
        [0x1f, 0x8b, ..] => "gzip",
        // Data frames, and the skippable frames that parallel compressors write first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => "zstd",
        [0xfd, b'7', b'z', b'X', b'Z', 0] => "xz",
        _ => "",
    };
    let whole = io::Cursor::new(magic).chain(raw);
    let reader: Box<dyn Read + Send> = match kind {
        "gzip" => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, whole)))
        }
        "zstd" => {
            let mut decoder = zstd::stream::read::Decoder::new(whole)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        "xz" => {
            let stream =
                liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, liblzma::stream::CONCATENATED)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(
                BufReader::with_capacity(BUFFER_BYTES, whole),
                stream,
            ))
        }
        _ => Box::new(whole),
    };
    Ok((kind, reader))
}
