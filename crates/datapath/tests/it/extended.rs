//! Packets whose TCP header does not stand behind a plain IP header, and those that a back-end has sent back.

use std::net::SocketAddr;

use plimsoll_datapath::{Flow, Forwarder, PacketVerdict};

use crate::forwarder::{NEXT_HOP, entry, forwarder, pairs, v4, verdict};
use crate::packet::{ACK, FIN, Packet, RST, SYN};

/// Bytes between IP header and TCP that say nothing: IPv4 options, or two IPv6 extension headers.
fn between(client: SocketAddr) -> &'static [u8] {
    if client.is_ipv4() { &[1, 1, 1, 0] } else { &[60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0] }
}

#[test]
fn options_change_nothing() {
    let (forwarder, _instance) = forwarder();
    for (client, vip) in pairs() {
        let flow = Flow::new(client, vip);
        forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
        let mut sent = Packet::new(client, vip, ACK).numbers(5000, 300).payload(100).with(0, between(client));
        // Ethernet padding is no payload here either.
        sent.extend([0; 8]);
        let trial = forwarder.try_frame(&sent, 1).unwrap();
        assert_eq!((trial.verdict, &trial.frame[12..]), (PacketVerdict::Redirect, &sent[12..]));
        let seen = entry(&forwarder, &flow);
        assert_eq!((seen.last_seq_end, seen.last_ack), (Some(5100), Some(300)));
        // A packet that ends before its header does.
        for bytes in 35..sent.len() - 108 {
            if let Ok(trial) = forwarder.try_frame(&sent[..bytes], 1) {
                assert_eq!(trial.verdict, PacketVerdict::Pass, "{bytes}");
            }
        }
        assert_eq!(entry(&forwarder, &flow).packets, 1);
    }
}

#[test]
fn headers_that_are_not_understood_pass() {
    let (forwarder, _instance) = forwarder();
    let (client, vip) = pairs()[1];
    forwarder.insert(&Flow::new(client, vip), &NEXT_HOP, 0).unwrap();
    let packet = Packet::new(client, vip, ACK).payload(8);
    // On its way to another machine; authenticated; and more headers than anyone sends.
    let route = packet.with(43, &[6, 0, 4, 1, 0, 0, 0, 0]);
    let authenticated = packet.with(51, &[6, 0, 0, 0, 0, 0, 0, 1]);
    let many: Vec<u8> = (0..9).flat_map(|n| [if n < 8 { 60 } else { 6 }, 0, 1, 4, 0, 0, 0, 0]).collect();
    for (count, frame) in (1..).zip([route, authenticated, packet.with(60, &many)]) {
        assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Pass);
        assert_eq!(forwarder.counters().unwrap().options, count);
    }
    assert_eq!(verdict(&forwarder, &packet.with(43, &[6, 0, 4, 0, 0, 0, 0, 0])), PacketVerdict::Redirect);
    assert_eq!(verdict(&forwarder, &packet.with(60, &many[8..])), PacketVerdict::Redirect);
}

#[test]
fn fragments_follow_the_first() {
    let (forwarder, _instance) = forwarder();
    for (client, vip) in pairs() {
        let flow = Flow::new(client, vip);
        forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
        let packet = Packet::new(client, vip, ACK).numbers(5000, 300).payload(80);
        let before = forwarder.counters().unwrap();
        assert_eq!(
            verdict(&forwarder, &packet.fragment(false)),
            PacketVerdict::Pass,
            "it overtook the first"
        );
        assert_eq!(verdict(&forwarder, &packet.fragment(true)), PacketVerdict::Redirect);
        assert_eq!(entry(&forwarder, &flow).last_ack, Some(300));
        let later = forwarder.try_frame(&packet.fragment(false), 1).unwrap();
        assert_eq!((later.verdict, &later.frame[..6]), (PacketVerdict::Redirect, &NEXT_HOP.mac[..]));
        // A packet of the same number on a connection that this machine has.
        let other = Packet::new(SocketAddr::new(client.ip(), 4712), vip, ACK).payload(80);
        assert_eq!(verdict(&forwarder, &other.fragment(true)), PacketVerdict::Pass);
        assert_eq!(verdict(&forwarder, &other.fragment(false)), PacketVerdict::Pass);
        let after = forwarder.counters().unwrap();
        assert_eq!((after.fragments, after.malformed), (before.fragments + 5, before.malformed));
    }
}

#[test]
fn fragments_of_other_protocols_are_none_of_its_business() {
    let (forwarder, _instance) = forwarder();
    for (client, vip) in pairs() {
        forwarder.insert(&Flow::new(client, vip), &NEXT_HOP, 0).unwrap();
        for first in [true, false] {
            let mut frame = Packet::new(client, vip, ACK).payload(80).fragment(first);
            // UDP's number: in the IPv4 header, or in the fragment's.
            frame[if client.is_ipv4() { 23 } else { 54 }] = 17;
            assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Pass);
        }
    }
    assert_eq!(forwarder.counters().unwrap().fragments, 0);
}

/// As a back-end with this MAC address sends it back.
fn returned(forwarder: &Forwarder, packet: &Packet, by: [u8; 6]) -> PacketVerdict {
    let mut frame = packet.frame();
    frame[6..12].copy_from_slice(&by);
    verdict(forwarder, &frame)
}

#[test]
fn a_connection_begins_anew_if_its_back_end_says_so() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    let syn = |seq| Packet::new(client, vip, SYN).numbers(seq, 0);
    // The numbers at which each end lets a connection begin anew.
    for (count, (end, anew)) in (1..).zip([(FIN | ACK, 6002), (RST, 1)]) {
        forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
        verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(6000, 1).frame());
        // It has not ended its connection, which may be on its way to the back-end: what comes back goes round no more.
        assert_eq!(returned(&forwarder, &syn(9000), NEXT_HOP.mac), PacketVerdict::Drop);
        verdict(&forwarder, &Packet::new(client, vip, end).numbers(6000, 1).frame());
        assert_eq!(returned(&forwarder, &syn(9000), [2, 0, 0, 0, 0, 7]), PacketVerdict::Redirect);
        // One of the connection before, where that may have late packets.
        let late = returned(&forwarder, &syn(anew - 1), NEXT_HOP.mac);
        if end != RST {
            assert_eq!(late, PacketVerdict::Drop);
            assert_eq!(returned(&forwarder, &syn(anew), NEXT_HOP.mac), PacketVerdict::Pass);
        }
        assert_eq!(forwarder.get(&flow).unwrap(), None);
        assert_eq!(forwarder.counters().unwrap().syn_removed, count);
    }
    // Back here, it is none of the back-end's business.
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    verdict(&forwarder, &Packet::new(client, vip, RST).frame());
    forwarder.lead_here(&flow).unwrap();
    assert_eq!(returned(&forwarder, &syn(9000), NEXT_HOP.mac), PacketVerdict::Pass);
    assert!(forwarder.get(&flow).unwrap().is_some());
}
