//! A second front-end takes the virtual address over, which the real keepalived moves: no connection that a back-end has is lost.

mod downloads;
mod pair;

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_testkit::{Why, eventually, pace};

use super::http::{Client, content};
use downloads::{Download, Ends, HANGS, finish, read_for};
use pair::{MACHINES, Pair};

const LARGE: usize = 300_000;
const SMALL: usize = 20_000;
/// Clients between two requests.
const RESTING: usize = 20;
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
    let begin = || {
        (0..count).map(|i| {
            if i % 20 == 19 {
                // An agent takes only so many at once, and others are proxied.
                pace(Duration::from_millis(20), Why::UnderLoad);
            }
            Download::begin(pair.vip_of(i), "/large").unwrap()
        })
    };
    let begin = || begin().collect();
    let mut downloads: Vec<Download> = pair.client(begin);
    read_for(&mut downloads, AGE, &large());
    assert!(!downloads.iter().any(Download::is_over));
    downloads
}

/// Does something while the downloads are read to their ends, all of which are good.
fn assert_survive(what: &str, mut downloads: Vec<Download>, meanwhile: impl FnOnce()) {
    let count = downloads.len();
    let is_slow = AtomicBool::new(true);
    let (ends, longest) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| finish(&mut downloads, &large(), &is_slow));
        let done = catch_unwind(AssertUnwindSafe(meanwhile));
        is_slow.store(false, Ordering::Relaxed);
        done.unwrap_or_else(|panic| resume_unwind(panic));
        reading.join().unwrap()
    });
    eprintln!("{what}: {} of {count} whole, the longest silence {longest:?}", ends.whole);
    assert_eq!(ends, Ends { whole: count, failed: Vec::new() }, "{what}");
}

/// Clients that have had an answer, from back-ends that have their connections now.
fn resting(pair: &Pair) -> Vec<Client> {
    pair.client(|| {
        let connect = |i| Client::connect(pair.vip_of(i)).unwrap();
        let mut clients: Vec<Client> = (0..RESTING).map(connect).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.get("/small").unwrap().status, 200));
        clients
    })
}

/// The next request on each of the connections is answered.
fn assert_go_on(clients: &mut [Client]) {
    for client in clients {
        let answer = client.get("/small").unwrap();
        assert!(answer.status == 200 && answer.body == small(), "{}", answer.head);
    }
}

/// A request on a new connection is answered.
fn assert_serves(pair: &Pair) {
    let vip = pair.vip();
    let answer = pair.client(|| Client::connect(vip).unwrap().get("/small").unwrap());
    assert!(answer.status == 200 && answer.body == small(), "{}", answer.head);
}

/// Further requests that this front-end has placed.
fn placed(pair: &Pair, machine: usize) -> f64 {
    let metric = |name| pair.metric(machine, name).unwrap();
    metric("plimsoll_requests_stayed_total") + metric("plimsoll_handoffs_on_total")
}

/// A front-end that was active before has nothing left, and has reset nobody.
fn assert_has_let_go(pair: &Pair, machine: usize) {
    for left in ["plimsoll_connections_open", "plimsoll_flows"] {
        eventually("a standby that has let go", || pair.metric(machine, left) == Some(0.0));
    }
    assert_eq!(pair.metric(machine, "plimsoll_connections_reset_total"), Some(0.0));
}

fn wait_for_adoption(pair: &Pair, machine: usize, count: usize) {
    let adopted = || pair.metric(machine, "plimsoll_connections_adopted_total");
    eventually("adoption", || adopted() >= Some(count as f64));
}

#[test]
fn front_ends_that_are_killed_one_after_the_other() {
    const COUNT: usize = 1000;
    let mut pair = Pair::new(&files());
    let mut clients = resting(&pair);
    let downloads = under_way(&pair, COUNT);
    eventually("all are handed off", || pair.metric(0, "plimsoll_flows") == Some((COUNT + RESTING) as f64));
    assert_survive("killed", downloads, || {
        pair.kill_front_end(0);
        pair.wait_until_active(1);
        wait_for_adoption(&pair, 1, COUNT + RESTING);
        assert_serves(&pair);
        assert_go_on(&mut clients);
    });
    // Some are counted only after their clients have been answered.
    eventually("requests placed by the second one", || placed(&pair, 1) >= RESTING as f64);
    // The first one comes back, as a standby, and then has to take over what the second one has.
    pair.start_front_end(0);
    pair.wait_for_links(0);
    pair.wait_until_standby(0);
    pair.wait_until_ready(0);
    let downloads = under_way(&pair, COUNT / 4);
    assert_go_on(&mut clients);
    assert_survive("killed again", downloads, || {
        pair.kill_front_end(1);
        pair.wait_until_active(0);
        wait_for_adoption(&pair, 0, COUNT / 4 + RESTING);
        assert_serves(&pair);
        assert_go_on(&mut clients);
    });
    drop(clients);
    eventually("end of all flows", || pair.metric(0, "plimsoll_flows") == Some(0.0));
    pair.stop();
}

#[test]
fn the_machine_of_a_front_end_that_is_cut_off_and_comes_back() {
    const COUNT: usize = 300;
    let pair = Pair::new(&files());
    let mut clients = resting(&pair);
    let downloads = under_way(&pair, COUNT);
    assert_survive("cut off", downloads, || {
        pair.lab.link(MACHINES[0]).unwrap().down().unwrap();
        pair.wait_until_active(1);
        wait_for_adoption(&pair, 1, COUNT + RESTING);
        assert_serves(&pair);
        assert_go_on(&mut clients);
    });
    // It has lost all that it had, and disturbs nothing.
    let downloads = under_way(&pair, COUNT);
    assert_survive("the cable is back", downloads, || {
        pair.lab.link(MACHINES[0]).unwrap().up().unwrap();
        pair.wait_for_links(0);
        pair.wait_until_standby(0);
        assert_go_on(&mut clients);
        assert_serves(&pair);
    });
    assert_has_let_go(&pair, 0);
    drop(clients);
    pair.stop();
}

#[test]
fn switches_that_are_planned() {
    const COUNT: usize = 300;
    let mut pair = Pair::new(&files());
    let mut clients = resting(&pair);
    let downloads = under_way(&pair, COUNT);
    assert_survive("told to stop", downloads, || {
        // Until it offers its connections, nobody may reset their clients.
        pair.pause_agent(0);
        pair.stop_front_end(0);
        pair.wait_until_active(1);
        pace(Duration::from_millis(300), Why::UnderLoad);
        pair.resume_agent(0);
        wait_for_adoption(&pair, 1, COUNT + RESTING);
        assert_serves(&pair);
        assert_go_on(&mut clients);
    });
    pair.start_front_end(0);
    pair.wait_for_links(0);
    pair.wait_until_ready(0);
    let downloads = under_way(&pair, COUNT);
    assert_survive("the address is given up", downloads, || {
        pair.stop_keepalived(1);
        pair.wait_until_active(0);
        pair.wait_until_standby(1);
        wait_for_adoption(&pair, 0, COUNT + RESTING);
        assert_serves(&pair);
        assert_go_on(&mut clients);
    });
    assert_has_let_go(&pair, 1);
    drop(clients);
    pair.stop();
}

#[test]
fn a_front_end_that_stands_still_and_goes_on() {
    const COUNT: usize = 100;
    let pair = Pair::new(&files());
    let mut clients = resting(&pair);
    let downloads = under_way(&pair, COUNT);
    assert_survive("stands still", downloads, || {
        let first = pair.front_ends[0].as_ref().unwrap();
        first.pause().unwrap();
        pair.wait_until_active(1);
        wait_for_adoption(&pair, 1, COUNT + RESTING);
        assert_go_on(&mut clients);
        // It takes itself for the active one, until it looks.
        first.resume().unwrap();
        pair.wait_until_standby(0);
        pair.wait_for_links(0);
        assert_serves(&pair);
        assert_go_on(&mut clients);
    });
    assert_has_let_go(&pair, 0);
    assert_eq!(pair.metric(1, "plimsoll_connections_lost_total"), Some(0.0));
    drop(clients);
    pair.stop();
}

#[test]
fn what_the_front_end_itself_had_is_reset() {
    let mut pair = Pair::with_proxied(&files(), 1);
    let vip = pair.vip();
    let mut clients: Vec<Client> = pair.client(|| {
        let of_proxy = |_| {
            let mut client = Client::connect(vip).unwrap();
            // Each second one goes to the back-end without an agent.
            (client.get("/small").unwrap().backend() == "b1").then_some(client)
        };
        (0..20).filter_map(of_proxy).collect()
    });
    assert_eq!(clients.len(), 10);
    pair.lab.link(MACHINES[0]).unwrap().down().unwrap();
    pair.wait_until_active(1);
    for client in &mut clients {
        let sent = Instant::now();
        let end = client.get("/small").unwrap_err();
        assert_eq!(end.kind(), ErrorKind::ConnectionReset, "after {:?}", sent.elapsed());
    }
    assert_serves(&pair);
    pair.lab.link(MACHINES[0]).unwrap().up().unwrap();
    pair.wait_until_standby(0);
    pair.wait_for_links(0);
    // Those of a process that is killed hear of it from its kernel.
    pair.wait_for_backend(1, "b1");
    pair.bound_send_buffers(1);
    let mut downloads = under_way(&pair, 20);
    assert_eq!(pair.metric(1, "plimsoll_backend_connections_open{backend=\"b1\"}"), Some(10.0), "proxied");
    pair.kill_front_end(1);
    let (ends, longest) = finish(&mut downloads, &large(), &AtomicBool::new(false));
    eprintln!("proxied: the longest silence {longest:?}");
    assert_eq!(ends.whole, 10, "{ends:?}");
    assert!(!ends.failed.iter().any(|why| why == HANGS), "{ends:?}");
    pair.wait_until_active(0);
    assert_serves(&pair);
    pair.stop();
}

#[test]
fn two_machines_that_take_themselves_for_the_owner() {
    const COUNT: usize = 300;
    let pair = Pair::new(&files());
    let mut clients = resting(&pair);
    let downloads = under_way(&pair, COUNT);
    assert_survive("split", downloads, || {
        // The two do not hear one another any more, but all others hear both.
        pair.lab.drop_frames("ip protocol vrrp").unwrap();
        pair.wait_until_active(1);
        pair.wait_until_standby(0);
        assert_serves(&pair);
        assert_go_on(&mut clients);
        pace(Duration::from_millis(500), Why::UnderLoad);
        assert_go_on(&mut clients);
        pair.lab.pass_frames().unwrap();
        pair.wait_until_active(0);
        pair.wait_until_standby(1);
        wait_for_adoption(&pair, 0, RESTING);
        assert_serves(&pair);
        assert_go_on(&mut clients);
    });
    assert_has_let_go(&pair, 1);
    drop(clients);
    pair.stop();
}
