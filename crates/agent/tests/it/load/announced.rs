//! Announcements, to machines and to groups.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use plimsoll_agent::load::{AnnounceConfig, LoadConfig, LoadRole, PreparedLoad};
use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};
use plimsoll_wire::load::{LoadGauge, LoadRefusal};

use super::asker::Asker;
use super::{key, loopback};

const INTERVAL: Duration = Duration::from_millis(5);

/// Receives announcements and takes those of an agent that was asked.
fn is_announced(socket: &UdpSocket, announce: AnnounceConfig) {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let gauge = LoadGauge::new();
    let _access = gauge.begin();
    let mut config = LoadConfig::new(loopback(), key(), LoadRole::Answer(gauge));
    config.announce = Some(announce);
    let service = PreparedLoad::new(config).unwrap().start().unwrap();
    let mut asker = Asker::of(service.address());
    let next = |asker: &mut Asker| {
        let mut datagram = [0; 100];
        let bytes = uninterrupted(|| socket.recv(&mut datagram)).unwrap();
        let now_ns = asker.now_ns();
        let taken = asker.inquirer.take_announcement(&datagram[..bytes], now_ns);
        let again = asker.inquirer.take_announcement(&datagram[..bytes], now_ns);
        (taken, again)
    };
    assert_eq!(next(&mut asker).0, Err(LoadRefusal::UnknownBoot), "not of an agent that was never asked");
    asker.load();
    for _ in 0..20 {
        let (taken, again) = next(&mut asker);
        let taken = taken.unwrap();
        assert_eq!((taken.load, u128::from(taken.interval_ns)), (Some(1), INTERVAL.as_nanos()));
        assert_eq!(again, Err(LoadRefusal::Replayed));
    }
    // A datagram may be received before its sender has counted it.
    eventually("every announcement is counted", || service.status().counts.announced >= 21);
    service.stop();
}

#[test]
fn to_a_list_of_receivers() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let receivers = vec![nobody, socket.local_addr().unwrap()];
    is_announced(&socket, AnnounceConfig::new(INTERVAL, receivers));
}

#[test]
fn to_a_multicast_group_by_the_address_of_an_interface_or_its_name() {
    to_a_multicast_group(Ipv4Addr::new(239, 255, 77, 1), "127.0.0.1");
    to_a_multicast_group(Ipv4Addr::new(239, 255, 77, 2), "lo");
}

fn to_a_multicast_group(group: Ipv4Addr, interface: &str) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
    let to = SocketAddr::from((group, socket.local_addr().unwrap().port()));
    let announce = AnnounceConfig {
        multicast_interface: Some(interface.parse().unwrap()),
        ..AnnounceConfig::new(INTERVAL, vec![to])
    };
    is_announced(&socket, announce);
}
