//! Addresses as users write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use crate::reader::{Wrong, escaped, quoted};

/// A host and a port; or the name of a service, which a look-up of type SRV leads to hosts with ports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// Address literal or host name, without brackets.
    pub host: String,
    /// TCP port; 0 of the name of a service.
    pub port: u16,
}

/// What stands before the name of a service.
const SERVICE: &str = "srv:";

impl HostPort {
    /// Whether it is the name of a service.
    #[must_use]
    pub fn is_service(&self) -> bool {
        self.port == 0
    }
}

/// As a user would write it.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_service() {
            write!(f, "{SERVICE}{}", self.host)
        } else if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Where a back-end answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackendPlace {
    /// At a host and port, or where a service leads to.
    Host(HostPort),
    /// At a Unix socket of this machine, which has this absolute path.
    Socket(Arc<Path>),
}

/// What stands before the path of a Unix socket.
const UNIX: &str = "unix:";
/// The longest path that the system takes for a Unix socket: there is room for 108 bytes with a NUL behind them.
const MOST_PATH_BYTES: usize = 107;

impl BackendPlace {
    /// Host and port, or the service, if it is no Unix socket.
    #[must_use]
    pub fn host(&self) -> Option<&HostPort> {
        match self {
            Self::Host(at) => Some(at),
            Self::Socket(_) => None,
        }
    }

    /// The path, if it is a Unix socket.
    #[must_use]
    pub fn socket(&self) -> Option<&Arc<Path>> {
        match self {
            Self::Host(_) => None,
            Self::Socket(path) => Some(path),
        }
    }

    /// Whether it is the name of a service.
    #[must_use]
    pub fn is_service(&self) -> bool {
        self.host().is_some_and(HostPort::is_service)
    }
}

/// As a user would write it.
impl fmt::Display for BackendPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(at) => at.fmt(f),
            Self::Socket(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// A block of IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNet {
    /// An address of the block.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub prefix_bits: u8,
}

impl IpNet {
    /// Whether `ip` is in the block. An IPv4-mapped address (`::ffff:a.b.c.d`) counts as IPv4.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip.to_canonical() {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, true),
            IpAddr::V6(v6) => (v6.to_bits(), false),
        };
        let ((net, net_is_v4), (ip, ip_is_v4)) = (bits(self.address), bits(ip));
        let ignored = 128 - u32::from(self.prefix_bits);
        net_is_v4 == ip_is_v4 && (net ^ ip).checked_shr(ignored).unwrap_or(0) == 0
    }
}

impl fmt::Display for IpNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

/// What was meant by an IPv6 address without brackets: its last group may be the port.
fn bracketed(text: &str, port: u16) -> String {
    let meant = text.rsplit_once(':').and_then(|(ip, port)| {
        let ip: Ipv6Addr = ip.parse().ok()?;
        port.parse::<u16>().ok().map(|port| format!("\"[{ip}]:{port}\" for port {port}"))
    });
    let whole = format!("\"[{}]:{port}\"", escaped(text));
    meant.map_or(whole.clone(), |meant| format!("{meant}, or {whole}"))
}

/// An IP address and port to listen on; an IPv4 address written as an IPv6 one is that IPv4 address.
pub(crate) fn socket(text: &str) -> Result<SocketAddr, Wrong> {
    let parsed: Result<SocketAddr, _> = text.parse();
    let plain = |at: SocketAddr| {
        if is_mapped(at.ip()) { SocketAddr::new(at.ip().to_canonical(), at.port()) } else { at }
    };
    parsed.map(plain).map_err(|_| {
        let what = format!("{} is no IP address and port", quoted(text));
        let plain = escaped(text);
        let remedy = match text.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => format!("write the port too, e.g. \"{ip}:8080\""),
            Ok(IpAddr::V6(_)) => format!("put the address in brackets: {}", bracketed(text, 8080)),
            Err(_) if text.strip_prefix(':').unwrap_or(text).parse::<u16>().is_ok() => {
                format!("write the address too, e.g. \"0.0.0.0:{}\"", plain.trim_start_matches(':'))
            }
            Err(_) => "write e.g. \"0.0.0.0:8080\" for all addresses or \"127.0.0.1:8080\"".to_owned(),
        };
        (what, remedy)
    })
}

/// Where a back-end answers: host and port, the name of a service, or a Unix socket.
pub(crate) fn backend_place(text: &str) -> Result<BackendPlace, Wrong> {
    if let Some(path) = text.strip_prefix(UNIX) {
        return socket_path(text, path).map(|path| BackendPlace::Socket(Path::new(path).into()));
    }
    if let Some(name) = text.strip_prefix(SERVICE) {
        return service(text, name).map(BackendPlace::Host);
    }
    let meant = |what: &str, path: &str| {
        let path = path.trim_start_matches('/');
        let path = if path.is_empty() { "run/app.sock" } else { path };
        (format!("{} is {what}", quoted(text)), format!("write \"{UNIX}/{}\"", escaped(path)))
    };
    match text.split_once("://unix:") {
        Some((_, path)) => Err(meant("a URL", path.split(':').next().unwrap_or_default())),
        None if text.starts_with('/') => Err(meant("a path", text)),
        None if text.starts_with("unix@") => Err(meant("a path", &text["unix@".len()..])),
        None => host_port(text).map(BackendPlace::Host),
    }
}

fn service(text: &str, name: &str) -> Result<HostPort, Wrong> {
    let good = host_name(name).filter(|name| name.starts_with('_') && name.contains("._tcp."));
    good.map(|host| HostPort { host, port: 0 }).ok_or_else(|| {
        let what = format!("{} is no name of a service", quoted(text));
        (what, "write e.g. \"srv:_http._tcp.app.internal\"".to_owned())
    })
}

/// The path, if it can be that of a Unix socket.
fn socket_path<'t>(text: &str, path: &'t str) -> Result<&'t str, Wrong> {
    let example = || format!("write the absolute path of a Unix socket, e.g. \"{UNIX}/run/app.sock\"");
    let wrong = |why: &str, remedy: String| Err((format!("{} {why}", quoted(text)), remedy));
    match path {
        "" => wrong("has no path", example()),
        _ if !path.starts_with('/') => wrong("has no absolute path", example()),
        _ if path.starts_with("//") => {
            let plain = escaped(path.trim_start_matches('/'));
            wrong("begins its path with several slashes", format!("write \"{UNIX}/{plain}\""))
        }
        _ if path.ends_with('/') => wrong("names a directory", example()),
        _ if path.contains(char::is_control) => wrong("has a control character", example()),
        _ if path.len() > MOST_PATH_BYTES => wrong(
            &format!("has a path of {} bytes; the system takes {MOST_PATH_BYTES}", path.len()),
            "have the socket at a shorter path, or name a symbolic link to it".to_owned(),
        ),
        _ => Ok(path),
    }
}

/// Host, without brackets and in lower case, and port of a back-end.
pub(crate) fn host_port(text: &str) -> Result<HostPort, Wrong> {
    let example = "e.g. \"10.0.0.1:80\", \"app.internal:80\" or \"[fd00::1]:80\"";
    let wrong = |why: &str| (format!("{} {why}", quoted(text)), format!("write HOST:PORT, {example}"));
    if text.contains("://") {
        return Err(wrong("is a URL"));
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        let what = format!("{} has no brackets around its IPv6 address, or no port", quoted(text));
        return Err((what, format!("write {}", bracketed(text, 80))));
    }
    let Some((host, port)) = text.rsplit_once(':') else { return Err(wrong("has no port")) };
    let digits = port.chars().all(|c| c.is_ascii_digit());
    let Some(port) = port.parse().ok().filter(|port| digits && *port > 0) else {
        return Err(wrong("has no port from 1 to 65535"));
    };
    let host = if let Some(inner) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        let ip: Ipv6Addr = inner.parse().map_err(|_| wrong("has no IPv6 address in its brackets"))?;
        ip.to_canonical().to_string()
    } else if host.contains(':') {
        return Err(wrong("has an IPv6 address without brackets"));
    } else {
        host_name(host).ok_or_else(|| wrong("has no good host"))?
    };
    Ok(HostPort { host, port })
}

/// An IPv4 address or a host name (RFC 1123, section 2.1, and underscores), in lower case.
pub(crate) fn host_name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let label = |l: &str| {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !l.is_empty() && l.len() <= 63 && l.chars().all(good) && !l.starts_with('-') && !l.ends_with('-')
    };
    let numeric = text.rsplit('.').next().is_some_and(|l| l.chars().all(|c| c.is_ascii_digit()));
    if text.len() > 253 || !text.split('.').all(label) || (numeric && text.parse::<Ipv4Addr>().is_err()) {
        return None;
    }
    Some(text.to_ascii_lowercase())
}

/// An address or a block of them.
pub(crate) fn block(text: &str) -> Result<IpNet, Wrong> {
    let wrong = |why: String| (why, "write e.g. \"10.0.0.0/8\", \"fd00::/8\" or \"::1\"".to_owned());
    let (ip, prefix) = text.split_once('/').map_or((text, None), |(ip, prefix)| (ip, Some(prefix)));
    let address: IpAddr = ip.parse().map_err(|_| wrong(format!("{} is no IP address", quoted(ip))))?;
    if is_mapped(address) {
        let plain = address.to_canonical();
        return Err((
            format!("{} is an IPv4 address", quoted(text)),
            format!("write \"{plain}\", or its block"),
        ));
    }
    let bits: u8 = if address.is_ipv4() { 32 } else { 128 };
    let Some(prefix) = prefix.map_or(Some(bits), |p| p.parse().ok().filter(|p| *p <= bits)) else {
        return Err(wrong(format!("{} has no prefix from 0 to {bits}", quoted(text))));
    };
    let first = first_of(address, prefix);
    if first != address {
        let remedy = format!("write \"{first}/{prefix}\" for the block or \"{address}\" for the one address");
        return Err((format!("{} has bits set beyond its prefix", quoted(text)), remedy));
    }
    Ok(IpNet { address, prefix_bits: prefix })
}

/// The first address of a block.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

/// Whether this is an IPv4-mapped IPv6 address.
pub(crate) fn is_mapped(ip: IpAddr) -> bool {
    ip.is_ipv6() && ip.to_canonical().is_ipv4()
}
