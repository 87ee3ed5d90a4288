//! Services of UDP.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use plimsoll_lab::Node;
use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};

use super::world::{BACKENDS, World};

const PORT: u16 = 53;

/// With datagrams served beside connections, at another port.
fn world(policy: &str, direct: &str) -> World {
    let mut world = World::set_up();
    for number in 0..BACKENDS {
        let vips = [IpAddr::from(world.lab.virtual_address()), world.lab.virtual_address_v6().into()];
        let node = world.lab.node(Node::Backend(number)).unwrap();
        let bind = || vips.map(|vip| UdpSocket::bind((vip, PORT)).unwrap());
        for socket in node.run(bind).unwrap() {
            std::thread::spawn(move || answer(&socket, u8::try_from(number).unwrap()));
        }
    }
    let listener = |vip: SocketAddr| {
        let address = SocketAddr::new(vip.ip(), PORT);
        format!("[[listener]]\naddress = \"{address}\"\nprotocol = \"udp\"\n")
    };
    let listeners = [world.vip(), world.vip_v6()].map(listener).concat();
    world.write(policy, &listeners);
    world.append_direct(direct);
    world.start();
    world
}

/// Answers each datagram by the number of the back-end and what was sent.
fn answer(socket: &UdpSocket, number: u8) {
    let mut datagram = vec![0; 65_536];
    while let Ok((bytes, from)) = socket.recv_from(&mut datagram[1..]) {
        datagram[0] = number;
        // A client may be gone.
        let _ = socket.send_to(&datagram[..=bytes], from);
    }
}

/// A port of the client's.
struct Asker(UdpSocket);

impl Asker {
    fn new(world: &World, vip: SocketAddr) -> Self {
        let own: IpAddr = if vip.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
        let connect = || {
            let socket = UdpSocket::bind((own, 0)).unwrap();
            socket.connect((vip.ip(), PORT)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        };
        Self(world.lab.node(Node::Client).unwrap().run(connect).unwrap())
    }

    /// Which back-end answers a datagram of this length.
    fn ask(&self, bytes: usize) -> std::io::Result<usize> {
        let sent: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        self.0.send(&sent)?;
        let mut answer = vec![0; 65_536];
        let count = uninterrupted(|| self.0.recv(&mut answer))?;
        assert!(answer[1..count] == sent, "{count} bytes for {bytes}");
        Ok(usize::from(answer[0]))
    }
}

fn connections(world: &World) -> Option<f64> {
    world.metric("plimsoll_switch_connections")
}

#[test]
fn datagrams_are_spread_and_forgotten_when_silent() {
    let world = world("least_connections", "datagram_timeout = \"2s\"\n");
    for vip in [world.vip(), world.vip_v6()] {
        let mut askers = Vec::new();
        for count in 1..=30 {
            eventually("there are choices", || world.metric("plimsoll_switch_choices") >= Some(1.0));
            let asker = Asker::new(&world, vip);
            let by = asker.ask(100).unwrap();
            askers.push((asker, by));
            // A second datagram, and one in fragments.
            assert_eq!(
                (askers[count - 1].0.ask(0).unwrap(), askers[count - 1].0.ask(4000).unwrap()),
                (by, by)
            );
        }
        let of = |number| askers.iter().filter(|(_, by)| *by == number).count();
        let by: Vec<usize> = (0..BACKENDS).map(of).collect();
        assert!(by.iter().all(|&n| n >= 3), "{by:?}");
        assert!(world.admin("/flows").unwrap().contains("\"udp\""));
        eventually("the silent ones are forgotten", || connections(&world) == Some(0.0));
        assert_eq!(Some(world.load()), world.metric("plimsoll_switch_choices"), "only choices are load");
    }
    // Connections are served beside them.
    assert_eq!(world.answering(6).iter().sum::<usize>(), 6);
}

#[test]
fn datagrams_outlive_the_process_and_leave_a_back_end_that_is_down() {
    let mut world = world("round_robin", "");
    let askers: Vec<(Asker, usize)> = (0..24)
        .map(|number| {
            let vip = if number % 2 == 0 { world.vip() } else { world.vip_v6() };
            let asker = Asker::new(&world, vip);
            let by = asker.ask(10).unwrap();
            assert_eq!(asker.ask(10).unwrap(), by);
            (asker, by)
        })
        .collect();
    let stay = || askers.iter().for_each(|(asker, by)| assert_eq!(asker.ask(10).unwrap(), *by));
    world.front_end.take().unwrap().kill();
    stay();
    world.start();
    eventually("all are counted again", || connections(&world) == Some(24.0));
    stay();
    // What tells of its health is its origin.
    assert!(askers.iter().any(|(_, by)| *by == 0));
    world.origins[0] = None;
    eventually("it is down", || {
        world.metric("plimsoll_backend_state{backend=\"b0\",state=\"down\"}") == Some(1.0)
    });
    eventually("its datagrams go elsewhere", || {
        askers.iter().filter(|(_, by)| *by == 0).all(|(asker, _)| {
            asker.0.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            asker.ask(10).is_ok_and(|by| by != 0)
        })
    });
    let others = askers.iter().filter(|(_, by)| *by != 0);
    others.for_each(|(asker, by)| assert_eq!(asker.ask(10).unwrap(), *by, "others stay"));
}
