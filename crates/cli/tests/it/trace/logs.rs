//! What users are told of the reading of a log.

use super::{Scratch, fails, run, stats, stderr, stdout};

fn line(second: u64, target: &str) -> String {
    format!(
        "192.0.2.7 - - [01/Jul/1995:00:{:02}:{:02} +0000] \"GET {target} HTTP/1.0\" 200 10\n",
        second / 60,
        second % 60
    )
}

fn succeeds(args: &[&str]) -> (String, String) {
    let output = run(args);
    let messages = stderr(&output);
    assert!(output.status.success(), "{args:?}: {messages}");
    (String::from_utf8(output.stdout).unwrap(), messages)
}

#[test]
fn the_first_line_and_what_was_read_from_it_are_shown() {
    let scratch = Scratch::new();
    let log = scratch.file("access.log", line(1, "/a").repeat(3));
    let (_, messages) = succeeds(&["stats", &log, "--json"]);
    for part in [
        "is read as common-log. Line 1:",
        "\"GET /a HTTP/1.0\" 200 10",
        "client 192.0.2.7, method GET, target /a",
    ] {
        assert!(messages.contains(part), "{part:?} is not in {messages}");
    }
    let table = scratch.file("t.csv", "time_s,target,size_bytes\n5,/b,20\n");
    let (_, messages) = succeeds(&["convert", &table, "--to", "-", "--to-format", "csv"]);
    assert!(messages.contains("Its first record is\n  time 5 s, target /b, size 20 bytes"), "{messages}");
}

#[test]
fn unique_query_strings_lead_to_strip_query() {
    let scratch = Scratch::new();
    let log: String = (0..60).map(|second| line(second, &format!("/a?session={second}"))).collect();
    let log = scratch.file("access.log", log);
    let text = stdout(&["stats", &log]);
    assert!(text.contains("60 of 60 targets (100.0 % of the requests) differ only"), "{text}");
    assert!(text.contains("--strip-query"), "{text}");
    assert_eq!(stats(&log)["query_strings"]["targets_once"], 60);
    let (stripped, messages) = succeeds(&["stats", &log, "--strip-query"]);
    assert!(!stripped.contains("query") && !messages.contains("query"), "{stripped}{messages}");
}

#[test]
fn conversion_says_that_times_stay_as_they_are() {
    let scratch = Scratch::new();
    let log = scratch.file("access.log", [line(1, "/a"), line(1, "/b")].concat());
    let (csv, messages) = succeeds(&["convert", &log, "--to", "-", "--to-format", "time-id-size"]);
    assert_eq!(csv, "804556801 /a 10\n804556801 /b 10\n");
    assert!(messages.contains("All times are whole seconds and were written so"), "{messages}");
    assert!(!messages.contains("were spread"), "{messages}");
    // What a stamp is taken for matters to timed arrivals alone.
    assert!(!stdout(&["stats", &log]).contains("nginx"));
}

#[test]
fn fields_name_the_keys_of_a_log_of_ones_own() {
    let scratch = Scratch::new();
    let log =
        scratch.file("app.log", "{\"ts\":1.5,\"http\":{\"url\":\"/a\",\"code\":200},\"n\":7}\n".repeat(3));
    fails(
        &["stats", &log],
        1,
        &["JSON with other keys", "http.url", "--fields time=ts,target=http.url,size=KEY"],
    );
    let (json, messages) =
        succeeds(&["stats", &log, "--json", "--fields", "time=ts,target=http.url,size=n,status=http.code"]);
    assert!(json.contains("\"sent_bytes\":21"), "{json}");
    assert!(messages.contains("status 200, size 7 bytes"), "{messages}");
    fails(&["stats", &log, "--fields", "tme=ts"], 2, &["a log has no `tme`; known are time"]);
}

#[test]
fn a_named_format_that_the_content_contradicts_is_doubted() {
    let scratch = Scratch::new();
    let log = scratch.file("access.log", format!("www.example.org:80 {}", line(1, "/a")).repeat(3));
    let text = stdout(&["stats", &log, "--format", "common"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("its content looks like vhost-combined"), "{text}");
    assert!(stdout(&["stats", &log]).contains("Read as vhost-combined: 3 lines"));
}

#[test]
fn hints_come_with_json_too() {
    let scratch = Scratch::new();
    let caddy = |site: &str| {
        format!(
            "{{\"ts\":1.5,\"request\":{{\"uri\":\"/a\",\"host\":\"{site}\"}},\"size\":7,\"status\":200}}\n"
        )
    };
    let log = scratch.file("caddy.log", [caddy("a"), caddy("b")].concat());
    let (_, messages) = succeeds(&["stats", &log, "--json"]);
    for part in [
        "The first lines ask 2 sites, such as a and b,",
        "--fields host=FIELD",
        "method none (taken for GET)",
    ] {
        assert!(messages.contains(part), "{part:?} is not in {messages}");
    }
    let (_, messages) = succeeds(&["stats", &log, "--json", "--fields", "host=request.host,client=who"]);
    assert!(messages.contains("None of the first lines has what --fields names: who."), "{messages}");
    assert!(!messages.contains("sites"), "{messages}");
}
