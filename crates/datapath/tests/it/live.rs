//! Packets on a real segment: a client (machine 1), a front-end (2) and a back-end (3).

use std::fs;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use plimsoll_datapath::system::{Question, Role, Status, check};
use plimsoll_datapath::tcp::{Frozen, QueueLimits, restore};
use plimsoll_datapath::{
    DatapathError, Flow, Forwarder, ForwarderConfig, Guard, GuardConfig, HeldPacket, HeldRing, NextHop, Vip,
    neighbor,
};
use plimsoll_testkit::{PATIENCE, eventually};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::network::{Instance, Machine, Segment, has_nothing_to_read, opened, read};

/// How long somebody is looked for who is not there; nothing depends on its length.
const IN_VAIN: Duration = Duration::from_millis(400);

struct Live {
    segment: Segment,
    instances: [Instance; 2],
    vip: SocketAddr,
    backend: IpAddr,
    front: IpAddr,
}

/// A virtual address that is taken away on the machine that has it.
struct VipThere<'a> {
    machine: &'a Machine,
    vip: Option<Vip>,
}

impl Drop for VipThere<'_> {
    fn drop(&mut self) {
        let vip = self.vip.take();
        self.machine.run(move || drop(vip));
    }
}

impl Live {
    fn new(v6: bool) -> Self {
        let segment = Segment::new(3);
        let address = |number: u32| -> IpAddr {
            let text = if v6 { format!("fd50::{number}") } else { format!("10.50.0.{number}") };
            text.parse().unwrap()
        };
        let vip = SocketAddr::new(address(100), 8000);
        let suffix = if v6 { "/64 dev eth0 nodad" } else { "/24 dev eth0" };
        segment.machines[1].ip(&format!("addr add {}{suffix}", vip.ip()));
        let instances = [Instance::new(), Instance::new()];
        Self { segment, instances, vip, backend: address(3), front: address(2) }
    }

    fn client(&self) -> &Machine {
        &self.segment.machines[0]
    }

    fn front_end(&self) -> &Machine {
        &self.segment.machines[1]
    }

    fn back_end(&self) -> &Machine {
        &self.segment.machines[2]
    }

    fn forwarder(&self) -> Forwarder {
        let config = ForwarderConfig {
            instance: self.instances[0].0.clone(),
            interfaces: vec!["eth0".to_owned()],
            vips: vec![self.vip],
            flows: 1000,
        };
        self.front_end().run(|| opened(|| Forwarder::open(&config))).expect("these tests need root")
    }

    fn guard(&self) -> (Guard, HeldRing) {
        let config = GuardConfig {
            instance: self.instances[1].0.clone(),
            interface: "eth0".to_owned(),
            vips: vec![self.vip],
            leases: 1000,
            ring_bytes: 1 << 20,
        };
        self.back_end().run(|| opened(|| Guard::open(&config))).expect("these tests need root")
    }

    fn vip_on_backend(&self) -> VipThere<'_> {
        VipThere {
            machine: self.back_end(),
            vip: Some(self.back_end().run(|| Vip::add(self.vip.ip(), "eth0")).unwrap()),
        }
    }

    fn next_hop(&self) -> NextHop {
        self.front_end().run(|| neighbor(self.backend, PATIENCE)).unwrap()
    }

    /// A connection of the client to the front-end: (client's end, front-end's end, flow).
    fn connection(&self, listener: &TcpListener) -> (TcpStream, TcpStream, Flow) {
        let client = self.client().run(|| TcpStream::connect(self.vip).unwrap());
        let (accepted, peer) = listener.accept().unwrap();
        (client, accepted, Flow::new(peer, self.vip))
    }

    fn listener(&self) -> TcpListener {
        self.front_end().run(|| TcpListener::bind(self.vip).unwrap())
    }
}

/// Waits for held packets as an event loop does, by the ring's descriptor.
fn held(ring: &mut HeldRing, enough: usize) -> Vec<HeldPacket> {
    let mut packets = Vec::new();
    eventually("held packets", || {
        let pause = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        poll(&mut [PollFd::new(ring, PollFlags::IN)], Some(&pause)).unwrap();
        while ring.poll_held(|packet| packets.push(packet)).unwrap() > 0 {}
        packets.len() >= enough
    });
    packets
}

fn hand_off(v6: bool) {
    let live = Live::new(v6);
    let (forwarder, (guard, mut ring)) = (live.forwarder(), live.guard());
    let _vip = live.vip_on_backend();
    let listener = live.listener();
    let (mut client, mut accepted, flow) = live.connection(&listener);
    client.write_all(b"first").unwrap();
    assert_eq!(read(&mut accepted, 5), b"first");

    // Front-end: from here on packets go to the back-end, which knows nothing of the connection yet.
    forwarder.insert(&flow, &live.next_hop(), 1).unwrap();
    let frozen = Frozen::freeze(OwnedFd::from(accepted)).unwrap();
    let state = frozen.snapshot(&crate::tcp::flow_of(&frozen), b"first", QueueLimits::default()).unwrap();
    frozen.close();
    client.write_all(b"second").unwrap();
    let packets = held(&mut ring, 1);
    assert!(packets.iter().all(|packet| packet.flow == flow));

    // Back-end: the socket first, then what was held.
    guard.lease(&flow, u64::MAX).unwrap();
    let restored = live.back_end().run(|| restore(&state).unwrap().activate().unwrap());
    let mut stream = TcpStream::from(restored);
    live.segment.plug(1, "down");
    live.back_end().run(|| guard.inject(&packets[0]).unwrap());
    assert_eq!(read(&mut stream, 11), b"firstsecond", "though the client cannot repeat it");
    live.segment.plug(1, "up");
    stream.write_all(b"answer").unwrap();
    assert_eq!(read(&mut client, 6), b"answer");

    // The front-end knows what the client has acknowledged.
    let acknowledged = state.send_next.wrapping_add(6);
    eventually("the acknowledgment passes the front-end", || {
        forwarder.get(&flow).unwrap().unwrap().last_ack == Some(acknowledged)
    });
    let entry = forwarder.get(&flow).unwrap().unwrap();
    assert_eq!(entry.last_seq_end, Some(state.receive_next.wrapping_add(6)));

    // Without a lease nothing comes through; with one, what was lost is sent again.
    guard.release(&flow).unwrap();
    stream.write_all(b"late").unwrap();
    eventually("a packet at the fence", || guard.counters().unwrap().fenced_unknown > 0);
    assert!(has_nothing_to_read(&client));
    guard.lease(&flow, u64::MAX).unwrap();
    assert_eq!(read(&mut client, 4), b"late");
    drop(stream);
    assert_eq!(read(&mut client, 1), b"");
}

#[test]
fn a_held_packet_reaches_the_restored_socket_v4() {
    hand_off(false);
}

#[test]
fn a_held_packet_reaches_the_restored_socket_v6() {
    hand_off(true);
}

/// What the check of a system says here, where tests may do anything.
#[test]
fn a_system_is_inspected() {
    let live = Live::new(false);
    let question = |role, interface: &str| Question {
        role,
        interfaces: vec![interface.to_owned()],
        vips: vec![live.vip.ip()],
        unused: vec![],
        listeners: vec![],
        ports: vec![80],
        peers: vec!["10.50.0.1".parse().unwrap(), "10.50.0.77".parse().unwrap()],
        destinations: vec!["10.50.0.77".parse().unwrap()],
        shared: vec![],
    };
    let complaints = |machine: &Machine, question: Question| -> Vec<String> {
        let findings = machine.run(|| check(&question));
        let bad = findings.into_iter().filter(|finding| finding.status == Status::Missing);
        bad.map(|finding| finding.name).collect()
    };
    let nobody = "peer 10.50.0.77";
    for machine in [live.front_end(), live.back_end()] {
        // The check gives a peer a second to answer; a busy machine may take longer.
        machine.run(|| neighbor("10.50.0.1".parse().unwrap(), PATIENCE)).unwrap();
    }
    let front_end = complaints(live.front_end(), question(Role::FrontEnd, "eth0"));
    assert_eq!(front_end, [nobody]);
    let back_end = complaints(live.back_end(), question(Role::Backend, "eth0"));
    assert_eq!(back_end, [nobody]);
    let wrong_place = complaints(live.front_end(), question(Role::Backend, "eth0"));
    assert!(wrong_place.contains(&"virtual address 10.50.0.100".to_owned()), "{wrong_place:?}");
    let no_address = complaints(live.back_end(), question(Role::FrontEnd, "nosuch0"));
    assert!(no_address.contains(&"interface nosuch0".to_owned()), "{no_address:?}");
    assert!(no_address.contains(&"virtual address 10.50.0.100".to_owned()), "{no_address:?}");
    let mut own = question(Role::FrontEnd, "eth0");
    (own.vips, own.shared) = (vec![live.front], vec![live.front]);
    let own = complaints(live.front_end(), own);
    assert_eq!(own, [nobody, "connections to 10.50.0.77"], "what it connects from is the virtual address");
    for point in ["ingress", "egress"] {
        assert_eq!(live.front_end().filters("lo", point), "", "nothing has changed");
    }
}

fn give_back(v6: bool) {
    let live = Live::new(v6);
    let (forwarder, (guard, mut ring)) = (live.forwarder(), live.guard());
    let _vip = live.vip_on_backend();
    let listener = live.listener();
    let (mut client, mut accepted, flow) = live.connection(&listener);
    forwarder.insert(&flow, &live.next_hop(), 1).unwrap();
    client.write_all(b"request").unwrap();
    let packets = held(&mut ring, 1);
    // Nobody was told anything: the client neither got a reset, nor an acknowledgment.
    assert!(forwarder.remove(&flow).unwrap());
    let to_front = live.back_end().run(|| neighbor(live.front, PATIENCE)).unwrap();
    live.back_end().run(|| guard.emit(&packets[0], to_front.mac).unwrap());
    assert_eq!(read(&mut accepted, 7), b"request");
    accepted.write_all(b"answer").unwrap();
    assert_eq!(read(&mut client, 6), b"answer");
}

#[test]
fn a_held_packet_goes_back_to_the_front_end_v4() {
    give_back(false);
}

#[test]
fn a_held_packet_goes_back_to_the_front_end_v6() {
    give_back(true);
}

#[test]
fn forwarding_goes_on_when_the_process_is_gone() {
    let live = Live::new(false);
    let (_guard, mut ring) = live.guard();
    let listener = live.listener();
    let forwarder = live.forwarder();
    let (mut client, _accepted, flow) = live.connection(&listener);
    forwarder.insert(&flow, &live.next_hop(), 1).unwrap();
    drop(forwarder);
    client.write_all(b"1").unwrap();
    held(&mut ring, 1);

    let forwarder = live.forwarder();
    assert_eq!(live.front_end().filters("eth0", "ingress").matches("direct-action").count(), 1);
    assert!(forwarder.get(&flow).unwrap().is_some());
    let before = forwarder.get(&flow).unwrap().unwrap().packets;
    eventually("the client repeats it", || forwarder.get(&flow).unwrap().unwrap().packets > before);

    live.front_end().run(|| forwarder.clear_and_detach()).unwrap();
    assert!(!live.front_end().filters("eth0", "ingress").contains("direct-action"));
    assert!(!fs::exists(live.instances[0].pins()).unwrap());
    client.write_all(b"2").unwrap();
    let mut accepted = _accepted;
    assert_eq!(read(&mut accepted, 2), b"12", "the front-end has its packets again");
}

#[test]
fn neighbors() {
    let live = Live::new(false);
    for peer in [live.backend, "fd50::3".parse().unwrap()] {
        let found = live.front_end().run(|| neighbor(peer, PATIENCE)).unwrap();
        let links = live.back_end().ask("link show dev eth0");
        let mac = found.mac.map(|byte| format!("{byte:02x}")).join(":");
        assert!(links.contains(&mac), "{mac} in {links}");
        let own = found.own_mac.map(|byte| format!("{byte:02x}")).join(":");
        assert!(live.front_end().ask("link show dev eth0").contains(&own));
    }
    let ask =
        |address: &str| live.front_end().run(|| neighbor(address.parse().unwrap(), IN_VAIN)).unwrap_err();
    for nobody in ["10.50.0.77", "fd50::77"] {
        let error = ask(nobody);
        assert!(
            matches!(&error, DatapathError::Unresolved { interface, .. } if interface == "eth0"),
            "{error}"
        );
    }
    for own in ["10.50.0.2", "127.0.0.1", "::1", "fd50::2"] {
        assert!(matches!(ask(own), DatapathError::Invalid(_)), "{own}: {}", ask(own));
    }
    assert!(matches!(ask("192.0.2.1"), DatapathError::Failed { .. }), "{}", ask("192.0.2.1"));
    live.front_end().ip("route add 192.0.2.0/24 via 10.50.0.3");
    live.front_end().ip("route add fd77::/64 via fd50::3");
    for (far, gateway) in [("192.0.2.1", "10.50.0.3"), ("fd77::1", "fd50::3")] {
        let error = ask(far);
        let expected: IpAddr = gateway.parse().unwrap();
        assert!(matches!(&error, DatapathError::Gateway { gateway, .. } if *gateway == expected), "{error}");
    }
}

const ARP_IGNORE: &str = "net/ipv4/conf/eth0/arp_ignore";
const ARP_ANNOUNCE: &str = "net/ipv4/conf/eth0/arp_announce";

fn arp(machine: &Machine) -> (String, String) {
    (machine.read_sysctl(ARP_IGNORE), machine.read_sysctl(ARP_ANNOUNCE))
}

fn pair(ignore: &str, announce: &str) -> (String, String) {
    (ignore.to_owned(), announce.to_owned())
}

#[test]
fn virtual_addresses_come_and_go_with_their_settings() {
    let segment = Segment::new(1);
    let machine = &segment.machines[0];
    machine.sysctl(ARP_ANNOUNCE, "1");
    let add = |address: &str| machine.run(|| Vip::add(address.parse().unwrap(), "eth0")).unwrap();
    let has = |address: &str| machine.ask("addr show dev lo").contains(address);

    let v6 = add("fd50::100");
    assert_eq!(arp(machine), pair("0", "1"), "IPv6 needs no settings");
    let first = add("10.50.0.100");
    let second = add("10.50.0.101");
    assert_eq!(arp(machine), pair("1", "2"));
    assert!(has("10.50.0.100/32") && has("10.50.0.101/32") && has("fd50::100/128"));
    machine.run(|| first.undo()).unwrap();
    assert!(!has("10.50.0.100/32") && has("10.50.0.101/32"));
    assert_eq!(arp(machine), pair("1", "2"), "one is left");
    machine.run(move || drop(second));
    assert_eq!(arp(machine), pair("0", "1"));
    machine.run(move || drop(v6));
    assert!(!has("10.50") && !has("fd50"));
    let nowhere = machine.run(|| Vip::add("10.50.0.100".parse().unwrap(), "nosuch0")).unwrap_err();
    assert!(nowhere.to_string().contains("nosuch0"), "{nowhere}");
    assert!(!has("10.50"));
}

#[test]
fn virtual_addresses_after_a_crash() {
    let segment = Segment::new(1);
    let machine = &segment.machines[0];
    let add = |address: &str| machine.run(|| Vip::add(address.parse().unwrap(), "eth0")).unwrap();
    let has = |address: &str| machine.ask("addr show dev lo").contains(address);
    machine.ip("addr add 10.50.0.50/32 dev lo");

    add("10.50.0.100").leave();
    add("10.50.0.101").leave();
    assert_eq!(arp(machine), pair("1", "2"));
    let again = add("10.50.0.100");
    let theirs = add("10.50.0.50");
    machine.run(|| again.undo()).unwrap();
    assert!(!has("10.50.0.100/32"));
    machine.run(|| theirs.undo()).unwrap();
    assert!(has("10.50.0.50/32"), "the administrator's stays");
    assert_eq!(arp(machine), pair("1", "2"), "a leftover needs it");
    machine.run(|| Vip::undo_leftovers("eth0")).unwrap();
    assert!(!has("10.50.0.101/32"));
    assert_eq!(arp(machine), pair("0", "0"), "as before the first");
    machine.run(|| Vip::undo_leftovers("eth0")).unwrap();
}

/// The front-end has the address; nobody may hear of the back-end's.
#[test]
fn virtual_addresses_are_not_announced() {
    for (v6, vip) in [(false, "10.50.0.100"), (true, "fd50::100")] {
        let segment = Segment::new(2);
        let [asking, machine] = &segment.machines[..] else { panic!("two machines") };
        let vip: IpAddr = vip.parse().unwrap();
        let ask = || asking.run(|| neighbor(vip, IN_VAIN));
        let found = machine.run(|| Vip::add(vip, "eth0")).unwrap();
        assert!(matches!(ask(), Err(DatapathError::Unresolved { .. })), "{vip}: {:?}", ask());
        // Whoever answers a later question has had time for the first.
        let own = if v6 { "fd50::2" } else { "10.50.0.2" };
        asking.run(|| neighbor(own.parse().unwrap(), PATIENCE)).unwrap();
        let known = asking.ask(&format!("neigh show {vip}"));
        assert!(!known.contains("lladdr"), "{known}");
        machine.run(|| found.undo()).unwrap();
        // The question is one that is answered.
        machine.ip(&format!(
            "addr add {vip}/{} dev eth0 {}",
            if v6 { 64 } else { 24 },
            if v6 { "nodad" } else { "" }
        ));
        eventually("an answer", || ask().is_ok());
    }
}
