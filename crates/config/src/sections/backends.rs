//! Listeners and back-ends.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_policy::Weight;

use super::partitions::HeldPartitions;
use super::pool_name::{NO_POOL, PoolName, PoolOrDefault};
use super::tls::{HttpsRedirect, Redirect};
use crate::address::{BackendPlace, HostPort, IpNet, backend_place, host_port, socket};
use crate::declare::{KeyForm, KeyValue, keys, words};
use crate::keys::Default::{Is, Required, Words};
use crate::keys::KeyKind::{self, Choice, Flag, Integer, Number, Text, Texts};
use crate::name::name;
use crate::reader::{ConfigReader, DeclaredTable, quoted};
use crate::value::{self, ConfigValue, show_duration};

keys! {
    /// Where clients connect; at least one, at most 64.
    ["listener", many] pub struct ListenerConfig {
        /// Where to listen; port 0 lets the system choose.
        "address" address: SocketAddr =
            Required, Text("IP address and port, e.g. \"0.0.0.0:8080\" or \"[::]:8080\"");
        /// What clients speak there: `tcp`, connections; `udp`, datagrams, with `mechanism = "direct"` only. Two listeners may have the
        /// same address if one is of each.
        "protocol" protocol: ListenerProtocol = Is("tcp"), Choice(ListenerProtocol::WORDS);
        /// Whether clients speak TLS there; see `certificate`.
        "tls" tls: bool = Is("false"), Flag;
        /// Where clients are sent in place of being served (308): `https`, the same host and target by HTTPS; `https:PORT`, the same at another
        /// port than 443; `none`, nowhere.
        "redirect" redirect: Option<HttpsRedirect> =
            Is("none"), Text("\"https\", \"https:PORT\" or \"none\"") => Redirect;
        /// Proxies from which connections begin with a header of the PROXY protocol (version 1 or 2), which says who the client is; a
        /// connection of theirs without one ends. Of others no such header is taken. At most 1000.
        "proxy_protocol" proxy_protocol: Vec<IpNet> =
            Is("[]"), Texts("an IP address or block, e.g. \"10.0.0.0/8\" or \"::1\"");
    }
}

words! {
    /// What clients speak at a listener.
    pub enum ListenerProtocol {
        Tcp = "tcp" / "Connections.",
        Udp = "udp" / "Datagrams.",
    }
}

words! {
    /// How a back-end is told whose connection a request has come on.
    pub enum ProxyProtocol {
        None = "none" / "It is not.",
        V1 = "v1" / "By a header of version 1, which is text.",
        V2 = "v2" / "By a header of version 2, which is binary.",
    }
}

/// A name that a certificate can be for.
struct TlsName;

impl KeyForm<Option<String>> for TlsName {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<String>> {
        if section.found(name).is_none() {
            return Some(None);
        }
        reader.text(section, name, |text| match plimsoll_tls::is_server_name(text) {
            true => Ok(Some(text.to_ascii_lowercase())),
            false => {
                let what = format!("{} is no name of a host", quoted(text));
                Err((what, "write a host name such as \"app.internal\", or an IP address".to_owned()))
            }
        })
    }

    fn show(name: &Option<String>) -> Option<ConfigValue> {
        name.clone().map(ConfigValue::Text)
    }
}

/// The address; of one for datagrams with `/udp` behind it.
impl fmt::Display for ListenerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            ListenerProtocol::Tcp => self.address.fmt(f),
            ListenerProtocol::Udp => write!(f, "{}/udp", self.address),
        }
    }
}

impl KeyValue for SocketAddr {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        reader.text(section, name, socket)
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Text(self.to_string()))
    }
}

/// Name of a back-end: what logs, metrics and the admin API call it.
pub type BackendName = Arc<str>;

keys! {
    /// Who answers; at least one, at most 65534.
    ["backend", many] pub struct BackendConfig {
        /// What logs, metrics and the admin API call it; unique. A reload recognises a back-end by it.
        "name" name: BackendName =
            Words("the address"), Text("1 to 64 letters, digits, `-`, `_` and `.`") => NameOrAddress;
        /// Where it answers; unique. `srv:NAME`: at the hosts and ports to which the service NAME leads (SRV), each a back-end of its own; see
        /// [names of services](reliability.md#names-of-services). `unix:PATH`: at the Unix socket of this absolute path; see
        /// [Unix sockets](reliability.md#unix-sockets).
        "address" at: BackendPlace = Required,
            Text("host and port, e.g. \"10.0.0.1:80\", \"app.internal:80\" or \"[fd00::1]:80\"; or e.g. \"srv:_http._tcp.app.internal\" or \"unix:/run/app.sock\"");
        /// How often the name in the address is looked up: `once`, until it leads somewhere, and its first address is the back-end; a
        /// time: each such time anew, and each of its addresses is a back-end of its own, called `NAME@ADDRESS`. A service is looked up again when
        /// its answer says so, and at the latest after this time, or an hour.
        "resolve" resolve: Option<Duration> =
            Is("once"), Text("\"once\", or a time from \"1s\" to \"24h\", e.g. \"10s\"") => Resolve;
        /// Share of load relative to the others, in steps of 1/256; 0 takes nothing new.
        "weight" weight: Weight = Is("1"), Number { min: 0.0, max: 65_536.0 };
        /// Whether the front-end speaks TLS to it, for requests and health checks; see `backend_tls`.
        "tls" tls: bool = Is("false"), Flag;
        /// The name that its certificate must be for, and that it is asked for (SNI).
        "tls_name" tls_name: Option<String> =
            Words("the host in the address"), Text("a host name or an IP address") => TlsName;
        /// Whether HTTP/2 is spoken to it, for requests and health checks: agreed on by ALPN under TLS, with prior knowledge (h2c) without.
        "http2" http2: bool = Is("false"), Flag;
        /// Whether it is told whose connection a request has come on, by a header of the PROXY protocol at the beginning of each connection
        /// to it: `none`, `v1` (text) or `v2` (binary). A connection is used for the requests of one client's connection alone, then.
        "proxy_protocol" proxy_protocol: ProxyProtocol = Is("none"), Choice(ProxyProtocol::WORDS);
        /// Connections that the front-end opens to it at most, over all workers.
        "max_connections" max_connections: u32 = Is("4096"), Integer { min: 1, max: 1_000_000 };
        /// Requests that wait for such a connection at most, each for `timeouts.connect`; a further one goes to another back-end.
        "max_waiting" max_waiting: u32 = Is("1024"), Integer { min: 0, max: 1_000_000 };
        /// Requests under way at it at most, those left out whose client alone is waited for; while it has as many, it gets no others. With
        /// `partitions`, in each of them.
        "max_requests" max_requests: Option<u32> = Words("no limit"), Integer { min: 1, max: 1_000_000 } => MostRequests;
        /// Where its agent takes handoffs; without one, its requests are proxied.
        "agent" agent: Option<HostPort> = Words("no agent"), Text("host and port, e.g. \"10.0.0.1:7400\"");
        /// UDP port of its address at which its agent tells its load; see `load_information`.
        "load_port" load_port: u32 = Is("7401"), Integer { min: 1, max: 65_535 };
        /// The VLAN of its frames with `mechanism = "direct"`, in place of the tag with which they come; 0: none.
        "vlan" vlan: Option<u16> = Words("the tag with which they come"), Integer { min: 0, max: 4094 } => Vlan;
        /// The partitions that it holds; see `partitions`. It gets requests for these alone.
        "partitions" partitions: Vec<u16> =
            Words("all"), Texts("the number of a partition, e.g. \"0\"") => HeldPartitions;
        /// The pool that it is in; see `pool`. Requests come to another pool than `default` by a route.
        "pool" pool: Option<PoolName> = NO_POOL, Text("the name of a pool") => PoolOrDefault;
    }
}

impl KeyValue for BackendPlace {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        reader.text(section, name, backend_place)
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Text(self.to_string()))
    }
}

impl KeyValue for Option<HostPort> {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(section.found(name).and_then(|_| reader.text(section, name, host_port)))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        self.as_ref().map(|at| ConfigValue::Text(at.to_string()))
    }
}

/// The shortest time between two look-ups.
const LEAST_RESOLVE: Duration = Duration::from_secs(1);

/// How often a name is looked up; none: once.
struct Resolve;

impl KeyForm<Option<Duration>> for Resolve {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<Duration>> {
        reader.text(section, name, |text| match text {
            "once" => Ok(None),
            text => match value::duration(text).filter(|time| *time >= LEAST_RESOLVE) {
                Some(time) => Ok(Some(time)),
                None => {
                    let what = format!("{} is neither \"once\" nor such a time", quoted(text));
                    Err((what, "write \"once\", or a time from \"1s\" to \"24h\"".to_owned()))
                }
            },
        })
    }

    fn show(time: &Option<Duration>) -> Option<ConfigValue> {
        Some(ConfigValue::Text(time.map_or_else(|| "once".to_owned(), show_duration)))
    }
}

/// The number of a VLAN, if there is one.
struct Vlan;

impl KeyForm<Option<u16>> for Vlan {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<u16>> {
        let Some(found) = section.found(name) else { return Some(None) };
        Some(reader.integer_of(&found).and_then(|number| u16::try_from(number).ok()))
    }

    fn show(number: &Option<u16>) -> Option<ConfigValue> {
        number.map(|number| ConfigValue::Integer(number.into()))
    }
}

/// A number of requests; none where there is no limit.
struct MostRequests;

impl KeyForm<Option<u32>> for MostRequests {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<u32>> {
        let Some(found) = section.found(name) else { return Some(None) };
        Some(reader.integer_of(&found).and_then(|number| u32::try_from(number).ok()))
    }

    fn show(number: &Option<u32>) -> Option<ConfigValue> {
        number.map(|number| ConfigValue::Integer(number.into()))
    }
}

/// A name; the address as it is written where there is none.
struct NameOrAddress;

impl KeyForm<BackendName> for NameOrAddress {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<BackendName> {
        reader.text(section, key, |text| name(text).map(Arc::from)).or_else(|| {
            let address = section.found("address")?;
            address.value.as_str().map(Arc::from)
        })
    }

    fn show(name: &BackendName) -> Option<ConfigValue> {
        Some(ConfigValue::Text(name.to_string()))
    }
}
