//! libCacheSim's `oracleGeneral`.

use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Decode, Encode, FormatSpec, FormatWriter, stamped_on_arrival};
use crate::ingest::{DecodedRequest, Ingest, decimal};
use crate::line_error::LineError;
use crate::prefix::{Likeness, Prefix};
use crate::source::InputSource;
use crate::time::NS_PER_S;
use plimsoll_synth::{AnswerKind, RecordKind};

/// Bytes of a record: `u32` time in seconds, `u64` object, `u32` size in bytes, `i64` index of the
/// object's next request (-1 when there is none), packed, little-endian.
pub(crate) const RECORD_BYTES: usize = 24;

struct OracleRecord {
    time_s: u32,
    object: u64,
    size_bytes: u32,
    next_access: i64,
}

impl OracleRecord {
    fn parse(b: &[u8; RECORD_BYTES]) -> Self {
        Self {
            time_s: u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            object: u64::from_le_bytes([b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11]]),
            size_bytes: u32::from_le_bytes([b[12], b[13], b[14], b[15]]),
            next_access: i64::from_le_bytes([b[16], b[17], b[18], b[19], b[20], b[21], b[22], b[23]]),
        }
    }
}

/// Whether the bytes are records with non-decreasing times and plausible next accesses.
pub(crate) fn looks_like(first: &[u8]) -> bool {
    let (records, _) = first.as_chunks::<RECORD_BYTES>();
    let mut last_s = 0;
    !records.is_empty()
        && records.iter().map(OracleRecord::parse).all(|raw| {
            let forward = raw.time_s >= last_s;
            last_s = raw.time_s;
            forward && matches!(raw.next_access, -1 | 1..=0xffff_ffff_ffff | i64::MAX)
        })
}

/// Decoder of `oracleGeneral`.
pub(crate) struct OracleDecoder {
    source: InputSource,
    record: u64,
}

impl OracleDecoder {
    pub(crate) fn new(source: InputSource) -> Self {
        Self { source, record: 0 }
    }
}

impl FormatDecoder for OracleDecoder {
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
            let raw = OracleRecord::parse(bytes);
            let mut target = [0; 20];
            let entry = DecodedRequest {
                time_ns: u64::from(raw.time_s) * NS_PER_S,
                target: decimal(raw.object, &mut target),
                client: None,
                size_bytes: u64::from(raw.size_bytes),
                whole: true,
                service_ns: 0,
                class: 0,
                kind: RecordKind::Static,
                answer: AnswerKind::Document,
                http11: false,
            };
            out.accept(self.record, &entry)?;
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

fn likeness(prefix: &Prefix<'_>) -> Likeness {
    if !prefix.is_text() && prefix.name.contains("oraclegeneral") {
        Likeness::OwnName
    } else if looks_like(prefix.bytes) {
        Likeness::Records
    } else {
        Likeness::None
    }
}

/// The format's name.
pub const FORMAT: Format = Format::named("oracle-general");

/// Registry entry.
pub static SPEC: FormatSpec = FormatSpec {
    format: FORMAT,
    aliases: &["oracle"],
    summary: "libCacheSim's `oracleGeneral`: 24 bytes per request, little-endian",
    recognised_by: "times in order and plausible next requests, or `oracleGeneral` in the name",
    sample: "",
    remark: "",
    binary: true,
    family: "oracle-general",
    decode: Decode::Own {
        likeness,
        open: |source, _| Ok(Box::new(OracleDecoder::new(source))),
        explain: None,
    },
    stamps: stamped_on_arrival,
    writer: Some(FormatWriter {
        endings: &["oraclegeneral", "bin"],
        loss: " oracle-general keeps whole seconds, targets as numbers and sizes; the rest is left out.",
        encode: Encode::WholeTrace(crate::write::oracle::write),
    }),
};
