//! The guard's programs, tried on single packets, and its maps.

use std::io::Read as _;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use plimsoll_datapath::{
    DatapathError, Flow, Guard, GuardConfig, HeldPacket, HeldRing, PacketVerdict, now_ns,
};
use plimsoll_testkit::{cpu_time_of, eventually, uninterrupted, wait_for};

use crate::network::{Instance, Machine, opened};
use crate::packet::{ACK, FIN, Packet, SYN};

/// A back-end without a network: `eth0` leads nowhere, and the virtual addresses are on `lo`.
struct Backend {
    machine: Machine,
    instance: Instance,
}

/// (client, virtual address) of both families.
fn pairs() -> [(SocketAddr, SocketAddr); 2] {
    [("10.0.0.9:4711", "10.99.0.1:80"), ("[fd00::9]:4711", "[fd99::1]:80")]
        .map(|(client, vip)| (client.parse().unwrap(), vip.parse().unwrap()))
}

impl Backend {
    fn new() -> Self {
        let machine = Machine::new();
        machine.ip("link add eth0 type veth peer name far0");
        machine.ip("link set eth0 up");
        for address in ["10.99.0.1/32", "fd99::1/128", "10.99.0.9/32", "fd99::9/128"] {
            machine.ip(&format!("addr add {address} dev lo"));
        }
        Self { machine, instance: Instance::new() }
    }

    fn config(&self) -> GuardConfig {
        GuardConfig {
            instance: self.instance.0.clone(),
            interface: "eth0".to_owned(),
            vips: pairs().map(|(_, vip)| vip).to_vec(),
            leases: 1000,
            ring_bytes: 64 * 1024,
        }
    }

    fn open(&self) -> (Guard, HeldRing) {
        self.machine.run(|| opened(|| Guard::open(&self.config()))).expect("these tests need root")
    }

    fn inbound(&self, guard: &Guard, frame: &[u8]) -> PacketVerdict {
        self.machine.run(|| guard.try_inbound(frame, 1)).unwrap().verdict
    }
}

fn outbound(guard: &Guard, frame: &[u8]) -> PacketVerdict {
    guard.try_outbound(frame, 1).unwrap().verdict
}

fn held(ring: &mut HeldRing) -> Vec<HeldPacket> {
    let mut packets = Vec::new();
    while ring.poll_held(|packet| packets.push(packet)).unwrap() > 0 {}
    packets
}

#[test]
fn packets_without_a_socket_are_held_whole() {
    let backend = Backend::new();
    let (guard, mut ring) = backend.open();
    for (client, vip) in pairs() {
        // A listener is no socket of the connection.
        let _listener = backend.machine.run(|| TcpListener::bind(vip).unwrap());
        let before = now_ns();
        let frames = [0, 1, 100, 134, 135, 1400, 2900]
            .map(|bytes| Packet::new(client, vip, ACK).payload(bytes).frame());
        for frame in &frames {
            assert_eq!(backend.inbound(&guard, frame), PacketVerdict::Drop);
        }
        let packets = held(&mut ring);
        assert_eq!(packets.len(), frames.len());
        for (packet, frame) in packets.iter().zip(&frames) {
            assert_eq!(&*packet.frame, frame);
            assert_eq!(packet.flow, Flow::new(client, vip));
            assert!((before..=now_ns()).contains(&packet.at_ns));
            assert_eq!(packet.ifindex, 1, "tried at lo");
        }
    }
    assert_eq!(guard.counters().unwrap().held, 14);
}

#[test]
fn the_ring_is_bounded_and_so_are_frames() {
    let backend = Backend::new();
    let (guard, mut ring) = backend.open();
    let (client, vip) = pairs()[0];
    assert_eq!(
        backend.inbound(&guard, &Packet::new(client, vip, ACK).payload(3100).frame()),
        PacketVerdict::Drop
    );
    assert_eq!(guard.counters().unwrap().too_long, 1);
    let frame = Packet::new(client, vip, ACK).payload(1000).frame();
    let trial = backend.machine.run(|| guard.try_inbound(&frame, 100)).unwrap();
    assert_eq!(trial.verdict, PacketVerdict::Drop);
    let counters = guard.counters().unwrap();
    assert_eq!(counters.held + counters.ring_full, 100);
    assert!(counters.ring_full >= 75, "64 KiB hold no more: {counters:?}");
    assert_eq!(held(&mut ring).len() as u64, counters.held);
    assert_eq!(backend.inbound(&guard, &frame), PacketVerdict::Drop);
    assert_eq!(held(&mut ring).len(), 1, "there is room again");
}

#[test]
fn packets_with_a_socket_pass_and_connections_begin_elsewhere() {
    let backend = Backend::new();
    let (guard, mut ring) = backend.open();
    for (_, vip) in pairs() {
        let listener = backend.machine.run(|| TcpListener::bind(vip).unwrap());
        let mut near = backend.machine.run(|| TcpStream::connect(vip).unwrap());
        let (mut accepted, client) = listener.accept().unwrap();
        let packet = |flags| Packet::new(client, vip, flags).frame();
        let before = guard.counters().unwrap();
        assert_eq!(backend.inbound(&guard, &packet(ACK)), PacketVerdict::Pass);
        assert_eq!(backend.inbound(&guard, &packet(ACK | FIN)), PacketVerdict::Pass);
        // It is for the socket to doubt it.
        assert_eq!(backend.inbound(&guard, &packet(SYN)), PacketVerdict::Pass);
        let other = SocketAddr::new(client.ip(), client.port() ^ 1);
        assert_eq!(backend.inbound(&guard, &Packet::new(other, vip, SYN).frame()), PacketVerdict::Drop);
        let after = guard.counters().unwrap();
        assert_eq!((after.passed - before.passed, after.syn_dropped - before.syn_dropped), (3, 1));
        // Ours ends first, so it waits for late packets. To close it is not enough: a child process that another test
        // starts in this moment has a copy of its descriptor.
        accepted.shutdown(Shutdown::Write).unwrap();
        assert_eq!(uninterrupted(|| near.read(&mut [0])).unwrap(), 0);
        near.shutdown(Shutdown::Write).unwrap();
        assert_eq!(uninterrupted(|| accepted.read(&mut [0])).unwrap(), 0);
        eventually("waiting for late packets", || {
            backend.inbound(&guard, &packet(ACK)) == PacketVerdict::Pass
                && backend.inbound(&guard, &packet(SYN)) == PacketVerdict::Drop
        });
        // Where a connection was, a SYN goes back, by way of which the next one begins.
        guard.lease(&Flow::new(client, vip), u64::MAX).unwrap();
        let trial = backend.machine.run(|| guard.try_inbound(&packet(SYN), 1)).unwrap();
        assert_eq!(trial.verdict, PacketVerdict::Redirect);
        assert_eq!(trial.frame[..12], [&packet(SYN)[6..12], &packet(SYN)[..6]].concat());
        assert!(held(&mut ring).is_empty());
    }
}

#[test]
fn what_is_not_for_a_virtual_address_passes() {
    let backend = Backend::new();
    let (guard, mut ring) = backend.open();
    for (client, vip) in pairs() {
        let other_port = SocketAddr::new(vip.ip(), 22);
        let other_address = SocketAddr::new(client.ip(), 80);
        for frame in [
            Packet::new(client, other_port, ACK).frame(),
            Packet::new(client, other_port, SYN).frame(),
            Packet::new(client, other_address, ACK).frame(),
            Packet { to_mac: [2; 6], ..Packet::new(client, vip, ACK) }.frame(),
            Packet::new(client, vip, ACK).fragment(false),
        ] {
            assert_eq!(backend.inbound(&guard, &frame), PacketVerdict::Pass);
        }
        assert_eq!(outbound(&guard, &Packet::new(other_port, client, ACK).frame()), PacketVerdict::Pass);
        assert_eq!(outbound(&guard, &Packet::new(other_address, client, ACK).frame()), PacketVerdict::Pass);
        assert_eq!(outbound(&guard, &Packet::new(client, vip, ACK).frame()), PacketVerdict::Pass);
    }
    assert!(held(&mut ring).is_empty());
    let counters = guard.counters().unwrap();
    assert_eq!((counters.held, counters.fragments, counters.fenced_unknown, counters.sent), (0, 2, 0, 0));
}

#[test]
fn nothing_leaves_without_a_lease() {
    let backend = Backend::new();
    let (guard, _ring) = backend.open();
    for (client, vip) in pairs() {
        let flow = Flow::new(client, vip);
        let frame = Packet::new(vip, client, ACK).payload(100).frame();
        let start = guard.counters().unwrap();
        assert_eq!(outbound(&guard, &frame), PacketVerdict::Drop);

        guard.lease(&flow, now_ns() + 3_600_000_000_000).unwrap();
        let before = now_ns();
        assert_eq!(outbound(&guard, &frame), PacketVerdict::Pass);
        assert!(guard.get(&flow).unwrap().unwrap().last_sent_ns >= before);

        guard.lease(&flow, now_ns() - 1).unwrap();
        assert_eq!(outbound(&guard, &frame), PacketVerdict::Drop);
        assert!(guard.confirm(&flow).unwrap());
        assert_eq!(guard.get(&flow).unwrap().unwrap().until_ns, u64::MAX);
        assert_eq!(outbound(&guard, &frame), PacketVerdict::Pass);

        assert!(guard.release(&flow).unwrap());
        assert!(!guard.release(&flow).unwrap());
        assert!(!guard.confirm(&flow).unwrap(), "what is released is not confirmed");
        assert_eq!(outbound(&guard, &frame), PacketVerdict::Drop);
        let end = guard.counters().unwrap();
        assert_eq!((end.sent - start.sent, end.fenced_late - start.fenced_late), (2, 1));
        assert_eq!(end.fenced_unknown - start.fenced_unknown, 2);
    }
}

#[test]
fn leases_run_out_by_themselves() {
    let backend = Backend::new();
    let (guard, _ring) = backend.open();
    let (client, vip) = pairs()[0];
    let frame = Packet::new(vip, client, ACK).frame();
    // Until one is seen in force, which on a busy machine may run out before.
    eventually("a lease in force", || {
        let until = now_ns() + 100_000_000;
        guard.lease(&Flow::new(client, vip), until).unwrap();
        let mut passed = 0;
        loop {
            let before = now_ns();
            match outbound(&guard, &frame) {
                PacketVerdict::Pass => assert!(before < until, "it has run out"),
                _ => break,
            }
            passed += 1;
        }
        assert!(now_ns() >= until, "it is in force");
        passed > 0
    });
}

#[test]
fn the_fence_has_no_gaps() {
    let backend = Backend::new();
    let (guard, _ring) = backend.open();
    for (client, vip) in pairs() {
        guard.lease(&Flow::new(client, vip), u64::MAX).unwrap();
        let packet = Packet::new(vip, client, ACK).payload(8);
        let options: &[u8] = if client.is_ipv4() { &[1, 1, 1, 0] } else { &[6, 0, 1, 4, 0, 0, 0, 0] };
        for frame in [packet.fragment(true), packet.fragment(false)] {
            assert_eq!(outbound(&guard, &frame), PacketVerdict::Drop);
        }
        assert_eq!(outbound(&guard, &packet.with(0, options)), PacketVerdict::Pass);
        guard.release(&Flow::new(client, vip)).unwrap();
        assert_eq!(outbound(&guard, &packet.with(0, options)), PacketVerdict::Drop);
        let elsewhere = Packet::new(SocketAddr::new(client.ip(), 80), client, ACK);
        assert_eq!(outbound(&guard, &elsewhere.fragment(true)), PacketVerdict::Pass);
    }
}

#[test]
fn virtual_addresses_change() {
    let backend = Backend::new();
    let (guard, _ring) = backend.open();
    let [(client, vip), (_, vip6)] = pairs();
    let other = SocketAddr::new(vip.ip(), 8080);
    guard.set_vips(&[other, vip6]).unwrap();
    assert_eq!(outbound(&guard, &Packet::new(vip, client, ACK).frame()), PacketVerdict::Pass);
    assert_eq!(outbound(&guard, &Packet::new(other, client, ACK).frame()), PacketVerdict::Drop);
    assert_eq!(
        outbound(&guard, &Packet::new(vip, client, ACK).fragment(true)),
        PacketVerdict::Drop,
        "any port"
    );
    guard.set_vips(&[vip6]).unwrap();
    assert_eq!(outbound(&guard, &Packet::new(vip, client, ACK).fragment(true)), PacketVerdict::Pass);
    for bad in ["0.0.0.0:80", "[::]:80", "10.0.0.1:0"] {
        assert!(matches!(guard.set_vips(&[bad.parse().unwrap()]), Err(DatapathError::Invalid(_))), "{bad}");
    }
    let many: Vec<SocketAddr> = (1..=257).map(|port| SocketAddr::new(vip.ip(), port)).collect();
    assert!(guard.set_vips(&many).is_err());
    guard.set_vips(&many[..256]).unwrap();
}

#[test]
fn one_living_guard_takes_over_from_a_dead_one() {
    let backend = Backend::new();
    let (guard, ring) = backend.open();
    let (client, vip) = pairs()[0];
    let flow = Flow::new(client, vip);
    guard.lease(&flow, u64::MAX).unwrap();
    backend.inbound(&guard, &Packet::new(client, vip, ACK).frame());
    let busy = backend.machine.run(|| Guard::open(&backend.config())).unwrap_err();
    assert!(matches!(busy, DatapathError::Busy { .. }), "{busy}");
    drop((guard, ring));
    for point in ["ingress", "egress"] {
        assert!(backend.machine.filters("eth0", point).contains("plimsoll"), "{point}");
    }

    let (guard, mut ring) = backend.open();
    assert_eq!(guard.get(&flow).unwrap().map(|lease| lease.until_ns), Some(u64::MAX));
    assert_eq!(held(&mut ring).len(), 1, "what was held is read by the next");
    let mut found = Vec::new();
    guard.for_each_lease(|flow, _| found.push(flow)).unwrap();
    assert_eq!(found, [flow]);
    for point in ["ingress", "egress"] {
        let filters = backend.machine.filters("eth0", point);
        assert_eq!(filters.matches("direct-action").count(), 1, "{filters}");
    }

    backend.machine.run(|| guard.clear_and_detach()).unwrap();
    for point in ["ingress", "egress"] {
        assert!(!backend.machine.filters("eth0", point).contains("plimsoll"), "{point}");
    }
    assert!(!std::fs::exists(backend.instance.pins()).unwrap());
}

#[test]
fn another_interface_takes_the_guard_from_the_first() {
    let backend = Backend::new();
    backend.machine.ip("link add eth1 type veth peer name far1");
    drop(backend.open());
    let config = GuardConfig { interface: "eth1".to_owned(), ..backend.config() };
    let _guard = backend.machine.run(|| opened(|| Guard::open(&config))).unwrap();
    assert!(!backend.machine.filters("eth0", "ingress").contains("plimsoll"));
    assert!(!backend.machine.filters("eth0", "egress").contains("plimsoll"));
    assert!(backend.machine.filters("eth1", "egress").contains("plimsoll"));
}

#[test]
fn bad_configurations_are_refused() {
    let backend = Backend::new();
    let good = backend.config();
    for bad in [
        GuardConfig { ring_bytes: 100_000, ..good.clone() },
        GuardConfig { ring_bytes: 4096, ..good.clone() },
        GuardConfig { leases: 0, ..good.clone() },
        GuardConfig { vips: vec!["0.0.0.0:80".parse().unwrap()], ..good.clone() },
        GuardConfig { interface: "lo".to_owned(), ..good.clone() },
    ] {
        let refused = backend.machine.run(|| Guard::open(&bad)).unwrap_err();
        assert!(matches!(refused, DatapathError::Invalid(_)), "{refused}");
    }
    let nowhere = GuardConfig { interface: "nosuch0".to_owned(), ..good };
    let refused = backend.machine.run(|| Guard::open(&nowhere)).unwrap_err();
    assert!(matches!(refused, DatapathError::NoInterface { .. }), "{refused}");
}

/// In CPU time, as a machine may do other things.
#[test]
fn packets_cost_little() {
    const TIMES: u32 = 100_000;
    let backend = Backend::new();
    let (guard, _ring) = backend.open();
    for (_, vip) in pairs() {
        let listener = backend.machine.run(|| TcpListener::bind(vip).unwrap());
        let _near = backend.machine.run(|| TcpStream::connect(vip).unwrap());
        let (_accepted, client) = listener.accept().unwrap();
        guard.lease(&Flow::new(client, vip), u64::MAX).unwrap();
        let inbound = Packet::new(client, vip, ACK).payload(100).frame();
        let try_inbound = || cpu_time_of(|| guard.try_inbound(&inbound, TIMES).unwrap().verdict);
        let (passed_in, inbound) = backend.machine.run(try_inbound);
        let outbound = Packet::new(vip, client, ACK).payload(1400).frame();
        let (passed_out, outbound) = cpu_time_of(|| guard.try_outbound(&outbound, TIMES).unwrap().verdict);
        println!("{vip}: inbound {:?}, outbound {:?}", inbound / TIMES, outbound / TIMES);
        assert_eq!((passed_in, passed_out), (PacketVerdict::Pass, PacketVerdict::Pass));
        let most = TIMES * Duration::from_micros(10);
        assert!(inbound < most && outbound < most, "130 ns each when alone");
    }
}

#[test]
fn a_virtual_address_has_one_guard() {
    let backend = Backend::new();
    let (guard, _ring) = backend.open();
    let open = |machine: &Machine, instance: &Instance, vips: &[SocketAddr]| {
        let config = GuardConfig { instance: instance.0.clone(), vips: vips.to_vec(), ..backend.config() };
        machine.run(|| opened(|| Guard::open(&config))).map(|(guard, _)| guard)
    };
    let taken = |error: DatapathError| {
        assert!(matches!(error, DatapathError::Taken { .. }), "{error}");
        error.to_string()
    };
    let first = &backend.instance.0;
    let other = Instance::new();
    for (_, vip) in pairs() {
        // Whatever the port: the address belongs to the machine once.
        for vip in [vip, SocketAddr::new(vip.ip(), 443)] {
            let said = taken(open(&backend.machine, &other, &[vip]).unwrap_err());
            assert!(said.contains(&vip.ip().to_string()) && said.contains(first), "{said}");
            assert!(said.contains("eth0") && said.contains("stop that one"), "{said}");
        }
    }
    // With other addresses, and on other machines, all is well.
    let elsewhere = "10.99.0.2:80".parse().unwrap();
    backend.machine.run(|| open(&backend.machine, &other, &[elsewhere]).unwrap().clear_and_detach().unwrap());
    let far = Backend::new();
    let guard_there = open(&far.machine, &other, &backend.config().vips).unwrap();
    far.machine.run(|| guard_there.clear_and_detach().unwrap());
    // Its process gone, its programs are still there.
    drop(guard);
    // A child that another test is just starting has our files, and so the lock, until it becomes another program.
    let said = wait_for("the lock to end", || {
        let said = taken(open(&backend.machine, &other, &[pairs()[0].1]).unwrap_err());
        said.contains("start the agent with the name").then_some(said)
    });
    assert!(said.contains(first), "{said}");
    let (guard, _ring) = backend.open();
    backend.machine.run(|| guard.clear_and_detach().unwrap());
    let alone = open(&backend.machine, &other, &[pairs()[0].1]).unwrap();
    backend.machine.run(|| alone.clear_and_detach().unwrap());
}
