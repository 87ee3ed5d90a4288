//! The packet router's program, tried on single packets.

use std::net::{SocketAddr, TcpListener};

use plimsoll_datapath::tcp::{TcpState, Window};
use plimsoll_datapath::{
    AnswerEnd, CloneEntry, DatapathError, Flow, Guard, GuardConfig, HeldRing, PacketRouter,
    PacketRouterConfig, PacketVerdict, RouterEvent,
};
use plimsoll_testkit::eventually;

use crate::forwarder::{NEXT_HOP, pairs};
use crate::network::{Instance, Machine, opened};
use crate::packet::{ACK, FIN, Packet, RST, SYN};

const ACKNOWLEDGED: u32 = 0xffff_ff00;
const RECEIVED: u32 = 5000;
const WINDOW: u32 = 1 << 17;

struct World {
    router: PacketRouter,
    ring: HeldRing<RouterEvent>,
    /// At the virtual addresses, as an agent has them.
    listeners: Vec<TcpListener>,
    _instance: Instance,
    machine: Machine,
}

/// A router at an interface where nothing arrives.
fn world() -> World {
    let (instance, machine) = (Instance::new(), Machine::new());
    machine.ip("link add eth0 type veth peer name far");
    let vips = pairs().map(|(_, vip)| vip).to_vec();
    for vip in &vips {
        machine.ip(&format!("addr add {} dev lo", vip.ip()));
    }
    let listeners = machine.run(|| vips.iter().map(|vip| TcpListener::bind(vip).unwrap()).collect());
    let config = PacketRouterConfig {
        instance: instance.0.clone(),
        interface: "eth0".to_owned(),
        vips,
        clones: 100,
        ring_bytes: 1 << 16,
    };
    let (router, ring) = machine.run(|| PacketRouter::open(&config, None)).expect("these tests need root");
    World { router, ring, listeners, _instance: instance, machine }
}

fn frozen(flow: Flow) -> TcpState {
    TcpState {
        flow,
        send_next: ACKNOWLEDGED,
        receive_next: RECEIVED,
        mss: 1460,
        window_scales: Some((0, 7)),
        sack: true,
        timestamp: None,
        window: Window { send: 1000, send_max: WINDOW, ..Window::default() },
        send_queue: Vec::new(),
        unsent_bytes: 0,
        receive_queue: Vec::new(),
    }
}

impl World {
    fn see(&self, packet: &Packet) -> PacketVerdict {
        let (machine, router) = (&self.machine, &self.router);
        machine.run(|| router.try_frame(&packet.frame(), 1)).unwrap().verdict
    }

    fn entry(&self, flow: &Flow) -> CloneEntry {
        self.router.get(flow).unwrap().unwrap()
    }

    fn told(&mut self) -> Vec<RouterEvent> {
        let mut told = Vec::new();
        while self.ring.poll_held(|event| told.push(event)).unwrap() > 0 {}
        told
    }

    /// A connection whose clone is at the next hop.
    fn cloned(&self, (client, vip): (SocketAddr, SocketAddr)) -> Flow {
        let flow = Flow::new(client, vip);
        self.router.hold(&flow).unwrap();
        self.router.number(&frozen(flow)).unwrap();
        assert!(self.router.lead(&flow, &NEXT_HOP).unwrap());
        flow
    }
}

fn ack((client, vip): (SocketAddr, SocketAddr), bytes: u32) -> Packet {
    Packet::new(client, vip, ACK).numbers(RECEIVED, ACKNOWLEDGED.wrapping_add(bytes))
}

fn is_packet(event: &RouterEvent, packet: &Packet) -> bool {
    matches!(event, RouterEvent::Packet(held) if *held.frame == *packet.frame())
}

#[test]
fn what_is_acknowledged_goes_on_and_what_is_sent_stays() {
    let mut world = world();
    for pair in pairs() {
        let flow = world.cloned(pair);
        assert_eq!(world.entry(&flow).last_ack, Some(ACKNOWLEDGED));
        let trial = world.router.try_frame(&ack(pair, 500).frame(), 1).unwrap();
        assert_eq!(trial.verdict, PacketVerdict::Redirect);
        assert_eq!((&trial.frame[..6], &trial.frame[6..12]), (&NEXT_HOP.mac[..], &NEXT_HOP.own_mac[..]));
        let entry = world.entry(&flow);
        assert_eq!((entry.last_ack, entry.client_window), (Some(ACKNOWLEDGED.wrapping_add(500)), 256));
        // Late, and sent again.
        assert_eq!(world.see(&ack(pair, 0)), PacketVerdict::Redirect);
        assert_eq!(world.entry(&flow).last_ack, Some(ACKNOWLEDGED.wrapping_add(500)));
        assert!(world.told().is_empty());

        let next = ack(pair, 600).payload(40);
        let mut end = ack(pair, 700);
        end.flags |= FIN;
        for (packet, bytes) in [(next, 600), (end, 700)] {
            assert_eq!(world.see(&packet), PacketVerdict::Drop);
            let told = world.told();
            assert!(matches!(&told[..], [event] if is_packet(event, &packet)), "{told:?}");
            assert_eq!(world.entry(&flow).last_ack, Some(ACKNOWLEDGED.wrapping_add(bytes)));
        }
        assert!(!world.entry(&flow).begun_anew);
        assert_eq!(world.see(&Packet::new(pair.0, pair.1, SYN)), PacketVerdict::Redirect);
        assert!(world.entry(&flow).begun_anew);
        let (known, taken) = (world.entry(&flow), world.router.take(&flow).unwrap());
        assert_eq!(taken.map(|entry| entry.last_ack), Some(known.last_ack));
        assert!(world.router.take(&flow).unwrap().is_none() && !world.router.remove(&flow).unwrap());
        assert_eq!(world.see(&ack(pair, 800)), PacketVerdict::Pass);
        assert!(!world.router.lead(&flow, &NEXT_HOP).unwrap());
    }
    let counters = world.router.counters().unwrap();
    assert_eq!((counters.routed_packets, counters.held, counters.forged), (6, 4, 0));
}

#[test]
fn a_clone_that_keeps_a_connection_gets_all() {
    let mut world = world();
    for pair in pairs() {
        let flow = world.cloned(pair);
        assert!(world.router.lead_all(&flow, &NEXT_HOP, false).unwrap());
        let mut data = ack(pair, 500).payload(40);
        data.seq = RECEIVED;
        let mut end = ack(pair, 2000).numbers(RECEIVED + 40, ACKNOWLEDGED.wrapping_add(2000));
        end.flags |= FIN;
        // Two numbers that lie far from the client's.
        let strange =
            ack(pair, 90).numbers(RECEIVED.wrapping_sub(1 << 30), ACKNOWLEDGED.wrapping_add(1 << 30));
        for packet in
            [&data, &end, &Packet::new(pair.0, pair.1, SYN), &Packet::new(pair.0, pair.1, RST), &strange]
        {
            assert_eq!(world.see(packet), PacketVerdict::Redirect);
        }
        let entry = world.entry(&flow);
        assert_eq!(entry.last_ack, Some(ACKNOWLEDGED.wrapping_add(2000)));
        assert_eq!((entry.expected_seq, entry.reset, entry.closing), (RECEIVED + 40, false, false));
        world.router.lead_here(&flow).unwrap();
        assert_eq!(world.see(&data), PacketVerdict::Drop);
        assert!(matches!(&world.told()[..], [event] if is_packet(event, &data)));
        // It has ended the connection: another one is for this machine.
        assert!(world.router.lead_all(&flow, &NEXT_HOP, true).unwrap());
        assert!(world.entry(&flow).closing);
        assert_eq!(world.see(&end), PacketVerdict::Redirect);
        assert_eq!(world.see(&Packet::new(pair.0, pair.1, SYN | ACK)), PacketVerdict::Redirect);
        assert_eq!(world.see(&Packet::new(pair.0, pair.1, SYN)), PacketVerdict::Pass);
        assert_eq!(world.router.get(&flow).unwrap(), None);
        assert!(!world.router.lead_all(&flow, &NEXT_HOP, false).unwrap());
    }
}

#[test]
fn all_is_held_until_it_is_led() {
    let mut world = world();
    let [pair, _] = pairs();
    let flow = Flow::new(pair.0, pair.1);
    world.router.hold(&flow).unwrap();
    // Not numbered, so it says nothing.
    assert_eq!(world.see(&ack(pair, 1)), PacketVerdict::Drop);
    world.router.number(&frozen(flow)).unwrap();
    assert_eq!(world.see(&ack(pair, 9)), PacketVerdict::Drop);
    assert_eq!(world.told().len(), 2);
    assert_eq!(world.entry(&flow).last_ack, Some(ACKNOWLEDGED.wrapping_add(9)));
    world.router.lead(&flow, &NEXT_HOP).unwrap();
    assert_eq!(world.see(&ack(pair, 9)), PacketVerdict::Redirect);
    world.router.lead_here(&flow).unwrap();
    assert_eq!(world.see(&ack(pair, 9)), PacketVerdict::Drop);
}

#[test]
fn the_end_of_the_answer_is_told_once() {
    let mut world = world();
    let [pair, other] = pairs();
    let flow = world.cloned(pair);
    let end = ACKNOWLEDGED.wrapping_add(1000);
    assert_eq!(world.router.expect(&flow, end).unwrap(), AnswerEnd::Ahead);
    world.see(&ack(pair, 999));
    assert!(world.told().is_empty());
    for _ in 0..3 {
        assert_eq!(world.see(&ack(pair, 1000)), PacketVerdict::Redirect);
    }
    assert_eq!(world.told(), [RouterEvent::Acknowledged(flow)]);
    assert_eq!(world.router.expect(&flow, end).unwrap(), AnswerEnd::Reached);
    assert_eq!(world.router.expect(&flow, end.wrapping_sub(1)).unwrap(), AnswerEnd::Exceeded);
    assert_eq!(world.router.expect(&Flow::new(other.0, other.1), end).unwrap(), AnswerEnd::Unknown);
}

#[test]
fn what_nobody_can_have_sent_is_not_acknowledged() {
    let mut world = world();
    let [pair, _] = pairs();
    let flow = world.cloned(pair);
    // Beyond the largest window; with numbers of a stranger first.
    let mut beyond = ack(pair, WINDOW + 1);
    beyond.seq = RECEIVED.wrapping_sub(1 << 30);
    assert_eq!(world.see(&beyond), PacketVerdict::Redirect);
    assert!(world.told().is_empty());
    beyond.seq = RECEIVED;
    assert_eq!(world.see(&beyond), PacketVerdict::Drop);
    assert_eq!(world.see(&beyond), PacketVerdict::Drop);
    assert_eq!(world.told(), [RouterEvent::Forged(flow)]);
    assert_eq!(world.entry(&flow).last_ack, Some(ACKNOWLEDGED));
    // Beyond the answer.
    let flow = world.cloned(pair);
    world.router.expect(&flow, ACKNOWLEDGED.wrapping_add(10)).unwrap();
    assert_eq!(world.see(&ack(pair, 11)), PacketVerdict::Drop);
    assert_eq!(world.told(), [RouterEvent::Forged(flow)]);
}

#[test]
fn a_reset_is_told_if_its_number_is_right() {
    let mut world = world();
    let [pair, _] = pairs();
    let flow = world.cloned(pair);
    let mut reset = Packet::new(pair.0, pair.1, RST).numbers(RECEIVED + 1, 0);
    let held = |told: &RouterEvent, seq| match told {
        RouterEvent::Packet(packet) => packet.is_of_stream() && packet.reset_seq() == Some(seq),
        _ => false,
    };
    assert_eq!(world.see(&reset), PacketVerdict::Drop);
    assert!(matches!(&world.told()[..], [packet] if held(packet, RECEIVED + 1)));
    assert!(!world.entry(&flow).reset);
    reset.seq = RECEIVED;
    assert_eq!(world.see(&reset), PacketVerdict::Drop);
    assert_eq!(world.see(&reset), PacketVerdict::Drop);
    // Once that it is, and each for the original, which may have gone on.
    let told = world.told();
    assert!(matches!(&told[..], [RouterEvent::Reset(of), one, two]
        if *of == flow && held(one, RECEIVED) && held(two, RECEIVED)));
    assert!(world.entry(&flow).reset);
}

#[test]
fn fragments_of_a_cloned_connection_go_to_the_kernel_and_tell_nothing() {
    let mut world = world();
    for pair in pairs() {
        let flow = world.cloned(pair);
        let before = world.entry(&flow);
        let packet = ack(pair, 500).payload(80);
        for first in [true, false] {
            let verdict = world.router.try_frame(&packet.fragment(first), 1).unwrap().verdict;
            assert_eq!(verdict, PacketVerdict::Pass);
        }
        assert_eq!(world.entry(&flow), before);
    }
    assert!(world.told().is_empty());
    let counters = world.router.counters().unwrap();
    assert_eq!((counters.fragments, counters.held, counters.routed_packets), (4, 0, 0));
}

/// Held it would wait for a process that is gone, and where the clone was it would be dropped.
#[test]
fn who_begins_again_where_nobody_listens_any_more_is_for_the_kernel() {
    let mut world = world();
    let [first, kept] = pairs();
    let flows = [first, kept].map(|pair| world.cloned(pair));
    assert!(world.router.lead_all(&flows[1], &NEXT_HOP, false).unwrap());
    let begin = |world: &World| pairs().map(|(client, vip)| world.see(&Packet::new(client, vip, SYN)));
    assert_eq!(begin(&world), [PacketVerdict::Redirect; 2]);
    world.listeners.clear();
    // A process that another test is just starting may have a copy of the listeners for a moment.
    eventually("nobody to listen there", || begin(&world) == [PacketVerdict::Pass; 2]);
    world.router.lead_here(&flows[0]).unwrap();
    assert_eq!(begin(&world), [PacketVerdict::Pass; 2], "also before the clone is there");
    // Clones go on, and the next agent of the name hears of the connections.
    assert_eq!(world.see(&ack(kept, 500)), PacketVerdict::Redirect);
    assert!(world.router.lead(&flows[0], &NEXT_HOP).unwrap());
    assert_eq!(world.see(&ack(first, 500)), PacketVerdict::Redirect);
    assert_eq!(world.see(&Packet::new(first.0, first.1, SYN | ACK)), PacketVerdict::Redirect);
    assert!(flows.iter().all(|flow| world.router.get(flow).unwrap().is_some()) && world.told().is_empty());
}

#[test]
fn what_another_node_sends_to_nobody_is_dropped() {
    let world = world();
    let [pair, _] = pairs();
    assert_eq!(world.see(&ack(pair, 0)), PacketVerdict::Pass);
    // The source of these frames.
    world.router.set_nodes(&[[2, 0, 0, 0, 0, 0xc]]).unwrap();
    assert_eq!(world.see(&ack(pair, 0)), PacketVerdict::Drop);
    let mut elsewhere = ack(pair, 0);
    elsewhere.to.set_port(81);
    assert_eq!(world.see(&elsewhere), PacketVerdict::Pass);
    world.router.set_nodes(&[[2, 0, 0, 0, 0, 0xd]]).unwrap();
    assert_eq!(world.see(&ack(pair, 0)), PacketVerdict::Pass);
    assert_eq!(world.router.counters().unwrap().late, 1);
}

#[test]
fn another_router_of_the_same_name_inherits_what_clients_wait_for_and_leaves_nothing() {
    let mut world = world();
    let [pair, _] = pairs();
    let waiting = pairs().map(|pair| world.cloned(pair));
    let entries = waiting.map(|flow| world.entry(&flow));
    let [mut resets, mut closes] = [pair; 2];
    resets.0.set_port(pair.0.port() + 1);
    closes.0.set_port(pair.0.port() + 2);
    world.cloned(resets);
    let reset = Packet { flags: RST, ..ack(resets, 0) };
    world.router.try_frame(&reset.frame(), 1).unwrap();
    assert!(world.told().contains(&RouterEvent::Reset(Flow::new(resets.0, resets.1))));
    let closing = world.cloned(closes);
    assert!(world.router.lead_all(&closing, &NEXT_HOP, true).unwrap());
    let World { router, ring, _instance, machine, .. } = world;
    let filters = |machine: &Machine| machine.filters("eth0", "ingress").contains("plimsoll_route");
    assert!(filters(&machine));
    drop((router, ring));
    assert!(filters(&machine), "what was cloned is led on");
    let config = PacketRouterConfig {
        instance: _instance.0.clone(),
        interface: "eth0".to_owned(),
        vips: vec![pair.1],
        clones: 100,
        ring_bytes: 1 << 16,
    };
    let open = || opened(|| PacketRouter::open(&config, None));
    // The second one is as a process whose start fails leaves it.
    for _ in 0..2 {
        let (mut router, _ring) = machine.run(open).unwrap();
        let mut inherited = router.take_inherited();
        inherited.sort_by_key(|flow| flow.client.is_ipv6());
        assert_eq!(inherited, waiting, "whoever comes next can tell their clients");
        assert_eq!(router.take_inherited(), []);
        assert_eq!(router.entered(), waiting.len(), "of the others the client knows");
    }
    let (router, _ring) = machine.run(open).unwrap();
    for (flow, entry) in waiting.iter().zip(entries) {
        assert_eq!(router.take(flow).unwrap(), Some(entry));
    }
    drop((router, _ring));
    let (mut router, _ring) = machine.run(open).unwrap();
    assert_eq!(router.take_inherited(), [], "all are told");
    machine.run(|| router.detach()).unwrap();
    assert!(!filters(&machine));
}

/// A guard of a killed process holds what comes for connections without a lease, and lets nothing of them out.
#[test]
fn a_router_and_a_guard_of_the_same_name_take_over_from_each_other() {
    let (instance, machine) = (Instance::new(), Machine::new());
    machine.ip("link add eth0 type veth peer name far");
    let vips = pairs().map(|(_, vip)| vip).to_vec();
    let interface = "eth0".to_owned();
    let of_guard = GuardConfig {
        instance: instance.0.clone(),
        interface: interface.clone(),
        vips: vips.clone(),
        leases: 100,
        ring_bytes: 1 << 16,
    };
    let of_router = PacketRouterConfig {
        instance: instance.0.clone(),
        interface,
        vips,
        clones: 100,
        ring_bytes: 1 << 16,
    };
    let guard = || machine.run(|| opened(|| Guard::open(&of_guard))).expect("these tests need root");
    let router = |config: &PacketRouterConfig| machine.run(|| opened(|| PacketRouter::open(config, None)));
    let filters = || machine.filters("eth0", "ingress") + &machine.filters("eth0", "egress");
    let attached = || ["plimsoll_in", "plimsoll_out", "plimsoll_route"].map(|name| filters().contains(name));

    drop(guard());
    assert_eq!(attached(), [true, true, false]);
    // Whoever has another name must not come beside it.
    let other = Instance::new();
    let beside = router(&PacketRouterConfig { instance: other.0.clone(), ..of_router.clone() });
    assert!(matches!(beside, Err(DatapathError::Taken { .. })), "{beside:?}");
    drop(router(&of_router).unwrap());
    assert_eq!(attached(), [false, false, true]);
    let table = || std::path::Path::new(&instance.pins()).join("v4/plimsoll_clones").exists();
    assert!(table());
    let (guard, _ring) = guard();
    assert!(!table(), "it tells nobody of the router's clients");
    assert_eq!(attached(), [true, true, false]);
    machine.run(|| guard.clear_and_detach()).unwrap();
    assert_eq!(attached(), [false; 3]);
    assert!(!machine.has_qdisc("eth0"), "what was made for them goes with the last one");
    assert!(!std::path::Path::new(&instance.pins()).exists());
}
