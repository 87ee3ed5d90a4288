//! Binary log of the 1998 World Cup (Arlitt and Jin; Internet Traffic Archive).

use crate::error::TraceError;
use crate::formats::{BATCH, FormatDecoder};
use crate::ingest::{DecodedRequest, Ingest, decimal};
use crate::options::Include;
use crate::record::RecordKind;
use crate::source::InputSource;
use crate::tally::LineError;
use crate::time::NS_PER_S;

/// Bytes of a record.
const RECORD_BYTES: usize = 20;

/// Size field of a transfer whose size was not logged.
const UNKNOWN_SIZE: u32 = u32::MAX;

/// Type of content computed on demand.
const TYPE_DYNAMIC: u8 = 6;

/// Largest type number (`OTHER_TYPES`).
const MAX_TYPE: u8 = 12;

const METHODS: [&[u8]; 9] =
    [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"TRACE", b"OPTIONS", b"CONNECT", b"(other)"];

/// Status code of each index; 0 stands for a code without an index of its own.
const STATUSES: [u16; 38] = [
    100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 305, 400, 401, 402, 403, 404, 405,
    406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 500, 501, 502, 503, 504, 505, 0,
];

/// One record with its fields in host order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorldCupRecord {
    pub(crate) time_s: u32,
    pub(crate) client: u32,
    pub(crate) object: u32,
    size: u32,
    method: u8,
    status: u8,
    kind: u8,
    pub(crate) server: u8,
}

impl WorldCupRecord {
    fn parse(bytes: &[u8; RECORD_BYTES]) -> Self {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            time_s: word(0),
            client: word(4),
            object: word(8),
            size: word(12),
            method: bytes[16],
            status: bytes[17],
            kind: bytes[18],
            server: bytes[19],
        }
    }

    /// Bytes transferred; `None` when they were not logged.
    pub(crate) fn size(&self) -> Option<u32> {
        (self.size != UNKNOWN_SIZE).then_some(self.size)
    }

    /// Status code; the two top bits of the field hold the HTTP version.
    fn status(&self) -> Option<u16> {
        STATUSES.get(usize::from(self.status & 0x3f)).copied()
    }
}

/// Whether the bytes are records of the summer of 1998.
pub(crate) fn looks_like(first: &[u8]) -> bool {
    let (records, _) = first.as_chunks::<RECORD_BYTES>();
    !records.is_empty()
        && records.iter().map(WorldCupRecord::parse).all(|raw| {
            (893_900_000..=901_600_000).contains(&raw.time_s)
                && usize::from(raw.method) < METHODS.len()
                && raw.status().is_some()
                && raw.kind <= MAX_TYPE
        })
}

/// Decoder of World Cup logs.
pub(crate) struct WorldCupDecoder {
    source: InputSource,
    record: u64,
}

impl WorldCupDecoder {
    pub(crate) fn new(source: InputSource) -> Self {
        Self { source, record: 0 }
    }
}

impl FormatDecoder for WorldCupDecoder {
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError> {
        let block = self.source.next_block(BATCH * RECORD_BYTES)?;
        let more = block.len() == BATCH * RECORD_BYTES;
        let (records, rest) = block.as_chunks::<RECORD_BYTES>();
        for bytes in records {
            if out.is_full() {
                return Ok(true);
            }
            self.record += 1;
            out.count_line();
            decode(self.record, &WorldCupRecord::parse(bytes), out)?;
        }
        if !rest.is_empty() {
            out.count_line();
            out.reject(self.record + 1, LineError::CutShort { bytes: rest.len(), of_bytes: RECORD_BYTES });
        }
        Ok(more)
    }

    fn source(&mut self) -> Option<&mut InputSource> {
        Some(&mut self.source)
    }
}

fn decode(number: u64, raw: &WorldCupRecord, out: &mut Ingest) -> Result<(), TraceError> {
    let (Some(status), Some(method)) = (raw.status(), METHODS.get(usize::from(raw.method))) else {
        out.reject(number, LineError::Text("method or status is not a World Cup code"));
        return Ok(());
    };
    out.tally.report.world_cup.get_or_insert_default().add(raw);
    if out.include == Include::Counted {
        if !matches!(status, 200 | 206 | 304) {
            out.tally.not_counted_status(status);
            return Ok(());
        }
        if raw.method > 1 {
            out.tally.not_counted_method(method);
            return Ok(());
        }
    }
    let head = raw.method == 1;
    let known = raw.size().filter(|_| !head && status != 304);
    let (mut target, mut client) = ([0; 20], [0; 20]);
    let entry = DecodedRequest {
        time_ns: u64::from(raw.time_s) * NS_PER_S,
        target: decimal(u64::from(raw.object), &mut target),
        client: Some(decimal(u64::from(raw.client), &mut client)),
        size_bytes: known.map_or(0, u64::from),
        whole: status == 200 && known.is_some(),
        service_ns: 0,
        class: u16::from(raw.kind),
        kind: if raw.kind == TYPE_DYNAMIC { RecordKind::Dynamic } else { RecordKind::Static },
    };
    out.accept(number, &entry)
}
