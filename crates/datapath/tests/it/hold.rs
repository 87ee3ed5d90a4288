//! Packets of unknown connections that are held from the kernel, and an address that comes and goes.

use std::net::{TcpListener, TcpStream};

use plimsoll_datapath::{AddressWatch, Flow, PacketVerdict};
use plimsoll_testkit::eventually;

use crate::forwarder::{NEXT_HOP, forwarder, verdict};
use crate::network::Machine;
use crate::packet::{ACK, FIN, Packet, RST, SYN};

#[test]
fn only_what_would_be_answered_by_a_reset_is_held() {
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let (forwarder, _instance) = forwarder();
        let listener = TcpListener::bind(loopback).unwrap();
        let vip = listener.local_addr().unwrap();
        forwarder.watch(&[vip]).unwrap();
        let client = TcpStream::connect(vip).unwrap();
        let known = client.local_addr().unwrap();
        let mut stranger = known;
        stranger.set_port(if known.port() == 1 { 2 } else { 1 });
        let see = |from, flags| verdict(&forwarder, &Packet::new(from, vip, flags).frame());
        assert_eq!(see(stranger, ACK), PacketVerdict::Pass, "nothing is held at first");
        forwarder.hold(true).unwrap();
        for flags in [ACK, ACK | FIN, RST] {
            assert_eq!(see(stranger, flags), PacketVerdict::Drop, "{flags}");
            assert_eq!(see(known, flags), PacketVerdict::Pass, "its connection is here");
        }
        assert_eq!(see(stranger, SYN), PacketVerdict::Pass, "a connection begins");
        let flow = Flow::new(stranger, vip);
        forwarder.insert(&flow, &NEXT_HOP, 1).unwrap();
        assert_eq!(see(stranger, ACK), PacketVerdict::Redirect, "a back-end has it");
        forwarder.remove(&flow).unwrap();
        assert_eq!(see(stranger, ACK), PacketVerdict::Drop);
        drop((client, listener));
        // A process that another test is just starting may have a copy of the listener for a moment.
        eventually("nobody to listen there", || see(stranger, ACK) == PacketVerdict::Pass);
        forwarder.hold(false).unwrap();
        assert_eq!(see(stranger, ACK), PacketVerdict::Pass);
    }
}

#[test]
fn an_address_that_comes_and_goes_is_heard_of() {
    let machine = Machine::new();
    machine.run(|| {
        let watches = ["10.9.9.9", "fd99::9"].map(|ip| AddressWatch::new(ip.parse().unwrap()).unwrap());
        for there in [true, false, true] {
            for watch in &watches {
                let _ = watch.has_changed();
            }
            let verb = if there { "add" } else { "del" };
            for (watch, address) in watches.iter().zip(["10.9.9.9/32", "fd99::9/128"]) {
                machine.ip(&format!("address {verb} {address} dev lo"));
                eventually("a message of the kernel", || watch.has_changed());
                assert_eq!(watch.is_here().unwrap(), there, "{address}");
            }
        }
    });
}
