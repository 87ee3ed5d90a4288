//! Nodes of Socket Cloning on a lab, in this process, with a virtual address for each of them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plimsoll_agent::daemon::{
    CacheCounts, CacheLocation, CacheNode, CacheNodeConfig, CachePeer, CloneConfig, CloneNode, ClonePeer,
    CloneStats, PreparedCacheNode, ServeConfig,
};
use plimsoll_lab::{Conditions, CpuLimit, Lab, Node, NodeHandle};
use plimsoll_origin::{OriginConfig, PeerMemory};
use plimsoll_wire::Key;

use super::raw_client::{PATIENCE, RawClient};
use crate::ExperimentError;

/// Where nodes take links.
const PORT: u16 = 7400;
const CACHE_PORT: u16 = 7410;
/// Where clients connect.
const CLIENTS_PORT: u16 = 80;
/// Last number of the first virtual address; the lab's nodes have lower ones, and its client and common address higher ones.
const FIRST_VIRTUAL: u8 = 91;
/// The most nodes.
const MOST_NODES: usize = 9;
/// How long everything may take to start, or to be quiet.
const STARTING: Duration = Duration::from_secs(60);
/// Documents of which some belong to each node.
const TRIED: usize = 400;

/// How nodes fetch documents from one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BedCaching {
    /// How the node is found that has one.
    pub location: CacheLocation,
    /// Whether what was fetched is kept.
    pub replicate: bool,
}

/// A change to the memory of other nodes that a node's origin asks, by the node's number.
pub type Wrap<'a> = &'a (dyn Fn(usize, Option<Arc<dyn PeerMemory>>) -> Option<Arc<dyn PeerMemory>> + Sync);

/// What nodes are to be.
pub struct BedPlan<'a> {
    /// Where they are; 9 at most.
    pub places: &'a [Node],
    /// Whether they clone sockets to one another; if not, each answers what it accepts.
    pub clones: bool,
    /// Whether they fetch documents from one another.
    pub caching: Option<BedCaching>,
    /// The limit of CPU time of each; none for those beyond its end.
    pub limits: &'a [CpuLimit],
    /// What each serves.
    pub origin: &'a (dyn Fn() -> OriginConfig + Sync),
    /// What else is behind the origin's memory.
    pub wrap: Wrap<'a>,
    /// Changes to each one's configuration.
    pub change: &'a (dyn Fn(&mut CloneConfig) + Sync),
}

impl<'a> BedPlan<'a> {
    /// Nodes that clone, serve this, and have no limits.
    #[must_use]
    pub fn new(places: &'a [Node], origin: &'a (dyn Fn() -> OriginConfig + Sync)) -> Self {
        Self {
            places,
            clones: true,
            caching: None,
            limits: &[],
            origin,
            wrap: &|_, peers| peers,
            change: &|_| {},
        }
    }
}

struct BedNode {
    name: String,
    place: Node,
    node: CloneNode,
    caching: Option<CacheNode>,
}

/// What a node has counted.
#[derive(Debug, Clone)]
pub struct BedCounts {
    /// As one that clones.
    pub clones: CloneStats,
    /// As one that fetches.
    pub caching: Option<CacheCounts>,
}

/// Running nodes. Dropped, they end.
pub struct CloneBed {
    nodes: Vec<BedNode>,
    /// The lab on which they are.
    pub lab: Lab,
}

impl CloneBed {
    /// Starts nodes on a lab, and waits until they have links to one another.
    ///
    /// # Errors
    /// When a node does not start.
    pub fn start(lab: Lab, plan: &BedPlan<'_>) -> Result<Self, ExperimentError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if plan.places.len() > MOST_NODES {
            return Err(ExperimentError::Failed(format!("{MOST_NODES} nodes at most")));
        }
        // Packet programs have these names on the whole machine.
        let own = NUMBER.fetch_add(1, Ordering::Relaxed);
        let names = (0..plan.places.len()).map(|number| format!("p{}-{own}-{number}", std::process::id()));
        let names: Vec<String> = names.collect();
        let mut bed = Self { nodes: Vec::new(), lab };
        for (number, place) in plan.places.iter().enumerate() {
            let node = bed.lab.node(*place)?;
            let (node, caching) = node.run(|| bed.start_node(number, plan, &names))??;
            bed.nodes.push(BedNode { name: names[number].clone(), place: *place, node, caching });
        }
        let others = bed.nodes.len() - 1;
        let linked = |of: &BedNode| {
            (!plan.clones || of.node.links_up() == others)
                && of.caching.as_ref().is_none_or(|caching| caching.links_up() == others)
        };
        until("nodes have no links to one another", || bed.nodes.iter().all(linked))?;
        clients_reuse_ports(&bed.lab)?;
        bed.lead_clients()?;
        Ok(bed)
    }

    /// In the node, on a thread of it.
    fn start_node(
        &self,
        number: usize,
        plan: &BedPlan<'_>,
        names: &[String],
    ) -> Result<(CloneNode, Option<CacheNode>), ExperimentError> {
        let failed = |error| ExperimentError::Failed(format!("a node does not start: {error}"));
        let at = |number: usize, port| -> Result<SocketAddr, ExperimentError> {
            Ok((self.lab.node(plan.places[number])?.address(), port).into())
        };
        let others = || (0..plan.places.len()).filter(move |other| *other != number);
        if let Some(limit) = plan.limits.get(number) {
            limit.add_this_thread()?;
        }
        let mut origin = (plan.origin)();
        origin.name = Some(names[number].clone());
        let mut caching = None;
        if let Some(BedCaching { location, replicate }) = plan.caching.filter(|_| plan.places.len() > 1) {
            let mut config = CacheNodeConfig::new(&*names[number], at(number, CACHE_PORT)?, key());
            for other in others() {
                config.peers.push(CachePeer { name: names[other].clone(), address: at(other, CACHE_PORT)? });
            }
            (config.location, config.replicate, config.document_bytes) = (location, replicate, 8 << 20);
            config.fetch_timeout = PATIENCE;
            caching = Some(PreparedCacheNode::new(config).map_err(failed)?);
        }
        origin.peers = (plan.wrap)(number, caching.as_ref().map(PreparedCacheNode::memory));
        let serve = ServeConfig::Origin(origin.into());
        let mut config = CloneConfig::new(&*names[number], at(number, PORT)?, key(), serve);
        for other in others().filter(|_| plan.clones) {
            config.peers.push(ClonePeer { name: names[other].clone(), address: at(other, PORT)? });
        }
        config.interface = "eth0".to_owned();
        config.vips = (0..plan.places.len()).map(virtual_address).collect();
        config.threads = 1;
        // Clients of loads leave at any point.
        config.write_timeout = Duration::from_secs(20);
        config.drain_timeout = Duration::from_millis(100);
        (plan.change)(&mut config);
        let caching = caching.map(PreparedCacheNode::start).transpose().map_err(failed)?;
        Ok((CloneNode::start(config).map_err(failed)?, caching))
    }

    /// Tells the client which virtual address is at which node: nobody answers for them.
    fn lead_clients(&self) -> Result<(), ExperimentError> {
        let failed =
            |error: String| ExperimentError::Failed(format!("the client does not find a node: {error}"));
        for (number, of) in self.nodes.iter().enumerate() {
            let address = self.lab.node(of.place)?.address().into();
            let find = || plimsoll_datapath::neighbor(address, PATIENCE);
            let mac = self.client()?.run(find)?.map_err(|error| failed(error.to_string()))?.mac;
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            let vip = self.vip(number).ip().to_string();
            let mut command = self.client()?.command("ip");
            command.args(["neigh", "replace", &vip, "lladdr", &mac, "dev", "eth0"]);
            let status = command.status().map_err(|error| failed(error.to_string()))?;
            if !status.success() {
                return Err(failed(format!("ip neigh replace {vip}: {status}")));
            }
        }
        Ok(())
    }

    /// The virtual address of a node: who connects there has this node as original.
    #[must_use]
    pub fn vip(&self, number: usize) -> SocketAddr {
        virtual_address(number)
    }

    /// All of them.
    #[must_use]
    pub fn vips(&self) -> Vec<SocketAddr> {
        (0..self.nodes.len()).map(virtual_address).collect()
    }

    /// The client's node.
    ///
    /// # Errors
    /// When the lab has none.
    pub fn client(&self) -> Result<NodeHandle<'_>, ExperimentError> {
        Ok(self.lab.node(Node::Client)?)
    }

    /// The name of a node, as in `X-Backend`.
    #[must_use]
    pub fn name(&self, number: usize) -> &str {
        &self.nodes[number].name
    }

    /// What a node has counted so far.
    #[must_use]
    pub fn counts(&self, number: usize) -> BedCounts {
        let of = &self.nodes[number];
        BedCounts { clones: of.node.stats(), caching: of.caching.as_ref().map(CacheNode::counts) }
    }

    /// Waits until no connection is open, and the packet routers know none.
    ///
    /// # Errors
    /// When that takes longer than a minute.
    pub fn is_quiet(&self) -> Result<(), ExperimentError> {
        let quiet = || self.nodes.iter().all(|of| of.node.open() == 0 && of.node.routed() == 0);
        until("connections are left over", quiet)
    }

    /// Sets the conditions of the links of all nodes.
    ///
    /// # Errors
    /// See [`plimsoll_lab::NodeLink::set`].
    pub fn set_links(&self, conditions: &Conditions) -> Result<(), ExperimentError> {
        self.nodes.iter().try_for_each(|of| Ok(self.lab.link(of.place)?.set(conditions)?))
    }

    /// Documents of this size whose answers, asked for at the first node, have a head for which `wanted` is true: so many.
    ///
    /// # Errors
    /// When there are too few, or an answer is wrong.
    pub fn documents(
        &self,
        size_bytes: usize,
        count: usize,
        wanted: impl Fn(&str) -> bool + Sync,
    ) -> Result<Vec<String>, ExperimentError> {
        let vip = self.vip(0);
        let find = || {
            let mut client = RawClient::connect(vip)?;
            let mut found = Vec::new();
            for at in 0..TRIED {
                let path = format!("/size/{size_bytes}/s{at}");
                if wanted(&client.ask(&[&path], size_bytes)?) {
                    found.push(path);
                }
                if found.len() == count {
                    return Ok(found);
                }
            }
            Err(io::Error::other(format!("of {TRIED} documents, {} are as wanted", found.len())))
        };
        self.client()?.run(find)?.map_err(|error| wrong(&error))
    }

    /// Documents of this size that a node has, by clones of which it answers.
    ///
    /// # Errors
    /// As [`CloneBed::documents`].
    pub fn documents_at(
        &self,
        number: usize,
        size_bytes: usize,
        count: usize,
    ) -> Result<Vec<String>, ExperimentError> {
        let mark = format!("x-backend: {}\r\n", self.name(number));
        self.documents(size_bytes, count, |head| head.contains(&mark))
    }

    /// Microseconds until each of so many clones was there, from the decision at the first node to the word of the second; one client, 100 bytes.
    ///
    /// # Errors
    /// When an answer is wrong, or a clone was not made.
    pub fn startups_us(&self, count: usize) -> Result<Vec<f64>, ExperimentError> {
        let paths = self.documents_at(1, 100, 1)?;
        let vip = self.vip(0);
        // The word may come after the answer.
        let waited_ns = |before| {
            let end = Instant::now() + PATIENCE;
            loop {
                match self.nodes[0].node.stats().waited_ns {
                    same if same == before && Instant::now() < end => std::thread::yield_now(),
                    waited_ns => return waited_ns,
                }
            }
        };
        let measure = || {
            let mut client = RawClient::connect(vip)?;
            let mut before = self.nodes[0].node.stats().waited_ns;
            let mut times = Vec::with_capacity(count);
            for _ in 0..count {
                client.ask(&[&paths[0]], 100)?;
                let after = waited_ns(before);
                times.push((after - before) as f64 / 1e3);
                before = after;
            }
            Ok(times)
        };
        let times = self.client()?.run(measure)?.map_err(|error| wrong(&error))?;
        if times.contains(&0.0) {
            return Err(ExperimentError::Failed("an answer came without a clone".to_owned()));
        }
        Ok(times)
    }

    /// Ends all nodes; what each has counted.
    ///
    /// # Errors
    /// When a node does not end well.
    pub fn stop(mut self) -> Result<Vec<BedCounts>, ExperimentError> {
        self.end()
    }

    fn end(&mut self) -> Result<Vec<BedCounts>, ExperimentError> {
        let lab = &self.lab;
        let end = |BedNode { place, node, caching, .. }| {
            let clones = lab.node(place)?.run(|| node.stop())?;
            let clones = clones.map_err(|e| ExperimentError::Failed(format!("a node does not end: {e}")))?;
            Ok(BedCounts { clones, caching: caching.map(CacheNode::stop) })
        };
        // All of them, also where one fails.
        let ends: Vec<_> = self.nodes.drain(..).map(end).collect();
        ends.into_iter().collect()
    }
}

impl Drop for CloneBed {
    fn drop(&mut self) {
        // What they have pinned would stay, and no other process has their names.
        let _ = self.end();
    }
}

/// Has the client use a port again a second after its connection has ended, and not after a minute. Otherwise a load with a connection for
/// each request has used all its ports after some 28,000, and searches them for each further one.
pub(super) fn clients_reuse_ports(lab: &Lab) -> Result<(), ExperimentError> {
    let file = "/proc/sys/net/ipv4/tcp_tw_reuse";
    let written = lab.node(Node::Client)?.run(|| std::fs::write(file, "1"))?;
    written.map_err(|error| ExperimentError::writing(file.as_ref(), error))
}

fn key() -> Key {
    Key::new([9; 32])
}

fn virtual_address(number: usize) -> SocketAddr {
    let last = FIRST_VIRTUAL + u8::try_from(number.min(MOST_NODES)).unwrap_or(0);
    (Ipv4Addr::new(10, 77, 0, last), CLIENTS_PORT).into()
}

fn wrong(error: &io::Error) -> ExperimentError {
    ExperimentError::Failed(format!("a client of the lab: {error}"))
}

/// Waits until something is so; `lack` says what is so until then.
fn until(lack: &str, is_so: impl Fn() -> bool) -> Result<(), ExperimentError> {
    let end = Instant::now() + STARTING;
    while !is_so() {
        if Instant::now() > end {
            return Err(ExperimentError::Failed(format!("{lack} after {STARTING:?}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
