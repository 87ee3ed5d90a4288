//! Back-ends that a directory of services tells.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_wire::{Key, check_service_name};

use super::handoff::KeyFile;
use crate::address::{host_port, socket};
use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::{Is, Required, Words};
use crate::keys::KeyKind::{self, Choice, Integer, Text, Texts};
use crate::reader::{ConfigReader, DeclaredTable, ListForm, Wrong, quoted};
use crate::value::{ConfigValue, show_duration};

keys! {
    /// Back-ends that a directory of services tells, beside those of `[[backend]]`: nodes publish themselves (`plimsoll publish`,
    /// `plimsoll agent --publish`). With this table there need be no `[[backend]]`. See [discovery](discovery.md).
    ["discovery"] pub struct DiscoveryConfig {
        /// What carries announcements: `multicast`, from node to node by IP multicast; `etcd`, an etcd cluster.
        "transport" transport: DiscoveryTransport = Is("multicast"), Choice(DiscoveryTransport::WORDS), restart;
        /// The service whose replicas are the back-ends.
        "service" service: String = Required, Text("1 to 64 letters, digits, `-`, `_` and `.`") => ServiceName, restart;
        /// The partition of the service.
        "partition" partition: String = Is("0"), Text("1 to 64 letters, digits, `-`, `_` and `.`") => ServiceName, restart;
        /// File with the key that all nodes share: 64 hexadecimal digits, which only its owner, and at most its group, may
        /// read.
        "key_file" key: Key = Required, Text("the path of a file") => KeyFile, restart;
        /// How long a replica counts at most when nothing more is heard of it; one that announces a shorter time, or at most 3s, that long.
        /// At least 400ms, and 3s with `etcd`; at most 1h.
        "ttl" ttl: Duration = Is("3s"), KeyKind::Duration => TimeToLive, restart;
        /// With `multicast`: the group, with its port.
        "group" group: SocketAddr = Is("239.255.80.76:7369"), Text("a multicast address and a port") => Group, restart;
        /// With `multicast`: the network interface, by name.
        "interface" interface: Option<String> =
            Words("the one that the routes choose"), Text("the name of a network interface, e.g. \"eth0\"") => Interface, restart;
        /// With `etcd`: its members; at least one.
        "endpoints" endpoints: Vec<String> =
            Words("none"), Texts("a URL, e.g. \"http://10.0.0.5:2379\"") => Endpoints, restart;
        /// With `etcd`: what its keys begin with.
        "prefix" prefix: String = Is("/plimsoll/services"), Text("a path, e.g. \"/plimsoll/services\"") => Prefix, restart;
        /// Connections that the front-end opens to each of these back-ends at most, over all workers.
        "max_connections" max_connections: u32 = Is("4096"), Integer { min: 1, max: 1_000_000 };
    }
}

words! {
    /// What carries announcements of replicas.
    pub enum DiscoveryTransport {
        Multicast = "multicast" / "From node to node, by IP multicast.",
        Etcd = "etcd" / "By an etcd cluster.",
    }
}

/// The name of a service or a partition.
struct ServiceName;

impl KeyForm<String> for ServiceName {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<String> {
        reader.text(section, name, |text| match check_service_name(text) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => {
                let what = format!("{} is no name", quoted(text));
                Err((what, "write 1 to 64 letters, digits, `-`, `_` and `.`".to_owned()))
            }
        })
    }

    fn show(name: &String) -> Option<ConfigValue> {
        Some(ConfigValue::Text(name.clone()))
    }
}

/// The times to live that announcements may have.
const TTL: std::ops::RangeInclusive<Duration> = Duration::from_millis(400)..=Duration::from_secs(3600);

struct TimeToLive;

impl KeyForm<Duration> for TimeToLive {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Duration> {
        let ttl = reader.duration(section, name);
        if !TTL.contains(&ttl) {
            let wrong = ("is out of range".to_owned(), "write \"400ms\" to \"1h\"".to_owned());
            reader.wrong(&section.key(name), section.span_of(name), wrong);
        }
        Some(ttl)
    }

    fn show(ttl: &Duration) -> Option<ConfigValue> {
        Some(ConfigValue::Text(show_duration(*ttl)))
    }
}

struct Group;

impl KeyForm<SocketAddr> for Group {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<SocketAddr> {
        reader.text(section, name, group)
    }

    fn show(group: &SocketAddr) -> Option<ConfigValue> {
        Some(ConfigValue::Text(group.to_string()))
    }
}

fn group(text: &str) -> Result<SocketAddr, Wrong> {
    let is_group = |group: &SocketAddr| group.ip().is_multicast() && group.port() != 0;
    socket(text).ok().filter(is_group).ok_or_else(|| {
        let what = format!("{} is no multicast group with a port", quoted(text));
        (
            what,
            "write an address of 224.0.0.0/4 or ff00::/8 with a port, e.g. \"239.255.80.76:7369\"".to_owned(),
        )
    })
}

struct Interface;

impl KeyForm<Option<String>> for Interface {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<String>> {
        let usable = |text: &str| match text.len() {
            1..=15 if text.chars().all(|c| c.is_ascii_graphic() && c != '/') => Ok(text.to_owned()),
            _ => {
                let what = format!("{} is no name of an interface", quoted(text));
                Err((what, "write one that `ip link` shows".to_owned()))
            }
        };
        Some(section.found(name).and_then(|_| reader.text(section, name, usable)))
    }

    fn show(name: &Option<String>) -> Option<ConfigValue> {
        name.clone().map(ConfigValue::Text)
    }
}

const ENDPOINTS_MAX: usize = 32;

struct Endpoints;

impl KeyForm<Vec<String>> for Endpoints {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Vec<String>> {
        let form = ListForm { most: ENDPOINTS_MAX, fewer: "name at most 32", remedy: ENDPOINT };
        Some(reader.list(section, name, form, endpoint))
    }

    fn show(endpoints: &Vec<String>) -> Option<ConfigValue> {
        Some(ConfigValue::List(endpoints.clone()))
    }
}

const ENDPOINT: &str = "write http://HOST:PORT, e.g. \"http://10.0.0.5:2379\"";

fn endpoint(text: &str) -> Result<String, Wrong> {
    let host = text.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    match host.map(host_port) {
        Some(Ok(_)) => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err((format!("{} is no member of etcd", quoted(text)), ENDPOINT.to_owned())),
    }
}

struct Prefix;

impl KeyForm<String> for Prefix {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<String> {
        reader.text(section, name, prefix)
    }

    fn show(prefix: &String) -> Option<ConfigValue> {
        Some(ConfigValue::Text(prefix.clone()))
    }
}

fn prefix(text: &str) -> Result<String, Wrong> {
    if text.len() < 2
        || text.len() > 256
        || !text.starts_with('/')
        || !text.chars().all(|c| c.is_ascii_graphic())
    {
        let what = format!("{} is no prefix of keys", quoted(text));
        return Err((what, "write a path without spaces, e.g. \"/plimsoll/services\"".to_owned()));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_endpoints_and_prefixes() {
        for good in ["239.1.2.3:7369", "224.0.0.9:1", "[ff02::1]:7369"] {
            assert_eq!(group(good).unwrap().to_string(), good);
        }
        for bad in ["", "10.0.0.1:80", "239.1.2.3", "239.1.2.3:0", "group:7369"] {
            assert!(group(bad).is_err(), "{bad}");
        }
        assert_eq!(endpoint("http://a:2379/").as_deref(), Ok("http://a:2379"));
        for bad in ["", "a:2379", "https://a:2379", "http://", "http://a", "http://a:0"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
        assert_eq!(prefix("/a/b/").as_deref(), Ok("/a/b"));
        for bad in ["", "/", "a", "/a b"] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
    }
}
