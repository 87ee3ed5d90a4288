//! Compression of bodies, piece by piece.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_config::{CompressionConfig, Config, ContentCoding};

use super::coder::Coder;
use crate::http::Framing;
use crate::http::response::ResponseHead;
use crate::mechanism::carry::Failure;
use crate::metrics::CompressionCounts;
use crate::shared::FrontEndShared;

/// Coders that a worker keeps for later: making one costs more than what most bodies need of it.
const MOST_IDLE: usize = 16;

/// A coder with what it was made for.
struct IdleCoder {
    coder: Coder,
    coding: ContentCoding,
    level: u32,
}

impl IdleCoder {
    fn new(coding: ContentCoding, level: u32) -> io::Result<Self> {
        let coder = match coding {
            ContentCoding::Gzip => Coder::gzip(level),
            ContentCoding::Zstd => Coder::zstd(level)?,
        };
        Ok(Self { coder, coding, level })
    }

    /// Ready for another body.
    fn reset(mut self) -> Option<Self> {
        self.coder.reset().ok()?;
        Some(self)
    }
}

/// The coders of one worker.
pub(crate) struct Compressors {
    shared: Arc<FrontEndShared>,
    worker: usize,
    idle: RefCell<Vec<IdleCoder>>,
    /// The fewest of them since the last sweep.
    least_idle: Cell<usize>,
}

impl Compressors {
    /// Those of the worker of this index.
    pub(crate) fn new(shared: Arc<FrontEndShared>, worker: usize) -> Rc<Self> {
        Rc::new(Self { shared, worker, idle: RefCell::default(), least_idle: Cell::new(0) })
    }

    fn counts(&self) -> &CompressionCounts {
        &self.shared.counts[self.worker].compression
    }

    /// Whether another body may be compressed now. A few more than are allowed may be, as workers do not wait for one another.
    pub(crate) fn has_room(&self, config: &CompressionConfig) -> bool {
        let has_room = self.shared.compressing.load(Ordering::Relaxed) < config.most_responses;
        if !has_room {
            self.counts().left.add(1);
        }
        has_room
    }

    /// Gives up the coders that were idle since the last sweep.
    pub(crate) fn sweep(&self) {
        let mut idle = self.idle.borrow_mut();
        let unused = self.least_idle.get().min(idle.len());
        idle.drain(..unused);
        self.least_idle.set(idle.len());
    }

    /// For one body.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn take(self: &Rc<Self>, coding: ContentCoding, level: u32) -> io::Result<Compressor> {
        let found = {
            let mut idle = self.idle.borrow_mut();
            let at = idle.iter().rposition(|idle| idle.coding == coding && idle.level == level);
            let found = at.map(|at| idle.remove(at));
            self.least_idle.set(self.least_idle.get().min(idle.len()));
            found
        };
        let coder = match found {
            Some(coder) => coder,
            None => IdleCoder::new(coding, level)?,
        };
        self.shared.compressing.fetch_add(1, Ordering::Relaxed);
        self.counts().of(coding).add(1);
        Ok(Compressor { coder: Some(coder), out: Vec::new(), lender: Rc::clone(self) })
    }
}

/// A body on its way.
pub(crate) struct Compressor {
    /// There until it is given back.
    coder: Option<IdleCoder>,
    out: Vec<u8>,
    lender: Rc<Compressors>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// Takes a piece of content, the last one if it `ends`. Returns what goes out for it, by which a reader has all of it.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn compress(&mut self, content: &[u8], ends: bool) -> io::Result<&[u8]> {
        self.out.clear();
        if let Some(IdleCoder { coder, .. }) = &mut self.coder {
            coder.code(content, ends, &mut self.out)?;
        }
        let counts = self.lender.counts();
        counts.in_bytes.add(content.len() as u64);
        counts.out_bytes.add(self.out.len() as u64);
        Ok(&self.out)
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        self.lender.shared.compressing.fetch_sub(1, Ordering::Relaxed);
        let mut idle = self.lender.idle.borrow_mut();
        // What has been there longest goes: perhaps nobody asks for its coding any more.
        if idle.len() >= MOST_IDLE {
            idle.remove(0);
        }
        idle.extend(self.coder.take().and_then(IdleCoder::reset));
    }
}

/// What compresses the content of a response, where there is such.
pub(super) fn compressor(
    (head, config): (&ResponseHead, &Config),
    compressors: &Rc<Compressors>,
) -> Result<Option<Compressor>, Failure> {
    let (Some(coding), Some(config)) = (head.coding, &config.compression) else { return Ok(None) };
    if head.framing == Framing::None {
        return Ok(None);
    }
    let taken = compressors.take(coding, config.level);
    taken.map(Some).map_err(|_| Failure::OverLimit("there is no memory to compress it"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn decoded(coding: ContentCoding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        // An end that is missing is an error, behind all that has come before.
        let _ = match coding {
            ContentCoding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
            ContentCoding::Zstd => zstd::stream::read::Decoder::new(bytes).unwrap().read_to_end(&mut out),
        };
        out
    }

    fn compressors() -> (Rc<Compressors>, CompressionConfig) {
        let shared = FrontEndShared::before_three("[compression]\nresponses = 2\n");
        let config = shared.first.config.load().compression.clone().unwrap();
        (Compressors::new(shared, 0), config)
    }

    /// What cannot be compressed.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn each_piece_can_be_read_when_it_is_there() {
        let (compressors, _) = compressors();
        for coding in ContentCoding::ALL {
            for level in [1, 4, 9] {
                // Twice: with a new coder, and with one that was used.
                for _ in 0..2 {
                    let mut compressor = compressors.take(coding, level).unwrap();
                    let (mut content, mut wire) = (Vec::new(), Vec::new());
                    for piece in [vec![b'a'], vec![b'b'; 100_000], noise(70_000), vec![b'c'; 7]] {
                        content.extend_from_slice(&piece);
                        wire.extend_from_slice(compressor.compress(&piece, false).unwrap());
                        assert!(decoded(coding, &wire) == content, "{coding:?}");
                    }
                    wire.extend_from_slice(compressor.compress(b"end", true).unwrap());
                    content.extend_from_slice(b"end");
                    // With little work, noise grows.
                    assert!(decoded(coding, &wire) == content && wire.len() < 80_000, "{}", wire.len());
                }
            }
        }
        assert_eq!(compressors.idle.borrow().len(), 6);
        let counts = compressors.counts();
        assert_eq!([&counts.zstd, &counts.gzip].map(|count| count.get()), [6, 6]);
        assert_eq!(counts.in_bytes.get(), 12 * 170_011);
    }

    #[test]
    fn a_body_without_content_has_an_end() {
        let (compressors, _) = compressors();
        for coding in ContentCoding::ALL {
            let mut compressor = compressors.take(coding, 4).unwrap();
            let wire = compressor.compress(b"", true).unwrap();
            assert!(!wire.is_empty() && decoded(coding, wire).is_empty());
        }
    }

    #[test]
    fn so_many_and_no_more() {
        let (compressors, config) = compressors();
        let take = || compressors.take(ContentCoding::Gzip, 1).unwrap();
        let both = [take(), take()];
        assert!(!compressors.has_room(&config));
        drop(both);
        assert!(compressors.has_room(&config));
        assert_eq!(compressors.counts().left.get(), 1);
        drop((0..2 * MOST_IDLE).map(|_| take()).collect::<Vec<_>>());
        assert_eq!(compressors.idle.borrow().len(), MOST_IDLE);
        // Those that nobody asks for any more make room for others.
        drop(compressors.take(ContentCoding::Zstd, 1).unwrap());
        assert!(compressors.idle.borrow().iter().any(|idle| idle.coding == ContentCoding::Zstd));
        compressors.sweep();
        drop(take());
        compressors.sweep();
        assert_eq!(compressors.idle.borrow().len(), 1, "one was in use since the sweep before");
        compressors.sweep();
        assert!(compressors.idle.borrow().is_empty());
    }
}
