//! Back-ends behind a router: real kernels, a way of 1,500 bytes, and connections in tunnels.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use plimsoll_datapath::switch::{
    ConnHolder, Switch, SwitchConfig, SwitchHook, TABLE_SLOTS, Transport, Tunnel, TunnelKind,
};
use plimsoll_datapath::{TunnelEnd, Way, way};
use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};

use crate::network::{Instance, Machine};
use crate::switch::config;

const VIPS: [&str; 2] = ["10.60.0.80", "fd60::80"];
const BACK_ENDS: [&str; 2] = ["10.60.3.2", "fd60:3::2"];
const SWITCHES: [&str; 2] = ["10.60.2.2", "fd60:2::2"];
const UPLOADED_BYTES: usize = 300_000;
const DOWNLOADED_BYTES: usize = 1_000_000;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A client, a switch and a back-end, each on a network of its own around a router.
struct World {
    _router: Machine,
    client: Machine,
    switch: Machine,
    back_end: Machine,
    instance: Instance,
}

impl World {
    fn new() -> Self {
        let [router, client, switch, back_end] = [(); 4].map(|()| Machine::new());
        for (machine, number) in [&client, &switch, &back_end].into_iter().zip(1..) {
            router.ip(&format!("link add n{number} type veth peer name eth0 netns {}", machine.name));
            for (on, interface, host) in [(&router, format!("n{number}"), 1), (machine, "eth0".to_owned(), 2)]
            {
                on.ip(&format!("addr add 10.60.{number}.{host}/24 dev {interface}"));
                on.ip(&format!("addr add fd60:{number}::{host}/64 dev {interface} nodad"));
                on.ip(&format!("link set {interface} up"));
            }
            machine.ip(&format!("route add default via 10.60.{number}.1"));
            machine.ip(&format!("route add default via fd60:{number}::1"));
        }
        router.sysctl("net/ipv4/ip_forward", "1");
        router.sysctl("net/ipv6/conf/all/forwarding", "1");
        // Answers come from an address to which the route is another one.
        for name in ["all", "n1", "n2", "n3"] {
            router.sysctl(&format!("net/ipv4/conf/{name}/rp_filter"), "0");
        }
        router.ip("route add 10.60.0.80/32 via 10.60.2.2");
        router.ip("route add fd60::80/128 via fd60:2::2");
        for machine in [&switch, &back_end] {
            machine.ip("addr add 10.60.0.80/32 dev lo");
            machine.ip("addr add fd60::80/128 dev lo nodad");
        }
        Self { _router: router, client, switch, back_end, instance: Instance::new() }
    }

    /// The switch, before the one back-end.
    fn open(&self) -> Switch {
        let config = SwitchConfig {
            interfaces: vec!["eth0".to_owned()],
            hook: SwitchHook::Tc,
            ..config(&self.instance)
        };
        self.switch.run(|| {
            let switch = Switch::open_for(&config, None).expect("these tests need root");
            let services = VIPS.map(|vip| (SocketAddr::new(address(vip), 80), Transport::Tcp));
            switch.set_services(&services).unwrap();
            switch.set_table(&vec![Some(0); TABLE_SLOTS]).unwrap();
            switch
        })
    }

    /// Has it send packets to this address of the back-end by a tunnel.
    fn lead(&self, switch: &Switch, kind: TunnelKind, family: usize) {
        let remote = address(BACK_ENDS[family]);
        let Way { next_hop, source, most_bytes } = self.switch.run(|| way(remote, PATIENCE)).unwrap();
        assert_eq!((source, most_bytes), (address(SWITCHES[family]), 1500));
        switch.set_tunnel(0, Some(&Tunnel { kind, local: source, remote, most_bytes })).unwrap();
        switch.set_backend(ConnHolder { backend: 0, generation: 0 }, 1, Some(&next_hop)).unwrap();
    }

    /// Sends to the service, and reads what it answers.
    fn exchange(&self, vip: &str) {
        let stream =
            self.client.run(|| TcpStream::connect_timeout(&SocketAddr::new(address(vip), 80), PATIENCE));
        let mut stream = stream.unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&vec![1; UPLOADED_BYTES]).unwrap();
        let mut answer = Vec::new();
        uninterrupted(|| stream.read_to_end(&mut answer)).unwrap();
        assert!(answer.len() == DOWNLOADED_BYTES && answer.iter().all(|byte| *byte == 2), "{}", answer.len());
    }
}

/// Reads all that is uploaded, and then answers.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut uploaded = vec![0; UPLOADED_BYTES];
        if stream.read_exact(&mut uploaded).is_ok() {
            let _ = stream.write_all(&vec![2; DOWNLOADED_BYTES]);
        }
    }
}

#[test]
fn connections_go_to_a_back_end_behind_a_router() {
    let world = World::new();
    world.back_end.run(|| {
        for vip in VIPS {
            let listener = TcpListener::bind((address(vip), 80)).unwrap();
            std::thread::spawn(move || serve(&listener));
        }
    });
    let switch = world.open();
    let end = || TunnelEnd::attach(&world.instance.0, "eth0", &SWITCHES.map(address)).unwrap();
    let end = world.back_end.run(end);
    // Merged packets are cut up to fit; single ones of the client's do not fit until it knows better.
    for segments in [64, 1] {
        world.client.ip(&format!("link set eth0 gso_max_segs {segments}"));
        for kind in [TunnelKind::Ipip, TunnelKind::Gue] {
            for family in [0, 1] {
                world.lead(&switch, kind, family);
                for vip in VIPS {
                    let before = switch.counters().unwrap();
                    let taken = end.counters().unwrap().taken;
                    world.client.ip("-4 route flush cache");
                    world.client.ip("-6 route flush cache");
                    world.exchange(vip);
                    let what = format!("{segments} {kind:?} {family} {vip}");
                    let counts = end.counters().unwrap();
                    assert!(
                        counts.taken > taken && counts.unknown + counts.failed == 0,
                        "{what}: {counts:?}"
                    );
                    let now = switch.counters().unwrap();
                    assert!(now.forwarded_packets > before.forwarded_packets, "{what}");
                    // Where packets are merged, a single one may come nevertheless.
                    assert!(segments != 1 || now.too_big > before.too_big, "{what}: {now:?}");
                }
            }
        }
    }
}

#[test]
fn only_switches_are_believed() {
    let world = World::new();
    let switch = world.open();
    world.lead(&switch, TunnelKind::Ipip, 0);
    let end = || TunnelEnd::attach(&world.instance.0, "eth0", &[address("10.60.2.77")]).unwrap();
    let end = world.back_end.run(end);
    let to = SocketAddr::new(address(VIPS[0]), 80);
    let tried = world.client.run(|| TcpStream::connect_timeout(&to, Duration::from_millis(300)));
    assert!(tried.is_err());
    eventually("it is counted", || end.counters().unwrap().unknown > 0);
    assert_eq!(end.counters().unwrap().taken, 0);
    drop(end);
    assert!(world.back_end.filters("eth0", "ingress").contains("plimsoll_dec"), "it outlives its process");
    world.back_end.run(|| TunnelEnd::remove(&world.instance.0, "eth0")).unwrap();
    assert_eq!(world.back_end.filters("eth0", "ingress"), "");
}
