//! Reads listeners and back-ends and checks them against one another.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_policy::Weight;

use crate::address::{BackendPlace, HostPort, IpNet};
use crate::path::plain;
use crate::read::sockets;
use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{BackendConfig, HttpsRedirect, ListenerConfig, ListenerProtocol};

const LISTENERS_MAX: usize = 64;
const BACKENDS_MAX: usize = 65_534;

/// Whether two addresses cannot both be listened on.
pub(super) fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let same_ip = a.ip() == b.ip()
        || (a.is_ipv4() == b.is_ipv4() && (a.ip().is_unspecified() || b.ip().is_unspecified()));
    a.port() == b.port() && a.port() != 0 && same_ip
}

/// A listener with its place in the file.
pub(super) struct PlacedListener {
    pub(super) address: SocketAddr,
    pub(super) protocol: ListenerProtocol,
    pub(super) path: String,
    pub(super) span: Range<usize>,
    pub(super) protocol_span: Range<usize>,
    pub(super) tls: bool,
    pub(super) tls_span: Range<usize>,
    redirect: Option<HttpsRedirect>,
    pub(super) proxies: Vec<IpNet>,
    pub(super) proxies_span: Range<usize>,
}

impl PlacedListener {
    pub(super) fn config(&self) -> ListenerConfig {
        let Self { address, protocol, tls, redirect, .. } = *self;
        ListenerConfig { address, protocol, tls, redirect, proxy_protocol: self.proxies.clone() }
    }
}

/// Where clients connect.
pub(super) fn listeners<'a>(
    reader: &mut ConfigReader<'a>,
    sections: &[DeclaredTable<'a>],
) -> Vec<PlacedListener> {
    too_many(reader, sections, LISTENERS_MAX);
    let mut out: Vec<PlacedListener> = Vec::new();
    for section in sections.iter().take(LISTENERS_MAX) {
        let Some(config) = ListenerConfig::read(reader, section) else { continue };
        let ListenerConfig { address, protocol, tls, redirect, proxy_protocol } = config;
        let span = section.span_of("address");
        let is_taken =
            |other: &&PlacedListener| other.protocol == protocol && collide(other.address, address);
        if let Some(other) = out.iter().find(is_taken) {
            let what = format!("{address} collides with {} on {}", other.path, other.address);
            let remedy = "choose another port or remove one of the two".to_owned();
            reader.wrong(&section.key("address"), span.clone(), (what, remedy));
        }
        if tls && redirect.is_some() {
            let what = "has no effect where clients speak TLS already".to_owned();
            let wrong = (what, "remove it, or `tls`".to_owned());
            reader.wrong(&section.key("redirect"), section.span_of("redirect"), wrong);
        }
        out.push(PlacedListener {
            address,
            protocol,
            path: section.path.clone(),
            span,
            protocol_span: section.span_of("protocol"),
            tls,
            tls_span: section.span_of("tls"),
            redirect,
            proxies: proxy_protocol,
            proxies_span: section.span_of("proxy_protocol"),
        });
    }
    out
}

/// A back-end with the place of its agent in the file.
#[derive(Clone)]
pub(super) struct Answering {
    pub(super) config: BackendConfig,
    path: String,
    address_span: Range<usize>,
    weight_span: Range<usize>,
    pub(super) tls_path: String,
    pub(super) tls_span: Range<usize>,
    pub(super) proxy_path: String,
    pub(super) proxy_span: Range<usize>,
    pub(super) partitions_path: String,
    pub(super) partitions_span: Range<usize>,
    pub(super) pool_path: String,
    pub(super) pool_span: Range<usize>,
    pub(super) agent_path: String,
    pub(super) agent_span: Range<usize>,
}

impl Answering {
    /// With the key of its address, and where that stands in the file.
    pub(super) fn placed(&self) -> (&BackendConfig, String, Range<usize>) {
        (&self.config, format!("{}.address", self.path), self.address_span.clone())
    }
}

/// Who answers.
pub(super) fn backends<'a>(reader: &mut ConfigReader<'a>, sections: &[DeclaredTable<'a>]) -> Vec<Answering> {
    too_many(reader, sections, BACKENDS_MAX);
    let (mut names, mut addresses) = (BTreeMap::new(), BTreeMap::new());
    let mut out = Vec::new();
    for section in sections.iter().take(BACKENDS_MAX) {
        let Some(mut config) = BackendConfig::read(reader, section) else { continue };
        if config.at.is_service() {
            config.resolve.get_or_insert(SERVICE_AGAIN);
            if config.tls && config.tls_name.is_none() {
                let what = "is needed where a service is spoken to by TLS: its hosts have names of their own"
                    .to_owned();
                let remedy = "write the name for which their certificates are".to_owned();
                reader.wrong(&section.key("tls_name"), section.span_of("tls"), (what, remedy));
            }
        }
        if config.resolve.is_some() && config.agent.is_some() {
            let what = "belongs to one address, and this name may have several".to_owned();
            let remedy = "remove it, or write `resolve = \"once\"`".to_owned();
            reader.wrong(&section.key("agent"), section.span_of("agent"), (what, remedy));
        }
        sockets::check_keys(reader, section, &config);
        let place = (config.pool.clone(), one_spelling(&config.at));
        unique(reader, section, "address", &mut addresses, place);
        unique(reader, section, "name", &mut names, Arc::clone(&config.name));
        out.push(Answering {
            config,
            path: section.path.clone(),
            address_span: section.span_of("address"),
            weight_span: section.span_of("weight"),
            tls_path: section.key("tls"),
            tls_span: section.span_of("tls"),
            proxy_path: section.key("proxy_protocol"),
            proxy_span: section.span_of("proxy_protocol"),
            partitions_path: section.key("partitions"),
            partitions_span: section.span_of("partitions"),
            pool_path: section.key("pool"),
            pool_span: section.span_of("pool"),
            agent_path: section.key("agent"),
            agent_span: section.span_of("agent"),
        });
    }
    out
}

/// After how long a service is looked up again at the latest.
const SERVICE_AGAIN: Duration = Duration::from_secs(3600);

/// The same for all spellings of one address: `localhost` is 127.0.0.1.
fn one_spelling(at: &BackendPlace) -> BackendPlace {
    match at {
        BackendPlace::Host(at) if at.host == "localhost" => {
            BackendPlace::Host(HostPort { host: Ipv4Addr::LOCALHOST.to_string(), port: at.port })
        }
        BackendPlace::Host(_) => at.clone(),
        BackendPlace::Socket(path) => BackendPlace::Socket(plain(path).into()),
    }
}

/// Some back-end must take requests, and none of them must be a listener: its requests would go round for ever.
pub(super) fn check(reader: &mut ConfigReader<'_>, listeners: &[PlacedListener], backends: &[Answering]) {
    let of_default = || backends.iter().filter(|b| b.config.pool.is_none());
    if let Some(first) = of_default().next().filter(|_| of_default().all(|b| b.config.weight == Weight::ZERO))
    {
        let what = "all back-ends have weight 0, so that none takes requests".to_owned();
        let remedy = "give one of them a weight above 0".to_owned();
        reader.wrong(&format!("{}.weight", first.path), first.weight_span.clone(), (what, remedy));
    }
    for backend in backends {
        let Some(at) = backend.config.at.host() else { continue };
        let ips: Vec<IpAddr> = match &*at.host {
            "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            host => host.parse().into_iter().collect(),
        };
        let is_it = |l: &&PlacedListener| {
            // A listener at `[::]` takes no IPv4.
            let every = |ip: &IpAddr| {
                l.address.ip().is_unspecified() && ip.is_loopback() && l.address.is_ipv4() == ip.is_ipv4()
            };
            l.address.port() == at.port && ips.iter().any(|ip| l.address.ip() == *ip || every(ip))
        };
        if let Some(listener) = listeners.iter().find(is_it) {
            let what = format!("is {} itself: its requests would come back here", listener.path);
            let remedy = "write where the server behind this front-end listens".to_owned();
            let (_, key, span) = backend.placed();
            reader.wrong(&key, span, (what, remedy));
        }
    }
}

fn too_many(reader: &mut ConfigReader<'_>, sections: &[DeclaredTable<'_>], most: usize) {
    if let Some(section) = sections.get(most) {
        let what = format!("there are {}, more than {most}", sections.len());
        let wrong = (what, "remove the rest".to_owned());
        reader.wrong(&section.path, section.span.clone(), wrong);
    }
}

/// Reports a value that an earlier back-end already has.
fn unique<'s, K: Ord>(
    reader: &mut ConfigReader<'_>,
    section: &'s DeclaredTable<'_>,
    key: &str,
    seen: &mut BTreeMap<K, &'s str>,
    value: K,
) {
    let Some(first) = seen.get(&value) else {
        seen.insert(value, &section.path);
        return;
    };
    let what = format!("is the same as that of {first}");
    let remedy = match key {
        "name" => "give each back-end a name of its own",
        _ => "remove one of the two; `weight` gives a back-end a larger share",
    };
    reader.wrong(&section.key(key), section.span_of(key), (what, remedy.to_owned()));
}
