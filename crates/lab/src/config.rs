//! The configuration of a lab.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use crate::conditions::Conditions;
use crate::cpus::CpuPlan;
use crate::error::LabError;
use crate::node::Node;

/// The most back-ends of a lab.
pub const MOST_BACKENDS: usize = 80;
/// The most addresses of a lab's client.
pub const MOST_CLIENTS: usize = 150;
/// Last number of the address that clients connect to.
const VIRTUAL: u8 = 100;
/// The configuration of a lab, with the initial conditions of its links.
#[derive(Debug, Clone)]
pub struct LabConfig {
    /// Number of back-ends, 1 to [`MOST_BACKENDS`]; 2 by default.
    pub backends: usize,
    /// Number of addresses of the client node, 1 to [`MOST_CLIENTS`]; 1 by default. A client address has at most some
    /// 60,000 connections to one port of the front-end.
    pub clients: usize,
    /// Conditions of every link, each way, so that a round trip between two nodes takes four times their delay; perfect links
    /// by default. [`NodeLink`](crate::NodeLink) changes those of one link.
    pub links: Conditions,
    /// The seed of all chance on the links; 1 by default. The same frames at the same times have the same fate with it.
    pub seed: u64,
    /// Whether nodes send packets with checksums, as on a real network, and segment them before sending. By
    /// default they do neither, because the kernel omits both between namespaces.
    pub fill_checksums: bool,
    /// The assignment of CPUs; by default the kernel's.
    pub cpus: Option<CpuPlan>,
    /// A file to remove when the lab ends, however it ends; none by default.
    pub remove_at_end: Option<PathBuf>,
}

impl Default for LabConfig {
    fn default() -> Self {
        Self {
            backends: 2,
            clients: 1,
            links: Conditions::default(),
            seed: 1,
            fill_checksums: false,
            cpus: None,
            remove_at_end: None,
        }
    }
}

impl LabConfig {
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let within = |what: &str, number: usize, most: usize| {
            if (1..=most).contains(&number) {
                return Ok(());
            }
            Err(LabError::Invalid(format!("a lab has 1 to {most} {what}, not {number}")))
        };
        within("back-ends", self.backends, MOST_BACKENDS)?;
        within("client addresses", self.clients, MOST_CLIENTS)?;
        self.links.check()?;
        self.cpus.as_ref().map_or(Ok(()), CpuPlan::check)
    }

    /// All nodes, the switch first.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let mut nodes = vec![Node::Switch, Node::FrontEnd, Node::Client];
        nodes.extend((0..self.backends).map(Node::Backend));
        nodes
    }
}

/// Last numbers of a node's addresses.
fn last_number(node: Node) -> u8 {
    match node {
        Node::FrontEnd => 1,
        // There are at most 80.
        Node::Backend(number) => 11 + u8::try_from(number.min(MOST_BACKENDS - 1)).unwrap_or(0),
        Node::Client => 101,
        Node::Switch => 254,
    }
}

fn v4(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// The IPv6 address that reads like the IPv4 one: `fd77::101` beside `10.77.0.101`.
fn v6(number: u8) -> Ipv6Addr {
    let digits = u16::from(number / 100) * 256 + u16::from(number / 10 % 10) * 16 + u16::from(number % 10);
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, digits)
}

/// The address that clients connect to.
pub(crate) const fn virtual_v4() -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, VIRTUAL)
}

/// The IPv6 address that clients connect to.
pub(crate) fn virtual_v6() -> Ipv6Addr {
    v6(VIRTUAL)
}

/// The addresses of a node, of both families; the client has `clients` of them.
pub(crate) fn addresses(node: Node, clients: usize) -> Vec<(Ipv4Addr, Ipv6Addr)> {
    let count = if node == Node::Client { clients } else { 1 };
    let first = last_number(node);
    (first..=u8::MAX).take(count).map(|number| (v4(number), v6(number))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rate::Rate;

    #[test]
    fn addresses_of_both_families_read_alike() {
        let one = |node| addresses(node, 1)[0];
        assert_eq!(one(Node::FrontEnd), ("10.77.0.1".parse().unwrap(), "fd77::1".parse().unwrap()));
        assert_eq!(one(Node::Backend(0)), ("10.77.0.11".parse().unwrap(), "fd77::11".parse().unwrap()));
        assert_eq!(one(Node::Backend(79)), ("10.77.0.90".parse().unwrap(), "fd77::90".parse().unwrap()));
        let clients = addresses(Node::Client, MOST_CLIENTS);
        assert_eq!(clients.len(), MOST_CLIENTS);
        assert_eq!(clients[149], ("10.77.0.250".parse().unwrap(), "fd77::250".parse().unwrap()));
        assert_eq!(virtual_v6(), "fd77::100".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn rates() {
        let rate = |text: &str| text.parse::<Rate>();
        assert_eq!(rate("1gbit").unwrap().bits_per_s(), 1_000_000_000);
        assert_eq!(rate("2.5Gbit").unwrap().to_string(), "2500mbit");
        assert_eq!(rate("64kbit").unwrap().to_string(), "64kbit");
        assert_eq!(Rate::from_bits_per_s(8_001).unwrap().to_string(), "8001bit");
        for bad in
            ["", "1", "fast", "gbit", "1gb", "-1mbit", "nanmbit", "infgbit", "1kbit", "5000gbit", "1 2mbit"]
        {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bounds() {
        let check = |change: fn(&mut LabConfig)| {
            let mut config = LabConfig::default();
            change(&mut config);
            config.check().map_err(|e| e.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|c| c.backends = 0).unwrap_err(), "a lab has 1 to 80 back-ends, not 0");
        assert!(check(|c| c.backends = 81).is_err());
        assert!(check(|c| c.clients = 0).is_err() && check(|c| c.clients = 151).is_err());
        assert!(check(|c| c.links = Conditions::delayed(Duration::from_secs(61))).is_err());
    }
}
