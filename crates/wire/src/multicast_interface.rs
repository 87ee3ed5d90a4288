//! Which network interface multicast leaves or comes in by.

use std::net::Ipv4Addr;

/// A network interface, as users name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MulticastInterface {
    /// By one of its addresses; for IPv4 groups.
    Address(Ipv4Addr),
    /// By its name.
    Name(String),
}

impl std::str::FromStr for MulticastInterface {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let is_name = (1..=15).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_graphic() && !"/:".contains(c))
            && text.parse::<f64>().is_err();
        if is_name {
            Ok(Self::Name(text.to_owned()))
        } else {
            Err("give the name of a network interface, or its IPv4 address")
        }
    }
}

impl std::fmt::Display for MulticastInterface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The network interfaces of this machine, in words: `there are: eth0, lo`.
#[must_use]
pub fn interfaces_text() -> String {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    // Files there are settings of all.
    let are_there = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        are_there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    if names.is_empty() {
        "`ip link` lists them".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    }
}

/// Whether a group is one of a single network, so that only an interface says which (`ff01::/16`, `ff02::/16` and the like).
#[must_use]
pub fn needs_interface(group: std::net::IpAddr) -> bool {
    matches!(group, std::net::IpAddr::V6(ip) if ip.is_multicast() && matches!(ip.segments()[0] & 0xf, 1 | 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses() {
        let read = |text: &str| text.parse::<MulticastInterface>();
        assert_eq!(read("10.0.0.1"), Ok(MulticastInterface::Address([10, 0, 0, 1].into())));
        assert_eq!(read("eth0"), Ok(MulticastInterface::Name("eth0".to_owned())));
        for good in ["10.0.0.1", "eth0", "lo", "br-1.5"] {
            assert_eq!(read(good).unwrap().to_string(), good);
        }
        for bad in ["", "::1", "fe80::1", "a b", "a/b", "0123456789abcdef", "10.0"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(needs_interface("ff02::1".parse().unwrap()) && !needs_interface("ff05::1".parse().unwrap()));
        assert!(!needs_interface("224.0.0.1".parse().unwrap()));
        let there = interfaces_text();
        assert!(there.strip_prefix("there are: ").unwrap().split(", ").any(|name| name == "lo"), "{there}");
    }
}
