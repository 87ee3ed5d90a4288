//! Classes of requests live: told by URI and by the name of the GraphQL operation, learned costs, reload, log and replay, and the same log
//! and class file in the simulator.

use hyper::http::{HeaderName, HeaderValue};
use plimsoll_testbed::load::{OpenLoop, Req, open_loop};
use serde_json::Value;

use super::processes::{FrontEnd, Origin, assert_replays, private_directory, run};
use crate::common::{plimsoll, text};

const CLASSES: &str = "\
[[class]]\nname = \"item\"\ncpu_s = 0.001\n\
[[class]]\nname = \"report\"\ncpu_s = 0.05\n\
[[pattern]]\nclass = \"item\"\npath = \"/item/*\"\n\
[[pattern]]\nclass = \"report\"\npath = \"/graphql\"\nparameters = { operationName = \"Report\" }\n";

const OPERATION: HeaderName = HeaderName::from_static("x-apollo-operation-name");

/// Every tenth request is a report, whose operation stands now in the query, now in a field; every tenth has no class.
fn request(number: u64) -> Req {
    let report = HeaderValue::from_static("Report");
    match number % 20 {
        3 => Req::get("/graphql?operationName=Report&size=10"),
        13 => Req::get("/graphql?size=10").header(OPERATION, report),
        7 | 17 => Req::get("/other?size=10"),
        _ => Req::get(format!("/item/{number}?size=10")),
    }
}

fn ask(front_end: &FrontEnd) {
    let load = OpenLoop {
        rate_rps: 400.0,
        seconds: 1.0,
        connections: 16,
        ..OpenLoop::new(front_end.address, request)
    };
    let summary = run(open_loop(load));
    assert_eq!((summary.requests, summary.succeeded), (400, 400), "{:?}", summary.failures);
}

/// By class, how many requests have told its cost.
fn told(front_end: &FrontEnd) -> Vec<(String, u64)> {
    let tables = front_end.get("/policy/tables");
    let table = tables["tables"]
        .as_array()
        .and_then(|tables| tables.iter().find(|table| table["name"] == "class_costs"));
    let rows = table.and_then(|table| table["rows"].as_array()).unwrap_or_else(|| panic!("{tables}"));
    rows.iter().map(|row| (row[0].as_str().unwrap().to_owned(), row[2].as_f64().unwrap() as u64)).collect()
}

fn of<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, u64)> {
    rows.map(|(class, requests)| (class.to_owned(), requests)).to_vec()
}

#[test]
fn requests_have_classes_live_in_the_logs_and_in_the_simulator() {
    let directory = private_directory();
    let file = directory.path().join("classes.toml");
    std::fs::write(&file, CLASSES).unwrap();
    let path = file.display().to_string();
    let origins: Vec<Origin> = (0..3).map(|i| Origin::start(&format!("b{i}"), &[])).collect();
    let addresses: Vec<_> = origins.iter().map(|origin| origin.address).collect();
    let more = format!(
        "[policy]\nname = \"csld\"\n[classes]\nfile = \"{path}\"\n[decision_log]\ndirectory = \"log\"\n\
         [access_log]\nfile = \"access.log\"\nformat = \"json\"\n"
    );
    let mut front_end = FrontEnd::start(&addresses, &more);
    ask(&front_end);
    assert_eq!(told(&front_end), of([("item", 320), ("report", 40)]));

    // Another file begins anew, under other numbers.
    std::fs::write(&file, format!("[[class]]\nname = \"unused\"\ncpu_s = 1.0\n{CLASSES}")).unwrap();
    front_end.process.signal("-HUP");
    front_end.process.wait_for(" again", 0);
    ask(&front_end);
    assert_eq!(told(&front_end), of([("unused", 0), ("item", 320), ("report", 40)]));
    // A bad one changes nothing.
    std::fs::write(&file, "[[class]]\nname = 7\n").unwrap();
    front_end.process.signal("-HUP");
    let said = front_end.process.wait_for("classes.toml", 1);
    assert!(said.contains("class[0].cpu_s: is missing"), "{said}");
    ask(&front_end);
    std::fs::write(&file, CLASSES).unwrap();
    front_end.stop();
    assert_replays(&front_end.path("log"));

    let log = std::fs::read_to_string(front_end.path("access.log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines_of = |class: &str| lines.iter().filter(|line| line["class"] == class).count();
    let without = lines.iter().filter(|line| line["class"].is_null()).count();
    assert_eq!((lines_of("item"), lines_of("report"), without, lines.len()), (960, 120, 120, 1200));

    // Service times are those of the classes: 48 reports of 50 ms, and others of 1 ms, on one back-end of one worker.
    let log = front_end.path("access.log").display().to_string();
    let simulated = plimsoll(&[
        "simulate",
        &log,
        "--include-all",
        "--classes",
        &path,
        "-p",
        "csld",
        "-b",
        "1",
        "--model",
        "fifo",
        "--json",
        "--arrivals",
        "poisson:0.01",
        "--admission",
        "none",
    ]);
    assert!(simulated.status.success(), "{}", text(&simulated.stderr));
    assert!(text(&simulated.stderr).contains("180 of 1,200 requests"), "{}", text(&simulated.stderr));
    let result: Value = serde_json::from_str(text(&simulated.stdout).trim()).unwrap();
    let tables = result["policy_tables"].as_array().unwrap();
    let costs = tables.iter().find(|table| table["name"] == "class_costs").unwrap();
    let cost_s = |class: usize| costs["rows"][class][1].as_f64().unwrap();
    assert!((cost_s(0) - 0.001).abs() < 1e-4 && (cost_s(1) - 0.05).abs() < 1e-3, "{costs}");
}
