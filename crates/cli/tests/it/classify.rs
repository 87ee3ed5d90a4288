//! `plimsoll classify`, on logs of servers whose true costs are known, in each format that has durations.

use std::path::Path;

use plimsoll_classes::ClassTable;
use plimsoll_testkit::{
    DemandSpread, SyntheticLog, SyntheticRequest, TRUE_COSTS_S, TrueDiscipline, rand_index,
};
use serde_json::Value;

use crate::common::{plimsoll, plimsoll_with_input, shared, text};
use crate::json::assert_keys_documented;

/// Seconds between 1970 and the beginning of the logs: 23 November 2026, 21:00.
const BEGIN_S: u64 = 1_795_467_600;

/// In the order in which a server logs requests.
fn requests(discipline: TrueDiscipline) -> Vec<SyntheticRequest> {
    let spread = DemandSpread::Lognormal;
    let log = SyntheticLog { discipline, spread, load: 0.8, requests: 20_000, backends: 2, seed: 11 };
    let mut requests = log.run();
    requests.sort_by_key(|request| request.ends_ns);
    requests
}

fn ms(ns: u64) -> u64 {
    ns / 1_000_000
}

/// `23/Nov/2026:21:00:00 +0000` so many nanoseconds after the beginning.
fn stamp(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    assert!(s < 3 * 3600, "the log is too long for this day");
    format!("23/Nov/2026:{:02}:{:02}:{:02} +0000", 21 + s / 3600, s / 60 % 60, s % 60)
}

fn nginx_json(r: &SyntheticRequest) -> String {
    let (begin, end) = (ms(r.begins_ns), ms(r.ends_ns));
    format!(
        r#"{{"msec":"{}.{:03}","remote_addr":"192.0.2.7","request_method":"{}","request_uri":"{}","status":200,"body_bytes_sent":{},"request_time":{:.3},"upstream_addr":"10.0.0.{}:80","upstream_response_time":"{:.3}"}}"#,
        BEGIN_S + end / 1000,
        end % 1000,
        r.method,
        r.target,
        r.size_bytes,
        (end - begin) as f64 / 1e3,
        r.backend,
        (end - begin) as f64 / 1e3,
    )
}

fn combined(r: &SyntheticRequest, time_ns: u64, after: &str) -> String {
    let (method, target) = (r.method, &r.target);
    format!(
        r#"192.0.2.7 - - [{}] "{method} {target} HTTP/1.1" 200 {} "-" "curl/7.88.1" {after}"#,
        stamp(time_ns),
        r.size_bytes
    )
}

fn apache(r: &SyntheticRequest) -> String {
    combined(r, r.begins_ns, &((r.ends_ns - r.begins_ns) / 1000).to_string())
}

fn nginx_combined(r: &SyntheticRequest) -> String {
    let took_s = (ms(r.ends_ns) - ms(r.begins_ns)) as f64 / 1e3;
    combined(r, r.ends_ns, &format!("{took_s:.3} {took_s:.3} 10.0.0.{}:80", r.backend))
}

fn plimsoll_json(r: &SyntheticRequest) -> String {
    let took_s = (r.ends_ns - r.begins_ns) as f64 / 1e9;
    let s = r.ends_ns / 1_000_000_000;
    format!(
        r#"{{"time":"2026-11-23T{:02}:{:02}:{:02}Z","client":"127.0.0.1","method":"{}","target":"{}","version":"HTTP/1.1","status":200,"bytes":{},"policy":"wrr","backend":"b{}","reason":"load","mechanism":"proxy","attempts":1,"waited":false,"assign_s":0.000028,"first_byte_s":{took_s:.6},"transfer_s":0.000045,"total_s":{:.6},"referer":null,"user_agent":"curl/7.88.1"}}"#,
        21 + s / 3600,
        s / 60 % 60,
        s % 60,
        r.method,
        r.target,
        r.size_bytes,
        r.backend,
        took_s + 0.000073,
    )
}

fn haproxy(r: &SyntheticRequest) -> String {
    let begin = ms(r.begins_ns);
    let stamp = stamp(r.begins_ns);
    let took = ms(r.ends_ns) - begin;
    format!(
        r#"Nov 23 21:22:10 lb haproxy[829]: 192.0.2.7:56736 [{}.{:03}] http-in app/srv{} 0/0/0/{took}/{took} 200 {} - - ---- 1/1/0/0/0 0/0 "{} {} HTTP/1.1""#,
        stamp.trim_end_matches(" +0000"),
        begin % 1000,
        r.backend,
        r.size_bytes,
        r.method,
        r.target,
    )
}

fn csv(r: &SyntheticRequest) -> String {
    let s = |ns: u64| ns as f64 / 1e9;
    format!("{:.6},\"{}\",{},{:.6}", s(r.begins_ns), r.target, r.size_bytes, s(r.ends_ns - r.begins_ns))
}

fn log(dir: &Path, name: &str, header: &str, lines: impl Iterator<Item = String>) -> String {
    let path = dir.join(name);
    let mut content = header.to_owned();
    lines.for_each(|line| content += &format!("{line}\n"));
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs the command on a log and compares classes and costs with the truth.
fn check(
    name: &str,
    header: &str,
    requests: &[SyntheticRequest],
    line: impl Fn(&SyntheticRequest) -> String,
) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let path = log(dir.path(), name, header, requests.iter().map(line));
    let file = dir.path().join("classes.toml");
    let output = plimsoll(&["classify", &path, "--json", "-o", file.to_str().unwrap()]);
    assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let read = ClassTable::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(read.warnings, [""; 0], "{name}");
    let table = read.table;
    // A format without methods has one class less told apart.
    let found: Vec<usize> = requests
        .iter()
        .map(|r| usize::from(table.class_of(r.method.as_bytes(), r.target.as_bytes())))
        .collect();
    let truth: Vec<usize> = requests.iter().map(|r| r.class).collect();
    let rand = rand_index(&truth, &found);
    assert!(rand >= 0.9, "{name}: Rand index {rand}");
    for (class, cost_s) in TRUE_COSTS_S.iter().enumerate() {
        let of = |at: &usize| {
            truth[*at] == class && (name != "log.csv" || !requests[*at].target.contains("orders"))
        };
        let costs: Vec<f64> =
            (0..truth.len()).filter(of).map(|at| table.class(found[at] as u16).unwrap().cpu_s).collect();
        let error = costs.iter().sum::<f64>() / costs.len() as f64 / cost_s - 1.0;
        assert!(error.abs() <= 0.1, "{name}: class {class} is wrong by {error}");
    }
    json
}

#[test]
fn classes_are_learned_from_each_format_with_durations() {
    let shared = requests(TrueDiscipline::Shared(1));
    let json = check("nginx.json", "", &shared, nginx_json);
    assert_eq!(json["demand"]["method"], "reconstructed");
    assert_eq!(
        (json["demand"]["discipline"].as_str(), json["demand"]["workers"].as_u64()),
        (Some("shared"), Some(1))
    );
    assert_eq!(json["durations_of_request"], 0);
    assert_keys_documented(&json, "`plimsoll classify`");
    let json = check("haproxy.log", "", &requests(TrueDiscipline::InTurn(3)), haproxy);
    assert_eq!(
        (json["demand"]["discipline"].as_str(), json["demand"]["workers"].as_u64()),
        (Some("in_turn"), Some(3))
    );
    let single: Vec<SyntheticRequest> = shared.iter().filter(|r| r.backend == 0).cloned().collect();
    let json = check("log.csv", "time_s,target,size_bytes,service_s\n", &single, csv);
    assert_eq!(json["demand"]["method"], "reconstructed");
}

/// Logs with times in whole seconds.
#[test]
fn classes_are_learned_from_whole_seconds() {
    let shared = requests(TrueDiscipline::Shared(1));
    let json = check("nginx.log", "", &shared, nginx_combined);
    assert_eq!(json["demand"]["method"], "from_means");
    check("plimsoll.json", "", &shared, plimsoll_json);
    // Apache logs itself, and names no back-end.
    let single: Vec<SyntheticRequest> = shared.into_iter().filter(|r| r.backend == 0).collect();
    let json = check("apache.log", "", &single, apache);
    assert_eq!(
        (json["demand"]["discipline"].as_str(), json["demand"]["workers_given"].as_bool()),
        (Some("shared"), Some(false))
    );
    assert_eq!(json["durations_of_backend"], 0);
}

#[test]
fn the_report_says_what_was_learned_and_how() {
    let dir = tempfile::tempdir().unwrap();
    let requests = requests(TrueDiscipline::Shared(1));
    let path = log(dir.path(), "log", "", requests.iter().map(nginx_json));
    let output = plimsoll(&["classify", &path]);
    let report = text(&output.stderr);
    for part in [
        "Variance of the demand explained: 9",
        "Demand: reconstructed from begins and ends, as of 1 core per back-end, shared equally",
        "Merged or dropped: parameters ",
        "`session`",
        "Durations: 100",
    ] {
        assert!(report.contains(part), "no `{part}` in {report}");
    }
    let file = text(&output.stdout);
    assert!(file.starts_with("# Content classes"), "{file}");
    assert_eq!(ClassTable::read(&file).unwrap().table.classes().len(), 8);
    // The same input gives the same bytes, also from standard input.
    let again = plimsoll_with_input(&["classify", "-"], &std::fs::read(&path).unwrap());
    assert_eq!(text(&again.stdout), file);
    let few = plimsoll(&["classify", &path, "--most-classes", "2"]);
    assert_eq!(ClassTable::read(&text(&few.stdout)).unwrap().table.classes().len(), 2);
}

/// Runs the command, which is to fail with this exit code and a message that contains `part`.
fn refused(args: &[&str], code: i32, part: &str) {
    let output = plimsoll(&[&["classify"], args].concat());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(message.contains(part), "{args:?}: no `{part}` in {message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn logs_that_say_nothing_of_costs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let all = requests(TrueDiscipline::Shared(1));
    let lines = |from: fn(&SyntheticRequest) -> String, edit: fn(usize, String) -> String| {
        all.iter().take(200).map(from).enumerate().map(move |(at, line)| edit(at, line)).collect::<Vec<_>>()
    };
    let without = lines(apache, |_, line| line.rsplit_once(' ').unwrap().0.to_owned());
    let path = log(dir.path(), "without", "", without.into_iter());
    refused(&[&path], 1, "none of 200 requests has a duration; log them: nginx `$request_time`");
    for (name, wrong, reason) in [
        ("negative", "-0.500", "the duration is negative"),
        ("absurd", "1e9", "the duration is longer than a day"),
        ("nan", "NaN", "the duration is no number"),
    ] {
        let replace = |line: String| {
            let (head, _) = line.split_once("\"request_time\":").unwrap();
            format!("{head}\"request_time\":\"{wrong}\"}}")
        };
        let some = |share: usize| -> Vec<String> {
            let of = |(at, line): (usize, String)| if at % share == 0 { replace(line) } else { line };
            all.iter().take(200).map(nginx_json).enumerate().map(of).collect()
        };
        let path = log(dir.path(), name, "", some(2).into_iter());
        refused(&[&path], 1, reason);
        let path = log(dir.path(), name, "", some(50).into_iter());
        let output = plimsoll(&["classify", &path]);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains("4 lines could not be used") && said.contains(&format!("line 1: {reason}")),
            "{said}"
        );
    }
    let failed = lines(nginx_json, |_, line| line.replace("\"status\":200", "\"status\":500"));
    let path = log(dir.path(), "failed", "", failed.into_iter());
    refused(&[&path], 1, "no request with a path that was answered with a status from 200 to 299");
    refused(&[], 2, "<LOG>");
    refused(&["/nonexistent"], 1, "cannot open");
    refused(&[&path, "--after-size", "x"], 2, "known are");
    if let Some(real) = shared("apache_combined_2015.log.gz") {
        refused(&[&real], 1, "has no service times");
    }
}

#[test]
fn an_idle_server_is_measured_with_safe_methods_alone() {
    let origin = crate::measure::MeasuredOrigin::start();
    let dir = tempfile::tempdir().unwrap();
    let uris = dir.path().join("uris");
    let uris = uris.to_str().unwrap();
    std::fs::write(uris, "# pages\n/small\nGET /large?x=1\n\n").unwrap();
    let output =
        plimsoll(&["classify", "--live", origin.url(), "--uris", uris, "--requests", "10", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((json["requests"].as_u64(), json["uris"].as_u64()), (Some(20), Some(2)));
    assert_eq!(json["demand"]["method"], "measured");
    std::fs::write(uris, "/small\nPOST /order\n").unwrap();
    refused(&["--live", origin.url(), "--uris", uris], 2, "line 2: `POST` is not asked for");
    std::fs::write(uris, "small\n").unwrap();
    refused(&["--live", origin.url(), "--uris", uris], 2, "does not begin with `/`");
    refused(&["--live", origin.url(), origin.url(), "--uris", uris], 2, "one URL");
    refused(&["--live", &format!("{}/missing", origin.url())], 1, "answers 404");
    refused(&["--live", "https://127.0.0.1/"], 2, "only http can be measured");
}
