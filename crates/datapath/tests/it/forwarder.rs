//! The forwarder's program, tried on single packets.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_datapath::tcp::{TcpState, Window};
use plimsoll_datapath::{Flow, FlowEntry, Forwarder, ForwarderConfig, NextHop, PacketVerdict, now_ns};

use crate::network::Instance;
use crate::packet::{ACK, FIN, Packet, RST, SYN};

pub(crate) const NEXT_HOP: NextHop =
    NextHop { ifindex: 1, mac: [2, 0, 0, 0, 0, 0xb], own_mac: [2, 0, 0, 0, 0, 0xa] };

pub(crate) fn config(instance: &Instance, flows: u32) -> ForwarderConfig {
    let vips = vec!["10.0.0.1:80".parse().unwrap(), "[fd00::1]:80".parse().unwrap()];
    ForwarderConfig { instance: instance.0.clone(), interfaces: vec![], vips, flows }
}

/// A forwarder at no interface.
pub(crate) fn forwarder() -> (Forwarder, Instance) {
    let instance = Instance::new();
    (Forwarder::open(&config(&instance, 1000)).expect("these tests need root"), instance)
}

/// (client, virtual address) of both families.
pub(crate) fn pairs() -> [(SocketAddr, SocketAddr); 2] {
    [("10.0.0.9:4711", "10.0.0.1:80"), ("[fd00::9]:4711", "[fd00::1]:80")]
        .map(|(client, vip)| (client.parse().unwrap(), vip.parse().unwrap()))
}

pub(crate) fn v4() -> (SocketAddr, SocketAddr, Flow) {
    let [(client, vip), _] = pairs();
    (client, vip, Flow::new(client, vip))
}

/// The state of a connection whose client has acknowledged `known`, and has sent so far itself.
fn frozen_state(flow: Flow, known: u32, window_scales: (u8, u8), client_window: u32) -> TcpState {
    TcpState {
        flow,
        send_next: known,
        receive_next: known,
        mss: 1460,
        window_scales: Some(window_scales),
        sack: true,
        timestamp: None,
        window: Window { send: client_window, send_max: client_window, ..Window::default() },
        send_queue: Vec::new(),
        unsent_bytes: 0,
        receive_queue: Vec::new(),
    }
}

pub(crate) fn verdict(forwarder: &Forwarder, frame: &[u8]) -> PacketVerdict {
    forwarder.try_frame(frame, 1).unwrap().verdict
}

pub(crate) fn entry(forwarder: &Forwarder, flow: &Flow) -> FlowEntry {
    forwarder.get(flow).unwrap().unwrap()
}

#[test]
fn hits_are_sent_on_and_tracked() {
    let (forwarder, _instance) = forwarder();
    for (number, (client, vip)) in (1..).zip(pairs()) {
        let flow = Flow::new(client, vip);
        forwarder.insert(&flow, &NEXT_HOP, 7).unwrap();
        let fresh = entry(&forwarder, &flow);
        assert_eq!((fresh.last_ack, fresh.last_seq_end, fresh.packets, fresh.bytes), (None, None, 0, 0));
        assert_eq!((fresh.next_hop, fresh.agent, fresh.fin, fresh.rst), (NEXT_HOP, 7, false, false));

        let before = now_ns();
        let sent = Packet::new(client, vip, ACK).numbers(5000, 0xffff_fff0).payload(100).frame();
        let trial = forwarder.try_frame(&sent, 1).unwrap();
        assert_eq!(trial.verdict, PacketVerdict::Redirect);
        assert_eq!((&trial.frame[..6], &trial.frame[6..12]), (&NEXT_HOP.mac[..], &NEXT_HOP.own_mac[..]));
        assert_eq!(trial.frame[12..], sent[12..]);

        let seen = entry(&forwarder, &flow);
        assert_eq!((seen.last_ack, seen.last_seq_end), (Some(0xffff_fff0), Some(5100)));
        assert_eq!((seen.packets, seen.bytes), (1, sent.len() as u64));
        assert!((before..=now_ns()).contains(&seen.last_seen_ns));
        assert_eq!(forwarder.counters().unwrap().forwarded_packets, number);
    }
}

#[test]
fn ethernet_padding_is_no_payload() {
    let (forwarder, _instance) = forwarder();
    for (client, vip) in pairs() {
        let flow = Flow::new(client, vip);
        forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
        let mut frame = Packet::new(client, vip, ACK).numbers(5000, 1).frame();
        frame.extend([0; 30]);
        assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Redirect);
        assert_eq!(entry(&forwarder, &flow).last_seq_end, Some(5000));
    }
}

#[test]
fn what_is_not_ours_passes_unchanged() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    let other_port = SocketAddr::new(vip.ip(), 81);
    let other_client = SocketAddr::new(client.ip(), 4712);
    let other_host = Packet { to_mac: [2, 0, 0, 0, 0, 9], ..Packet::new(client, vip, ACK) };
    let mut udp = Packet::new(client, vip, ACK).frame();
    udp[14 + 9] = 17;
    let mut arp = Packet::new(client, vip, ACK).frame();
    arp[13] = 6;
    for frame in [
        Packet::new(client, other_port, ACK).frame(),
        Packet::new(other_client, vip, ACK).frame(),
        Packet::new(vip, client, ACK).frame(),
        other_host.frame(),
        udp,
        arp,
    ] {
        let trial = forwarder.try_frame(&frame, 1).unwrap();
        assert_eq!((trial.verdict, trial.frame), (PacketVerdict::Pass, frame));
    }
    let counters = forwarder.counters().unwrap();
    assert_eq!((counters.unknown, counters.forwarded_packets, counters.malformed), (1, 0, 0));
    assert_eq!(entry(&forwarder, &flow).packets, 0);
}

#[test]
fn cut_off_packets_pass() {
    let (forwarder, _instance) = forwarder();
    for (client, vip) in pairs() {
        forwarder.insert(&Flow::new(client, vip), &NEXT_HOP, 0).unwrap();
        let whole = Packet::new(client, vip, ACK).payload(10).frame();
        // The kernel wants an Ethernet and an IP header's worth of bytes to try a program on.
        for length in 34..whole.len() {
            match forwarder.try_frame(&whole[..length], 1) {
                Ok(trial) => assert_eq!(trial.verdict, PacketVerdict::Pass, "{length}"),
                Err(error) => assert!(length < 54 && client.is_ipv6(), "{length}: {error}"),
            }
        }
        let mut bad = [whole.clone(), whole.clone(), whole.clone()];
        let ip = if client.is_ipv4() { 34 } else { 54 };
        bad[0][ip + 12] = 0x40; // a TCP header of 16 bytes
        bad[1][ip + 12] = 0xf0; // of 60, more than there is
        bad[2][14] = 0x10; // version 1
        for frame in bad {
            assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Pass);
        }
        assert_eq!(entry(&forwarder, &Flow::new(client, vip)).packets, 0);
        assert_eq!(verdict(&forwarder, &whole), PacketVerdict::Redirect);
    }
    assert!(forwarder.counters().unwrap().malformed >= 26);
}

#[test]
fn a_new_connection_ends_a_flow_that_is_over() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    assert!(!forwarder.end(&flow).unwrap());
    for (count, end) in (1..).zip([FIN | ACK, RST]) {
        forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
        verdict(&forwarder, &Packet::new(client, vip, end).frame());
        // Not yet: anyone may have sent both.
        assert_eq!(verdict(&forwarder, &Packet::new(client, vip, SYN).frame()), PacketVerdict::Redirect);
        assert!(forwarder.end(&flow).unwrap());
        assert_eq!(verdict(&forwarder, &Packet::new(client, vip, SYN).frame()), PacketVerdict::Pass);
        assert_eq!(forwarder.get(&flow).unwrap(), None);
        assert_eq!(verdict(&forwarder, &Packet::new(client, vip, SYN).frame()), PacketVerdict::Pass);
        let counters = forwarder.counters().unwrap();
        assert_eq!((counters.syn_removed, counters.unknown), (count, count));
    }
}

#[test]
fn a_syn_alone_does_not_end_a_flow() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(5000, 100).frame());
    // A simultaneous open is none; a FIN or RST with a SYN is none either.
    for flags in [SYN, SYN | ACK, SYN | FIN, SYN | RST, SYN] {
        let syn = Packet::new(client, vip, flags).numbers(6000, 200);
        assert_eq!(verdict(&forwarder, &syn.frame()), PacketVerdict::Redirect, "{flags:#x}");
    }
    let seen = entry(&forwarder, &flow);
    assert_eq!((seen.last_seq_end, seen.last_ack, seen.packets), (Some(5000), Some(100), 6));
    assert_eq!((seen.fin, seen.rst, forwarder.counters().unwrap().syn_removed), (false, false, 0));
    // The client answers the challenge: it has forgotten the connection, of which the back-end tells.
    let reset = Packet::new(client, vip, RST).numbers(5000, 0);
    assert_eq!(verdict(&forwarder, &reset.frame()), PacketVerdict::Redirect);
    forwarder.end(&flow).unwrap();
    assert_eq!(verdict(&forwarder, &Packet::new(client, vip, SYN).frame()), PacketVerdict::Pass);
    assert_eq!(forwarder.get(&flow).unwrap(), None);
}

#[test]
fn a_flow_is_forgotten_when_its_client_is_quiet() {
    const LONG: Duration = Duration::from_secs(1000);
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    assert!(forwarder.forget(&flow, LONG).unwrap(), "there is none");
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(1, 1).frame());
    assert!(!forwarder.forget(&flow, LONG).unwrap());
    assert!(forwarder.get(&flow).unwrap().is_some());
    assert!(forwarder.forget(&flow, Duration::ZERO).unwrap());
    assert_eq!(forwarder.get(&flow).unwrap(), None);
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    verdict(&forwarder, &Packet::new(client, vip, RST).numbers(1, 1).frame());
    assert!(forwarder.forget(&flow, LONG).unwrap(), "a client that has reset the connection is gone");
    assert_eq!(forwarder.get(&flow).unwrap(), None);
}

#[test]
fn numbers_that_cannot_be_the_clients_are_not_noted() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    let known = u32::MAX - 5;
    // Before the windows are known, any that a window can have; then those of the windows.
    for (windows, of_seq, of_ack) in [(None, 1 << 30, 1 << 30), (Some((7, 100_000)), 65_535 << 7, 100_000)] {
        forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
        if let Some((our_scale, client_window)) = windows {
            let state = frozen_state(flow, known, (0, our_scale), client_window);
            assert!(forwarder.set_windows(&state).unwrap());
        }
        verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(known, known).frame());
        let before = entry(&forwarder, &flow);
        assert_eq!((before.last_seq_end, before.last_ack), (Some(known), Some(known)));
        // A FIN counts as one more.
        let beside = |window: u32| [known.wrapping_add(window + 1), known.wrapping_sub(window + 2)];
        let far = known.wrapping_add(1 << 31);
        let forged = beside(of_seq).map(|seq| (seq, known)).into_iter();
        let forged = forged.chain(beside(of_ack).map(|ack| (known, ack))).chain([(far, known), (known, far)]);
        for (seq, ack) in forged {
            for flags in [ACK, FIN | ACK, 0, FIN] {
                let frame = Packet::new(client, vip, flags).numbers(seq, ack).frame();
                assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Redirect, "sent on");
            }
            let seen = entry(&forwarder, &flow);
            let same = FlowEntry { packets: before.packets, bytes: before.bytes, ..seen };
            assert_eq!(same, before, "{windows:?}: {seq:#x} {ack:#x}");
        }
        let (seq, ack) = (known.wrapping_add(of_seq), known.wrapping_add(of_ack));
        verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(seq, ack).frame());
        let seen = entry(&forwarder, &flow);
        assert_eq!((seen.last_seq_end, seen.last_ack), (Some(seq), Some(ack)), "{windows:?}");
    }
}

#[test]
fn a_reset_needs_the_exact_number() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    assert!(forwarder.set_windows(&frozen_state(flow, 5000, (0, 7), 65_535)).unwrap());
    for seq in [4999, 5001, 5000 + (1 << 20), 5000 - (1 << 12), 0] {
        let forged = Packet::new(client, vip, RST).numbers(seq, 5000).frame();
        assert_eq!(verdict(&forwarder, &forged), PacketVerdict::Redirect);
        assert!(!entry(&forwarder, &flow).rst, "{seq}");
    }
    verdict(&forwarder, &Packet::new(client, vip, RST).numbers(5000, 0).frame());
    assert!(entry(&forwarder, &flow).rst);
}

#[test]
fn windows_grow_with_what_the_client_announces() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    let state = frozen_state(flow, 5000, (10, 7), 65_535);
    assert!(!forwarder.set_windows(&state).unwrap(), "there is no flow yet");
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    assert!(forwarder.set_windows(&state).unwrap());
    let given = entry(&forwarder, &flow);
    assert_eq!((given.last_ack, given.last_seq_end), (None, None), "the client has sent nothing yet");
    let acknowledges = |seq: u32, ack: u32| {
        verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(seq, ack).frame());
        entry(&forwarder, &flow).last_ack
    };
    // Packets announce 256 << 10 bytes; one that is not believed changes no window.
    assert_eq!(acknowledges(5000, 5000 + 262_144), None);
    assert_eq!(acknowledges(5000 + (65_535 << 7) + 1, 5000), None);
    assert_eq!(acknowledges(5000, 5000 + 262_144), None);
    assert_eq!(acknowledges(5000, 5000), Some(5000));
    assert_eq!(acknowledges(5000, 5000 + 262_144), Some(5000 + 262_144));
    // Another back-end gets the connection: what the client has sent stays, unless it cannot be.
    assert!(forwarder.set_windows(&state).unwrap());
    assert_eq!(entry(&forwarder, &flow).last_ack, None, "it was forged while the windows were unknown");
    assert!(forwarder.set_windows(&frozen_state(flow, 5000, (10, 7), 1 << 20)).unwrap());
    assert_eq!(acknowledges(5000, 5100), Some(5100));
    assert!(forwarder.set_windows(&frozen_state(flow, 5050, (10, 7), 1 << 20)).unwrap());
    assert_eq!(entry(&forwarder, &flow).last_ack, Some(5100));
}

#[test]
fn errors_of_routers_follow_the_connection() {
    let (forwarder, _instance) = forwarder();
    for (client, vip) in pairs() {
        let flow = Flow::new(client, vip);
        let before = forwarder.counters().unwrap().errors;
        let error = Packet::new(vip, client, ACK).payload(1400).too_big();
        assert_eq!(verdict(&forwarder, &error), PacketVerdict::Pass);
        forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
        let fresh = entry(&forwarder, &flow);
        let trial = forwarder.try_frame(&error, 1).unwrap();
        assert_eq!((trial.verdict, &trial.frame[..6]), (PacketVerdict::Redirect, &NEXT_HOP.mac[..]));
        assert_eq!(trial.frame[12..], error[12..]);
        assert_eq!(entry(&forwarder, &flow), fresh, "the client has sent nothing");

        let mut echo = error.clone();
        echo[if client.is_ipv4() { 34 } else { 54 }] = if client.is_ipv4() { 8 } else { 128 };
        let other_way = Packet::new(client, vip, ACK).payload(1400).too_big();
        let other_port = Packet::new(SocketAddr::new(vip.ip(), 81), client, ACK).too_big();
        for frame in [echo, other_way, other_port] {
            assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Pass);
        }
        let ports_end = if client.is_ipv4() { 66 } else { 106 };
        for cut in 54..ports_end {
            assert_eq!(verdict(&forwarder, &error[..cut]), PacketVerdict::Pass, "{cut}");
        }
        assert_eq!(verdict(&forwarder, &error[..ports_end]), PacketVerdict::Redirect);
        assert_eq!(forwarder.counters().unwrap().errors, before + 2);
    }
}

#[test]
fn ends_are_noted_and_sent_on() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    let fin = Packet::new(client, vip, ACK | FIN).numbers(5000, 1).payload(10);
    assert_eq!(verdict(&forwarder, &fin.frame()), PacketVerdict::Redirect);
    let seen = entry(&forwarder, &flow);
    assert_eq!((seen.fin, seen.rst, seen.last_seq_end), (true, false, Some(5011)));
    let reset = Packet::new(client, vip, RST | ACK).numbers(5011, 8_000_000);
    assert_eq!(verdict(&forwarder, &reset.frame()), PacketVerdict::Redirect);
    let seen = entry(&forwarder, &flow);
    assert_eq!((seen.fin, seen.rst), (true, true));
    assert_eq!((seen.last_seq_end, seen.last_ack), (Some(5011), Some(1)), "a RST's numbers do not count");
}

#[test]
fn numbers_rise_across_the_end_of_their_range() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    let steps = [
        (0xffff_ff00, 0xffff_ff00, 0xffff_ff00),
        (0xffff_fe00, 0xffff_fe00, 0xffff_ff00),
        (0xffff_ffff, 0xffff_ffff, 0xffff_ffff),
        (0, 0, 0),
        (0xffff_fff0, 0xffff_fff0, 0),
        (16, 16, 16),
    ];
    for (seq, ack, expected) in steps {
        let frame = Packet::new(client, vip, ACK).numbers(seq, ack).frame();
        assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Redirect);
        let seen = entry(&forwarder, &flow);
        assert_eq!((seen.last_ack, seen.last_seq_end), (Some(expected), Some(expected)), "{ack:#x}");
    }
    assert_eq!(entry(&forwarder, &flow).acked_bytes, 272, "since the first one that was seen");
    // Without the flag the field means nothing.
    verdict(&forwarder, &Packet::new(client, vip, 0).numbers(17, 1000).frame());
    let seen = entry(&forwarder, &flow);
    assert_eq!((seen.last_ack, seen.last_seq_end), (Some(16), Some(16)));
    // Payload that reaches across the end.
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(u32::MAX - 9, 1).payload(30).frame());
    assert_eq!(entry(&forwarder, &flow).last_seq_end, Some(20));
}
