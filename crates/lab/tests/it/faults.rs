//! Links and frames that fail.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use plimsoll_lab::{Conditions, Lab, LabConfig, Node};

use crate::common::{eventually, exchange, lab, lacking};

/// Of so many datagrams from the client to the front-end, how many arrive.
fn arrive(lab: &Lab, count: usize) -> usize {
    let to = lab.node(Node::FrontEnd).unwrap();
    let receiver = to.run(|| UdpSocket::bind((to.address(), 0))).unwrap().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let sender =
        lab.node(Node::Client).unwrap().run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
    for _ in 0..count {
        sender.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
    }
    (0..count).take_while(|_| receiver.recv(&mut [0; 8]).is_ok()).count()
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
        assert!(exchange(&lab, Node::Client, Node::Backend(0), address).is_err());
    }
    lab.link(Node::Backend(0)).unwrap().up().unwrap();
    eventually("the back-end", reached);
}

#[test]
fn frames_are_lost_as_often_as_said() {
    let lab = lab(1);
    let link = lab.link(Node::Client).unwrap();
    assert_eq!(arrive(&lab, 200), 200);
    link.set(&Conditions { loss: 0.5, ..Conditions::default() }).unwrap();
    let half = arrive(&lab, 200);
    assert!((50..150).contains(&half), "{half} of 200");
    link.set(&Conditions { loss: 1.0, ..Conditions::default() }).unwrap();
    assert_eq!(arrive(&lab, 4), 0);
    link.clear().unwrap();
    assert_eq!(arrive(&lab, 200), 200);
}

#[test]
fn pairs_are_parted_one_way_or_both() {
    let lab = lab(2);
    let reaches = |from, to| {
        let address = lab.node(to).unwrap().address().into();
        exchange(&lab, from, to, address).is_ok()
    };
    lab.block(Node::FrontEnd, Node::Backend(1)).unwrap();
    assert!(!reaches(Node::FrontEnd, Node::Backend(1)));
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
    assert!(exchange(&lab, Node::Client, Node::FrontEnd, address).is_err());
    assert_eq!(arrive(&lab, 4), 4);
    lab.pass_frames().unwrap();
    exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
}

#[test]
fn a_rate_holds_a_transfer_back() {
    const BYTES: usize = 2_000_000;
    let rate = "20mbit".parse().unwrap();
    let built = Lab::build(&LabConfig { backends: 1, rate: Some(rate), ..LabConfig::default() });
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
    let free = time();
    assert!(free < Duration::from_millis(600), "{free:?}");
}

#[test]
fn a_delay_makes_round_trips_longer() {
    let delay = Some(Duration::from_millis(20));
    let built = Lab::build(&LabConfig { backends: 1, delay, ..LabConfig::default() });
    if lacking(&built) {
        let error = built.unwrap_err().to_string();
        assert_eq!(error, "delaying frames is not possible here: the kernel lacks sch_netem");
        return;
    }
    let lab = built.unwrap();
    let address = lab.node(Node::FrontEnd).unwrap().address().into();
    let start = Instant::now();
    exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
    // Connection and exchange take a round trip each, of four times the delay.
    assert!(start.elapsed() > Duration::from_millis(160));
    lab.link(Node::Client)
        .unwrap()
        .set(&Conditions { delay, reorder: 0.5, ..Conditions::default() })
        .unwrap();
    exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
}
