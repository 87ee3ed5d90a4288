//! Apache Parquet with the columns of the canonical CSV.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::requests::Requests;
use super::sink::Sink;
use crate::error::TraceError;
use crate::targets::TargetTable;
use plimsoll_synth::{Record, RecordFields, RecordKind};

/// Rows of a row group: what is held in memory at a time.
const GROUP_ROWS: usize = 128 * 1024;

/// Bytes of a time: enough for the 20 digits of any 64 bits of nanoseconds.
const TIME_BYTES: usize = 9;

/// Times are decimals with nine digits behind the point, so that they are exact seconds.
const TIME_DIGITS: i32 = 20;

pub(crate) fn write(requests: Requests<'_>, sink: &mut Sink) -> Result<(), TraceError> {
    let Requests { targets, fields, records } = requests;
    let path = sink.path().to_owned();
    let failed = |e: ParquetError| TraceError::write(&path, e.to_string());
    let mut writer = open(fields, sink).map_err(failed)?;
    let mut rows = Vec::with_capacity(GROUP_ROWS);
    loop {
        rows.clear();
        for record in (&mut *records).take(GROUP_ROWS) {
            rows.push(record?);
        }
        if rows.is_empty() {
            return writer.close().map(|_| ()).map_err(failed);
        }
        write_group(&mut writer, &rows, fields, targets).map_err(failed)?;
    }
}

fn open(fields: RecordFields, sink: &mut Sink) -> ParquetResult<SerializedFileWriter<&mut Sink>> {
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    SerializedFileWriter::new(sink, schema(fields)?, Arc::new(properties))
}

fn schema(fields: RecordFields) -> ParquetResult<TypePtr> {
    let column = |name: &str, physical, logical, length: usize, digits: i32| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .with_length(i32::try_from(length).unwrap_or(-1))
            .with_precision(digits)
            .with_scale(if digits > 0 { 9 } else { -1 })
            .build()
            .map(Arc::new)
    };
    let time = |name: &str| {
        let logical = Some(LogicalType::decimal(9, TIME_DIGITS));
        column(name, Physical::FIXED_LEN_BYTE_ARRAY, logical, TIME_BYTES, TIME_DIGITS)
    };
    let text = |name: &str| column(name, Physical::BYTE_ARRAY, Some(LogicalType::String), 0, -1);
    let number = |name: &str| column(name, Physical::INT64, None, 0, -1);
    let mut columns = vec![time("time_s")?, text("target")?, number("size_bytes")?];
    if fields.kind {
        columns.push(text("kind")?);
    }
    if fields.class {
        columns.push(number("class")?);
    }
    if fields.service {
        columns.push(time("service_s")?);
    }
    if fields.client {
        columns.push(number("client")?);
    }
    Type::group_type_builder("trace").with_fields(columns).build().map(Arc::new)
}

fn write_group(
    writer: &mut SerializedFileWriter<&mut Sink>,
    rows: &[Record],
    fields: RecordFields,
    targets: &TargetTable,
) -> ParquetResult<()> {
    let names = [
        "time_s",
        "target",
        "size_bytes",
        if fields.kind { "kind" } else { "" },
        if fields.class { "class" } else { "" },
        if fields.service { "service_s" } else { "" },
        if fields.client { "client" } else { "" },
    ];
    let mut group = writer.next_row_group()?;
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General("a column is missing".to_owned()));
        };
        write_column(column.untyped(), name, rows, targets)?;
        column.close()?;
    }
    group.close().map(|_| ())
}

fn write_column(
    column: &mut ColumnWriter<'_>,
    name: &str,
    rows: &[Record],
    targets: &TargetTable,
) -> ParquetResult<()> {
    match column {
        ColumnWriter::FixedLenByteArrayColumnWriter(column) => {
            let service = name == "service_s";
            let times: Vec<_> =
                rows.iter().map(|r| decimal(if service { r.service_ns } else { r.time_ns })).collect();
            column.write_batch(&times, None, None)?;
        }
        ColumnWriter::ByteArrayColumnWriter(column) => {
            let kind = name == "kind";
            let texts: Vec<_> = rows
                .iter()
                .map(|r| match (kind, r.kind) {
                    (true, RecordKind::Static) => ByteArray::from("static"),
                    (true, RecordKind::Dynamic) => ByteArray::from("dynamic"),
                    (false, _) => text(targets.name(r.target)),
                })
                .collect();
            column.write_batch(&texts, None, None)?;
        }
        ColumnWriter::Int64ColumnWriter(column) => {
            let numbers: Vec<_> = rows
                .iter()
                .map(|r| match name {
                    "class" => i64::from(r.class),
                    "client" => i64::from(r.client),
                    // Sizes beyond 2^53 are refused when a trace is read.
                    _ => r.size_bytes as i64,
                })
                .collect();
            column.write_batch(&numbers, None, None)?;
        }
        _ => return Err(ParquetError::General(format!("column {name} has no writer"))),
    }
    Ok(())
}

/// Big-endian two's complement, as the format wants decimals.
fn decimal(ns: u64) -> FixedLenByteArray {
    let mut bytes = vec![0; TIME_BYTES];
    bytes[TIME_BYTES - 8..].copy_from_slice(&ns.to_be_bytes());
    ByteArray::from(bytes).into()
}

/// The name as UTF-8, which the format demands: other bytes are percent-encoded, which in a URL
/// means the same.
fn text(name: &[u8]) -> ByteArray {
    if std::str::from_utf8(name).is_ok() {
        return ByteArray::from(name.to_vec());
    }
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    ByteArray::from(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_encoded() {
        assert_eq!(text("/ä".as_bytes()).data(), "/ä".as_bytes());
        assert_eq!(text(b"/a\xff\xfe/b").data(), b"/a%FF%FE/b");
    }

    #[test]
    fn decimals_are_big_endian() {
        assert_eq!(decimal(258).data(), [0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(decimal(u64::MAX).data()[..2], [0, 255]);
    }
}
