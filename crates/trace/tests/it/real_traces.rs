//! The real traces, with figures found by independent means.
//!
//! The figures come from a short Python script that took every line apart with a regular expression
//! (access logs), `struct.unpack('>IIIIBBBB')` (World Cup) or `split` (the others), counted GET and
//! HEAD with status 200, 206 and 304, took the size of HEAD, 304 and `-` as 0, and as a document's
//! size the largest body with status 200, else the largest body. For one figure at a time:
//! `zcat nasa_1995_excerpt.log.gz | grep -cE '"(GET|HEAD) .*" (200|206|304) '` gives 6845.

use plimsoll_trace::{Format, Include, ReadOptions, RecordKind, Trace, TraceStats, formats};

use crate::helpers::{load_path, real_trace, stamped};

struct Expected {
    file: &'static str,
    format: Format,
    sha256: &'static str,
    lines: u64,
    requests: u64,
    targets: u64,
    clients: u64,
    sent_bytes: u64,
    documents_bytes: u64,
    out_of_order: u64,
    top: (&'static str, u64),
    median_bytes: f64,
    not_counted: &'static [(&'static str, u64)],
}

fn check(expected: &Expected) {
    let Some(path) = real_trace(expected.file) else {
        return;
    };
    let trace = load_path(&path, &ReadOptions::default()).unwrap();
    let report = &trace.report;
    assert_eq!(report.format, Some(expected.format));
    assert_eq!(report.sha256.as_deref(), Some(expected.sha256));
    assert_eq!(report.paths, [path.display().to_string()]);
    assert_eq!((report.lines, report.lines_rejected), (expected.lines, 0));
    assert_eq!(report.rejections, []);
    assert_eq!(report.out_of_order, expected.out_of_order);
    assert!(report.times_spread);
    let not_counted: Vec<_> =
        report.not_counted.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    assert_eq!(not_counted, expected.not_counted);
    let stats = TraceStats::of(&trace).unwrap();
    assert_eq!(stats.requests, expected.requests);
    assert_eq!(stats.targets, expected.targets);
    assert_eq!(stats.clients, expected.clients);
    assert_eq!(stats.sent_bytes, expected.sent_bytes);
    assert_eq!(stats.documents_bytes, expected.documents_bytes);
    assert_eq!(stats.top_target, expected.top.0);
    assert_eq!(stats.top_share, expected.top.1 as f64 / expected.requests as f64);
    assert_eq!(stats.request_median_bytes, expected.median_bytes);
    assert_eq!(stats.arrivals.requests.iter().sum::<u64>(), expected.requests);
    check_order(&trace);
}

/// Spread and stamped records are in order, and spreading moves none out of its second.
fn check_order(trace: &Trace) {
    let stamped = stamped(trace);
    let spread: Vec<_> = trace.open().unwrap().map(Result::unwrap).collect();
    assert_eq!(stamped.len() as u64, trace.len());
    assert!(stamped.is_sorted_by_key(|r| r.time_ns));
    assert!(spread.is_sorted_by_key(|r| r.time_ns));
    for (before, after) in stamped.iter().zip(&spread) {
        assert_eq!(before.time_ns, after.time_ns / 1_000_000_000 * 1_000_000_000);
        assert_eq!(before.target, after.target);
    }
}

#[test]
fn nasa() {
    check(&Expected {
        file: "nasa_1995_excerpt.log.gz",
        format: formats::log::COMMON,
        sha256: "4c45d31883e36949b1fc9af58f4b52b4dd28dc9c2e7b0612cf707f7c5352782f",
        lines: 7084,
        requests: 6845,
        targets: 772,
        clients: 850,
        sent_bytes: 126_107_453,
        documents_bytes: 39_468_543,
        out_of_order: 0,
        top: ("/images/NASA-logosmall.gif", 395),
        median_bytes: 3938.0,
        not_counted: &[("method POST", 2), ("status 302", 197), ("status 404", 40)],
    });
}

#[test]
fn apache() {
    check(&Expected {
        file: "apache_combined_2015.log.gz",
        format: formats::log::COMBINED,
        sha256: "7831ed61a959db2ae05c1bc7296deb01b108d03e2bef682e4fb4721d8a1468dd",
        lines: 10_000,
        requests: 9614,
        targets: 1389,
        clients: 1706,
        sent_bytes: 2_746_940_015,
        documents_bytes: 561_277_715,
        out_of_order: 4707,
        top: ("/favicon.ico", 807),
        median_bytes: 11_244.5,
        not_counted: &[
            ("method POST", 2),
            ("status 301", 164),
            ("status 403", 2),
            ("status 404", 213),
            ("status 416", 2),
            ("status 500", 3),
        ],
    });
}

#[test]
fn cran() {
    check(&Expected {
        file: "cran_mirror_2012.csv.gz",
        format: formats::csv::FORMAT,
        sha256: "038fa724256f37d170020787fdcf9d36c9acb04fa7e3957ff8c3415d75abedf0",
        lines: 80_431,
        requests: 80_431,
        targets: 17_334,
        clients: 1075,
        sent_bytes: 65_276_814_885,
        documents_bytes: 13_304_327_373,
        out_of_order: 0,
        top: ("/src/contrib/plyr_1.8.tar.gz", 624),
        median_bytes: 241_169.0,
        not_counted: &[],
    });
}

#[test]
fn cdn() {
    check(&Expected {
        file: "cdn_time_id_size.tr.gz",
        format: formats::time_id_size::FORMAT,
        sha256: "852f235b884edb54f73571383114cbc61d6e9aeb48adb8d88e984bb614b21177",
        lines: 66_987,
        requests: 66_987,
        targets: 36_815,
        clients: 0,
        sent_bytes: 485_457_552,
        documents_bytes: 280_431_244,
        out_of_order: 0,
        top: ("134", 1031),
        median_bytes: 2416.0,
        not_counted: &[],
    });
}

#[test]
fn world_cup() {
    check(&Expected {
        file: "worldcup98_test_log.gz",
        format: formats::worldcup::FORMAT,
        sha256: "a56c01ed787875774e7b4200d737ee7af11da55f791b8474102ffe82988cd978",
        lines: 1000,
        requests: 1000,
        targets: 410,
        clients: 140,
        sent_bytes: 5_410_216,
        documents_bytes: 1_626_894,
        out_of_order: 0,
        top: ("3208", 99),
        median_bytes: 934.0,
        not_counted: &[],
    });
}

#[test]
fn world_cup_totals_equal_the_published_ones() {
    let (Some(log), Some(check)) =
        (real_trace("worldcup98_test_log.gz"), real_trace("worldcup98_test_log.check"))
    else {
        return;
    };
    let trace = load_path(&log, &ReadOptions::default()).unwrap();
    let totals = trace.report.world_cup.unwrap();
    assert_eq!(totals.to_string(), std::fs::read_to_string(check).unwrap());
    assert_eq!((totals.requests(), totals.bytes()), (1000, 5_410_216));
}

#[test]
fn world_cup_types_become_classes() {
    let Some(log) = real_trace("worldcup98_test_log.gz") else {
        return;
    };
    let trace = load_path(&log, &ReadOptions::default()).unwrap();
    let records = stamped(&trace);
    let of_class = |class| records.iter().filter(|r| r.class == class).count();
    assert_eq!([0, 1, 4, 6, 10].map(of_class), [112, 863, 11, 2, 12]);
    for record in &records {
        assert_eq!(record.kind == RecordKind::Dynamic, record.class == 6);
    }
}

#[test]
fn everything_can_be_included() {
    let Some(log) = real_trace("apache_combined_2015.log.gz") else {
        return;
    };
    let options = ReadOptions { include: Include::All, ..ReadOptions::default() };
    let trace = load_path(&log, &options).unwrap();
    assert_eq!((trace.len(), trace.targets.len()), (10_000, 1498));
}

#[test]
fn memory_that_covers_most_requests() {
    let Some(log) = real_trace("cran_mirror_2012.csv.gz") else {
        return;
    };
    let trace = load_path(&log, &ReadOptions::default()).unwrap();
    let stats = TraceStats::of(&trace).unwrap();
    let bytes: Vec<u64> = stats.coverage.iter().map(|c| c.bytes).collect();
    assert_eq!(bytes, [11_513_745_925, 12_069_057_583, 12_859_611_784]);
    let json = serde_json::to_value(&stats).unwrap();
    assert_eq!(json["coverage"][1]["share"], 0.98);
    assert_eq!(json["requests"], 80_431);
}
