//! `plimsoll trace convert`.

use std::fs;
use std::path::Path;

use super::{Scratch, fails, real_trace, run, stats, stderr};

#[test]
fn conversion_there_and_back_changes_nothing() {
    let Some(path) = real_trace("cran_mirror_2012.csv.gz") else {
        return;
    };
    let scratch = Scratch::new();
    let [first, parquet, last] =
        ["first.csv", "trace.parquet", "last.csv.zst"].map(|name| scratch.name(name));
    for (from, to) in [(&path, &first), (&first, &parquet), (&parquet, &last)] {
        let output = run(&["convert", from, "--to", to]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(output.stdout, b"");
        assert!(stderr(&output).contains("Wrote 80,431 requests for 17,334 targets to "));
    }
    let there_and_back = run(&["convert", &last, "--to", "-", "--to-format", "csv"]).stdout;
    assert!(there_and_back == fs::read(&first).unwrap());
    let (mut original, mut converted) = (stats(&path), stats(&parquet));
    for found in [&mut original, &mut converted] {
        let found = found.as_object_mut().unwrap();
        assert!(found.remove("trace").is_some() && found.remove("format").is_some());
    }
    assert_eq!(original, converted);
}

#[test]
fn conversion_loses_no_file() {
    let scratch = Scratch::new();
    let content = "time_s,target,size_bytes\n0,/a,1\n1,/b,2\n";
    let input = scratch.file("in.csv", content);
    let link = scratch.name("link.csv");
    fs::hard_link(&input, &link).unwrap();
    for to in [&input, &link] {
        fails(&["convert", &input, "--to", to, "--force"], 2, &["same file as the input"]);
    }
    let existing = scratch.file("existing.csv", "precious");
    fails(&["convert", &input, "--to", &existing], 2, &["exists already", "--force"]);
    assert_eq!(fs::read_to_string(&existing).unwrap(), "precious");
    assert_eq!(fs::read_to_string(&input).unwrap(), content);
    let output = run(&["convert", &input, "--to", &existing, "--force"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&existing).unwrap(), content);
}

#[test]
fn a_failed_conversion_leaves_no_file() {
    let scratch = Scratch::new();
    // Times beyond 32 bits have no place in oracleGeneral.
    let input = scratch.file("in.csv", "time_s,target,size_bytes\n5000000000,/a,1\n");
    let to = scratch.name("out.oracleGeneral");
    fails(&["convert", &input, "--to", &to], 1, &["32 bits", "write csv or parquet instead"]);
    assert!(!Path::new(&to).exists());
}

#[test]
fn conversion_refuses_what_it_cannot_do() {
    let scratch = Scratch::new();
    let input = scratch.file("in.csv", "time_s,target,size_bytes\n0,/a,1\n");
    let out = |name: &str| scratch.name(name);
    fails(&["convert", &input, "--to", &out("x.log")], 2, &["does not tell the format", "--to-format"]);
    fails(&["convert", &input, "--to", "-"], 2, &["--to-format"]);
    let args = ["convert", &input, "--to", &out("x"), "--to-format", "combined"];
    fails(&args, 2, &["combined-log", "not written"]);
    let args = ["convert", &input, "--to", &out("x"), "--to-format", "parket"];
    fails(&args, 2, &["did you mean `parquet`?"]);
    fails(&["convert", &input, "--to", &out("no/x.csv")], 1, &["no directory"]);
    fails(&["convert", &out("missing.log"), "--to", &out("x.csv")], 1, &["missing.log", "cannot open"]);
    assert!(!scratch.path("x.csv").exists());
}
