//! What happens when parts of the cluster fail.

use std::io::{ErrorKind, Read as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_lab::Node;
use plimsoll_testkit::{PATIENCE, Why, eventually, pace, uninterrupted};

use super::bed::{Bed, Options};
use super::http::{Client, content};

const BODY: usize = 50_000;
const LARGE: usize = 60 << 20;

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![("body", content(7, BODY)), ("large", content(9, LARGE))]
}

/// What clients saw.
#[derive(Debug, Default)]
struct Seen {
    answered: AtomicU64,
    /// Connections that ended, or stayed silent, before an answer.
    broken: AtomicU64,
    /// Attempts to connect while nobody listened.
    unreached: AtomicU64,
    /// Answers with another status than 200.
    refused: AtomicU64,
}

impl Seen {
    fn counts(&self) -> (u64, u64, u64) {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (of(&self.answered), of(&self.broken), of(&self.refused))
    }
}

/// Keeps getting the body until `over` is set: over and over on one connection, on a new one after each failure. Each
/// answer that comes must be whole.
fn keep_getting(vip: SocketAddr, over: &AtomicBool, seen: &Seen) {
    let body = content(7, BODY);
    while !over.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(vip) else {
            seen.unreached.fetch_add(1, Ordering::Relaxed);
            pace(Duration::from_millis(20), Why::SlowPeer);
            continue;
        };
        for _ in 0..20 {
            if over.load(Ordering::Relaxed) {
                break;
            }
            match client.get("/body") {
                Ok(answer) if answer.status == 200 => {
                    assert!(answer.body == body, "an answer was spoiled");
                    seen.answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(answer) => {
                    seen.refused.fetch_add(1, Ordering::Relaxed);
                    assert!(answer.status >= 502, "{}", answer.head);
                }
                Err(_) => {
                    seen.broken.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
            pace(Duration::from_millis(2), Why::SlowPeer);
        }
    }
}

/// Runs clients while `change` goes on with the bed.
fn under_load(bed: &mut Bed, clients: usize, change: impl FnOnce(&mut Bed, &Seen)) -> Seen {
    let (over, seen, vip) = (AtomicBool::new(false), Seen::default(), bed.vip());
    std::thread::scope(|scope| {
        // The threads are started in the client's namespace and stay there.
        let (over, seen) = (&over, &seen);
        bed.client(|| {
            for _ in 0..clients {
                scope.spawn(move || keep_getting(vip, over, seen));
            }
        });
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(over);
        change(bed, seen);
    });
    seen
}

#[test]
fn an_agent_that_is_killed_and_comes_back() {
    let mut bed = Bed::new(Options { backends: 3, ..Options::default() }, &files());
    let clients = 12;
    let seen = under_load(&mut bed, clients, |bed, seen| {
        pace(Duration::from_millis(500), Why::UnderLoad);
        for index in [0, 1, 2] {
            bed.kill_agent(index);
            pace(Duration::from_millis(1500), Why::UnderLoad);
            bed.start_agent(index);
            bed.wait_for_links(3);
            let before = bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}").unwrap();
            eventually("handoffs again", || {
                bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}").unwrap() > before + 20.0
            });
            eprintln!("{index}: {:?}", seen.counts());
        }
    });
    let (answered, broken, refused) = seen.counts();
    assert!(answered > 1000, "{seen:?}");
    // Each kill breaks the connections that the agent had, at most all that there are.
    assert!(broken <= 3 * clients as u64, "{seen:?}");
    assert!(refused <= answered / 100, "{seen:?}");
    bed.assert_quiet();
    bed.stop();
}

/// Connections of clients whose sockets are in this back-end's kernel.
fn held_by(bed: &Bed, index: usize) -> u64 {
    let node = bed.lab.node(Node::Backend(index)).unwrap();
    let vip = bed.vip();
    let arguments = ["-tanH", "state", "connected", "src", &vip.to_string()];
    let sockets = node.command("ss").args(arguments).output().unwrap();
    assert!(sockets.status.success(), "{}", String::from_utf8_lossy(&sockets.stderr));
    let sockets = String::from_utf8_lossy(&sockets.stdout);
    sockets.lines().filter(|line| !line.starts_with("TIME-WAIT")).count() as u64
}

#[test]
fn an_agent_that_is_paused_loses_and_spoils_nothing() {
    let mut bed = Bed::new(Options { backends: 2, ..Options::default() }, &files());
    /// No link is given up for a silence of less than this.
    const KEPT: Duration = Duration::from_secs(1);
    // What it held is reset, once, unless it comes back in time. What was on its way to it is served elsewhere, and what
    // clients ask for meanwhile as well. The last pause is too short for the link to be given up.
    let mut lost_at_most = 0;
    let seen = under_load(&mut bed, 8, |bed, seen| {
        pace(Duration::from_millis(500), Why::UnderLoad);
        for pause_ms in [3500, 6000, 700] {
            let began = Instant::now();
            bed.pause_agent(0);
            let held = held_by(bed, 0);
            pace(Duration::from_millis(pause_ms), Why::UnderLoad);
            bed.agents[0].as_ref().unwrap().resume().unwrap();
            // A busy machine can make a short pause a long one.
            lost_at_most += if began.elapsed() > KEPT { held } else { 0 };
            bed.wait_for_links(2);
            let up = "plimsoll_backend_state{backend=\"b0\",state=\"up\"}";
            eventually("b0", || bed.metric(up) == Some(1.0));
            pace(Duration::from_millis(500), Why::UnderLoad);
            eprintln!("{pause_ms} ms: it held {held}, {seen:?}");
        }
    });
    let (answered, broken, _) = seen.counts();
    assert!(answered > 500, "{seen:?}");
    assert!(broken <= lost_at_most, "{lost_at_most} at most: {seen:?}");
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn a_front_end_that_is_killed_and_started_again() {
    let mut bed = Bed::new(Options { is_quiet: true, ..Options::default() }, &files());
    let vip = bed.vip();
    std::thread::scope(|scope| {
        let bed = &mut bed;
        let download = bed.client(|| {
            let mut client = Client::connect(vip).unwrap();
            client.send("/large").unwrap();
            scope.spawn(move || {
                // Slow enough that it is under way all the time.
                let mut first = vec![0; 1 << 20];
                client.stream.read_exact(&mut first).unwrap();
                pace(Duration::from_millis(2500), Why::SlowPeer);
                client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut rest = first;
                let mut buffer = vec![0; 1 << 20];
                let head = rest.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
                while rest.len() < head + LARGE {
                    let n = uninterrupted(|| client.stream.read(&mut buffer)).unwrap();
                    assert!(n > 0, "the download was cut");
                    rest.extend_from_slice(&buffer[..n]);
                }
                assert!(rest[head..] == content(9, LARGE));
                // The back-end has the connection still, and a front-end that never saw it.
                let mut client = Client::over(client.stream).unwrap();
                for _ in 0..4 {
                    assert!(client.get("/body").unwrap().body == content(7, BODY));
                }
            })
        });
        pace(Duration::from_millis(500), Why::UnderLoad);
        bed.kill_front_end();
        pace(Duration::from_millis(300), Why::UnderLoad);
        bed.start_front_end();
        let began = Instant::now();
        eventually("an answer of the new front-end", || {
            let answer = bed.client(|| Client::connect(vip).and_then(|mut c| c.get("/body")));
            answer.is_ok_and(|a| a.status == 200)
        });
        eprintln!("first answer of the new front-end after {:?}", began.elapsed());
        bed.wait_for_links(2);
        download.join().unwrap();
    });
    assert!(bed.metric("plimsoll_connections_adopted_total") >= Some(1.0));
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn a_back_end_whose_cable_is_pulled() {
    let bed = Bed::new(Options { is_quiet: true, backends: 1, ..Options::default() }, &files());
    let vip = bed.vip();
    let waited = bed.client(|| {
        let mut client = Client::connect(vip).unwrap();
        client.send("/large").unwrap();
        let mut first = vec![0; 1 << 20];
        client.stream.read_exact(&mut first).unwrap();
        client
    });
    bed.lab.link(Node::Backend(0)).unwrap().down().unwrap();
    let began = Instant::now();
    let mut client = waited;
    let mut rest = Vec::new();
    let error = client.stream.read_to_end(&mut rest).unwrap_err();
    eprintln!("{error} after {:?}", began.elapsed());
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    bed.lab.link(Node::Backend(0)).unwrap().up().unwrap();
    bed.wait_for_links(1);
    eventually("answers", || {
        bed.client(|| Client::connect(vip).and_then(|mut c| c.get("/body"))).is_ok_and(|a| a.status == 200)
    });
    drop(client);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn more_connections_than_flows() {
    let bed =
        Bed::new(Options { is_quiet: true, handoff: "flows = 5".to_owned(), ..Options::default() }, &files());
    let vip = bed.vip();
    bed.client(|| {
        let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(vip).unwrap()).collect();
        for _ in 0..3 {
            for client in &mut clients {
                assert!(client.get("/body").unwrap().body == content(7, BODY));
            }
        }
    });
    assert!(bed.metric("plimsoll_handoffs_kept_total") >= Some(15.0));
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn without_privileges() {
    let mut bed = Bed::new(Options { is_quiet: true, ..Options::default() }, &files());
    let front_end = bed.front_end.take().unwrap();
    front_end.stop_within(PATIENCE).unwrap();
    let vip = bed.vip();
    let start = |bed: &Bed, config: &str| {
        let file = bed.directory.path().join("nobody.toml");
        std::fs::write(&file, config).unwrap();
        let node = bed.lab.node(Node::FrontEnd).unwrap();
        // All but what it takes to listen at port 80.
        let mut command = node.command("setpriv");
        command.args(["--bounding-set", "-all,+net_bind_service", "--inh-caps", "-all"]);
        command.arg(env!("CARGO_BIN_EXE_plimsoll")).args(["balance", "--no-watch", "--config"]).arg(&file);
        command.stderr(std::fs::File::create(bed.directory.path().join("nobody.log")).unwrap());
        node.spawn(&mut command).unwrap()
    };
    let said = |bed: &Bed| std::fs::read_to_string(bed.directory.path().join("nobody.log")).unwrap();
    let mut refused = start(&bed, &bed.config_text());
    let status = refused.wait_within(PATIENCE).expect("it does not start");
    assert_eq!(status.code(), Some(1), "{}", said(&bed));
    assert!(said(&bed).contains("cannot be handed off") && said(&bed).contains("CAP_"), "{}", said(&bed));

    let fallback = bed.config_text().replace("[handoff]\n", "[handoff]\nfallback = \"proxy\"\n");
    let proxying = start(&bed, &fallback);
    eventually("answers", || {
        bed.client(|| Client::connect(vip).and_then(|mut c| c.get("/body")))
            .is_ok_and(|a| a.body.len() == BODY)
    });
    assert!(said(&bed).contains("every request is proxied"), "{}", said(&bed));
    drop(proxying);
}

/// Numbers that only look like chance.
pub(super) fn next(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

#[test]
fn random_failures_leave_nothing_behind() {
    const FAILURES: usize = 25;
    const CLIENTS: usize = 12;
    let mut bed = Bed::new(Options { backends: 3, ..Options::default() }, &files());
    let seen = under_load(&mut bed, CLIENTS, |bed, _| {
        let mut state = 17;
        for _ in 0..FAILURES {
            let index = usize::try_from(next(&mut state, 3)).unwrap();
            match next(&mut state, 4) {
                0 => {
                    bed.kill_front_end();
                    pace(Duration::from_millis(next(&mut state, 500)), Why::UnderLoad);
                    bed.start_front_end();
                }
                1 => {
                    bed.kill_agent(index);
                    pace(Duration::from_millis(next(&mut state, 2500)), Why::UnderLoad);
                    bed.start_agent(index);
                }
                2 => {
                    bed.agents[index].as_ref().unwrap().pause().unwrap();
                    pace(Duration::from_millis(next(&mut state, 4000)), Why::UnderLoad);
                    bed.agents[index].as_ref().unwrap().resume().unwrap();
                }
                _ => {
                    bed.lab.link(Node::Backend(index)).unwrap().down().unwrap();
                    pace(Duration::from_millis(next(&mut state, 4000)), Why::UnderLoad);
                    bed.lab.link(Node::Backend(index)).unwrap().up().unwrap();
                }
            }
            pace(Duration::from_millis(next(&mut state, 600)), Why::UnderLoad);
        }
        bed.wait_for_links(3);
    });
    eprintln!("{seen:?}");
    let (answered, broken, _) = seen.counts();
    assert!(answered > 1000, "{seen:?}");
    // Each breaks the connections that there are, at most.
    assert!(broken <= (FAILURES * CLIENTS) as u64, "{seen:?}");
    bed.assert_quiet();
    bed.stop_after_crash();
}

#[test]
fn an_agent_that_dies_while_it_takes_over() {
    let mut bed = Bed::new(Options { is_quiet: true, backends: 2, ..Options::default() }, &files());
    let vip = bed.vip();
    for round in 0..3 {
        // It does not look at what it is handed, and is killed before it can.
        bed.pause_agent(0);
        let answered = &AtomicU64::new(0);
        let answers = std::thread::scope(|scope| {
            let clients: Vec<_> = bed.client(|| {
                let get = move || {
                    let answer = Client::connect(vip).and_then(|mut client| client.get("/body"));
                    answered.fetch_add(1, Ordering::Relaxed);
                    answer
                };
                (0..6).map(|_| scope.spawn(get)).collect()
            });
            eventually("answers of the other one", || answered.load(Ordering::Relaxed) >= 3);
            pace(Duration::from_millis(100), Why::Midst);
            bed.kill_agent(0);
            clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
        });
        for answer in answers {
            let answer = answer.unwrap_or_else(|error| panic!("round {round}: {error}"));
            assert!(
                answer.status == 200 && answer.body == content(7, BODY),
                "round {round}: {}",
                answer.head
            );
        }
        bed.start_agent(0);
        bed.wait_for_links(2);
        let up = "plimsoll_backend_state{backend=\"b0\",state=\"up\"}";
        eventually("b0", || bed.metric(up) == Some(1.0));
    }
    assert!(bed.metric("plimsoll_handoffs_total{outcome=\"timed_out\"}") >= Some(1.0));
    bed.assert_quiet();
    bed.stop();
}
