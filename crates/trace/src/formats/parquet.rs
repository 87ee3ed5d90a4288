//! Apache Parquet, read row group by row group without Arrow.

use std::cell::Cell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Decode, Encode, FormatSpec, FormatWriter, stamped_on_arrival};
use crate::formats::csv::{COLUMNS, REQUIRED, find_columns, parse_kind};
use crate::formats::parquet_columns::{Column, unfit};
use crate::ingest::{DecodedRequest, Ingest};
use crate::input::TraceInput;
use crate::line_error::LineError;
use crate::prefix::Likeness;
use crate::source::{InputSource, MAX_LINE_BYTES};

/// Decoder of Parquet. Reads a file in place; a compressed one or standard input goes through an unlinked
/// temporary file first, because reading Parquet starts at the end.
pub(crate) struct ParquetDecoder {
    path: String,
    file: Option<File>,
    opened: Option<Opened>,
}

struct Opened {
    reader: SerializedFileReader<File>,
    places: [Option<usize>; 7],
    group: usize,
    columns: Option<[Option<Column>; 7]>,
    row: u64,
}

impl ParquetDecoder {
    /// Reads the raw bytes to their end (for the digest) and keeps a file to read from.
    pub(crate) fn new(mut source: InputSource, input: &TraceInput) -> Result<Self, TraceError> {
        let path = source.path().to_owned();
        let file = match input.path() {
            Some(name) if !source.is_compressed() => {
                source.drain()?;
                File::open(name).map_err(|source| TraceError::Open { path: path.clone(), source })?
            }
            _ => {
                let mut file = tempfile::tempfile().map_err(|source| TraceError::Spool { source })?;
                source.copy_to(&mut file)?;
                source.drain()?;
                file
            }
        };
        Ok(Self { path, file: Some(file), opened: None })
    }

    fn open(&self, file: File) -> Result<Opened, TraceError> {
        let damaged = |e: ParquetError| damaged(&self.path, &e.to_string());
        let reader = SerializedFileReader::new(file).map_err(damaged)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter().map(|c| c.name().as_bytes());
        let places = find_columns(&self.path, names)?;
        if let Some(reason) = places.iter().flatten().find_map(|&p| unfit(&schema.column(p))) {
            return Err(TraceError::Header { path: self.path.clone(), reason });
        }
        Ok(Opened { reader, places, group: 0, columns: None, row: 0 })
    }

    fn step_unguarded(&mut self, out: &mut Ingest) -> Result<bool, TraceError> {
        if let Some(file) = self.file.take() {
            self.opened = Some(self.open(file)?);
        }
        let Some(opened) = &mut self.opened else {
            return Ok(false);
        };
        opened.step(&self.path, out)
    }
}

fn damaged(path: &str, reason: &str) -> TraceError {
    TraceError::read(
        path,
        format!(
            "its content cannot be read as Parquet ({reason}); write it again, with codec zstd, snappy or none"
        ),
    )
}

impl Opened {
    fn step(&mut self, path: &str, out: &mut Ingest) -> Result<bool, TraceError> {
        let damaged = |e: ParquetError| damaged(path, &e.to_string());
        let columns = match &mut self.columns {
            Some(columns) => columns,
            none => {
                if self.group >= self.reader.num_row_groups() {
                    return Ok(false);
                }
                let group = self.reader.get_row_group(self.group).map_err(damaged)?;
                let schema = self.reader.metadata().file_metadata().schema_descr();
                let mut columns = [const { None }; 7];
                for (slot, place) in columns.iter_mut().zip(self.places) {
                    if let Some(place) = place {
                        let reader = group.get_column_reader(place).map_err(damaged)?;
                        *slot = Column::new(reader, &schema.column(place));
                    }
                }
                self.group += 1;
                none.insert(columns)
            }
        };
        let mut rows = None;
        for column in columns.iter_mut().flatten() {
            let count = column.read(BATCH).map_err(damaged)?;
            if *rows.get_or_insert(count) != count {
                return Err(damaged(ParquetError::General("its columns differ in length".to_owned())));
            }
        }
        let rows = rows.unwrap_or(0);
        for row in 0..rows {
            if out.is_full() {
                return Ok(true);
            }
            self.row += 1;
            out.count_line();
            accept_row(columns, row, self.row, out)?;
        }
        if rows == 0 {
            self.columns = None;
        }
        Ok(true)
    }
}

fn accept_row(
    columns: &[Option<Column>; 7],
    row: usize,
    number: u64,
    out: &mut Ingest,
) -> Result<(), TraceError> {
    let (mut target, mut client, mut kind) = ([0; 20], [0; 20], [0; 20]);
    match parse_row(columns, row, [&mut target, &mut client, &mut kind]) {
        Err(reason) => {
            out.reject(number, reason);
            Ok(())
        }
        Ok(entry) => {
            let target = out.plain_target(entry.target);
            out.accept(number, &DecodedRequest { target: &target, ..entry })
        }
    }
}

fn parse_row<'a>(
    columns: &'a [Option<Column>; 7],
    row: usize,
    [target, client, kind]: [&'a mut [u8; 20]; 3],
) -> Result<DecodedRequest<'a>, LineError> {
    const _: () = assert!(REQUIRED == 3);
    let missing = |column: usize| LineError::Missing { column: COLUMNS[column] };
    let get = |column: usize| columns[column].as_ref();
    let required = |column: usize| get(column).ok_or(missing(column));
    let target = required(1)?.text(row, target)?.filter(|t| !t.is_empty()).ok_or(missing(1))?;
    if target.len() > MAX_LINE_BYTES {
        return Err(LineError::TooLong { limit_bytes: MAX_LINE_BYTES });
    }
    let class = get(4).map_or(Ok(None), |c| c.number(row))?.unwrap_or(0);
    Ok(DecodedRequest {
        time_ns: required(0)?.nanoseconds(row)?.ok_or(missing(0))?,
        target,
        size_bytes: required(2)?.number(row)?.ok_or(missing(2))?,
        whole: true,
        kind: match get(3) {
            Some(column) => parse_kind(column.text(row, kind)?.unwrap_or_default())?,
            None => crate::RecordKind::Static,
        },
        class: u16::try_from(class).map_err(|_| LineError::Text("class is not a number from 0 to 65535"))?,
        service_ns: get(5).map_or(Ok(None), |c| c.nanoseconds(row))?.unwrap_or(0),
        client: match get(6) {
            Some(column) => Some(column.text(row, client)?.unwrap_or_default()),
            None => None,
        },
        answer: crate::AnswerKind::Document,
        http11: false,
    })
}

impl FormatDecoder for ParquetDecoder {
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError> {
        // The parquet crate is known to panic on some damaged files instead of returning an error.
        match quietly(|| self.step_unguarded(out)) {
            Ok(result) => result,
            Err(reason) => Err(damaged(&self.path, &reason)),
        }
    }

    fn source(&mut self) -> Option<&mut InputSource> {
        None
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` and turns a panic into its message, without the usual message on standard error.
fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    let was_quiet = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(was_quiet);
    result.map_err(|payload| {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied());
        message.unwrap_or("its reader gave up").to_owned()
    })
}

/// The format's name.
pub const FORMAT: Format = Format::named("parquet");

/// Registry entry.
pub static SPEC: FormatSpec = FormatSpec {
    format: FORMAT,
    aliases: &[],
    summary: "Apache Parquet with the columns of the CSV",
    recognised_by: "the mark `PAR1` at the start",
    sample: "",
    remark: "",
    binary: true,
    family: "parquet",
    decode: Decode::Own {
        likeness: |prefix| if prefix.bytes.starts_with(b"PAR1") { Likeness::Mark } else { Likeness::None },
        open: |source, input| Ok(Box::new(ParquetDecoder::new(source, input)?)),
        explain: None,
    },
    stamps: stamped_on_arrival,
    writer: Some(FormatWriter {
        endings: &["parquet"],
        loss: "",
        encode: Encode::Streaming(crate::write::parquet::write),
    }),
};
