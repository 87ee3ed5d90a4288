//! Files of results, read back.

use std::{fs, path::Path};

use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row, RowAccessor},
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

/// The columns that are nested in Parquet and JSON in CSV.
const NESTED: [&str; 3] = ["params", "policy_stats", "per_backend"];

fn assert_same(csv: &Path, parquet: &Path) {
    let (header, rows) = csv_rows(csv);
    let read: Vec<Vec<(String, String)>> = parquet_rows(parquet)
        .iter()
        .map(|row| {
            let plain = row.get_column_iter().filter(|(name, _)| !NESTED.contains(&name.as_str()));
            plain.map(|(name, field)| (name.clone(), as_text(field))).collect()
        })
        .collect();
    let of = |row: Vec<String>| {
        header.iter().cloned().zip(row).filter(|(name, _)| !NESTED.contains(&name.as_str())).collect()
    };
    let expected: Vec<Vec<(String, String)>> = rows.into_iter().map(of).collect();
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

/// The value of a column of a row.
fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter().find(|(column, _)| *column == name).expect("the column is there").1
}

#[test]
fn nested_columns_are_lists_and_maps() {
    let directory = tempfile::tempdir().unwrap();
    let parquet = directory.path().join("runs.parquet");
    let mut runs = awkward_runs();
    runs[0].per_backend[1].disk = None;
    runs[0].policy_stats.insert("broken".to_owned(), f64::NAN);
    runs[0].params.insert("none".to_owned(), serde_json::Value::Null);
    // An empty list between others.
    let mut empty = runs[0].clone();
    empty.per_backend.clear();
    empty.params.clear();
    runs.insert(1, empty);
    write_runs_parquet(&parquet, &runs).unwrap();

    let rows = parquet_rows(&parquet);
    assert_eq!(rows.len(), 3);
    for (row, run) in rows.iter().zip(&runs) {
        let Field::ListInternal(list) = field(row, "per_backend") else { panic!("no list") };
        assert_eq!(list.elements().len(), run.per_backend.len());
        for (element, backend) in list.elements().iter().zip(&run.per_backend) {
            let Field::Group(fields) = element else { panic!("no struct") };
            let number = |index: usize| fields.get_double(index).ok();
            assert_eq!(fields.get_ulong(0).unwrap(), backend.requests);
            let numbers = [backend.miss_ratio, Some(backend.idle_ratio), Some(backend.cpu), backend.disk];
            assert_eq!([1, 2, 3, 4].map(number), numbers);
            assert_eq!(number(5), Some(backend.mean_load));
        }
        let Field::MapInternal(stats) = field(row, "policy_stats") else { panic!("no map") };
        let expected: Vec<(Field, Field)> = run
            .policy_stats
            .iter()
            .map(|(key, value)| {
                let value = if value.is_finite() { Field::Double(*value) } else { Field::Null };
                (Field::Str(key.clone()), value)
            })
            .collect();
        assert_eq!(stats.entries(), expected);
        let Field::MapInternal(params) = field(row, "params") else { panic!("no map") };
        let get = |name: &str| {
            let entry = params.entries().iter().find(|(key, _)| *key == Field::Str(name.to_owned()));
            entry.map(|(_, value)| value.clone())
        };
        assert_eq!(params.entries().len(), run.params.len());
        assert_eq!(get("hardware").is_some(), run.params.contains_key("hardware"));
        if run.params.contains_key("none") {
            let texts = [get("hardware"), get("model.disks")];
            assert_eq!(texts, ["1998", "1"].map(|text| Some(Field::Str(text.to_owned()))));
            assert_eq!(get("none"), Some(Field::Null));
        }
    }
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
    assert_eq!(header, ["policy", "load_information", "backends", "seed", "backend", "time_s", "load"]);
    assert_eq!(rows.len(), 2 * 3 + 3 * 3);
    let load = runs[0].load_series.load[1][2];
    assert_eq!(rows[5], ["weighted_round_robin", "exact", "2", "1", "1", "1", load.to_string().as_str()]);
}

#[test]
fn equal_runs_give_equal_bytes_and_no_runs_a_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    write_runs_parquet(path("1"), &awkward_runs()).unwrap();
    write_runs_parquet(path("2"), &awkward_runs()).unwrap();
    assert_eq!(fs::read(path("1")).unwrap(), fs::read(path("2")).unwrap());
    write_load_csv(path("3"), &[]).unwrap();
    assert_eq!(
        fs::read_to_string(path("3")).unwrap(),
        "policy,load_information,backends,seed,backend,time_s,load\n"
    );
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
