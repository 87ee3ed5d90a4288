//! Three nodes of Socket Cloning and cooperative caching as a user starts them, and processes that are killed or stand still.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_lab::{Lab, LabConfig, Node, Process};
use plimsoll_testkit::{PATIENCE, Why, eventually, is_stopped, pace, uninterrupted, unique_name};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Turn, alone};

mod kills;
mod servers;

const NODES: usize = 3;
/// Ends of nodes are waited for no longer.
const END: Duration = Duration::from_secs(20);
const LARGE_BYTES: usize = 12_000_000;

struct Nodes {
    agents: Vec<Option<Process>>,
    names: Vec<String>,
    more: &'static [&'static str],
    /// nginx behind the shim, one for each node, where nodes do not serve by themselves.
    servers: Vec<Process>,
    lab: Lab,
    directory: TempDir,
    _turn: Turn,
}

/// Each byte tells the document and where it is.
fn content(number: usize, bytes: usize) -> Vec<u8> {
    let word =
        |at: usize| ((number as u64) << 40 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (0..bytes.div_ceil(8)).flat_map(word).take(bytes).collect()
}

/// Small ones, some of several windows, and some that take a while.
fn bytes_of(number: usize) -> usize {
    [0, 100, 1_500, 9_000, 40_000, 300_000, LARGE_BYTES][number % 7]
}

const DOCUMENTS: usize = 42;

impl Nodes {
    fn new(more: &'static [&'static str]) -> Self {
        Self::serving(more, false)
    }

    /// Behind the shim, nginx answers.
    fn serving(more: &'static [&'static str], behind_shim: bool) -> Self {
        let turn = alone();
        let config = LabConfig { backends: NODES, ..LabConfig::default() };
        let lab = Lab::build(&config).expect("these tests need root");
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("www")).unwrap();
        // For whom the nodes become.
        std::fs::create_dir(directory.path().join("logs")).unwrap();
        for (name, mode) in [("", 0o755), ("logs", 0o777)] {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(directory.path().join(name), permissions).unwrap();
        }
        let names = (0..NODES).map(|_| unique_name("n")).collect();
        let servers = Vec::new();
        let mut nodes = Self { agents: Vec::new(), names, more, servers, lab, directory, _turn: turn };
        (0..DOCUMENTS).for_each(|number| nodes.provide(number));
        if behind_shim {
            nodes.start_servers();
        }
        let key = nodes.path("key");
        std::fs::write(&key, "07".repeat(32)).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        nodes.agents.resize_with(NODES, || None);
        (0..NODES).for_each(|number| nodes.start(number));
        (0..NODES).rev().for_each(|number| nodes.lead_to(number));
        nodes
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes this document, unless it is there.
    fn provide(&self, number: usize) {
        let path = self.path(&format!("www/{number}.bin"));
        if !path.exists() {
            std::fs::write(path, content(number, bytes_of(number))).unwrap();
        }
    }

    fn at(&self, number: usize, port: u16) -> SocketAddr {
        SocketAddr::new(self.lab.node(Node::Backend(number)).unwrap().address().into(), port)
    }

    fn vip(&self) -> SocketAddr {
        SocketAddr::new(self.lab.virtual_address().into(), 80)
    }

    fn start(&mut self, number: usize) {
        self.agents[number] = Some(self.spawn(number));
    }

    fn spawn(&self, number: usize) -> Process {
        let node = self.lab.node(Node::Backend(number)).unwrap();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["agent", "--json-stats", "--name", &self.names[number], "--interface", "eth0"]);
        command.args(["--listen", &self.at(number, 7400).to_string(), "--vip", &self.vip().to_string()]);
        command.args(self.more);
        // Only who serves by itself has a memory.
        let caches = self.servers.is_empty();
        if caches {
            command.args(["--cache-listen", &self.at(number, 7410).to_string()]);
        }
        command.arg("--key").arg(self.path("key"));
        command.arg("--access-log").arg(self.path(&format!("logs/{number}.log")));
        command.arg("--decision-log").arg(self.path(&format!("logs/{number}")));
        command.arg("--serve").arg(self.serve(number));
        for other in (0..NODES).filter(|other| *other != number) {
            let named = |port| format!("{}={}", self.names[other], self.at(other, port));
            command.args(["--clone-peer", &named(7400)]);
            if caches {
                command.args(["--cache-peer", &named(7410)]);
            }
        }
        command.stdout(File::create(self.path(&format!("{number}.json"))).unwrap());
        command.stderr(File::create(self.path(&format!("{number}.log"))).unwrap());
        node.spawn(&mut command).unwrap()
    }

    /// From now on this node is the original of new connections. All nodes answer there.
    fn lead_to(&self, number: usize) {
        let (address, vip) = (self.at(number, 0).ip(), self.vip().ip().to_string());
        let set = || {
            let mac = plimsoll_datapath::neighbor(address, PATIENCE).unwrap().mac;
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            let arguments = ["neigh", "replace", &vip, "lladdr", &mac, "dev", "eth0"];
            assert!(std::process::Command::new("ip").args(arguments).status().unwrap().success());
        };
        self.lab.node(Node::Client).unwrap().run(set).unwrap();
        eventually("answers of all nodes", || {
            self.names.iter().all(|name| (0..DOCUMENTS).any(|at| self.node_of(at).as_ref() == Some(name)))
        });
    }

    /// The name of the node that answers for a document, if one answers.
    fn node_of(&self, number: usize) -> Option<String> {
        let mut stream = self.connect()?;
        write!(stream, "HEAD /{number}.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut head = String::new();
        uninterrupted(|| stream.read_to_string(&mut head)).ok()?;
        let name = head
            .lines()
            .find_map(|line| line.strip_prefix("x-backend: ").or(line.strip_prefix("X-Backend: ")));
        Some(name?.to_owned())
    }

    fn connect(&self) -> Option<TcpStream> {
        let vip = self.vip();
        let stream = self.lab.node(Node::Client).unwrap().run(|| TcpStream::connect(vip)).unwrap().ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Some(stream)
    }

    /// A document that takes a while, for which this node answers.
    fn large_at(&self, number: usize) -> usize {
        self.document_at(number, LARGE_BYTES)
    }

    /// A document of so many bytes for which this node answers.
    fn document_at(&self, number: usize, bytes: usize) -> usize {
        let is_there = |at: &usize| self.node_of(*at).as_ref() == Some(&self.names[number]);
        let mut found = None;
        // On a busy machine a node can count as lost for a moment, and others answer for it. And of six there may be none at this node,
        // as names are others in each run: then one more is written.
        let mut documents = DOCUMENTS;
        eventually("a document to be there", || {
            let mut of_size = (0..documents).filter(|at| bytes_of(*at) == bytes);
            found = of_size.find(|at| {
                self.provide(*at);
                is_there(at)
            });
            documents = (documents + 7).min(10 * DOCUMENTS);
            found.is_some()
        });
        found.unwrap()
    }

    /// A connection on which this document has begun to come, and what has come.
    fn begun(&self, number: usize) -> (TcpStream, Vec<u8>) {
        self.begun_with(number, "")
    }

    /// As [`Self::begun`], by a request with these fields, too.
    fn begun_with(&self, number: usize, fields: &str) -> (TcpStream, Vec<u8>) {
        let mut stream = self.connect().unwrap();
        write!(stream, "GET /{number}.bin HTTP/1.1\r\nHost: x\r\n{fields}\r\n").unwrap();
        let mut come = vec![0; 100_000];
        stream.read_exact(&mut come).unwrap();
        (stream, come)
    }

    /// All counts of a node that is stopped.
    fn stop(&mut self, number: usize) -> Value {
        let status = self.agents[number].take().unwrap().stop_within(END).unwrap();
        let log = || std::fs::read_to_string(self.path(&format!("{number}.log"))).unwrap();
        assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", log());
        serde_json::from_str(&std::fs::read_to_string(self.path(&format!("{number}.json"))).unwrap()).unwrap()
    }

    fn stop_all(&mut self) -> Vec<Value> {
        let root = |number| self.lab.node(Node::Backend(number)).unwrap().root();
        let pins = |number: usize| root(number).join("sys/fs/bpf/plimsoll-65534").join(&self.names[number]);
        let pins: Vec<_> = (0..NODES).map(pins).collect();
        assert!(pins.iter().all(|path| path.exists()), "{pins:?}");
        let counts = (0..NODES).map(|number| self.stop(number)).collect();
        assert!(!pins.iter().any(|path| path.exists()), "{pins:?}");
        counts
    }

    /// Each node has become a user without privileges, and has told its requests and decisions.
    fn have_told(&self) {
        for number in 0..NODES {
            let said = std::fs::read_to_string(self.path(&format!("{number}.log"))).unwrap();
            assert!(said.contains("runs as nobody"), "{said}");
            let lines = std::fs::read_to_string(self.path(&format!("logs/{number}.log"))).unwrap();
            assert!(lines.lines().count() > DOCUMENTS, "{lines}");
            let mut replay = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
            let output = replay.arg("replay").arg(self.path(&format!("logs/{number}"))).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// What came is the beginning of the answer. If its end came in good order, it is all of it. Whether it is.
fn is_whole((mut stream, mut come): (TcpStream, Vec<u8>), number: usize) -> bool {
    let end = uninterrupted(|| stream.read_to_end(&mut come));
    let body = come.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = &come[body..];
    let expected = content(number, bytes_of(number));
    assert!(expected.starts_with(body), "foreign bytes among {}", body.len());
    assert!(end.is_err() || body.len() == expected.len(), "{} bytes and a good end", body.len());
    body.len() == expected.len()
}

/// Fetches each document by curl, on a few connections, from each node as the original.
fn curl_gets_all(more: &'static [&'static str]) -> Vec<Value> {
    let mut nodes = Nodes::new(more);
    // Twice: then the nodes know which ones are small.
    for original in (0..NODES).chain(0..NODES) {
        nodes.lead_to(original);
        let mut command = nodes.lab.node(Node::Client).unwrap().command("curl");
        command.args(["-sS", "--fail", "--parallel", "--parallel-max", "4"]);
        for number in (0..DOCUMENTS).filter(|number| bytes_of(*number) < LARGE_BYTES) {
            command.arg("-o").arg(nodes.path(&format!("{original}.{number}")));
            command.arg(format!("http://{}/{number}.bin", nodes.vip()));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for number in (0..DOCUMENTS).filter(|number| bytes_of(*number) < LARGE_BYTES) {
            let found = std::fs::read(nodes.path(&format!("{original}.{number}"))).unwrap();
            assert!(found == content(number, bytes_of(number)), "{number} from {original}");
        }
    }
    let counts = nodes.stop_all();
    nodes.have_told();
    counts
}

fn sum(counts: &[Value], pointer: &str) -> u64 {
    counts
        .iter()
        .map(|count| count.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {count}")).as_u64().unwrap())
        .sum()
}

#[test]
fn what_curl_gets_from_three_nodes_is_right() {
    let counts = curl_gets_all(&["--clone-min-size", "2KB", "--cache-locate", "hints"]);
    assert!(sum(&counts, "/clone_answers") > 20 && sum(&counts, "/kept") == 0, "{counts:?}");
    // Small ones are answered where the client is, from the memory of who had them first.
    assert!(sum(&counts, "/caching/fetched") > 0, "{counts:?}");
    assert_eq!((sum(&counts, "/lost"), sum(&counts, "/caching/false_documents")), (0, 0), "{counts:?}");
}

#[test]
fn what_curl_gets_by_clones_that_keep_their_connection_is_right() {
    let counts = curl_gets_all(&["--clone-keep"]);
    assert!(sum(&counts, "/clone_answers") > 20 && sum(&counts, "/kept") > 0, "{counts:?}");
    assert_eq!(sum(&counts, "/lost"), 0, "{counts:?}");
}

/// The answer under way of an original that is killed comes whole, and then it is started again.
fn an_original_is_killed(options: &'static [&'static str]) {
    let mut nodes = Nodes::new(options);
    let number = nodes.large_at(1);
    let begun = nodes.begun(number);
    nodes.agents[0].take().unwrap().kill();
    assert!(is_whole(begun, number), "the packet program has gone on by itself");
    nodes.start(0);
    nodes.lead_to(0);
    nodes.stop_all();
}

#[test]
fn an_original_that_is_killed_while_a_clone_answers() {
    an_original_is_killed(&[]);
}

#[test]
fn an_original_that_is_killed_while_its_clone_keeps_the_connection() {
    an_original_is_killed(&["--clone-keep"]);
}

/// Its socket is still frozen, of which its kernel tells nobody: the clone does, though its client has everything.
#[test]
fn an_original_that_is_killed_before_it_goes_on() {
    let mut nodes = Nodes::new(&[]);
    let number = nodes.large_at(1);
    let (mut stream, mut come) = nodes.begun(number);
    let agent = nodes.agents[0].as_ref().unwrap();
    agent.pause().unwrap();
    eventually("the original to stand still", || is_stopped(agent.id()));
    let head_bytes = come.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let mut rest = vec![0; head_bytes + LARGE_BYTES - come.len()];
    stream.read_exact(&mut rest).unwrap();
    come.extend(rest);
    // The clone has looked whether its client has everything by then, and the link does not count as lost yet.
    pace(Duration::from_millis(500), Why::Midst);
    nodes.agents[0].take().unwrap().kill();
    let end = uninterrupted(|| stream.read(&mut [0]));
    assert!(matches!(end, Ok(0)), "{end:?}");
    assert!(is_whole((stream, come), number));
    nodes.start(0);
    nodes.lead_to(0);
    nodes.stop_all();
}

#[test]
fn a_node_that_is_killed_while_and_after_it_answers() {
    let mut nodes = Nodes::new(&[]);
    let (own, number) = (nodes.large_at(0), nodes.large_at(1));
    let begun = nodes.begun(number);
    // Its client has a whole answer, and the connection is its original's.
    let mut after = nodes.connect().unwrap();
    write!(after, "HEAD /{number}.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(after.read(&mut [0; 4096]).unwrap() > 0);
    // The original answers this itself, so it has its connection back by then.
    write!(after, "HEAD /{own}.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(after.read(&mut [0; 4096]).unwrap() > 0);
    nodes.agents[1].take().unwrap().kill();
    assert!(!is_whole(begun, number), "its node is dead");
    // That connection goes on, and so do others: another node answers.
    for mut stream in [after, nodes.connect().unwrap()] {
        write!(stream, "GET /{number}.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        assert!(is_whole((stream, Vec::new()), number), "another one answers");
    }
    nodes.start(1);
    nodes.lead_to(0);
    assert_eq!(nodes.node_of(number).as_ref(), Some(&nodes.names[1]), "it is back");
    nodes.stop_all();
}

#[test]
fn a_node_that_stands_still_while_it_answers() {
    let mut nodes = Nodes::new(&[]);
    let number = nodes.large_at(1);
    let begun = nodes.begun(number);
    let agent = nodes.agents[1].as_ref().unwrap();
    agent.pause().unwrap();
    eventually("the agent to stand still", || is_stopped(agent.id()));
    assert!(!is_whole(begun, number), "its node stands still");
    // Others answer for it, once it counts as lost.
    eventually("an answer of another node", || {
        nodes.node_of(number).is_some_and(|name| name != nodes.names[1])
    });
    agent.resume().unwrap();
    eventually("it", || nodes.node_of(number).as_ref() == Some(&nodes.names[1]));
    nodes.stop_all();
}

/// As on a machine that is paused: none of them can tell that another one is silent.
#[test]
fn nodes_that_stand_still_together_go_on() {
    let mut nodes = Nodes::new(&["--link-timeout", "4"]);
    let number = nodes.large_at(1);
    let begun = nodes.begun_with(number, "Connection: close\r\n");
    let agents: Vec<_> = nodes.agents.iter().flatten().collect();
    agents.iter().for_each(|agent| agent.pause().unwrap());
    agents.iter().for_each(|agent| eventually("the agent to stand still", || is_stopped(agent.id())));
    pace(Duration::from_secs(6), Why::TimeIsUp);
    agents.iter().for_each(|agent| agent.resume().unwrap());
    assert!(is_whole(begun, number), "a link was given up");
    let counts = nodes.stop_all();
    assert_eq!(sum(&counts, "/lost"), 0, "{counts:?}");
}
