//! More requests than the back-ends can answer and the front-end's queue can hold. How fast they are answered and refused is
//! measured by the benchmark `overload`.

use plimsoll_testbed::load::{ClosedLoop, LoadSummary, Req, closed_loop};

use super::processes::{FrontEnd, Origin, run};

/// More than the front-end lets in (219) and the back-ends answer within the 10 s that a request may wait.
const MANY: usize = 3000;
/// No more than it lets in.
const FEW: usize = 128;

fn resident_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn ask(front_end: &FrontEnd, connections: usize, requests: u64) -> LoadSummary {
    let load = ClosedLoop {
        connections,
        requests,
        // Only the number of requests ends it.
        seconds: 3600.0,
        timeout: plimsoll_testkit::PATIENCE,
        ..ClosedLoop::new(front_end.address, |n| Req::get(format!("/{n}")))
    };
    let summary = run(closed_loop(load));
    assert_eq!(summary.requests, requests);
    summary
}

#[test]
fn what_is_too_much_is_refused_and_nothing_is_lost() {
    let files = plimsoll_balancer::raise_open_file_limit();
    assert!(
        files.is_none_or(|most| most > 7000),
        "7000 open files are needed, {files:?} allowed (`ulimit -Hn`)"
    );
    // An emulated CPU that answers some 50 requests of 1 KB a second, first come, first served: a test sends more than that on
    // any machine.
    let slow = ["--cpu-delay", "lard98", "--cpu-speed", "0.02"];
    let origins: Vec<Origin> = (0..4).map(|i| Origin::start(&format!("b{i}"), &slow)).collect();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    // Checks wait behind requests, for seconds: a back-end that is only busy is not down.
    let mut front_end = FrontEnd::start(&addresses, "[health]\nprobe = \"none\"\n");
    let before = resident_bytes(front_end.process.pid());
    for _ in 0..2 {
        let all = ask(&front_end, FEW, 256);
        assert_eq!(all.succeeded, all.requests, "{:?} {:?}", all.failures, all.statuses);
        let over = ask(&front_end, MANY, 20_000);
        let refused = over.statuses.get(&503).copied().unwrap_or(0);
        assert!(over.failures.is_empty() && refused > 0 && over.succeeded > 0, "{over:?}");
        assert_eq!(over.succeeded + refused, over.requests, "{:?}", over.statuses);
    }
    let all = ask(&front_end, FEW, 256);
    assert_eq!(all.succeeded, all.requests, "{:?} {:?}", all.failures, all.statuses);
    let after = resident_bytes(front_end.process.pid());
    // A request that is let in holds 16 KiB for what the client sends and 64 KiB for the response, and on a busy machine the limit,
    // which is adaptive, may let all in at once.
    let most = MANY as u64 * (16 + 64) * 1024;
    assert!(after < before + most, "memory grew from {before} to {after} bytes, by more than {most}");
    front_end.stop();
}
