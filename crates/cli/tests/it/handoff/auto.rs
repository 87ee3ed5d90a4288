//! `mechanism = "auto"`: what is handed off, and what is proxied.

use super::bed::{Bed, Options};
use super::http::{Client, content};

const SMALL: usize = 1000;
const MIDDLE: usize = 8 << 10;
const LARGE: usize = 2 << 20;

fn bed(policy: &'static str) -> Bed {
    bed_with(Options { policy, is_quiet: true, ..Options::default() })
}

fn bed_with(options: Options) -> Bed {
    let options = Options { mechanism: "auto", ..options };
    let files = [("small", content(1, SMALL)), ("middle", content(2, MIDDLE)), ("large", content(3, LARGE))];
    Bed::new(options, &files)
}

/// Asks for the files on one connection and compares what comes.
fn ask(bed: &Bed, files: &[&str]) {
    bed.client(|| {
        let mut client = Client::connect(bed.vip()).unwrap();
        for &name in files {
            let expected = match name {
                "small" => content(1, SMALL),
                "middle" => content(2, MIDDLE),
                _ => content(3, LARGE),
            };
            assert!(client.get(&format!("/{name}")).unwrap().body == expected, "{name}");
        }
    });
}

/// For each request that the front-end has logged, whether a back-end had its connection.
fn handed_off(bed: &Bed, lines: usize) -> Vec<bool> {
    bed.access_log(lines).iter().map(|line| line["mechanism"] == "handoff").collect()
}

#[test]
fn new_connections_are_handed_off_with_large_responses_only() {
    let bed = bed("uri_hash");
    for (number, file) in ["small", "small", "middle", "middle", "large", "large"].into_iter().enumerate() {
        ask(&bed, &[file]);
        // Each worker writes its lines when it has time.
        bed.access_log(number + 1);
    }
    let expected = [false, false, false, false, false, true];
    assert_eq!(handed_off(&bed, 6), expected, "of the first large one the size was not known");
    bed.assert_quiet();
}

#[test]
fn a_connection_that_stays_is_handed_off_while_that_pays() {
    let bed = bed("uri_hash");
    ask(&bed, &["small"; 10]);
    let small = handed_off(&bed, 10);
    assert!(!small[0] && small[2..].iter().all(|&by_backend| by_backend), "{small:?}");
    ask(&bed, &["middle"; 10]);
    assert!(handed_off(&bed, 20)[10..].iter().all(|&by_backend| !by_backend), "no packet is spared");
    bed.assert_quiet();
}

#[test]
fn a_connection_comes_back_when_its_responses_change() {
    coming_back(Options { is_quiet: true, ..Options::default() });
}

pub(super) fn coming_back(options: Options) {
    let bed = bed_with(Options { policy: "uri_hash", ..options });
    // Another document of middle size that the same back-end has.
    ask(&bed, &["small", "middle"]);
    let log = bed.access_log(2);
    let alike = log[0]["backend"] == log[1]["backend"];
    let files = [&["small"; 10][..], &["middle"; 20]].concat();
    ask(&bed, &files);
    let by_backend = &handed_off(&bed, 32)[2..];
    assert!(by_backend[2..10].iter().all(|&by_backend| by_backend), "{by_backend:?}");
    assert!(by_backend[25..].iter().all(|&by_backend| !by_backend), "{by_backend:?}");
    assert!(!alike || by_backend[10], "one request does not turn it round: {by_backend:?}");
    bed.assert_quiet();
}

#[test]
fn a_connection_whose_requests_go_here_and_there_stays_at_the_front_end() {
    let bed = bed("round_robin");
    ask(&bed, &["small"; 20]);
    assert_eq!(handed_off(&bed, 20), [false; 20]);
    bed.assert_quiet();
}
