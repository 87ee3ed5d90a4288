//! Three nodes of Socket Cloning and a client on a lab, under loads of wrk.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Instant;

use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{Frozen, QueueLimits, fast_forward};
use plimsoll_experiments::cloning::{BedPlan, CloneBed, RawClient};
use plimsoll_lab::{Conditions, CpuMeter, CpuPlan, Lab, LabConfig, Node};
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{OriginConfig, Source};

use super::us;

/// The node whose CPU is its own, by its number.
pub(crate) const ORIGINAL: usize = 0;
/// Of loads.
pub(crate) const CONNECTIONS: usize = 16;
const NODES: [Node; 3] = [Node::FrontEnd, Node::Backend(0), Node::Backend(1)];

/// What is special about the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Keeps,
    Ahead,
}

pub(crate) struct Bed {
    plan: CpuPlan,
    nodes: CloneBed,
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
        let origin = || OriginConfig::new(Source::synthetic(Synthetic::fixed(1000)));
        let wanted = BedPlan {
            change: &|config| {
                config.keeps = kind == Kind::Keeps;
                config.ahead = if kind == Kind::Ahead { 4 } else { 0 };
            },
            ..BedPlan::new(&NODES, &origin)
        };
        Self { plan: plan.clone(), nodes: CloneBed::start(lab, &wanted).expect("nodes") }
    }

    /// The lab on which they are.
    pub(crate) fn lab(&self) -> &Lab {
        &self.nodes.lab
    }

    /// Runs something as a client.
    fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.nodes.client().unwrap().run(work).unwrap()
    }

    /// A document of this size that this node has.
    pub(crate) fn path_at(&self, number: usize, size_bytes: usize) -> String {
        self.nodes.is_quiet().unwrap();
        self.nodes.documents_at(number, size_bytes, 1).unwrap().remove(0)
    }

    /// How long it took until each of so many clones was there, in microseconds.
    pub(crate) fn startups(&self, count: usize) -> Vec<f64> {
        self.nodes.startups_us(count).unwrap()
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
        let vip = self.nodes.vip(ORIGINAL);
        let lost = || self.nodes.counts(ORIGINAL).clones.lost;
        let before = lost();
        let times = self.at_client(|| {
            let mut client = RawClient::connect(vip).unwrap();
            let one = |_| {
                let begun = Instant::now();
                client.ask(&[&paths[0], &paths[1]], size_bytes).unwrap();
                us(begun.elapsed())
            };
            (0..count).map(one).collect()
        });
        assert_eq!(lost(), before, "lost connections");
        times
    }

    /// 16 connections to a node ask for this document again and again.
    pub(crate) fn load(&self, number: usize, path: &str, seconds: usize, meter: Option<&CpuMeter>) -> Load {
        self.nodes.is_quiet().unwrap();
        let url = format!("http://{}{path}", self.nodes.vip(number));
        load(self.lab(), &self.plan, &url, CONNECTIONS, seconds, meter)
    }

    /// Of all nodes and the client.
    pub(crate) fn set_links(&self, conditions: &Conditions) {
        self.nodes.set_links(conditions).unwrap();
        self.nodes.lab.link(Node::Client).unwrap().set(conditions).unwrap();
    }

    pub(crate) fn stop(self) {
        self.nodes.stop().unwrap();
    }
}

/// So many connections of a lab's client ask for this again and again. The meter is that of the original's CPU.
pub(crate) fn load(
    lab: &Lab,
    plan: &CpuPlan,
    url: &str,
    connections: usize,
    seconds: usize,
    meter: Option<&CpuMeter>,
) -> Load {
    let mut command = lab.node(Node::Client).unwrap().command("wrk");
    plan.pin_this_thread(Node::Client).unwrap();
    command.args(["-t1", "--timeout", "5", &format!("-c{connections}"), &format!("-d{seconds}"), url]);
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
