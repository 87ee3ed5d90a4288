//! Three nodes of Socket Cloning and a client on a lab.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

use plimsoll_agent::daemon::{CloneConfig, CloneNode, ClonePeer, ServeConfig};
use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{Frozen, QueueLimits, fast_forward};
use plimsoll_lab::{Conditions, CpuMeter, CpuPlan, Lab, LabConfig, Node};
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{OriginConfig, Source};
use plimsoll_testkit::unique_name;
use plimsoll_wire::Key;

use super::{until, us};

/// The node whose CPU is its own, by its number.
pub(crate) const ORIGINAL: usize = 0;
const NODES: [Node; 3] = [Node::FrontEnd, Node::Backend(0), Node::Backend(1)];
const PORT: u16 = 7400;

/// What is special about the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Keeps,
    Ahead,
}

pub(crate) struct Bed {
    names: [String; 3],
    nodes: Vec<CloneNode>,
    plan: CpuPlan,
    lab: Lab,
}

/// What a load came to.
pub(crate) struct Load {
    pub(crate) requests_per_s: f64,
    /// CPU time of the original's node per request, in microseconds.
    pub(crate) cpu_us: f64,
}

impl Bed {
    pub(crate) fn start(kind: Kind, plan: &CpuPlan) -> Self {
        let config = LabConfig { backends: 2, cpus: Some(plan.clone()), ..LabConfig::default() };
        let lab = Lab::build(&config).expect("a lab");
        let names = [0, 1, 2].map(|_| unique_name("c"));
        let mut bed = Self { names, nodes: Vec::new(), plan: plan.clone(), lab };
        for (number, node) in NODES.into_iter().enumerate() {
            let config = bed.config(number, kind);
            let start = || {
                plan.pin_this_thread(node).unwrap();
                CloneNode::start(config).unwrap()
            };
            let started = bed.lab.node(node).unwrap().run(start).unwrap();
            bed.nodes.push(started);
        }
        until("links", || bed.nodes.iter().all(|node| node.links_up() == NODES.len() - 1));
        bed
    }

    fn config(&self, number: usize, kind: Kind) -> CloneConfig {
        let origin = OriginConfig {
            name: Some(self.names[number].clone()),
            ..OriginConfig::new(Source::synthetic(Synthetic::fixed(1000)))
        };
        let at =
            |number: usize| -> SocketAddr { (self.lab.node(NODES[number]).unwrap().address(), PORT).into() };
        let serve = ServeConfig::Origin(origin.into());
        let mut config = CloneConfig::new(self.names[number].clone(), at(number), Key::new([9; 32]), serve);
        let others = (0..NODES.len()).filter(|other| *other != number);
        let peer = |other: usize| ClonePeer { name: self.names[other].clone(), address: at(other) };
        config.peers = others.map(peer).collect();
        config.interface = "eth0".to_owned();
        config.vips = vec![self.vip()];
        config.threads = 1;
        // wrk leaves at any point.
        config.write_timeout = Duration::from_secs(5);
        config.drain_timeout = Duration::from_millis(100);
        config.keeps = kind == Kind::Keeps;
        config.ahead = if kind == Kind::Ahead { 4 } else { 0 };
        config
    }

    fn vip(&self) -> SocketAddr {
        (self.lab.virtual_address(), 80).into()
    }

    /// Runs something as a client.
    fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.lab.node(Node::Client).unwrap().run(work).unwrap()
    }

    /// From now on clients connect to this node.
    pub(crate) fn lead_to(&self, number: usize) {
        until("quiet", || self.nodes.iter().all(|node| node.open() == 0 && node.routed() == 0));
        let address = self.lab.node(NODES[number]).unwrap().address().into();
        let vip = self.vip().ip().to_string();
        self.at_client(|| {
            let mac = plimsoll_datapath::neighbor(address, Duration::from_secs(10)).unwrap().mac;
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            let arguments = ["neigh", "replace", &vip, "lladdr", &mac, "dev", "eth0"];
            assert!(Command::new("ip").args(arguments).status().unwrap().success());
        });
    }

    /// A document of this size that this node has.
    pub(crate) fn path_at(&self, number: usize, size_bytes: usize) -> String {
        self.lead_to(ORIGINAL);
        let vip = self.vip();
        self.at_client(|| {
            let mut client = TcpStream::connect(vip).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            (0..200)
                .map(|at| format!("/size/{size_bytes}/s{at}"))
                .find(|path| {
                    let head = ask(&mut client, &[path], size_bytes);
                    head.contains(&format!("x-backend: {}\r\n", self.names[number]))
                })
                .expect("a document of each node")
        })
    }

    /// How long it took until each of so many clones was there, in microseconds.
    pub(crate) fn startups(&self, count: usize) -> Vec<f64> {
        let path = self.path_at(1, 100);
        let vip = self.vip();
        let waited_ns = || self.nodes[ORIGINAL].stats().waited_ns;
        self.at_client(|| {
            let mut client = TcpStream::connect(vip).unwrap();
            let mut before = waited_ns();
            let one = |_| {
                ask(&mut client, &[&path], 100);
                let after = waited_ns();
                let took = after - before;
                before = after;
                took as f64 / 1e3
            };
            (0..count).map(one).collect()
        })
    }

    /// Times of the original's steps, in microseconds: freezing, reading the state, bringing it up to it, making it live.
    pub(crate) fn steps(&self, count: usize) -> [Vec<f64>; 4] {
        self.at_client(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let _other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, client) = listener.accept().unwrap();
            let flow = Flow::new(client, stream.local_addr().unwrap());
            let mut fd: OwnedFd = stream.into();
            let mut steps = [const { Vec::new() }; 4];
            for _ in 0..count {
                let begun = Instant::now();
                let frozen = Frozen::freeze(fd).unwrap();
                let froze = begun.elapsed();
                let state = frozen.snapshot(&flow, &[], QueueLimits::default()).unwrap();
                let read = begun.elapsed();
                let forwarded = fast_forward(frozen, &state).unwrap();
                let there = begun.elapsed();
                fd = forwarded.activate().unwrap();
                let times = [froze, read - froze, there - read, begun.elapsed() - there];
                steps.iter_mut().zip(times).for_each(|(steps, time)| steps.push(us(time)));
            }
            steps
        })
    }

    /// Times of so many pairs of requests for both other nodes, in microseconds.
    pub(crate) fn pairs(&self, count: usize, size_bytes: usize) -> Vec<f64> {
        let paths = [self.path_at(1, size_bytes), self.path_at(2, size_bytes)];
        let vip = self.vip();
        let lost = self.nodes[ORIGINAL].stats().lost;
        let times = self.at_client(|| {
            let mut client = TcpStream::connect(vip).unwrap();
            let one = |_| {
                let begun = Instant::now();
                ask(&mut client, &[&paths[0], &paths[1]], size_bytes);
                us(begun.elapsed())
            };
            (0..count).map(one).collect()
        });
        assert_eq!(self.nodes[ORIGINAL].stats().lost, lost, "lost connections");
        times
    }

    /// 16 connections ask for this document again and again.
    pub(crate) fn load(&self, path: &str, seconds: usize, meter: Option<&CpuMeter>) -> Load {
        let mut command = self.lab.node(Node::Client).unwrap().command("wrk");
        self.plan.pin_this_thread(Node::Client).unwrap();
        command.args(["-t1", "-c16", "--timeout", "5", &format!("-d{seconds}")]);
        command.arg(format!("http://{}{path}", self.vip()));
        let before = meter.map(CpuMeter::read);
        let output = command.output().expect("wrk");
        let used = meter.zip(before).map(|(meter, before)| meter.read().since(before).busy);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_wrong = text.contains("Non-2xx") || text.contains("Socket errors") || !output.status.success();
        assert!(!is_wrong, "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        let before = |word: &str| words[words.iter().position(|found| *found == word).unwrap() - 1];
        let requests: f64 = before("requests").parse().unwrap();
        let rate = text.split("Requests/sec:").nth(1).unwrap().split_whitespace().next().unwrap();
        let cpu_us = used.map_or(0.0, |used| us(used) / requests);
        Load { requests_per_s: rate.parse().unwrap(), cpu_us }
    }

    /// Of all nodes and the client.
    pub(crate) fn set_links(&self, conditions: &Conditions) {
        for node in NODES.into_iter().chain([Node::Client]) {
            self.lab.link(node).unwrap().set(conditions).unwrap();
        }
    }

    pub(crate) fn stop(self) {
        let Self { nodes, lab, .. } = self;
        for (number, node) in nodes.into_iter().enumerate() {
            lab.node(NODES[number]).unwrap().run(|| node.stop()).unwrap().unwrap();
        }
    }
}

/// Sends requests for these documents together, reads all answers, and returns the first head in lower case.
fn ask(client: &mut TcpStream, paths: &[&String], size_bytes: usize) -> String {
    let text: String = paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
    client.write_all(text.as_bytes()).unwrap();
    let mut found = Vec::new();
    let mut buffer = [0; 64 * 1024];
    let mut heads = Vec::new();
    let mut from = 0;
    while heads.len() < paths.len() {
        match found[from.min(found.len())..].windows(4).position(|four| four == b"\r\n\r\n") {
            Some(at) if found.len() >= from + at + 4 + size_bytes => {
                heads.push(String::from_utf8_lossy(&found[from..from + at + 2]).to_lowercase());
                from += at + 4 + size_bytes;
            }
            _ => {
                let count = client.read(&mut buffer).unwrap();
                assert!(count > 0, "an end");
                found.extend_from_slice(&buffer[..count]);
            }
        }
    }
    assert!(found.len() == from && heads.iter().all(|head| head.starts_with("http/1.1 200")), "{heads:?}");
    heads.swap_remove(0)
}
