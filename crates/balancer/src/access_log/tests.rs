use std::time::{Duration, Instant};

use plimsoll_config::{AccessLogFormat, ContentCoding};
use plimsoll_observe::line::Times;
use plimsoll_policy::BackendId;
use serde_json::Value;

use super::*;
use crate::backend::Backend;
use crate::http::request::{RequestContext, RequestHead, rewrite};
use plimsoll_observe::Reason;

fn head(fields: &[u8]) -> (RequestHead, Vec<u8>) {
    let mut bytes = b"GET /a?b=1 HTTP/1.1\r\nHost: h\r\n".to_vec();
    bytes.extend_from_slice(fields);
    bytes.extend_from_slice(b"\r\n");
    let mut out = Vec::new();
    let context = RequestContext { fields: 100, ..RequestContext::plain() };
    let head = rewrite(&bytes, &context, &mut out).unwrap();
    (head, out)
}

fn backend() -> Backend {
    Backend::new(BackendId(0), "b-1".into(), Ok(([127, 0, 0, 1], 1).into()), "b".into(), 4, 1)
}

/// A request that took 1 + 20 + 300 ms.
fn write(format: AccessLogFormat, fields: &[u8]) -> Vec<u8> {
    let (head, head_bytes) = head(fields);
    let backend = backend();
    let received = Instant::now();
    let times = Times {
        received,
        assigned: Some(received + Duration::from_millis(1)),
        first_byte: Some(received + Duration::from_millis(21)),
    };
    let record = RequestRecord {
        head: Some(&head),
        head_bytes: &head_bytes,
        content_bytes: 1234,
        backend: Some(&backend),
        reason: Some(Reason::Locality),
        handed_off: true,
        attempts: 1,
        ..RequestRecord::refused("192.0.2.1", 200, times)
    };
    let mut out = Vec::new();
    let end = Moment { time: b"TIME", at: received + Duration::from_millis(321) };
    line(format, &record, LineContext { policy: "lard_r", classes: None, pool: None }, end, &mut out);
    out
}

fn parsed(fields: &[u8]) -> Value {
    serde_json::from_slice(&write(AccessLogFormat::Json, fields)).unwrap()
}

#[test]
fn combined_with_escapes() {
    let text = write(
        AccessLogFormat::Combined,
        b"User-Agent: a \"q\" \\ \t\xff\xc3\xa4 z\r\nReferer: http://r/\r\n",
    );
    let expected =
        r#"192.0.2.1 - - [TIME] "GET /a?b=1 HTTP/1.1" 200 1234 "http://r/" "a \"q\" \\ \x09\xff\xc3\xa4 z""#;
    assert_eq!(String::from_utf8(text).unwrap(), format!("{expected}\n"));
}

#[test]
fn json_with_the_keys_of_every_line() {
    let text = String::from_utf8(write(AccessLogFormat::Json, b"User-Agent: u\r\n")).unwrap();
    let expected = concat!(
        r#"{"time":"TIME","client":"192.0.2.1","method":"GET","target":"/a?b=1","version":"HTTP/1.1","#,
        r#""status":200,"bytes":1234,"policy":"lard_r","backend":"b-1","reason":"locality","refused":null,"mechanism":"handoff","attempts":1,"#,
        r#""waited":false,"assign_s":0.001000,"first_byte_s":0.020000,"transfer_s":0.300000,"#,
        r#""total_s":0.321000,"referer":null,"user_agent":"u"}"#,
        "\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn what_only_some_answers_have_stands_at_the_end() {
    let times = Times { received: Instant::now(), assigned: None, first_byte: None };
    let refused = RequestRecord::refused("::1", 200, times);
    let record = RequestRecord { coded: Some((ContentCoding::Gzip, 9)), hit: Some(false), ..refused };
    let mut out = Vec::new();
    let context = LineContext { policy: "lard", classes: None, pool: None };
    line(AccessLogFormat::Json, &record, context, Moment { time: b"T", at: times.received }, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with(",\"coding\":\"gzip\",\"original_bytes\":9,\"hit\":false}\n"), "{text}");
}

#[test]
fn pool_and_route_where_there_are_routes() {
    let (head, head_bytes) = head(b"");
    let times = Times { received: Instant::now(), assigned: None, first_byte: None };
    let refused = RequestRecord::refused("::1", 400, times);
    let taken = RequestRecord { head: Some(&head), head_bytes: &head_bytes, route: Some("r"), ..refused };
    let of = |record: &RequestRecord<'_>, pool| {
        let mut out = Vec::new();
        let context = LineContext { policy: "lard", classes: None, pool };
        line(AccessLogFormat::Json, record, context, Moment { time: b"T", at: times.received }, &mut out);
        let value: Value = serde_json::from_slice(&out).unwrap();
        (value.get("pool").cloned(), value.get("route").cloned())
    };
    assert_eq!(of(&taken, None), (None, None));
    assert_eq!(of(&taken, Some("api")), (Some("api".into()), Some("r".into())));
    let refused = RequestRecord::refused("::1", 400, times);
    assert_eq!(of(&refused, Some("default")), (Some(Value::Null), Some(Value::Null)));
}

#[test]
fn json_escapes() {
    let agent = |bytes: &[u8]| {
        let value = parsed(&[b"User-Agent: ", bytes, b"\r\n"].concat());
        value["user_agent"].as_str().unwrap().to_owned()
    };
    assert_eq!(agent(br#"a "q" \ z"#), r#"a "q" \ z"#);
    assert_eq!(agent(b"a\tb"), "a\tb");
    assert_eq!(agent("\u{e4}\u{20ac}".as_bytes()), "\u{e4}\u{20ac}");
    assert_eq!(agent(b"a\xff\xfeb\xc3"), "a\u{fffd}\u{fffd}b\u{fffd}");
}

#[test]
fn a_request_that_was_not_understood() {
    let received = Instant::now();
    let record = RequestRecord::refused("::1", 400, Times { received, assigned: None, first_byte: None });
    let of = |format| {
        let mut out = Vec::new();
        let context = LineContext { policy: "lard", classes: None, pool: None };
        line(format, &record, context, Moment { time: b"T", at: received }, &mut out);
        out
    };
    assert_eq!(of(AccessLogFormat::Combined), b"::1 - - [T] \"-\" 400 0 \"-\" \"-\"\n");
    let value: Value = serde_json::from_slice(&of(AccessLogFormat::Json)).unwrap();
    assert_eq!(
        (&value["method"], &value["backend"], &value["assign_s"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(value["total_s"], 0.0);
}
