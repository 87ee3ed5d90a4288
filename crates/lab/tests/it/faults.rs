//! Links and frames that fail.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use plimsoll_lab::{Conditions, Lab, LabConfig, Node};
use plimsoll_testkit::uninterrupted;

use crate::common::{PATIENCE, eventually, exchange, is_cut_off, lab, lacking};

/// Sockets for datagrams from the client to the front-end.
struct Datagrams {
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Datagrams {
    fn new(lab: &Lab) -> Self {
        let (from, to) = (lab.node(Node::Client).unwrap(), lab.node(Node::FrontEnd).unwrap());
        let receiver = to.run(|| UdpSocket::bind((to.address(), 0))).unwrap().unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        let sender = from.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
        Self { sender, receiver }
    }

    fn send(&self, content: u8, count: usize) {
        for _ in 0..count {
            self.sender.send_to(&[content], self.receiver.local_addr().unwrap()).unwrap();
        }
    }

    fn receive(&self) -> u8 {
        let mut content = [0];
        uninterrupted(|| self.receiver.recv(&mut content)).unwrap();
        content[0]
    }

    /// So many are sent, and all arrive.
    fn all_arrive(&self, count: usize) {
        self.send(b'x', count);
        assert!((0..count).all(|_| self.receive() == b'x'));
    }
}

#[test]
fn a_link_goes_down_and_up() {
    let lab = lab(1);
    let (v4, v6) = lab.node(Node::Backend(0)).unwrap().addresses()[0];
    let reached = || {
        let v4 = exchange(&lab, Node::Client, Node::Backend(0), v4.into()).is_ok();
        let v6 = exchange(&lab, Node::Client, Node::Backend(0), v6.into()).is_ok();
        v4 && v6
    };
    assert!(reached());
    lab.link(Node::Backend(0)).unwrap().down().unwrap();
    for address in [IpAddr::from(v4), v6.into()] {
        assert!(is_cut_off(&lab, Node::Client, Node::Backend(0), address));
    }
    lab.link(Node::Backend(0)).unwrap().up().unwrap();
    eventually("the back-end", reached);
}

#[test]
fn pairs_are_parted_one_way_or_both() {
    let lab = lab(2);
    let address = |to| lab.node(to).unwrap().address().into();
    let reaches = |from, to| exchange(&lab, from, to, address(to)).is_ok();
    lab.block(Node::FrontEnd, Node::Backend(1)).unwrap();
    assert!(is_cut_off(&lab, Node::FrontEnd, Node::Backend(1), address(Node::Backend(1))));
    assert!(reaches(Node::FrontEnd, Node::Backend(0)) && reaches(Node::Client, Node::Backend(1)));
    lab.unblock(Node::FrontEnd, Node::Backend(1)).unwrap();
    // The front-end may still believe that nobody has that address.
    eventually("the back-end", || reaches(Node::FrontEnd, Node::Backend(1)));
    assert!(lab.block(Node::Switch, Node::Client).is_err());
}

#[test]
fn frames_are_dropped_by_what_they_hold() {
    let lab = lab(1);
    let address = lab.node(Node::FrontEnd).unwrap().address().into();
    let error = lab.drop_frames("no such thing").unwrap_err().to_string();
    assert!(error.contains("no such thing"), "{error}");
    lab.drop_frames("ip protocol tcp").unwrap();
    assert!(is_cut_off(&lab, Node::Client, Node::FrontEnd, address));
    Datagrams::new(&lab).all_arrive(4);
    lab.pass_frames().unwrap();
    exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
}

#[test]
fn a_rate_holds_a_transfer_back() {
    const BYTES: usize = 2_000_000;
    let links = Conditions { rate: "20mbit".parse().ok(), ..Conditions::default() };
    let built = Lab::build(&LabConfig { backends: 1, links, ..LabConfig::default() });
    if lacking(&built) {
        return;
    }
    let lab = built.unwrap();
    let to = lab.node(Node::FrontEnd).unwrap();
    let listener = to.run(|| TcpListener::bind((to.address(), 0))).unwrap().unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let time = || {
        let mut sender =
            lab.node(Node::Client).unwrap().run(|| TcpStream::connect(address)).unwrap().unwrap();
        let mut accepted = listener.accept().unwrap().0;
        let start = Instant::now();
        let sending = std::thread::spawn(move || sender.write_all(&[7; BYTES]));
        let mut all = Vec::new();
        accepted.read_to_end(&mut all).unwrap();
        sending.join().unwrap().unwrap();
        assert_eq!(all.len(), BYTES);
        start.elapsed()
    };
    // At 20 Mbit/s, 2 MB take 0.8 s.
    assert!(time() > Duration::from_millis(600));
    lab.link(Node::Client).unwrap().clear().unwrap();
    lab.link(Node::FrontEnd).unwrap().clear().unwrap();
    // Which no transfer was before, however idle the machine.
    eventually("a transfer that is faster", || time() < Duration::from_millis(600));
}
