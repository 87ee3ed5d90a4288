//! A store of two partitions behind one front-end: each request goes to a back-end that holds its partition, under every policy.

use std::collections::BTreeSet;

use plimsoll_policy::{TargetId, partition_of, registered};
use plimsoll_testbed::load::{LoadSummary, OpenLoop, Req, open_loop};

use super::processes::{FrontEnd, Origin, assert_replays, run};

/// Paths of this partition of two.
fn paths_of(partition: usize) -> Vec<String> {
    let all = (0..200).map(|n| format!("/{n}"));
    all.filter(|path| partition_of(TargetId::from_key(path.as_bytes()), 2) == partition).collect()
}

/// Asks for paths of this partition.
fn ask(front_end: &FrontEnd, partition: usize) -> LoadSummary {
    let paths = paths_of(partition);
    let load = OpenLoop {
        rate_rps: 500.0,
        seconds: 0.2,
        connections: 8,
        ..OpenLoop::new(front_end.address, move |n| Req::get(paths[n as usize % paths.len()].clone()))
    };
    run(open_loop(load))
}

const LOG: &str = "[decision_log]\ndirectory = \"log\"\n[health]\ntimeout = \"10s\"\n";

/// `b0` holds the first partition, `b2` the second, and `b1` both.
fn file(origins: &[Origin], more: &str) -> String {
    let mut text = String::new();
    for (origin, (name, held)) in
        origins.iter().zip([("b0", "\"0\""), ("b1", "\"0\", \"1\""), ("b2", "\"1\"")])
    {
        let address = origin.address;
        text += &format!("[[backend]]\nname = \"{name}\"\naddress = \"{address}\"\npartitions = [{held}]\n");
    }
    text + "[partitions]\ncount = 2\n" + LOG + more
}

#[test]
fn each_request_goes_to_a_holder_of_its_partition_under_every_policy() {
    let mut origins: Vec<Origin> = (0..3).map(|i| Origin::start(&format!("b{i}"), &[])).collect();
    let mut front_end = FrontEnd::start(&[], &file(&origins, ""));
    let holders = [BTreeSet::from(["b0", "b1"]), BTreeSet::from(["b1", "b2"])];
    for (number, policy) in registered().enumerate() {
        let name = policy.name;
        let text = super::processes::config(&[], &file(&origins, &format!("[policy]\nname = \"{name}\"\n")));
        std::fs::write(&front_end.file, text).unwrap();
        front_end.process.signal("-HUP");
        front_end.process.wait_for(" again", number);
        for (partition, holders) in holders.iter().enumerate() {
            let summary = ask(&front_end, partition);
            assert_eq!(summary.succeeded, summary.requests, "{name}: {:?}", summary.failures);
            let answered: BTreeSet<&str> = summary.backends.keys().map(String::as_str).collect();
            assert!(answered.is_subset(holders), "{name}: {answered:?} answered for {partition}");
        }
    }
    // The first partition alone is without a back-end.
    origins.drain(..2).for_each(drop);
    front_end.process.wait_for("back-end is down", 1);
    let summary = ask(&front_end, 0);
    assert_eq!(summary.statuses.keys().copied().collect::<Vec<_>>(), [503], "{:?}", summary.failures);
    assert!(front_end.text("/metrics").contains("plimsoll_refusals_total{reason=\"no_replica\"} 100"));
    let summary = ask(&front_end, 1);
    assert_eq!(summary.succeeded, summary.requests, "{:?}", summary.statuses);
    front_end.stop();
    for partition in ["log/partition-0", "log/partition-1"] {
        assert_replays(&front_end.path(partition));
    }
}

#[test]
fn by_segment_all_below_one_directory_is_in_one_partition() {
    let origins: Vec<Origin> = (0..3).map(|i| Origin::start(&format!("b{i}"), &[])).collect();
    let text = file(&origins, "").replace("count = 2\n", "count = 2\nby = \"segment\"\n");
    let mut front_end = FrontEnd::start(&[], &text);
    for user in ["/ann", "/bob", "/cy", "/dee"] {
        let partition = partition_of(TargetId::from_key(user.as_bytes()), 2);
        let load = OpenLoop {
            rate_rps: 500.0,
            seconds: 0.2,
            connections: 4,
            ..OpenLoop::new(front_end.address, move |n| Req::get(format!("{user}/{n}?size={n}")))
        };
        let summary = run(open_loop(load));
        assert_eq!(summary.succeeded, summary.requests, "{:?}", summary.failures);
        let stranger = ["b2", "b0"][partition];
        assert!(!summary.backends.contains_key(stranger), "{user}: {:?}", summary.backends);
        let why = front_end.get(&format!("/why?target={user}/7"));
        assert_eq!(why["partition"], partition);
        let known: Vec<&str> =
            why["backends"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
        assert_eq!(known, [["b0", "b1"], ["b1", "b2"]][partition]);
    }
    front_end.stop();
}
