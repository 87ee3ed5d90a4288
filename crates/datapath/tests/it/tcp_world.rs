//! A client and two machines with the same virtual address, as network namespaces. Needs root.

use plimsoll_testkit::eventually;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::network::Machine;

/// Neighbours know one another when a machine answers with RST. With IPv6, new links take up to a second.
fn wait_for_answer(machine: &str) {
    let closed_port = SocketAddr::new(machine.parse().unwrap(), 9);
    eventually("an answer", || {
        let answer = TcpStream::connect_timeout(&closed_port, Duration::from_millis(50));
        answer.unwrap_err().kind() == ErrorKind::ConnectionRefused
    });
}

/// Addresses of a world.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) client: &'static str,
    pub(crate) vip: &'static str,
    /// (machine's, client's) address on the link to each machine.
    links: [(&'static str, &'static str); 2],
    prefix: (&'static str, &'static str),
}

pub(crate) const V4: Plan = Plan {
    client: "10.88.0.9",
    vip: "10.99.0.1",
    links: [("10.77.1.1", "10.77.1.2"), ("10.77.2.1", "10.77.2.2")],
    prefix: ("/24", "/32"),
};

pub(crate) const V6: Plan = Plan {
    client: "fd88::9",
    vip: "fd99::1",
    links: [("fd77:1::1", "fd77:1::2"), ("fd77:2::1", "fd77:2::2")],
    prefix: ("/64", "/128"),
};

/// The client's packets go to one of the machines; both answer directly.
pub(crate) struct World {
    pub(crate) client: Machine,
    pub(crate) machines: [Machine; 2],
    plan: Plan,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let world = Self { client: Machine::new(), machines: [Machine::new(), Machine::new()], plan };
        let (net, host) = plan.prefix;
        let nodad = if plan.is_ipv6() { " nodad" } else { "" };
        for filter in ["all", "default"] {
            world.client.sysctl(&format!("net/ipv4/conf/{filter}/rp_filter"), "0");
        }
        world.client.ip(&format!("addr add {}{host} dev lo{nodad}", plan.client));
        for (at, machine) in world.machines.iter().enumerate() {
            let (machine_address, client_address) = plan.links[at];
            let (client, name) = (&world.client, &machine.name);
            client.ip(&format!("link add m{at} type veth peer name link0 netns {name}"));
            client.ip(&format!("addr add {client_address}{net} dev m{at}{nodad}"));
            client.ip(&format!("link set m{at} up"));
            machine.ip(&format!("addr add {machine_address}{net} dev link0{nodad}"));
            machine.ip("link set link0 up");
            machine.ip(&format!("addr add {}{host} dev lo{nodad}", plan.vip));
            machine.ip(&format!("route add {}{host} via {client_address}", plan.client));
        }
        world.route_to(0);
        for (machine, _) in plan.links {
            world.client.run(|| wait_for_answer(machine));
        }
        world
    }

    /// From now on the client's packets go to this machine.
    pub(crate) fn route_to(&self, machine: usize) {
        let Plan { client, vip, links, prefix: (_, host) } = self.plan;
        self.client.ip(&format!("route replace {vip}{host} via {} src {client}", links[machine].0));
    }

    pub(crate) fn vip(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.plan.vip.parse().unwrap(), port)
    }

    pub(crate) fn listen(&self, machine: usize) -> TcpListener {
        let address = self.vip(0);
        self.machines[machine].run(|| TcpListener::bind(address).unwrap())
    }

    /// A connection of the client to the first machine: (client's end, machine's end).
    pub(crate) fn connection(&self) -> (TcpStream, TcpStream) {
        self.connection_by(|address| TcpStream::connect(address).unwrap())
    }

    pub(crate) fn connection_by(
        &self,
        connect: impl FnOnce(SocketAddr) -> TcpStream + Send,
    ) -> (TcpStream, TcpStream) {
        let listener = self.listen(0);
        let address = listener.local_addr().unwrap();
        let client = self.client.run(move || connect(address));
        let (machine, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), self.plan.client);
        (client, machine)
    }
}

impl Plan {
    fn is_ipv6(&self) -> bool {
        self.vip.parse::<IpAddr>().unwrap().is_ipv6()
    }
}
