//! Requests with their URIs and durations.

use std::path::Path;

use plimsoll_trace::{
    FieldsAfterSize, ReadOptions, ReadReport, TimedRequest, TraceError, TraceInput, read_timed_requests,
};

/// A request as text: begin and durations in milliseconds, method, target, status, size, back-end.
fn shown(request: &TimedRequest<'_>) -> String {
    let ms = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| (ns as f64 / 1e6).to_string());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let TimedRequest { begins_ns, backend_ns, total_ns, method, target, status, size_bytes, backend } =
        *request;
    format!(
        "{} {} {} {} {} {status} {size_bytes} {}",
        begins_ns % 86_400_000_000_000 / 1_000_000,
        ms(backend_ns),
        ms(total_ns),
        text(method),
        text(target),
        backend.map_or_else(|| "-".to_owned(), text)
    )
}

fn read(
    lines: &str,
    after: Option<&str>,
    options: &ReadOptions,
) -> (Vec<String>, Result<ReadReport, TraceError>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    std::fs::write(&path, lines).unwrap();
    let after: Option<FieldsAfterSize> = after.map(|text| text.parse().unwrap());
    let mut out = Vec::new();
    let report = read_timed_requests(
        &[TraceInput::from_arg(Path::new(&path))],
        options,
        after.as_ref(),
        &mut |request| out.push(shown(request)),
    );
    (out, report)
}

fn one(line: &str, after: Option<&str>) -> String {
    let (mut out, report) = read(&format!("{line}\n"), after, &ReadOptions::default());
    report.unwrap();
    out.pop().unwrap()
}

const COMBINED: &str =
    r#"192.0.2.7 - - [23/Nov/2026:00:00:09 +0000] "POST /a?b=c HTTP/1.1" 201 48 "-" "curl/7.88.1""#;

#[test]
fn durations_follow_common_and_combined_lines() {
    assert_eq!(one(&format!("{COMBINED} 1500"), None), "9000 - 1.5 POST /a?b=c 201 48 -");
    assert_eq!(
        one(&format!("{COMBINED} 0.012 0.010 10.0.0.1:80"), None),
        "9000 10 12 POST /a?b=c 201 48 10.0.0.1:80"
    );
    assert_eq!(one(&format!("{COMBINED} 7 1500"), Some("-,total_us")), "9000 - 1.5 POST /a?b=c 201 48 -");
    let common = COMBINED.replace(r#" "-" "curl/7.88.1""#, "");
    assert_eq!(one(&format!("{common} 1500"), None), "9000 - 1.5 POST /a?b=c 201 48 -");
    let vhost = format!("www.example.org:80 {COMBINED} 1500");
    assert_eq!(one(&vhost, None), "9000 - 1.5 POST /a?b=c 201 48 -");
    // nginx's time is that of the end, and here it is fine enough for that to matter.
    let fine = COMBINED.replace("23/Nov/2026:00:00:09 +0000", "1795392009.500");
    assert_eq!(one(&format!("{fine} 0.250"), None), "9250 - 250 POST /a?b=c 201 48 -");
}

#[test]
fn formats_with_named_fields_tell_back_ends() {
    let nginx = r#"{"msec":"1795392009.500","request_method":"PUT","request_uri":"/x","status":200,"body_bytes_sent":5,"request_time":0.500,"upstream_addr":"10.0.0.1:80, 10.0.0.2:80","upstream_response_time":"0.1, 0.3"}"#;
    assert_eq!(one(nginx, None), "9000 400 500 PUT /x 200 5 10.0.0.2:80");
    let ours = r#"{"time":"2026-11-23T00:00:09Z","client":"127.0.0.1","method":"GET","target":"/p","status":200,"bytes":700,"backend":"b0","first_byte_s":0.005962,"total_s":0.006036}"#;
    assert_eq!(one(ours, None), "9000 5.962 6.036 GET /p 200 700 b0");
    let haproxy = r#"Nov 23 00:00:09 lb haproxy[829]: 192.0.2.7:56736 [23/Nov/2026:00:00:09.606] http-in app/srv1 0/0/0/2/3 200 1921 - - ---- 1/1/0/0/0 0/0 "GET /i HTTP/1.1""#;
    assert_eq!(one(haproxy, None), "9606 2 - GET /i 200 1921 app/srv1");
    assert_eq!(
        one("time_s,target,size_bytes,service_s\n1.5,\"/a?b\",9,0.25", None),
        "1500 250 - GET /a?b 200 9 -"
    );
}

#[test]
fn requests_without_durations_are_counted_and_absurd_ones_rejected() {
    let lines = format!("{COMBINED}\n{COMBINED} 1500\n{COMBINED} -0.100\n{COMBINED} 200000.5\nnonsense\n");
    let loose = ReadOptions { max_bad_ratio: 0.9, ..ReadOptions::default() };
    let (out, report) = read(&lines, None, &loose);
    let report = report.unwrap();
    assert_eq!((out.len(), report.lines, report.lines_rejected, report.records), (1, 5, 3, 1));
    assert_eq!(report.not_counted.get("no duration"), Some(&1));
    let reasons: Vec<&str> = report.rejections.iter().map(|rejected| rejected.reason.as_str()).collect();
    assert_eq!(
        reasons[..2],
        ["the duration is negative", "the duration is longer than a day, or in another unit"]
    );
    let error = read(&lines, None, &ReadOptions::default()).1.unwrap_err().to_string();
    assert!(error.contains("3 of 5 lines") && error.contains("line 3: the duration is negative"), "{error}");
    let error = read(&format!("{COMBINED}\n"), None, &ReadOptions::default()).1.unwrap_err().to_string();
    assert!(error.contains("none of 1 requests has a duration") && error.contains("%D"), "{error}");
    let limited = ReadOptions { limit: Some(2), ..ReadOptions::default() };
    assert_eq!(read(&format!("{COMBINED} 1500\n").repeat(5), None, &limited).0.len(), 2);
}
