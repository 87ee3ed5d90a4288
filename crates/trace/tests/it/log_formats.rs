//! Logs of ten lines as servers write them, and what is read from them. `tests/logs/README.md` says where they come from.

use std::path::Path;

use plimsoll_trace::formats::{FORMATS, json_logs};
use plimsoll_trace::{Format, ReadOptions, Trace, TraceInput, load};

use crate::helpers::{listed, load_bytes, load_text, stamped};

/// What is in a log: its format, and the first and fourth request that count with time in nanoseconds, target, size and
/// service time.
struct Expected {
    log: &'static str,
    format: &'static str,
    first: (u64, &'static str, u64, u64),
    fourth: (u64, &'static str, u64, u64),
}

const LOGS: &[Expected] = &[
    Expected {
        log: "vhost-combined",
        format: "vhost-combined",
        first: (1_795_468_930_000_000_000, "www.example.org/", 1_949, 0),
        fourth: (1_795_468_930_000_000_000, "static.example.org/img/a.png", 48_232, 0),
    },
    Expected {
        log: "haproxy",
        format: "haproxy",
        first: (1_795_468_931_519_000_000, "/", 1_921, 0),
        fourth: (1_795_468_931_941_000_000, "/img/a.png", 48_205, 0),
    },
    Expected {
        log: "squid",
        format: "squid",
        first: (1_795_469_027_038_000_000, "127.0.0.1:18080/", 2_087, 3_000_000),
        fourth: (1_795_469_027_493_000_000, "127.0.0.1:18080/img/a.png", 48_377, 1_000_000),
    },
    Expected {
        log: "envoy",
        format: "envoy",
        first: (1_795_468_934_483_000_000, "/", 1_719, 0),
        fourth: (1_795_468_934_909_000_000, "/img/a.png", 48_000, 0),
    },
    Expected {
        log: "envoy-json",
        format: "envoy-json",
        first: (1_795_468_934_483_000_000, "/", 1_719, 0),
        fourth: (1_795_468_934_909_000_000, "/img/a.png", 48_000, 0),
    },
    Expected {
        log: "nginx-json",
        format: "nginx-json",
        first: (1_795_468_937_360_000_000, "/", 1_719, 0),
        fourth: (1_795_468_937_784_000_000, "/img/a.png", 48_000, 0),
    },
    Expected {
        log: "caddy",
        format: "caddy",
        first: (1_795_468_932_979_670_996, "/", 1_719, 2_664_004),
        fourth: (1_795_468_933_470_701_436, "/img/a.png", 48_000, 190_964),
    },
    Expected {
        log: "istio",
        format: "istio",
        first: (1_795_468_930_342_000_000, "/", 1719, 2_000_000),
        fourth: (1_795_468_933_342_000_000, "/img/a.png", 48_000, 5_000_000),
    },
    Expected {
        log: "aws-alb",
        format: "aws-alb",
        first: (1_795_468_930_140_000_000, "/", 1970, 40_000_000),
        fourth: (1_795_468_933_137_000_000, "/img/a.png", 48_251, 43_000_000),
    },
    Expected {
        log: "aws-s3",
        format: "aws-s3",
        first: (1_549_411_238_000_000_000, "amzn-s3-demo-bucket1/", 1719, 10_000_000),
        fourth: (1_549_411_241_000_000_000, "amzn-s3-demo-bucket1/img/a.png", 48_000, 13_000_000),
    },
    Expected {
        log: "cloudfront",
        format: "w3c",
        first: (1_575_493_351_000_000_000, "/", 2111, 10_000_000),
        fourth: (1_575_493_354_000_000_000, "/img/a.png", 48_392, 13_000_000),
    },
    Expected {
        log: "iis",
        format: "w3c",
        first: (1_795_468_930_000_000_000, "/", 1959, 15_000_000),
        fourth: (1_795_468_933_000_000_000, "/img/a.png", 48_240, 18_000_000),
    },
    Expected {
        log: "cloudflare",
        format: "cloudflare",
        first: (1_795_468_930_000_000_000, "/", 2129, 40_000_000),
        fourth: (1_795_468_933_000_000_000, "/img/a.png", 48_410, 43_000_000),
    },
    Expected {
        log: "traefik",
        format: "traefik",
        first: (1_795_468_930_342_123_456, "/", 1719, 3_300_000),
        fourth: (1_795_468_933_342_123_456, "/img/a.png", 48_000, 3_300_003),
    },
    Expected {
        log: "plimsoll-json",
        format: "plimsoll-json",
        first: (1_795_470_728_000_000_000, "/", 1_719, 563_000),
        fourth: (1_795_470_728_000_000_000, "/img/a.png", 48_000, 366_000),
    },
];

fn read(log: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs").join(format!("{log}.log"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn request(trace: &Trace, number: usize) -> (u64, String, u64, u64) {
    let (time_ns, target, size_bytes) = listed(trace)[number].clone();
    (time_ns, target, size_bytes, stamped(trace)[number].service_ns)
}

#[test]
fn ten_lines_of_each_server_are_recognised_and_read() {
    for Expected { log, format, first, fourth } in LOGS {
        let trace =
            load_bytes(&read(log), &ReadOptions::default()).unwrap_or_else(|error| panic!("{log}: {error}"));
        let report = &trace.report;
        assert_eq!(report.format.map(Format::name), Some(*format), "{log}");
        assert_eq!((report.lines, report.lines_rejected), (10, 0), "{log}: {:?}", report.rejections);
        assert_eq!(
            (trace.len(), trace.targets.len()),
            (8, 5 + u64::from(*log == "vhost-combined") as usize),
            "{log}"
        );
        assert_eq!(report.not_counted.get("status 404"), Some(&1), "{log}");
        assert_eq!(report.clients, u64::from(*log != "envoy" && *log != "istio"), "{log}");
        for (number, expected) in [(0, first), (3, fourth)] {
            let found = request(&trace, number);
            assert_eq!(found, (expected.0, expected.1.to_owned(), expected.2, expected.3), "{log}");
        }
        // HEAD has no body, a range is no whole document.
        assert!(
            listed(&trace).iter().any(|(_, target, size)| target.ends_with("/style.css") && *size == 0),
            "{log}"
        );
        let shown = report.first_line.as_ref().unwrap().to_string();
        assert!(shown.contains(&format!("target {}", first.1)) && shown.contains("status 200"), "{shown}");
    }
}

#[test]
fn a_format_by_name_reads_what_detection_reads() {
    for Expected { log, format, .. } in LOGS {
        let detected = load_bytes(&read(log), &ReadOptions::default()).unwrap();
        let options = ReadOptions { format: Some(format.parse().unwrap()), ..ReadOptions::default() };
        assert!(stamped(&load_bytes(&read(log), &options).unwrap()) == stamped(&detected), "{log}");
    }
}

#[test]
fn every_sample_is_of_its_format() {
    for spec in FORMATS.iter().filter(|spec| !spec.sample.is_empty() && spec.format != json_logs::JSON.format)
    {
        let trace = load_text(&format!("{}\n", spec.sample))
            .unwrap_or_else(|error| panic!("{}: {error}", spec.format));
        assert_eq!(trace.report.format, Some(spec.format));
        assert_eq!(trace.len(), 1);
    }
    let fields = json_logs::JSON.remark.split('`').find_map(|word| word.strip_prefix("--fields ")).unwrap();
    let options = ReadOptions { fields: Some(fields.parse().unwrap()), ..ReadOptions::default() };
    let trace = load_bytes(json_logs::JSON.sample.as_bytes(), &options).unwrap();
    assert_eq!(listed(&trace), [(1_795_468_890_499_000_000, "/index.html".to_owned(), 1719)]);
    assert_eq!(trace.report.format, Some(json_logs::JSON.format));
}

#[test]
fn fields_add_to_a_known_format() {
    let options =
        ReadOptions { fields: Some("host=request.host".parse().unwrap()), ..ReadOptions::default() };
    let trace = load_bytes(&read("caddy"), &options).unwrap();
    assert_eq!(trace.report.format.map(Format::name), Some("caddy"));
    assert!(listed(&trace).iter().all(|(_, target, _)| !target.starts_with('/')), "{:?}", listed(&trace));
    let refused = load_bytes(&read("haproxy"), &options).unwrap_err().to_string();
    assert!(refused.contains("but this is read as haproxy; leave it out"), "{refused}");
}

#[test]
fn a_wrong_name_is_doubted() {
    let options = ReadOptions { format: Some("combined".parse().unwrap()), ..ReadOptions::default() };
    let trace = load_bytes(&read("vhost-combined"), &options).unwrap();
    assert_eq!(trace.report.resembles.map(Format::name), Some("vhost-combined"));
    // The block shows the misreading: the site is missing.
    assert!(trace.report.first_line.unwrap().to_string().contains("client 127.0.0.1, method GET, target /,"));
    assert_eq!(load_bytes(&read("squid"), &ReadOptions::default()).unwrap().report.resembles, None);
}

#[test]
fn logs_of_unlike_formats_do_not_mix() {
    let file = |log: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs").join(format!("{log}.log"));
        TraceInput::File(path)
    };
    let error = load(&[file("envoy"), file("squid")], &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("squid") && error.contains("envoy"), "{error}");
    assert_eq!(load(&[file("cloudfront"), file("iis")], &ReadOptions::default()).unwrap().report.lines, 20);
}

#[test]
fn a_table_of_counts_is_refused_unless_it_is_named() {
    let table: String =
        (0..30).map(|i| format!("{} {} {}\n", i * 60, 800 + i * 37 % 91, 40_000 + i * 991 % 777)).collect();
    let error = load_text(&table).unwrap_err().to_string();
    for part in ["table of counts", "intervals of 60 s", "--format time-id-size"] {
        assert!(error.contains(part), "{error}");
    }
    let options = ReadOptions { format: Some("time-id-size".parse().unwrap()), ..ReadOptions::default() };
    assert_eq!(load_bytes(table.as_bytes(), &options).unwrap().len(), 30);
}

#[test]
fn a_log_with_sites_may_have_clients_that_ask_for_an_address() {
    let line = |site: &str, second: u64| {
        format!("{site} 192.0.2.7 - - [01/Jul/1995:00:00:0{second} -0400] \"GET / HTTP/1.0\" 200 6245\n")
    };
    let trace =
        load_text(&[line("www.example.org", 1), line("10.0.0.1", 2), line("a.org", 3)].concat()).unwrap();
    assert_eq!(trace.report.format.map(Format::name), Some("vhost-combined"));
    assert_eq!((trace.report.lines_rejected, trace.report.clients), (0, 1));
    let targets: Vec<String> = listed(&trace).into_iter().map(|request| request.1).collect();
    assert_eq!(targets, ["www.example.org/", "10.0.0.1/", "a.org/"]);
    // Two addresses in each line are client and proxy.
    let trace = load_text(&[line("10.0.0.1", 1), line("10.0.0.2", 2)].concat()).unwrap();
    assert_eq!(trace.report.format.map(Format::name), Some("common-log"));
}

#[test]
fn half_of_the_lines_must_make_sense() {
    let line = "h - - [01/Jul/1995:00:00:01 -0400] \"GET / HTTP/1.0\" 200 6245\n";
    let text = format!("{}{}", "something else\n".repeat(2), line);
    let error = load_text(&text).unwrap_err().to_string();
    assert!(error.contains("cannot be told") && error.contains("something else"), "{error}");
}
