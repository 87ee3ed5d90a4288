//! Machines on one Ethernet segment: a lab, whose front-end and agents are threads of the test. Needs root.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_lab::{Lab, LabConfig, Node};

/// Addresses of a lab's nodes.
pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 101));
pub(crate) const FRONT_END: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
pub(crate) const BACK_ENDS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 77, 0, 11)), IpAddr::V4(Ipv4Addr::new(10, 77, 0, 12))];
/// Where clients connect, which the front-end answers for.
pub(crate) const VIP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, 100)), 80);

/// A name that nothing else on this machine has: only networks are apart, pinned maps are not.
pub(crate) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// One of the machines.
pub(crate) struct Machine {
    lab: Arc<Lab>,
    node: Node,
}

impl Machine {
    /// Frames that have come to it so far.
    pub(crate) fn frames_received(&self) -> u64 {
        self.lab.node(self.node).unwrap().counters().unwrap().received_packets
    }

    /// Runs `work` on this machine; sockets and threads that it makes stay here.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.lab.node(self.node).unwrap().run(work).unwrap()
    }
}

/// A client, a front-end and two back-ends.
pub(crate) struct Segment {
    pub(crate) client: Machine,
    pub(crate) front_end: Machine,
    pub(crate) back_ends: [Machine; 2],
}

impl Segment {
    pub(crate) fn new() -> Self {
        let lab = Arc::new(Lab::build(&LabConfig::default()).expect("these tests need root"));
        let machine = |node, address: IpAddr| {
            assert_eq!(lab.node(node).unwrap().address(), address);
            Machine { lab: Arc::clone(&lab), node }
        };
        assert_eq!(lab.virtual_address(), VIP.ip());
        Self {
            client: machine(Node::Client, CLIENT),
            front_end: machine(Node::FrontEnd, FRONT_END),
            back_ends: [0, 1].map(|number| machine(Node::Backend(number), BACK_ENDS[number])),
        }
    }
}
