//! A second front-end takes the virtual address over, which the real keepalived moves: no connection that a back-end has is lost.

mod downloads;
mod pair;

use std::time::{Duration, Instant};

use plimsoll_testkit::{Why, eventually, pace};

use super::http::{Client, content};
use downloads::{Download, Ends, finish, read_for};
use pair::{MACHINES, Pair};

const LARGE: usize = 300_000;
const SMALL: usize = 20_000;
/// Older connections survive.
const AGE: Duration = Duration::from_millis(1100);

fn large() -> Vec<u8> {
    content(7, LARGE)
}

fn small() -> Vec<u8> {
    content(8, SMALL)
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![("large", large()), ("small", small())]
}

/// Downloads under way, all older than [`AGE`].
fn under_way(pair: &Pair, count: usize) -> Vec<Download> {
    let vip = pair.vip();
    let begin = || (0..count).map(|_| Download::begin(vip, "/large").unwrap()).collect();
    let mut downloads: Vec<Download> = pair.client(begin);
    read_for(&mut downloads, AGE, &large());
    assert!(!downloads.iter().any(Download::is_over));
    downloads
}

/// All of them end well.
fn assert_whole(downloads: &mut [Download], what: &str) {
    let (ends, longest) = finish(downloads, &large());
    eprintln!("{what}: {} of {} whole, the longest silence {longest:?}", ends.whole, downloads.len());
    assert_eq!(ends, Ends { whole: downloads.len(), failed: Vec::new() });
}

/// A request on a new connection is answered.
fn assert_serves(pair: &Pair) {
    let vip = pair.vip();
    let answer = pair.client(|| Client::connect(vip).unwrap().get("/small").unwrap());
    assert!(answer.status == 200 && answer.body == small(), "{}", answer.head);
}

#[test]
fn a_thousand_downloads_survive_the_front_end_that_is_killed() {
    const COUNT: usize = 1000;
    let mut pair = Pair::new(&files());
    let mut downloads = under_way(&pair, COUNT);
    assert_eq!(pair.metric(0, "plimsoll_flows"), Some(COUNT as f64), "all are handed off");
    pair.kill_front_end(0);
    let killed = Instant::now();
    read_for(&mut downloads, Duration::from_millis(100), &large());
    pair.wait_until_active(1);
    eprintln!("active after {:?}", killed.elapsed());
    eventually("adoption", || {
        pair.metric(1, "plimsoll_connections_adopted_total") >= Some(COUNT as f64 * 0.99)
    });
    assert_serves(&pair);
    assert_whole(&mut downloads, "killed");
    drop(downloads);
    eventually("end of all flows", || pair.metric(1, "plimsoll_flows") == Some(0.0));
    pair.stop();
}
