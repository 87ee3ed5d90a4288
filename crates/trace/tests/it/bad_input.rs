//! Inputs that cannot be read: each error is one paragraph that names the input and the remedy.

use std::path::Path;

use plimsoll_trace::{Format, ReadOptions, TraceInput, formats, load};

use crate::helpers::{Scratch, gzip, load_bytes, load_path, load_text, xz, zstd};

fn message(result: Result<plimsoll_trace::Trace, plimsoll_trace::TraceError>) -> String {
    let text = result.unwrap_err().to_string();
    assert!(!text.contains('\n'), "more than one paragraph: {text}");
    text
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

#[test]
fn missing_files_and_directories() {
    let scratch = Scratch::new();
    let text = message(load_path(&scratch.path("none.log"), &ReadOptions::default()));
    says(&text, &["none.log", "cannot open", "existing file"]);
    let text =
        message(load_path(scratch.path("x").parent().unwrap_or(Path::new("/")), &ReadOptions::default()));
    says(&text, &["directory"]);
}

#[test]
fn nothing_usable() {
    says(&message(load_text("")), &["no usable line", "empty"]);
    says(&message(load(&[], &ReadOptions::default())), &["no usable line"]);
    let only_404 = "h - - [01/Jul/1995:00:00:01 +0000] \"GET / HTTP/1.0\" 404 1\n".repeat(3);
    says(&message(load_text(&only_404)), &["no usable line", "status 404 (3)", "--include-all"]);
    says(&message(load_text("time_s,target,size_bytes\n")), &["no usable line", "empty"]);
}

#[test]
fn unknown_content_and_wrong_formats() {
    let text = message(load_text("hello\nworld\n"));
    says(&text, &["cannot be told", "--format", "combined-log"]);
    for format in Format::all() {
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let text = message(load_bytes(b"hello\nworld, this is no trace\n", &options));
        says(&text, &["trace"]);
    }
    let text = message(load_bytes(
        b"time_s,size_bytes\n1,2\n",
        &ReadOptions { format: Some(formats::csv::FORMAT), ..ReadOptions::default() },
    ));
    says(&text, &["column target is missing", "time_s,target,size_bytes"]);
    says(
        &message(load_text("time_s,target,size_bytes,target\n1,/a,2,/b\n")),
        &["column target stands in it twice"],
    );
}

#[test]
fn too_many_bad_lines() {
    let good = "1 a 10\n".repeat(90);
    let text = message(load_text(&format!("{good}{}", "bad line\n".repeat(10))));
    says(&text, &["10 of 100 lines", "0.05", "line 91", "time id size", "--max-bad-ratio"]);
    assert!(load_text(&format!("{good}{}", "bad line\n".repeat(4))).is_ok());
}

#[test]
fn reading_stops_early_when_most_is_bad() {
    let text = format!("1 a 10\n{}", "bad line\n".repeat(100_000));
    let text = message(load_text(&text));
    // Judged after some thousand lines, not after all of them.
    assert!(!text.contains("100001 lines"), "{text}");
}

#[test]
fn formats_do_not_mix() {
    let scratch = Scratch::new();
    let first = scratch.file("a", b"1 a 10\n");
    let second = scratch.file("b", b"time_s,target,size_bytes\n2,/a,1\n");
    let inputs = [TraceInput::File(first), TraceInput::File(second.clone())];
    let text = message(load(&inputs, &ReadOptions::default()));
    says(&text, &[second.to_str().unwrap(), "csv", "time-id-size"]);
}

#[test]
fn damaged_compression() {
    let text: String = (0..20_000).map(|i| format!("{i} {} {}\n", i * 7919 % 1000, i % 977)).collect();
    for (pack, name) in [(gzip as fn(&[u8]) -> Vec<u8>, "gzip"), (zstd, "zstd"), (xz, "xz")] {
        let whole = pack(text.as_bytes());
        let cut = &whole[..whole.len() / 2];
        says(&message(load_bytes(cut, &ReadOptions::default())), &[name, "trace"]);
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x55;
        flipped[middle + 1] ^= 0xff;
        says(&message(load_bytes(&flipped, &ReadOptions::default())), &["trace"]);
    }
    says(&message(load_bytes(&[0x1f, 0x8b], &ReadOptions::default())), &["gzip"]);
}

#[test]
fn inputs_in_the_wrong_order() {
    let scratch = Scratch::new();
    let newer = scratch.file("log", b"100000 a 10\n");
    let older = scratch.file("log.1", b"1000 a 10\n2000 b 10\n");
    let inputs = [newer, older].map(TraceInput::File);
    says(
        &message(load(&inputs, &ReadOptions::default())),
        &["log.1 line 1: time goes backwards by 99000 s", "name the oldest first"],
    );
}

#[test]
fn a_wrong_format_that_was_named_is_told_what_the_content_looks_like() {
    let common = "h - - [01/Jul/1995:00:00:01 +0000] \"GET / HTTP/1.0\" 200 1\n".repeat(9);
    let combined = common.replace(" 1\n", " 1 \"-\" \"curl\"\n");
    let csv = "time_s,target,size_bytes\n1,/a,2\n2,/b,3\n";
    for (text, named, looks_like) in [
        (common.as_str(), "csv", "common-log"),
        (&common, "time-id-size", "common-log"),
        (&combined, "haproxy", "combined-log"),
        (csv, "common-log", "csv"),
    ] {
        let options = ReadOptions { format: Some(named.parse().unwrap()), ..ReadOptions::default() };
        let text = message(load_bytes(text.as_bytes(), &options));
        says(&text, &[&format!("; the content looks like {looks_like}")]);
    }
}

#[test]
fn names_of_columns_are_in_lower_case() {
    let text = "Time_S,TARGET,Size_Bytes\n0.1,/a,100\n0.5,/b,200\n".to_owned();
    says(&message(load_text(&text)), &["names the columns of a CSV, but not in lower case"]);
    let options = ReadOptions { format: Some(formats::csv::FORMAT), ..ReadOptions::default() };
    says(&message(load_bytes(text.as_bytes(), &options)), &["column time_s is missing", "are in lower case"]);
}

#[test]
fn of_json_with_the_keys_of_a_server_the_value_is_named_that_cannot_be_used() {
    let line = r#"{"msec":"1795468890.499","request_uri":"/index.html","status":200,"body_bytes_sent":"-5"}"#;
    says(
        &message(load_text(line)),
        &["the keys of nginx-json", "body_bytes_sent cannot be used: size is negative"],
    );
    let line = line.replace("1795468890.499", "now").replace("-5", "5");
    says(&message(load_text(&line)), &["the value of msec cannot be used: time is"]);
}
