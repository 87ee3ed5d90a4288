//! Binary log of the 1998 World Cup (Arlitt and Jin; Internet Traffic Archive).

use plimsoll_synth::RecordKind;

use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Decode, FormatSpec};
use crate::ingest::{DecodedRequest, Ingest, answer_of, decimal};
use crate::line_error::LineError;
use crate::options::Include;
use crate::prefix::{Likeness, Prefix};
use crate::source::InputSource;
use crate::time::NS_PER_S;
use crate::worldcup_record::{METHODS, RECORD_BYTES, WorldCupRecord, looks_like};

/// Type of content computed on demand.
const TYPE_DYNAMIC: u8 = 6;

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
        answer: answer_of(status),
        http11: raw.http11(),
    };
    out.accept(number, &entry)
}

fn likeness(prefix: &Prefix<'_>) -> Likeness {
    if looks_like(prefix.bytes) {
        Likeness::Records
    } else if !prefix.is_text() && (prefix.name.starts_with("wc_day") || prefix.name.contains("worldcup98")) {
        // Records of other times than the summer of 1998.
        Likeness::CommonName
    } else {
        Likeness::None
    }
}

/// The format's name.
pub const FORMAT: Format = Format::named("worldcup98");

/// Registry entry.
pub static SPEC: FormatSpec = FormatSpec {
    format: FORMAT,
    aliases: &["worldcup", "wc98"],
    summary: "Binary log of the 1998 World Cup (Internet Traffic Archive): 20 bytes per request, big-endian",
    recognised_by: "times of the summer of 1998 and valid codes, or a name such as `wc_day66_1.gz` and no text",
    sample: "",
    remark: "",
    binary: true,
    family: "worldcup98",
    decode: Decode::Own {
        likeness,
        open: |source, _| Ok(Box::new(WorldCupDecoder::new(source))),
        explain: None,
    },
    stamps: |_| {
        "completion, as the World Cup logs are stamped: requests arrived earlier by their \
         response times, which the log does not tell; completions are taken for arrivals"
    },
    writer: None,
};
