//! Who reaches whom.

use std::net::{IpAddr, UdpSocket};

use plimsoll_lab::{Lab, LabConfig, Node};
use plimsoll_testkit::uninterrupted;

use crate::common::{PATIENCE, exchange, lab};

#[test]
fn every_node_reaches_every_other_one_by_both_families() {
    let lab = lab(2);
    let nodes: Vec<_> = lab.nodes().collect();
    assert_eq!(nodes.len(), 5);
    for from in &nodes {
        for to in &nodes {
            let peer = exchange(&lab, from.node(), to.node(), to.address().into()).unwrap();
            assert_eq!(peer, IpAddr::from(from.address()), "{} to {}", from.node(), to.node());
            let peer = exchange(&lab, from.node(), to.node(), to.address_v6().into()).unwrap();
            assert_eq!(peer, IpAddr::from(from.address_v6()), "{} to {}", from.node(), to.node());
        }
    }
}

#[test]
fn the_virtual_address_is_the_front_ends_but_not_taken_by_itself() {
    let lab = lab(1);
    let front_end = lab.node(Node::FrontEnd).unwrap();
    let backend = lab.node(Node::Backend(0)).unwrap();
    for address in [IpAddr::from(lab.virtual_address()), lab.virtual_address_v6().into()] {
        exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
    }
    let seen = exchange(&lab, Node::FrontEnd, Node::Backend(0), backend.address().into()).unwrap();
    assert_eq!(seen, IpAddr::from(front_end.address()));
    let seen = exchange(&lab, Node::FrontEnd, Node::Backend(0), backend.address_v6().into()).unwrap();
    assert_eq!(seen, IpAddr::from(front_end.address_v6()));
}

#[test]
fn a_client_with_several_addresses_uses_each() {
    let lab = Lab::build(&LabConfig { clients: 3, backends: 1, ..LabConfig::default() }).unwrap();
    let client = lab.node(Node::Client).unwrap();
    let front_end = lab.node(Node::FrontEnd).unwrap();
    assert_eq!(client.addresses().len(), 3);
    let receiver = front_end.run(|| UdpSocket::bind((front_end.address(), 0))).unwrap().unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    for (v4, _) in client.addresses() {
        let sender = client.run(|| UdpSocket::bind((*v4, 0))).unwrap().unwrap();
        sender.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        assert_eq!(uninterrupted(|| receiver.recv_from(&mut [0; 8])).unwrap().1.ip(), IpAddr::from(*v4));
    }
}

#[test]
fn two_labs_do_not_see_one_another() {
    let (one, other) = (lab(1), lab(1));
    let address = one.node(Node::FrontEnd).unwrap().address();
    let listener = one.node(Node::FrontEnd).unwrap().run(|| std::net::TcpListener::bind((address, 0)));
    let port = listener.unwrap().unwrap().local_addr().unwrap().port();
    let connect = || std::net::TcpStream::connect((address, port));
    // In the other lab, there is the address, but nobody listens.
    let refused = other.node(Node::Client).unwrap().run(connect).unwrap().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    for lab in [&one, &other] {
        exchange(lab, Node::Client, Node::FrontEnd, address.into()).unwrap();
    }
}

#[test]
fn traffic_is_counted_by_pair() {
    let lab = lab(1);
    lab.count_traffic().unwrap();
    let before = lab.node(Node::FrontEnd).unwrap().counters().unwrap();
    let address = lab.node(Node::FrontEnd).unwrap().address();
    exchange(&lab, Node::Client, Node::FrontEnd, address.into()).unwrap();
    let traffic = lab.traffic().unwrap();
    let between = |from, to| traffic.iter().find(|t| t.from == from && t.to == to);
    let sent = between(Node::Client, Node::FrontEnd).unwrap();
    assert!(sent.packets >= 3 && sent.bytes >= 3 * 40 + 4, "{sent:?}");
    assert!(between(Node::FrontEnd, Node::Client).is_some());
    assert!(between(Node::Backend(0), Node::Client).is_none(), "{traffic:?}");
    let counters = lab.node(Node::FrontEnd).unwrap().counters().unwrap().since(before);
    assert!(counters.received_packets >= sent.packets && counters.sent_bytes > 0, "{counters:?}");
}
