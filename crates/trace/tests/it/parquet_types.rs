//! Parquet files of other writers: other types, nulls, several row groups.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use plimsoll_trace::{ReadOptions, RecordKind, Trace, TraceError, formats};

use crate::helpers::{gzip, listed, load_bytes, stamped};

/// A column of a row group; a level of 0 is a null.
enum Values {
    I32(Vec<i32>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    Text(Vec<&'static str>),
    Bool(Vec<bool>),
}

type Group = Vec<(Values, Option<Vec<i16>>)>;

fn file(schema: &str, groups: &[Group]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(3)
        .set_write_batch_size(2)
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for group in groups {
        let mut rows = writer.next_row_group().unwrap();
        for (values, levels) in group {
            let mut column = rows.next_column().unwrap().unwrap();
            let levels = levels.as_deref();
            match (column.untyped(), values) {
                (ColumnWriter::Int32ColumnWriter(w), Values::I32(v)) => w.write_batch(v, levels, None),
                (ColumnWriter::Int64ColumnWriter(w), Values::I64(v)) => w.write_batch(v, levels, None),
                (ColumnWriter::DoubleColumnWriter(w), Values::F64(v)) => w.write_batch(v, levels, None),
                (ColumnWriter::BoolColumnWriter(w), Values::Bool(v)) => w.write_batch(v, levels, None),
                (ColumnWriter::ByteArrayColumnWriter(w), Values::Text(v)) => {
                    let v: Vec<_> = v.iter().map(|&t| ByteArray::from(t)).collect();
                    w.write_batch(&v, levels, None)
                }
                _ => panic!("the values do not fit the schema"),
            }
            .unwrap();
            column.close().unwrap();
        }
        rows.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<Trace, TraceError> {
    let options = ReadOptions { max_bad_ratio: 1.0, ..ReadOptions::default() };
    load_bytes(bytes, &options)
}

#[test]
fn doubles_numbers_and_nulls() {
    let schema = "message t {
        optional binary client (UTF8);
        required int32 size_bytes;
        required int64 target;
        optional double time_s;
        optional binary kind (UTF8);
        optional boolean unknown;
        optional double service_s;
        optional int32 class;
    }";
    let group = |start: f64| -> Group {
        vec![
            (Values::Text(vec!["a", "b", "a"]), Some(vec![1, 0, 1, 1, 0, 0])),
            (Values::I32(vec![1, 2, 3, -4, 5, 6]), None),
            (Values::I64(vec![7, 8, 7, 8, -9, 7]), None),
            (
                Values::F64(vec![start, start + 0.5, start + 1.0, start + 2.0, f64::NAN]),
                Some(vec![1, 1, 0, 1, 1, 1]),
            ),
            (Values::Text(vec!["dynamic", "static"]), Some(vec![1, 1, 0, 0, 0, 0])),
            (Values::Bool(vec![true]), Some(vec![0, 0, 0, 0, 0, 1])),
            (Values::F64(vec![0.25]), Some(vec![0, 1, 0, 0, 0, 0])),
            (Values::I32(vec![65_535]), Some(vec![1, 0, 0, 0, 0, 0])),
        ]
    };
    let bytes = file(schema, &[group(1_400_000_000.0), group(1_400_000_100.0)]);
    let trace = load(&bytes).unwrap();
    assert_eq!(trace.report.format, Some(formats::parquet::FORMAT));
    let start = 1_400_000_000_000_000_000;
    assert_eq!(
        listed(&trace),
        [
            (start, "7".to_owned(), 1),
            (start + 500_000_000, "8".to_owned(), 2),
            (start + 100_000_000_000, "7".to_owned(), 1),
            (start + 100_500_000_000, "8".to_owned(), 2),
        ]
    );
    let reasons: Vec<_> = trace.report.rejections.iter().map(|r| (r.line, r.reason.as_str())).collect();
    assert_eq!(
        reasons[..4],
        [
            (3, "column time_s has no value"),
            (4, "size is negative"),
            (5, "target or client is a negative number"),
            (6, "time is not finite"),
        ]
    );
    assert_eq!(reasons[4].0, 9);
    let records = stamped(&trace);
    assert_eq!((records[0].kind, records[1].kind), (RecordKind::Dynamic, RecordKind::Static));
    assert_eq!((records[0].class, records[1].class), (65_535, 0));
    assert_eq!((records[0].service_ns, records[1].service_ns), (0, 250_000_000));
    // The empty client is one of its own.
    assert_eq!((records[0].client, records[1].client, records[2].client), (0, 1, 0));
}

#[test]
fn times_of_every_type_are_exact() {
    for (kind, values, expected) in [
        ("int64 time_s", Values::I64(vec![1, 2]), [1_000_000_000, 2_000_000_000]),
        ("int32 time_s", Values::I32(vec![1, 2]), [1_000_000_000, 2_000_000_000]),
        (
            "int64 time_s (TIMESTAMP(MILLIS,true))",
            Values::I64(vec![1001, 1002]),
            [1_001_000_000, 1_002_000_000],
        ),
        (
            "int64 time_s (TIMESTAMP_MICROS)",
            Values::I64(vec![1_000_001, 1_000_002]),
            [1_000_001_000, 1_000_002_000],
        ),
        (
            "int64 time_s (TIMESTAMP(NANOS,false))",
            Values::I64(vec![1_000_000_001, 1_000_000_002]),
            [1_000_000_001, 1_000_000_002],
        ),
        ("int64 time_s (DECIMAL(18,3))", Values::I64(vec![1500, 2500]), [1_500_000_000, 2_500_000_000]),
        (
            "int64 time_s (DECIMAL(18,12))",
            Values::I64(vec![1_000_000_001_999, 2_000_000_000_000]),
            [1_000_000_001, 2_000_000_000],
        ),
    ] {
        let schema = format!(
            "message t {{ required {kind}; required binary target (UTF8); required int64 size_bytes; }}"
        );
        let group =
            vec![(values, None), (Values::Text(vec!["/a", "/b"]), None), (Values::I64(vec![1, 2]), None)];
        // Compressed once more: Parquet must then pass through a temporary file.
        let trace = load(&gzip(&file(&schema, &[group]))).unwrap();
        let times: Vec<u64> = stamped(&trace).iter().map(|r| r.time_ns).collect();
        assert_eq!(times, expected, "{kind}");
    }
}

#[test]
fn columns_that_cannot_serve_are_refused() {
    let columns = |time: &str| {
        format!("message t {{ {time}; required binary target (UTF8); required int64 size_bytes; }}")
    };
    let group = || {
        vec![(Values::Bool(vec![true]), None), (Values::Text(vec!["/a"]), None), (Values::I64(vec![1]), None)]
    };
    let error = load(&file(&columns("required boolean time_s"), &[group()])).unwrap_err();
    assert!(error.to_string().contains("column time_s is of type BOOLEAN"), "{error}");
    let error = load(&file(&columns("required boolean time"), &[group()])).unwrap_err();
    assert!(error.to_string().contains("column time_s is missing"), "{error}");
}
