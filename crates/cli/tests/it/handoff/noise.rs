//! Strangers at an agent's port.

use std::io::Read as _;
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_lab::Node;
use plimsoll_testkit::{Why, pace};
use socket2::{Domain, Protocol, Socket, Type};

use super::bed::{Bed, Options};
use super::http::{Client, content};

const BODY: usize = 50_000;
/// Connections of strangers, and of something on the front-end's machine.
const CONNECTIONS: [usize; 2] = [16_000, 4000];
/// How many of them stay open meanwhile and say nothing, or one byte after the other.
const OPEN: usize = 200;

/// Connects this often. Some say nothing, some something that is no handshake, at once or bit by bit, some are gone at once.
fn noise(agent: SocketAddr, connections: usize) {
    let mut random = std::fs::File::open("/dev/urandom").unwrap();
    let mut open = Vec::new();
    for number in 0..connections {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        // Gone with a RST, so that no port waits.
        socket.set_linger(Some(Duration::ZERO)).unwrap();
        socket.connect(&agent.into()).unwrap();
        // The agent may have closed it already.
        match number % 4 {
            0 => drop(socket.send(b"GET / HTTP/1.1\r\n\r\n")),
            1 => {
                let mut bytes = [0; 200];
                random.read_exact(&mut bytes).unwrap();
                drop(socket.send(&bytes));
            }
            2 if open.len() < OPEN => open.push(socket),
            _ => {}
        }
        if let Some(slow) = open.get(number % (2 * OPEN)) {
            drop(slow.send(b"P"));
        }
    }
}

/// A number of the process's status, in KiB.
fn memory_kib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn noise_at_an_agents_port_fills_no_log() {
    let bed = Bed::new(Options { backends: 1, ..Options::default() }, &[("body", content(7, BODY))]);
    let vip = bed.vip();
    let agent = bed.agent_address(0);
    let pid = bed.agents[0].as_ref().unwrap().id();
    let mut client = bed.client(|| Client::connect(vip).unwrap());
    assert!(client.get("/body").unwrap().body == content(7, BODY));
    let before_kib = memory_kib(pid);
    let front_end = bed.lab.node(Node::FrontEnd).unwrap();
    let served = std::thread::scope(|scope| {
        let noises = [
            scope.spawn(|| bed.client(|| noise(agent, CONNECTIONS[0]))),
            scope.spawn(|| front_end.run(|| noise(agent, CONNECTIONS[1])).unwrap()),
        ];
        let mut served = 0;
        while noises.iter().any(|noise| !noise.is_finished()) {
            assert!(client.get("/body").unwrap().body == content(7, BODY));
            served += 1;
            pace(Duration::from_millis(5), Why::UnderLoad);
        }
        served
    });
    let mut another = bed.client(|| Client::connect(vip).unwrap());
    assert!(another.get("/body").unwrap().body == content(7, BODY));
    assert!(served > 0);
    let taken = bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}");
    assert_eq!(taken, Some(2.0), "the links are still there");
    let grown_kib = memory_kib(pid).saturating_sub(before_kib);
    assert!(grown_kib < 64 << 10, "the agent has grown by {grown_kib} KiB");
    let log = std::fs::read_to_string(bed.path("b0.log")).unwrap();
    let told = log.matches("a link was refused").count();
    // One in ten seconds, with the number of the others.
    assert!((1..50).contains(&told) && log.len() < 20_000, "{told} of {CONNECTIONS:?}:\n{log}");
    drop((client, another));
    bed.assert_quiet();
    bed.stop();
}
