//! The agent in network namespaces, with a client, and a front-end that does what the tests tell it. These tests need root.

mod front_end;
mod network;
mod pipelined;
mod placement;
mod servers;
mod succession;
mod trouble;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plimsoll_agent::daemon::{Agent, AgentConfig, FrontEnd as Known, ServeConfig};
use plimsoll_origin::synthetic::{self, Synthetic};
use plimsoll_origin::{OriginConfig, Source};

use front_end::{Client, FrontEnd, Link, key};
use network::{BACK_ENDS, FRONT_END, Segment, VIP, unique};

/// Everything that a test has.
struct World {
    front_end: FrontEnd,
    agents: Vec<Agent>,
    segment: Segment,
}

fn address(back_end: usize) -> IpAddr {
    BACK_ENDS[back_end]
}

fn origin() -> ServeConfig {
    ServeConfig::Origin(OriginConfig::new(Source::synthetic(Synthetic::fixed(1000))).into())
}

impl World {
    /// An agent on each of the first `count` back-ends.
    fn new(count: usize) -> Self {
        Self::with(count, |_| {})
    }

    fn with(count: usize, change: impl Fn(&mut AgentConfig)) -> Self {
        let segment = Segment::new();
        let front_end = FrontEnd::new(&segment);
        let agents = (0..count).map(|number| start(&segment, number, &change)).collect();
        Self { front_end, agents, segment }
    }

    fn link(&self, agent: usize) -> Link {
        Link::open(&self.segment, self.agents[agent].address(), &key(), "front-end").unwrap()
    }

    /// A connection with this request on it, led to an agent.
    fn request(&self, agent: usize, request: &str) -> (Client, Vec<u8>) {
        self.front_end.request(&self.segment, request, address(agent))
    }

    /// A connection that an agent has, and its client.
    fn handed_off(&self, link: &mut Link, agent: usize, conn: u64, request: &str) -> Client {
        let (client, state) = self.request(agent, request);
        link.hand_off(conn, 0, &state);
        client
    }

    fn eventually(what: &str, is_so: impl FnMut() -> bool) {
        plimsoll_testkit::eventually(what, is_so);
    }

    /// Waits until what `send` sends has arrived at an agent's machine.
    fn arrives(&self, agent: usize, send: impl FnOnce()) {
        let machine = &self.segment.back_ends[agent];
        let before = machine.frames_received();
        send();
        Self::eventually("a frame", || machine.frames_received() > before);
        // That may have been another frame, such as an acknowledgment on the link.
        plimsoll_testkit::pace(Duration::from_millis(50), plimsoll_testkit::Why::Midst);
    }

    /// The IPv4 sockets of an agent's machine, as the kernel lists them.
    fn sockets(&self, agent: usize) -> String {
        self.segment.back_ends[agent].run(|| std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap())
    }
}

fn start(segment: &Segment, number: usize, change: &dyn Fn(&mut AgentConfig)) -> Agent {
    let mut config = AgentConfig::new(unique("a"), SocketAddr::new(address(number), 0), key(), origin());
    // These front-ends send nothing on their own.
    config.link_timeout = Duration::from_secs(5);
    config.front_ends = vec![Known { name: "front-end".to_owned(), address: FRONT_END }];
    config.interface = "eth0".to_owned();
    config.vips = vec![VIP];
    config.threads = 2;
    change(&mut config);
    segment.back_ends[number].run(|| Agent::start(config).expect("these tests need root"))
}

impl Drop for World {
    fn drop(&mut self) {
        for (agent, machine) in self.agents.drain(..).zip(&self.segment.back_ends) {
            // Also in a test that fails, so that nothing stays in the kernel.
            let _ = machine.run(|| agent.stop());
        }
    }
}

const GET: &str = "GET /size/300000/a HTTP/1.1\r\nHost: x\r\n\r\n";

/// Whether `body` is what the origin has at `path`, whose size it says.
fn is_document(path: &str, body: &[u8]) -> bool {
    let document = Synthetic::fixed(1000).find(path).unwrap();
    body.len() as u64 == document.size_bytes && synthetic::matches(document.number, 0, body)
}
