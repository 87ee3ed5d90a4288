//! Nodes of Socket Cloning in network namespaces, and clients that connect to one of them. These tests need root.

mod answers;
mod client;
mod costs;
mod decisions;
mod edges;
mod ipv6;
mod keeping;
mod leaving;
mod many;
mod shimmed;
mod trouble;

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::daemon::{CloneConfig, CloneNode, ClonePeer, ServeConfig};
use plimsoll_lab::{Lab, LabConfig, Node};
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{OriginConfig, Source};
use plimsoll_testkit::{PATIENCE, eventually, unique_name};
use plimsoll_wire::Key;

use client::Client;

const NODES: usize = 3;
const THREADS: usize = 2;
const PORT: u16 = 7400;

pub(crate) fn key() -> Key {
    Key::new([7; 32])
}

/// Three nodes and a client on one segment.
struct World {
    /// Only networks are apart, so names must differ from those of other tests.
    names: Vec<String>,
    nodes: Vec<Option<CloneNode>>,
    is_ipv6: bool,
    lab: Arc<Lab>,
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl Fn(&mut CloneConfig)) -> Self {
        Self::of_family(false, change)
    }

    /// Clients and nodes talk IPv6 to one another, or IPv4.
    fn of_family(is_ipv6: bool, change: impl Fn(&mut CloneConfig)) -> Self {
        let lab = Lab::build(&LabConfig { backends: NODES, ..LabConfig::default() });
        let lab = Arc::new(lab.expect("these tests need root"));
        let names = (0..NODES).map(|_| unique_name("n")).collect();
        let mut world = Self { names, nodes: Vec::new(), is_ipv6, lab };
        for number in 0..NODES {
            let mut config = world.config(number);
            change(&mut config);
            world.nodes.push(Some(world.start(number, config)));
        }
        world.are_linked();
        world
    }

    fn name(&self, number: usize) -> &str {
        &self.names[number]
    }

    fn address(&self, number: usize) -> IpAddr {
        let node = self.lab.node(Node::Backend(number)).unwrap();
        if self.is_ipv6 { node.address_v6().into() } else { node.address().into() }
    }

    fn vip(&self) -> SocketAddr {
        let lab = &self.lab;
        let address =
            if self.is_ipv6 { lab.virtual_address_v6().into() } else { IpAddr::from(lab.virtual_address()) };
        SocketAddr::new(address, 80)
    }

    fn config(&self, number: usize) -> CloneConfig {
        let origin = OriginConfig {
            name: Some(self.name(number).to_owned()),
            ..OriginConfig::new(Source::synthetic(Synthetic::fixed(1000)))
        };
        let listen = SocketAddr::new(self.address(number), PORT);
        let mut config =
            CloneConfig::new(self.name(number).to_owned(), listen, key(), ServeConfig::Origin(origin.into()));
        let others = (0..NODES).filter(|other| *other != number);
        let peer = |other| ClonePeer {
            name: self.name(other).to_owned(),
            address: SocketAddr::new(self.address(other), PORT),
        };
        config.peers = others.map(peer).collect();
        config.interface = "eth0".to_owned();
        config.vips = vec![self.vip()];
        config.threads = THREADS;
        config.drain_timeout = Duration::from_millis(200);
        config
    }

    fn start(&self, number: usize, config: CloneConfig) -> CloneNode {
        self.lab.node(Node::Backend(number)).unwrap().run(|| CloneNode::start(config)).unwrap().unwrap()
    }

    fn node(&self, number: usize) -> &CloneNode {
        self.nodes[number].as_ref().unwrap()
    }

    fn are_linked(&self) {
        let there: Vec<_> = self.nodes.iter().flatten().collect();
        for node in &there {
            eventually("links", || node.links_up() == (there.len() - 1) * THREADS);
        }
    }

    /// From now on the client's packets go to this node, which is the original of new connections.
    fn lead_to(&self, number: usize) {
        // Nothing of an earlier connection may go there.
        self.nothing_is_left();
        let (address, vip) = (self.address(number), self.vip().ip().to_string());
        let set = || {
            let mac = plimsoll_datapath::neighbor(address, PATIENCE).unwrap().mac;
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            let arguments = ["neigh", "replace", &vip, "lladdr", &mac, "dev", "eth0"];
            assert!(Command::new("ip").args(arguments).status().unwrap().success());
        };
        self.lab.node(Node::Client).unwrap().run(set).unwrap();
    }

    fn connect(&self) -> Client {
        let vip = self.vip();
        self.lab.node(Node::Client).unwrap().run(|| Client::connect(vip)).unwrap()
    }

    /// A document of this size that this node answers for.
    fn document_at(&self, number: usize, size: u64) -> String {
        let mut client = self.connect();
        for at in 0..200 {
            let path = format!("/size/{size}/at{at}");
            client.send(&format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
            if client.answer(true).backend == self.name(number) {
                return path;
            }
        }
        panic!("node {number} answers nothing");
    }

    /// Nothing is left over once all connections are closed.
    fn nothing_is_left(&self) {
        for node in self.nodes.iter().flatten() {
            eventually("no connection", || node.open() == 0);
            eventually("no flow", || node.routed() == 0);
        }
        for number in (0..NODES).filter(|&number| self.nodes[number].is_some()) {
            let vip = self.vip().ip().to_string();
            let list = || {
                let output = Command::new("ss").args(["-Htan", "state", "established", "src", &vip]).output();
                String::from_utf8(output.unwrap().stdout).unwrap()
            };
            let machine = self.lab.node(Node::Backend(number)).unwrap();
            eventually("no socket", || machine.run(list).unwrap().trim().is_empty());
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (number, node) in self.nodes.drain(..).enumerate() {
            if let Some(node) = node {
                // Also in a test that fails, so that nothing stays in the kernel.
                let _ = self.lab.node(Node::Backend(number)).unwrap().run(|| node.stop());
            }
        }
    }
}
