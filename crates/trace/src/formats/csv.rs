//! CSV with a header (RFC 4180).

use csv_core::ReadRecordResult;

use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Decode, Encode, FormatSpec, FormatWriter, stamped_on_arrival};
use crate::ingest::{DecodedRequest, Ingest, parse_size};
use crate::line_error::LineError;
use crate::prefix::{BYTE_ORDER_MARK, Likeness};
use crate::source::{InputSource, MAX_LINE_BYTES};
use crate::time::parse_seconds;
use plimsoll_synth::{AnswerKind, RecordKind};

/// Most columns a file may have.
const MAX_COLUMNS: usize = 256;

/// The columns of the canonical CSV and of Parquet, the required ones first.
pub(crate) const COLUMNS: [&str; 7] =
    ["time_s", "target", "size_bytes", "kind", "class", "service_s", "client"];

/// How many of [`COLUMNS`] are required.
pub(crate) const REQUIRED: usize = 3;

/// Whether the line is a header with the required columns.
pub(crate) fn is_header(line: &[u8]) -> bool {
    has_columns(line, b',')
}

/// Whether the line is such a header but for capital letters.
pub(crate) fn is_header_in_capitals(line: &[u8]) -> bool {
    !is_header(line) && is_header(&line.to_ascii_lowercase())
}

/// The name of what stands between the columns of a header in place of commas.
pub(crate) fn other_separator(line: &[u8]) -> Option<&'static str> {
    [(b';', "semicolons"), (b'\t', "tabs"), (b'|', "bars")]
        .into_iter()
        .find_map(|(separator, name)| has_columns(line, separator).then_some(name))
}

fn has_columns(line: &[u8], separator: u8) -> bool {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    COLUMNS[..REQUIRED].iter().all(|name| {
        line.split(|&b| b == separator).any(|field| {
            let field = field.trim_ascii();
            let bare = field.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(field);
            bare == name.as_bytes()
        })
    })
}

/// The position of each of [`COLUMNS`] among `names`. An error if a required one is missing or any occurs
/// twice; other columns are ignored.
pub(crate) fn find_columns<'a>(
    path: &str,
    names: impl Iterator<Item = &'a [u8]>,
) -> Result<[Option<usize>; 7], TraceError> {
    let mut places = [None; 7];
    let mut capitals = "";
    for (place, name) in names.enumerate() {
        let lower = name.trim_ascii().to_ascii_lowercase();
        if lower != name.trim_ascii() && COLUMNS.iter().any(|column| column.as_bytes() == lower) {
            capitals = "; names of columns are in lower case";
        }
        let known = COLUMNS.iter().position(|column| column.as_bytes() == name.trim_ascii());
        if let Some(column) = known
            && places[column].replace(place).is_some()
        {
            return Err(TraceError::Header {
                path: path.to_owned(),
                reason: format!("column {} stands in it twice", COLUMNS[column]),
            });
        }
    }
    match places[..REQUIRED].iter().position(Option::is_none) {
        None => Ok(places),
        Some(missing) => Err(TraceError::Header {
            path: path.to_owned(),
            reason: format!("column {} is missing{capitals}", COLUMNS[missing]),
        }),
    }
}

/// Decoder of the canonical CSV.
pub(crate) struct CsvDecoder {
    source: InputSource,
    parser: csv_core::Reader,
    fields: Vec<u8>,
    ends: Vec<usize>,
    columns: Option<[Option<usize>; 7]>,
}

/// The result of reading one record.
enum CsvRead {
    Record { fields: usize },
    TooLong,
    End,
}

impl CsvDecoder {
    pub(crate) fn new(source: InputSource) -> Self {
        Self {
            source,
            parser: csv_core::Reader::new(),
            fields: vec![0; MAX_LINE_BYTES],
            ends: vec![0; MAX_COLUMNS],
            columns: None,
        }
    }

    /// Skips line ends, which the parser would skip too, to know the line the next record starts on.
    fn next_line(&mut self) -> Result<u64, TraceError> {
        loop {
            let chunk = self.source.chunk()?;
            let (length, ends) = chunk
                .iter()
                .take_while(|b| matches!(b, b'\r' | b'\n'))
                .fold((0, 0), |(length, ends), &b| (length + 1, ends + u64::from(b == b'\n')));
            if length == 0 {
                return Ok(self.parser.line());
            }
            self.source.consume(length);
            self.parser.set_line(self.parser.line() + ends);
        }
    }

    fn read_record(&mut self) -> Result<CsvRead, TraceError> {
        let (mut written, mut fields) = (0, 0);
        loop {
            let chunk = self.source.chunk()?;
            let (result, consumed, output, ends) =
                self.parser.read_record(chunk, &mut self.fields[written..], &mut self.ends[fields..]);
            self.source.consume(consumed);
            written += output;
            fields += ends;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record => return Ok(CsvRead::Record { fields }),
                ReadRecordResult::End => return Ok(CsvRead::End),
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    // Most likely a quote that is never closed: continue at the next line.
                    let line = self.parser.line();
                    self.source.skip_line()?;
                    self.parser.reset();
                    self.parser.set_line(line + 1);
                    return Ok(CsvRead::TooLong);
                }
            }
        }
    }

    fn read_header(&mut self) -> Result<[Option<usize>; 7], TraceError> {
        if self.source.peek(3)?.starts_with(BYTE_ORDER_MARK) {
            self.source.consume(3);
        }
        let count = match self.read_record()? {
            CsvRead::Record { fields } => fields,
            CsvRead::TooLong | CsvRead::End => 0,
        };
        let names = (0..count).map(|i| field(&self.fields, &self.ends, i));
        find_columns(self.source.path(), names)
    }
}

fn field<'a>(fields: &'a [u8], ends: &[usize], index: usize) -> &'a [u8] {
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &fields[start..ends[index]]
}

impl FormatDecoder for CsvDecoder {
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError> {
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                let columns = self.read_header()?;
                *self.columns.insert(columns)
            }
        };
        for _ in 0..BATCH {
            if out.is_full() {
                break;
            }
            let line = self.next_line()?;
            let count = match self.read_record()? {
                CsvRead::End => return Ok(false),
                CsvRead::TooLong => {
                    out.reject_too_long(line);
                    continue;
                }
                CsvRead::Record { fields } => fields,
            };
            out.count_line();
            let get = |column: usize| {
                columns[column]
                    .filter(|&place| place < count)
                    .map(|place| field(&self.fields, &self.ends, place))
            };
            match parse_row(get) {
                Err(reason) => out.reject(line, reason),
                Ok(entry) => {
                    let target = out.plain_target(entry.target);
                    out.accept(line, &DecodedRequest { target: &target, ..entry })?;
                }
            }
        }
        Ok(true)
    }

    fn source(&mut self) -> Option<&mut InputSource> {
        Some(&mut self.source)
    }
}

/// Parses a request from the fields of a row, by their place in [`COLUMNS`].
fn parse_row<'a>(get: impl Fn(usize) -> Option<&'a [u8]>) -> Result<DecodedRequest<'a>, LineError> {
    let required = |column: usize| {
        get(column).filter(|field| !field.is_empty()).ok_or(LineError::Missing { column: COLUMNS[column] })
    };
    let optional = |column: usize| get(column).unwrap_or_default().trim_ascii();
    let target = required(1)?;
    if spans_rows(target) {
        return Err(LineError::Text("target goes on into the next row: its quote is not closed"));
    }
    Ok(DecodedRequest {
        time_ns: parse_seconds(required(0)?.trim_ascii())?,
        target,
        size_bytes: parse_size(required(2)?.trim_ascii())?,
        whole: true,
        kind: parse_kind(optional(3))?,
        class: parse_class(optional(4))?,
        service_ns: match optional(5) {
            b"" => 0,
            text => {
                parse_seconds(text).map_err(|_| LineError::Text("service_s is not a number of seconds"))?
            }
        },
        client: get(6),
        answer: AnswerKind::Document,
        http11: false,
    })
}

/// Whether a quoted field that is not closed took in what follows: a line in it begins as a row does, with a time and a comma.
fn spans_rows(field: &[u8]) -> bool {
    let begins_row = |line: &[u8]| {
        line.iter()
            .position(|&b| b == b',')
            .is_some_and(|comma| parse_seconds(line[..comma].trim_ascii()).is_ok())
    };
    // What is before the first line end belongs to the row itself.
    field.split(|&b| b == b'\n').skip(1).any(begins_row)
}

pub(crate) fn parse_kind(text: &[u8]) -> Result<RecordKind, LineError> {
    match text {
        b"" | b"static" => Ok(RecordKind::Static),
        b"dynamic" => Ok(RecordKind::Dynamic),
        _ => Err(LineError::Text("kind is neither static nor dynamic")),
    }
}

fn parse_class(text: &[u8]) -> Result<u16, LineError> {
    if text.is_empty() {
        return Ok(0);
    }
    parse_size(text)
        .ok()
        .and_then(|class| u16::try_from(class).ok())
        .ok_or(LineError::Text("class is not a number from 0 to 65535"))
}

/// The format's name.
pub const FORMAT: Format = Format::named("csv");

/// Registry entry.
pub static SPEC: FormatSpec = FormatSpec {
    format: FORMAT,
    aliases: &[],
    summary: "CSV with the header `time_s,target,size_bytes[,kind,class,service_s,client]` (RFC 4180)",
    recognised_by: "the header",
    sample: "time_s,target,size_bytes\n12.25,/index.html,1719",
    remark: "",
    binary: false,
    family: "csv",
    decode: Decode::Own {
        likeness: |prefix| {
            if prefix.lines().next().is_some_and(is_header) { Likeness::Header } else { Likeness::None }
        },
        open: |source, _| Ok(Box::new(CsvDecoder::new(source))),
        explain: None,
    },
    stamps: stamped_on_arrival,
    writer: Some(FormatWriter {
        endings: &["csv"],
        loss: "",
        encode: Encode::Streaming(crate::write::csv::write),
    }),
};
