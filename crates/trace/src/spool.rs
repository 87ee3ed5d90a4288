//! Keeps records for reading again: encoded in memory and, beyond a limit, in a temporary file.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::error::TraceError;
use crate::seven_bits::{Undecoded, put};
use crate::time::NS_PER_S;
use plimsoll_synth::{AnswerKind, Record, RecordFields, RecordKind};

/// Bytes of a chunk, the unit of reading back.
const CHUNK_BYTES: usize = 256 * 1024;

/// The most bytes of an encoded record: a byte of flags, six numbers of at most ten bytes, and a byte for the answer.
const RECORD_BYTES: usize = 62;

const DYNAMIC: u8 = 1;
const HAS_CLASS: u8 = 2;
const HAS_CLIENT: u8 = 4;
const HAS_SERVICE: u8 = 8;
const SAME_TIME: u8 = 16;
const WHOLE_SECONDS: u8 = 32;
const HTTP11: u8 = 64;
/// The answer is no document; the last byte says what it is.
const HAS_ANSWER: u8 = 128;

const NOT_MODIFIED: u8 = 0;
const INVALID: u8 = 1;

#[derive(Debug)]
enum SpoolStore {
    Memory(Vec<Arc<[u8]>>),
    /// Already unlinked; vanishes with its last reader.
    File(File),
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    offset: u64,
    bytes: usize,
    /// Time of the record before the chunk's first.
    base_ns: u64,
}

/// Records that several threads can read repeatedly.
#[derive(Debug)]
pub(crate) struct Spool {
    store: SpoolStore,
    chunks: Vec<Chunk>,
    records: u64,
    fields: RecordFields,
}

impl Spool {
    pub(crate) fn len(&self) -> u64 {
        self.records
    }

    pub(crate) fn fields(&self) -> RecordFields {
        self.fields
    }

    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    #[cfg(test)]
    fn is_on_disk(&self) -> bool {
        matches!(self.store, SpoolStore::File(_))
    }

    fn load(&self, index: usize) -> io::Result<Arc<[u8]>> {
        match &self.store {
            SpoolStore::Memory(chunks) => Ok(Arc::clone(&chunks[index])),
            SpoolStore::File(file) => {
                let chunk = self.chunks[index];
                let mut bytes = vec![0; chunk.bytes];
                file.read_exact_at(&mut bytes, chunk.offset)?;
                Ok(bytes.into())
            }
        }
    }

    /// All records of one chunk.
    pub(crate) fn chunk_records(&self, index: usize) -> Result<Vec<Record>, TraceError> {
        let bytes = self.load(index).map_err(|source| TraceError::Spool { source })?;
        let mut decoder = SpoolDecoder { bytes, at: 0, last_ns: self.chunks[index].base_ns };
        let mut records = Vec::new();
        while decoder.at < decoder.bytes.len() {
            records.push(decoder.record().ok_or_else(damaged)?);
        }
        Ok(records)
    }
}

fn damaged() -> TraceError {
    TraceError::Spool { source: io::Error::new(io::ErrorKind::InvalidData, "its content has changed") }
}

/// Takes records in order of time.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    spool: Spool,
    chunk: Vec<u8>,
    base_ns: u64,
    last_ns: u64,
    written: u64,
    memory_bytes: usize,
}

impl SpoolWriter {
    /// Keeps up to `memory_bytes` bytes in memory.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self {
            spool: Spool {
                store: SpoolStore::Memory(Vec::new()),
                chunks: Vec::new(),
                records: 0,
                fields: RecordFields::default(),
            },
            chunk: Vec::with_capacity(CHUNK_BYTES),
            base_ns: 0,
            last_ns: 0,
            written: 0,
            memory_bytes,
        }
    }

    /// Adds a record that is not earlier than the one before it.
    #[inline]
    pub(crate) fn push(&mut self, record: &Record) -> Result<(), TraceError> {
        if self.chunk.len() + RECORD_BYTES > CHUNK_BYTES {
            self.flush()?;
        }
        let delta_ns = record.time_ns - self.last_ns;
        self.last_ns = record.time_ns;
        let flag = |flag: u8, set: bool| if set { flag } else { 0 };
        let mut flags = flag(DYNAMIC, record.kind == RecordKind::Dynamic)
            | flag(HAS_CLASS, record.class != 0)
            | flag(HAS_CLIENT, record.client != 0)
            | flag(HAS_SERVICE, record.service_ns != 0)
            | flag(HTTP11, record.http11)
            | flag(HAS_ANSWER, record.answer != AnswerKind::Document);
        let step = if delta_ns == 0 {
            flags |= SAME_TIME;
            None
        } else if delta_ns.is_multiple_of(NS_PER_S) {
            flags |= WHOLE_SECONDS;
            Some(delta_ns / NS_PER_S)
        } else {
            Some(delta_ns)
        };
        self.chunk.push(flags);
        if let Some(step) = step {
            put(&mut self.chunk, step);
        }
        put(&mut self.chunk, u64::from(record.target));
        put(&mut self.chunk, record.size_bytes);
        if flags & HAS_CLASS != 0 {
            put(&mut self.chunk, u64::from(record.class));
        }
        if flags & HAS_CLIENT != 0 {
            put(&mut self.chunk, u64::from(record.client));
        }
        if flags & HAS_SERVICE != 0 {
            put(&mut self.chunk, record.service_ns);
        }
        match record.answer {
            AnswerKind::Document => {}
            AnswerKind::NotModified => self.chunk.push(NOT_MODIFIED),
            AnswerKind::Invalid => self.chunk.push(INVALID),
        }
        self.spool.fields.add(record);
        self.spool.records += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let bytes = self.chunk.len();
        let too_much = self.written + bytes as u64 > self.memory_bytes as u64;
        self.store(too_much).map_err(|source| TraceError::Spool { source })?;
        self.spool.chunks.push(Chunk { offset: self.written, bytes, base_ns: self.base_ns });
        self.written += bytes as u64;
        self.base_ns = self.last_ns;
        self.chunk.clear();
        Ok(())
    }

    fn store(&mut self, too_much: bool) -> io::Result<()> {
        if let SpoolStore::Memory(chunks) = &mut self.spool.store {
            if !too_much {
                chunks.push(Arc::from(self.chunk.as_slice()));
                return Ok(());
            }
            let mut file = tempfile::tempfile()?;
            for chunk in chunks {
                file.write_all(chunk)?;
            }
            self.spool.store = SpoolStore::File(file);
        }
        if let SpoolStore::File(file) = &mut self.spool.store {
            file.write_all(&self.chunk)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Spool, TraceError> {
        self.flush()?;
        Ok(self.spool)
    }
}

#[derive(Debug)]
struct SpoolDecoder {
    bytes: Arc<[u8]>,
    at: usize,
    last_ns: u64,
}

impl SpoolDecoder {
    #[inline]
    fn record(&mut self) -> Option<Record> {
        let mut rest = Undecoded::new(self.bytes.get(self.at..)?);
        let flags = rest.byte()?;
        let delta_ns = match flags & (SAME_TIME | WHOLE_SECONDS) {
            SAME_TIME => 0,
            WHOLE_SECONDS => rest.number()?.checked_mul(NS_PER_S)?,
            _ => rest.number()?,
        };
        let target = u32::try_from(rest.number()?).ok()?;
        let size_bytes = rest.number()?;
        let mut optional = |flag| if flags & flag == 0 { Some(0) } else { rest.number() };
        let class = u16::try_from(optional(HAS_CLASS)?).ok()?;
        let client = u32::try_from(optional(HAS_CLIENT)?).ok()?;
        let service_ns = optional(HAS_SERVICE)?;
        let answer = match flags & HAS_ANSWER {
            0 => AnswerKind::Document,
            _ => match rest.byte()? {
                NOT_MODIFIED => AnswerKind::NotModified,
                INVALID => AnswerKind::Invalid,
                _ => return None,
            },
        };
        self.at = self.bytes.len() - rest.len();
        self.last_ns = self.last_ns.checked_add(delta_ns)?;
        Some(Record {
            time_ns: self.last_ns,
            size_bytes,
            service_ns,
            target,
            client,
            class,
            kind: if flags & DYNAMIC == 0 { RecordKind::Static } else { RecordKind::Dynamic },
            answer,
            http11: flags & HTTP11 != 0,
        })
    }
}

/// Reads a spool from its start.
#[derive(Debug)]
pub(crate) struct SpoolCursor {
    spool: Arc<Spool>,
    next_chunk: usize,
    decoder: SpoolDecoder,
}

impl SpoolCursor {
    pub(crate) fn new(spool: Arc<Spool>) -> Self {
        Self { spool, next_chunk: 0, decoder: SpoolDecoder { bytes: Arc::from([]), at: 0, last_ns: 0 } }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if self.decoder.at == self.decoder.bytes.len() && !self.load_chunk()? {
            return Ok(None);
        }
        self.decoder.record().ok_or_else(damaged).map(Some)
    }

    /// Adds the next records to `records`, at most `most`.
    pub(crate) fn take_batch(&mut self, records: &mut Vec<Record>, most: usize) -> Result<(), TraceError> {
        // Not by `next`: unwrapping its result takes 23 instructions more for each record.
        for _ in 0..most {
            if self.decoder.at == self.decoder.bytes.len() && !self.load_chunk()? {
                break;
            }
            records.push(self.decoder.record().ok_or_else(damaged)?);
        }
        Ok(())
    }

    /// Loads the next chunk. Returns whether there is one.
    fn load_chunk(&mut self) -> Result<bool, TraceError> {
        if self.next_chunk == self.spool.chunks.len() {
            return Ok(false);
        }
        self.decoder.bytes =
            self.spool.load(self.next_chunk).map_err(|source| TraceError::Spool { source })?;
        self.decoder.at = 0;
        self.next_chunk += 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
