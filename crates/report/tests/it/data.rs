//! Files of results, read back.

use std::{fs, path::Path};

use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row},
};
use plimsoll_report::{Run, write_load_csv, write_load_parquet, write_runs_csv, write_runs_parquet};

use crate::sample::run;

fn awkward_runs() -> Vec<Run> {
    let mut runs = vec![run(0, 2, 1), run(3, 3, u64::MAX)];
    runs[0].trace.path = "a,\"b\"\nc".to_owned();
    runs[0].trace.sha256 = None;
    runs[0].miss_ratio = None;
    runs[1].throughput_rps = f64::INFINITY;
    for run in &mut runs {
        run.load_series.load.iter_mut().for_each(|load| load.truncate(3));
    }
    runs
}

fn csv_rows(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(path).expect("the CSV can be opened");
    let strings = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let header = strings(reader.headers().expect("the CSV has a header"));
    (header, reader.records().map(|record| strings(&record.expect("the record is well formed"))).collect())
}

fn parquet_rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(fs::File::open(path).expect("the file exists"))
        .expect("the file is Parquet");
    reader
        .get_row_iter(None)
        .expect("rows can be read")
        .map(|row| row.expect("the row is well formed"))
        .collect()
}

/// A Parquet value as the CSV would show it.
fn as_text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::ULong(count) => count.to_string(),
        Field::Double(number) => number.to_string(),
        other => panic!("unexpected type: {other:?}"),
    }
}

fn assert_same(csv: &Path, parquet: &Path) {
    let (header, rows) = csv_rows(csv);
    let read: Vec<Vec<(String, String)>> = parquet_rows(parquet)
        .iter()
        .map(|row| row.get_column_iter().map(|(name, field)| (name.clone(), as_text(field))).collect())
        .collect();
    let expected: Vec<Vec<(String, String)>> =
        rows.into_iter().map(|row| header.iter().cloned().zip(row).collect()).collect();
    assert!(!read.is_empty());
    assert_eq!(read, expected);
}

#[test]
fn runs_read_back_from_both_files() {
    let directory = tempfile::tempdir().unwrap();
    let (csv, parquet) = (directory.path().join("runs.csv"), directory.path().join("runs.parquet"));
    let runs = awkward_runs();
    write_runs_csv(&csv, &runs).unwrap();
    write_runs_parquet(&parquet, &runs).unwrap();
    assert_same(&csv, &parquet);

    let (header, rows) = csv_rows(&csv);
    let value = |row: usize, name: &str| {
        rows[row]
            [header.iter().position(|column| column == name).unwrap_or_else(|| panic!("no column {name}"))]
        .as_str()
    };
    assert_eq!(value(0, "trace_path"), "a,\"b\"\nc");
    assert_eq!(value(0, "miss_ratio"), "");
    assert_eq!(value(0, "trace_sha256"), "");
    assert_eq!(value(1, "throughput_rps"), "");
    assert_eq!(value(1, "seed"), u64::MAX.to_string());
    assert_eq!(value(0, "throughput_rps").parse::<f64>().unwrap(), runs[0].throughput_rps);
    assert_eq!(value(1, "response_time_p99_s").parse::<f64>().unwrap(), runs[1].response_time_s.unwrap().p99);
    let per_backend: Vec<plimsoll_report::PerBackend> =
        serde_json::from_str(value(1, "per_backend")).unwrap();
    assert_eq!(per_backend, runs[1].per_backend);
}

#[test]
fn load_reads_back_from_both_files() {
    let directory = tempfile::tempdir().unwrap();
    let (csv, parquet) = (directory.path().join("load.csv"), directory.path().join("load.parquet"));
    let runs = awkward_runs();
    write_load_csv(&csv, &runs).unwrap();
    write_load_parquet(&parquet, &runs).unwrap();
    assert_same(&csv, &parquet);

    let (header, rows) = csv_rows(&csv);
    assert_eq!(header, ["policy", "backends", "seed", "backend", "time_s", "load"]);
    assert_eq!(rows.len(), 2 * 3 + 3 * 3);
    let load = runs[0].load_series.load[1][2];
    assert_eq!(rows[5], ["weighted_round_robin", "2", "1", "1", "1", load.to_string().as_str()]);
}

#[test]
fn equal_runs_give_equal_bytes_and_no_runs_a_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_runs_parquet(path("1"), &awkward_runs()).unwrap();
    write_runs_parquet(path("2"), &awkward_runs()).unwrap();
    assert_eq!(fs::read(path("1")).unwrap(), fs::read(path("2")).unwrap());
    write_load_csv(path("3"), &[]).unwrap();
    assert_eq!(fs::read_to_string(path("3")).unwrap(), "policy,backends,seed,backend,time_s,load\n");
    write_load_parquet(path("4"), &[]).unwrap();
    assert!(parquet_rows(&path("4")).is_empty());
}

#[test]
fn errors_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("runs.csv");
    for error in [
        write_runs_csv(&path, &[]).unwrap_err(),
        write_load_csv(&path, &[]).unwrap_err(),
        write_runs_parquet(&path, &[]).unwrap_err(),
        write_load_parquet(&path, &[]).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("runs.csv") && text.contains("could not be written: No such file"), "{text}");
    }
}
