//! Front-ends beside one another, one for each back-end: a client may come to any of them, and each request is answered by
//! the back-end whose interval its size lies in.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use plimsoll_decisions::{Event, LogItem, LogReader, What};
use plimsoll_testbed::load::{LoadSummary, OpenLoop, open_loop};
use plimsoll_testkit::{OwnLoopback, PATIENCE, eventually};
use plimsoll_wire::Key;

use super::adaptload::{DOCUMENTS, boundaries, owners, request, size_bytes};
use super::processes::{FrontEnd, Origin, assert_replays, run};

/// Where three front-ends are, and what they share.
struct Cluster {
    origins: Vec<Origin>,
    peers: Vec<SocketAddr>,
    _own: OwnLoopback,
    directory: tempfile::TempDir,
}

fn key_file(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, Key::generate().unwrap().to_hex()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

impl Cluster {
    fn start() -> Self {
        let origins = (0..3).map(|i| Origin::start(&format!("b{i}"), &[])).collect();
        let own = OwnLoopback::new();
        let peers = (7500..7503).map(|port| own.at(port)).collect();
        let directory = tempfile::tempdir().unwrap();
        key_file(directory.path(), "key");
        Self { origins, peers, _own: own, directory }
    }

    /// The front-end on the machine of back-end `index`, with this key.
    fn front_end(&self, index: usize, key: &str) -> FrontEnd {
        let others: Vec<String> = (0..3)
            .filter(|&other| other != index)
            .map(|other| format!("\"n{other}={}\"", self.peers[other]))
            .collect();
        let more = format!(
            "[policy]\nname = \"adaptload\"\nbatch = 300\n[peers]\nname = \"n{index}\"\nlocal = \"b{index}\"\n\
             address = \"{}\"\nkey_file = {:?}\nothers = [{}]\nperiod = \"100ms\"\nkeep = \"60s\"\n\
             [decision_log]\ndirectory = \"log\"\n",
            self.peers[index],
            self.directory.path().join(key),
            others.join(", ")
        );
        let addresses: Vec<_> = self.origins.iter().map(|o| o.address).collect();
        FrontEnd::start(&addresses, &more)
    }
}

/// Sends requests to one front-end.
fn load(to: SocketAddr, first: u64, seconds: f64) -> LoadSummary {
    run(open_loop(OpenLoop {
        rate_rps: 200.0,
        seconds,
        connections: 32,
        ..OpenLoop::new(to, move |number| request(first + number))
    }))
}

/// Clients of all of these at once, as a switch that knows nothing of contents has it.
fn load_all(nodes: &[&FrontEnd], first: u64, seconds: f64) -> u64 {
    let start = |(index, node): (usize, &&FrontEnd)| {
        let (to, first) = (node.address, first + 100_000 * index as u64);
        std::thread::spawn(move || load(to, first, seconds))
    };
    let threads: Vec<_> = nodes.iter().enumerate().map(start).collect();
    let mut requests = 0;
    for thread in threads {
        let summary = thread.join().unwrap();
        assert_eq!(summary.succeeded, summary.requests, "{:?} {:?}", summary.failures, summary.statuses);
        requests += summary.requests;
    }
    requests
}

fn exchange(to: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A sample of the metrics, if it is there.
fn metric(node: &FrontEnd, sample: &str) -> Option<f64> {
    let text = exchange(node.admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let line = text.lines().find_map(|line| line.strip_prefix(sample))?;
    Some(line.trim().parse().unwrap())
}

/// Who answers a request for a document through this front-end.
fn answered_by(node: &FrontEnd, document: u64) -> String {
    let size = size_bytes(document);
    let request = format!("GET /size/{size}/{document} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answer = exchange(node.address, &request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(body.len() as u64 >= size.min(1), "{head}");
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("x-backend:")).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

#[test]
fn any_front_end_gives_a_size_to_the_same_back_end() {
    let cluster = Cluster::start();
    let mut nodes: Vec<FrontEnd> = (0..3).map(|index| cluster.front_end(index, "key")).collect();
    let all: Vec<&FrontEnd> = nodes.iter().collect();
    let requests = load_all(&all, 0, 4.0);
    assert_eq!(requests, 2400);
    eventually("all set the same boundaries", || {
        let first = boundaries(all[0]);
        first.len() == 3 && all[1..].iter().all(|node| boundaries(node) == first)
    });
    let set = boundaries(all[0]);
    let answered = |node: &FrontEnd, w: &str| {
        metric(node, &format!("plimsoll_peers_requests_total{{answered=\"{w}\"}}")).unwrap()
    };
    assert!(all.iter().all(|node| answered(node, "here") > 0.0 && answered(node, "elsewhere") > 0.0));
    // A request is counted a moment after its client has the answer.
    eventually("the count of all requests", || {
        let sum: f64 = all.iter().map(|node| answered(node, "here") + answered(node, "elsewhere")).sum();
        (sum - requests as f64).abs() < 0.5
    });
    for document in (0..DOCUMENTS).step_by(7) {
        let owners = owners(&set, size_bytes(document));
        for node in &all {
            let by = answered_by(node, document);
            assert!(owners.contains(&by.as_str()), "{} bytes from {by}: {set:?}", size_bytes(document));
        }
    }

    // A request that one of them has placed is placed no more.
    let placed = "GET / HTTP/1.1\r\nHost: a\r\nplimsoll-placed-by: b1\r\nConnection: close\r\n\r\n";
    assert!(exchange(all[0].address, placed).starts_with("HTTP/1.1 508 "));

    // One of them is killed: the others go on with what it had told.
    nodes[2].process.kill();
    eventually("the others miss it", || {
        metric(&nodes[0], "plimsoll_peer_exchanges_total{peer=\"n2\",outcome=\"failed\"}").unwrap() > 2.0
    });
    let two: Vec<&FrontEnd> = nodes[..2].iter().collect();
    load_all(&two, 1_000_000, 1.0);
    assert!(metric(&nodes[0], "plimsoll_peer_age_seconds{peer=\"n2\"}").unwrap() > 0.5);
    // It comes back without knowing anything, and has their boundaries before anyone has asked it for a document.
    nodes[2] = cluster.front_end(2, "key");
    eventually("it does as the others do", || {
        drop(answered_by(&nodes[2], 0));
        let first = boundaries(&nodes[0]);
        nodes[1..].iter().all(|node| boundaries(node) == first)
    });
    eventually("agreement", || metric(&nodes[0], "plimsoll_peer_agrees{peer=\"n2\"}") == Some(1.0));
    let all: Vec<&FrontEnd> = nodes.iter().collect();
    load_all(&all, 2_000_000, 1.0);

    // What the others told is in the log, and so its decisions come out again.
    nodes[0].stop();
    let log = nodes[0].path("log");
    let shared = |item: &LogItem| matches!(item, LogItem::Event(Event { what: What::Shared(_), .. }));
    assert!(LogReader::open(&log).unwrap().filter(|item| shared(item.as_ref().unwrap())).count() > 10);
    assert_replays(&log);
}

#[test]
fn a_wrong_key_and_a_silent_peer_leave_the_others_alone() {
    let cluster = Cluster::start();
    key_file(cluster.directory.path(), "other-key");
    // The second has another key; the third accepts connections and says nothing.
    let silent = TcpListener::bind(cluster.peers[2]).unwrap();
    let nodes = [cluster.front_end(0, "key"), cluster.front_end(1, "other-key")];
    let all: Vec<&FrontEnd> = nodes.iter().collect();
    load_all(&all, 0, 3.0);
    for (node, other) in [(&nodes[0], "n1"), (&nodes[1], "n0")] {
        let said = node.process.wait_for("the same key", 0);
        assert!(said.contains(&format!("peer=\"{other}\"")), "{said}");
        node.process.wait_for("takes too long", 0);
        for peer in [other, "n2"] {
            let failed = format!("plimsoll_peer_exchanges_total{{peer=\"{peer}\",outcome=\"failed\"}}");
            assert!(metric(node, &failed).unwrap() > 0.0);
            assert_eq!(metric(node, &format!("plimsoll_peer_age_seconds{{peer=\"{peer}\"}}")), None);
        }
        // Each has boundaries of its own.
        assert_eq!(boundaries(node).len(), 3);
    }
    drop(silent);
}
