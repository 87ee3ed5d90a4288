//! Answers come whole, whoever gives them.

use std::net::SocketAddr;

use plimsoll_testkit::eventually;

use super::bed::{Bed, Options};
use super::http::{Client, content};

/// Names, with the length in bytes, and contents of files.
fn files(lengths: &[usize]) -> Vec<(String, Vec<u8>)> {
    lengths.iter().map(|&n| (format!("f{n}"), content(n as u64, n))).collect()
}

fn named(files: &[(String, Vec<u8>)]) -> Vec<(&str, Vec<u8>)> {
    files.iter().map(|(name, body)| (name.as_str(), body.clone())).collect()
}

#[test]
fn a_connection_goes_from_back_end_to_back_end() {
    let files = files(&[1, 100, 8192, 100_000, 1 << 20]);
    let bed = Bed::new(Options::default(), &named(&files));
    for vip in [bed.vip(), bed.vip_v6()] {
        bed.client(|| {
            let mut client = Client::connect(vip).unwrap();
            let mut seen = Vec::new();
            for (name, body) in files.iter().cycle().take(20) {
                let answer = client.get(&format!("/{name}")).unwrap();
                assert_eq!((answer.status, answer.body.len()), (200, body.len()));
                assert!(answer.body == *body, "{name}");
                seen.push(answer.backend());
            }
            assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "round robin: {seen:?}");
        });
    }
    eventually("answers of back-ends", || {
        bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}") >= Some(40.0)
    });
    assert_eq!(bed.metric("plimsoll_handoffs_on_total"), Some(38.0));
    bed.assert_quiet();
    let log = bed.access_log(40);
    assert!(log.iter().all(|line| line["mechanism"] == "handoff" && line["status"] == 200), "{log:#?}");
    bed.stop();
}

#[test]
fn many_clients_at_once() {
    let files = files(&[1, 700, 1448, 5000, 65_536, 300_000]);
    let bed = Bed::new(Options { backends: 3, ..Options::default() }, &named(&files));
    let vip: SocketAddr = bed.vip();
    bed.client(|| {
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let files = &files;
                scope.spawn(move || {
                    for round in 0..25 {
                        let mut client = Client::connect(vip).unwrap();
                        for step in 0..12 {
                            let (name, body) = &files[(worker + round + step * 5) % files.len()];
                            let answer = client.get(&format!("/{name}")).unwrap();
                            assert!(answer.body == *body, "{name}: {}", answer.head);
                        }
                    }
                });
            }
        });
    });
    bed.assert_quiet();
    bed.access_log(8 * 25 * 12);
    bed.stop();
}

#[test]
fn a_connection_that_is_placed_as_a_whole() {
    let files = files(&[1, 8192, 100_000]);
    let handoff = "placement = \"connection\"".to_owned();
    let bed = Bed::new(Options { handoff, ..Options::default() }, &named(&files));
    let vip = bed.vip();
    bed.client(|| {
        for _ in 0..4 {
            let mut client = Client::connect(vip).unwrap();
            let mut seen = Vec::new();
            for (name, body) in files.iter().cycle().take(10) {
                let answer = client.get(&format!("/{name}")).unwrap();
                assert!(answer.body == *body, "{name}");
                seen.push(answer.backend());
            }
            assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
        }
    });
    bed.assert_quiet();
    assert_eq!(bed.metric("plimsoll_handoffs_on_total"), Some(0.0));
    assert_eq!(bed.metric("plimsoll_requests_stayed_total"), Some(36.0));
    let log = bed.access_log(40);
    assert_eq!(log.iter().filter(|line| line["reason"] == "stays").count(), 36);
    bed.stop();
}

#[test]
fn bodies_of_a_hundred_megabytes() {
    let files = vec![("large".to_owned(), content(3, 100 << 20))];
    let bed = Bed::new(Options::default(), &named(&files));
    let vip = bed.vip();
    bed.client(|| {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut client = Client::connect(vip).unwrap();
                    for _ in 0..2 {
                        assert!(client.get("/large").unwrap().body == files[0].1);
                    }
                });
            }
        });
    });
    bed.assert_quiet();
    bed.stop();
}

/// The front-end has seen nothing of the answers: the agents tell.
#[test]
fn the_access_log_has_bytes_and_times_of_answers() {
    /// The least time that the emulated disk takes for a file.
    const DISK_S: f64 = 0.028;
    let files = files(&[5000, 100_000, 200_000]);
    let agent = ["--disk-delay", "lard98"].map(str::to_owned).to_vec();
    let bed = Bed::new(Options { agent, is_quiet: true, ..Options::default() }, &named(&files));
    let vip = bed.vip();
    bed.client(|| {
        let mut client = Client::connect(vip).unwrap();
        for (name, body) in &files {
            assert!(client.get(&format!("/{name}")).unwrap().body == *body, "{name}");
        }
    });
    bed.assert_quiet();
    let log = bed.access_log(files.len());
    for (line, (name, body)) in log.iter().zip(&files) {
        let time_s = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
        assert_eq!((&line["target"], &line["mechanism"]), (&format!("/{name}").into(), &"handoff".into()));
        assert_eq!(line["bytes"], body.len(), "{line}");
        assert!(time_s("first_byte_s") >= DISK_S, "no disk is as fast: {line}");
        assert!(time_s("total_s") >= time_s("first_byte_s") + time_s("transfer_s"), "{line}");
        assert!(line["backend"].is_string() && line["status"] == 200, "{line}");
    }
    bed.stop();
}
