//! Logs as they come from containers, editors, the system's log and servers that were told to log otherwise: read as what they
//! are, or refused with what would help.

use plimsoll_trace::{Format, ReadOptions, Trace, TraceInput, formats, load};

use crate::helpers::{Scratch, listed, load_bytes, load_text, stamped};

const LINE: &str = "192.0.2.7 - - [23/Nov/2026:21:22:15 +0000] \"GET /a HTTP/1.1\" 200 1719 \"-\" \"curl\"\n";
const SECOND_NS: u64 = 1_795_468_935_000_000_000;

fn refused(content: &[u8]) -> String {
    load_bytes(content, &ReadOptions::default()).unwrap_err().to_string()
}

fn with_fields(content: &str, fields: &str) -> Result<Trace, plimsoll_trace::TraceError> {
    let options = ReadOptions { fields: Some(fields.parse().unwrap()), ..ReadOptions::default() };
    load_bytes(content.as_bytes(), &options)
}

fn targets(trace: &Trace) -> Vec<String> {
    listed(trace).into_iter().map(|request| request.1).collect()
}

#[test]
fn words_before_the_client_are_passed_over() {
    for prefix in [
        "<190>Nov 23 21:22:15 lb nginx: ",
        "Nov 23 21:22:15 lb nginx[829]: ",
        "2026-11-23T21:22:15.342Z stdout F ",
        "web-1  | ",
    ] {
        let other = LINE.replace("192.0.2.7", "192.0.2.8");
        let trace = load_text(&format!("{prefix}{LINE}{prefix}{other}{prefix}{LINE}")).unwrap();
        assert_eq!(trace.report.format, Some(formats::log::COMBINED), "{prefix}");
        assert_eq!((trace.len(), trace.report.clients), (3, 2), "{prefix}");
        let shown = trace.report.first_line.unwrap().to_string();
        assert!(shown.contains("client 192.0.2.7, method GET, target /a,"), "{shown}");
    }
    let envoy = "2026-11-23T21:22:15.342Z stdout F [2026-11-23T21:22:15.342Z] \"GET /a HTTP/1.1\" 200 - 0 1719 3 2 \"192.0.2.7\" \
                 \"curl\" \"id\" \"www.example.org\" \"10.0.0.1:80\"\n";
    let trace = load_text(envoy).unwrap();
    assert_eq!(trace.report.format.map(Format::name), Some("envoy"));
    assert_eq!(listed(&trace), [(SECOND_NS + 342_000_000, "/a".to_owned(), 1719)]);
}

#[test]
fn a_common_log_may_have_times_of_another_form() {
    for (time, fraction_ns) in [
        ("23/Nov/2026:22:22:15.342 +0100", 342_000_000),
        ("2026-11-23T21:22:15+00:00", 0),
        ("1795468935.342", 342_000_000),
    ] {
        let trace = load_text(&LINE.replace("23/Nov/2026:21:22:15 +0000", time)).unwrap();
        assert_eq!(listed(&trace), [(SECOND_NS + fraction_ns, "/a".to_owned(), 1719)], "{time}");
    }
}

#[test]
fn a_mark_of_byte_order_is_no_part_of_the_first_line() {
    for text in
        [LINE, "{\"msec\":1,\"request_uri\":\"/a\",\"status\":200,\"body_bytes_sent\":1719}\n", "1 /a 1719\n"]
    {
        let trace = load_text(&format!("\u{feff}{text}")).unwrap();
        assert_eq!((trace.len(), trace.report.lines_rejected), (1, 0), "{text}");
        assert!(!trace.report.first_line.unwrap().to_string().contains('\u{feff}'), "{text}");
    }
}

#[test]
fn inputs_without_lines_do_not_disturb() {
    let scratch = Scratch::new();
    let inputs = [scratch.file("a", b""), scratch.file("b", b"\n \r\n"), scratch.file("c", LINE.as_bytes())];
    let trace = load(&inputs.map(TraceInput::File), &ReadOptions::default()).unwrap();
    assert_eq!((trace.len(), trace.report.lines), (1, 1));
    assert!(refused(b"\n\n").contains("it is empty"));
}

#[test]
fn what_is_no_text_is_named_with_a_remedy_and_not_with_formats() {
    let utf16: Vec<u8> = [0xfeff].into_iter().chain(LINE.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let hollow = [&[0; 4096][..], LINE.as_bytes()].concat();
    for (content, remedy) in [
        (&b"BZh91AY&SY\0\0"[..], "bzcat FILE | plimsoll"),
        (&utf16, "iconv -f UTF-16"),
        (&hollow, "tr -d '\\000'"),
    ] {
        let text = refused(content);
        assert!(text.contains(remedy) && !text.contains("--format"), "{text}");
    }
}

#[test]
fn nginx_without_escape_json_is_read() {
    let line = r#"{"msec":"1795468935.342","remote_addr":"192.0.2.7","request":"POST /sent HTTP/1.1","uri":"/index.php","status":"200","body_bytes_sent":"7","request_time":"0.002","ua":"Mo\x22zilla \xC3\xA9"}"#;
    let text = format!("{line}\n{}\n", line.replace("POST /sent", "GET /asked"));
    let trace = load_text(&text).unwrap();
    // The request line wins over the path that nginx has rewritten, and has the method.
    assert_eq!(targets(&trace), ["/asked"]);
    assert_eq!(trace.report.not_counted["method POST"], 1);
    assert_eq!(
        (stamped(&trace)[0].time_ns, stamped(&trace)[0].service_ns),
        (SECOND_NS + 340_000_000, 2_000_000)
    );
}

#[test]
fn a_unit_that_is_not_told_is_not_guessed() {
    let caddy = |duration: &str| {
        load_text(&format!(
            "{{\"ts\":1795468935.5,\"request\":{{\"uri\":\"/a\"}},\"size\":7,\"status\":200,\"duration\":{duration}}}\n"
        ))
        .unwrap()
    };
    let time_and_service = |trace: &Trace| (stamped(trace)[0].time_ns, stamped(trace)[0].service_ns);
    assert_eq!(time_and_service(&caddy("0.25")), (SECOND_NS + 250_000_000, 250_000_000));
    assert_eq!(time_and_service(&caddy("\"250ms\"")), (SECOND_NS + 250_000_000, 250_000_000));
    assert_eq!(time_and_service(&caddy("250")), (SECOND_NS + 500_000_000, 0));
    // A decimal comma.
    let nginx =
        r#"{"msec":1795468935.5,"request_uri":"/a","status":200,"body_bytes_sent":7,"request_time":"0,012"}"#;
    assert_eq!(time_and_service(&load_text(nginx).unwrap()), (SECOND_NS + 500_000_000, 0));
}

#[test]
fn a_date_and_time_in_one_number_is_no_time() {
    let text = r#"{"time":20261123212215,"request_uri":"/a","status":200,"body_bytes_sent":7}"#;
    let options = ReadOptions { format: Some("nginx-json".parse().unwrap()), ..ReadOptions::default() };
    let text = load_bytes(text.as_bytes(), &options).unwrap_err().to_string();
    assert!(text.contains("beyond the year 2554"), "{text}");
}

#[test]
fn haproxy_that_logs_too_early_has_no_sizes() {
    let line = "192.0.2.7:56736 [23/Nov/2026:21:22:15.606] in b/s 0/0/0/2/+3 200 +212 - - ---- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\"\n";
    let text = refused(line.as_bytes());
    assert!(text.contains("nearest to haproxy") && text.contains("option logasap"), "{text}");
    let trace = load_text(&line.replace('+', "")).unwrap();
    assert_eq!(listed(&trace)[0].2, 212);
}

#[test]
fn sites_that_targets_leave_out_are_noticed() {
    let sites = |trace: &Trace| trace.report.left_out_sites.clone();
    let line = |site: &str| LINE.replace("GET /a", &format!("GET http://{site}/a"));
    // A scanner asks any site.
    let most = line("a.example.org:80").repeat(50) + &line("192.0.2.99");
    assert_eq!(sites(&load_text(&most).unwrap()), ["a.example.org"]);
    let two = load_text(&[line("b.example.org"), line("a.example.org")].concat()).unwrap();
    assert_eq!(sites(&two), ["a.example.org", "b.example.org"]);
    assert_eq!(targets(&two), ["/a", "/a"]);
    assert!(sites(&load_text(LINE).unwrap()).is_empty());
    let caddy = |site: &str| {
        format!(
            "{{\"ts\":1.5,\"request\":{{\"uri\":\"/a\",\"host\":\"{site}\"}},\"size\":7,\"status\":200}}\n"
        )
    };
    let text = [caddy("a"), caddy("b")].concat();
    assert_eq!(sites(&load_text(&text).unwrap()), ["a", "b"]);
    let told_apart = with_fields(&text, "host=request.host").unwrap();
    assert_eq!(
        (sites(&told_apart).len(), targets(&told_apart)),
        (0, vec!["a/a".to_owned(), "b/a".to_owned()])
    );
}

#[test]
fn fields_that_no_line_has_are_refused_or_told() {
    let line = "{\"ts\":1.5,\"http\":{\"url\":\"/a\",\"status\":404},\"n\":7,\"client\":\"c\"}\n";
    let text = [line, &line.replace("404", "200")].concat();
    let whole = "time=ts,target=http.url,size=n";
    let trace = with_fields(&text, &format!("{whole},status=http.status")).unwrap();
    assert_eq!(
        (trace.len(), trace.report.stamp_assumption.as_str()),
        (1, "arrival, as `--fields time=` says")
    );
    // Every request would count as answered with 200.
    let error = with_fields(&text, &format!("{whole},status=http.stat")).unwrap_err().to_string();
    assert!(
        error.contains("`http.stat`, which --fields names; there are client, http.status, http.url, n, ts"),
        "{error}"
    );
    // A field that not every request has may come later.
    let trace = with_fields(&text, &format!("{whole},service_ms=took,client=client")).unwrap();
    assert_eq!(trace.report.unseen_fields, ["took"]);
    let error = with_fields(&text, "time=ts,target=http.url").unwrap_err().to_string();
    assert!(error.contains("which key holds the size; add size=KEY"), "{error}");
}

#[test]
fn fields_complete_a_format_that_lacks_them() {
    let w3c = "#Software: SGOS 6.7\n#Fields: date time time-taken cs-uri-path sc-bytes\n2026-11-23 21:22:15 2000 /a 7\n";
    let text = refused(w3c.as_bytes());
    assert!(text.contains("say with --fields") && text.contains("cs-uri-path"), "{text}");
    let trace = with_fields(w3c, "target=cs-uri-path").unwrap();
    assert_eq!(trace.report.format, Some(formats::w3c::SPEC.format));
    assert_eq!(listed(&trace), [(SECOND_NS - 2_000_000_000, "/a".to_owned(), 7)]);
}

#[test]
fn a_later_input_may_hold_no_request() {
    let scratch = Scratch::new();
    let request = "{\"ts\":1.5,\"request\":{\"uri\":\"/a\"},\"size\":7,\"status\":200}\n";
    let event = "{\"level\":\"info\",\"ts\":2,\"msg\":\"started\"}\n";
    let read = |second: &str| {
        let inputs = [scratch.file("a", request.as_bytes()), scratch.file("b", second.as_bytes())];
        load(&inputs.map(TraceInput::File), &ReadOptions::default())
    };
    let trace = read(event).unwrap();
    assert_eq!((trace.len(), trace.report.not_counted["no request"]), (1, 1));
    assert!(read("hello\n").unwrap_err().to_string().contains("cannot be told"));
    // S3 logs what it does itself.
    let expired = "79a59d media [23/Nov/2026:21:22:10 +0000] - - 3E57 S3.EXPIRE.OBJECT img/a.png \"-\" - - - 48000 - - \"-\" \"-\" -\n";
    let text = refused(expired.repeat(3).as_bytes());
    assert!(text.contains("none of its 3 lines counts: status (other) (3)"), "{text}");
}

#[test]
fn other_events_alone_are_no_requests() {
    let options = ReadOptions { format: Some("caddy".parse().unwrap()), ..ReadOptions::default() };
    let events = "{\"level\":\"info\",\"ts\":1,\"msg\":\"started\"}\n".repeat(3);
    let text = load_bytes(events.as_bytes(), &options).unwrap_err().to_string();
    assert!(text.contains("none of its 3 lines counts: no request (3)"), "{text}");
    assert!(!text.contains("--include-all"), "{text}");
    // A status that says nothing of HTTP makes no request either.
    let text = refused("{\"time\":1,\"status\":\"started\",\"msg\":\"x\"}\n".repeat(3).as_bytes());
    assert!(text.contains("JSON with other keys"), "{text}");
}
