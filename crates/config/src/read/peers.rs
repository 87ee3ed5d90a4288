//! Listeners, back-ends, trusted proxies and the admin API: whatever has an address.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use plimsoll_policy::Weight;
use toml::de::DeValue;

use crate::model::{Admin, BackendConfig, BackendName, Forwarded, IpNet};
use crate::read::address::{block, host_port, socket};
use crate::read::logs;
use crate::reader::{Reader, Section, Wrong, items};

const LISTENERS_MAX: usize = 64;
const BACKENDS_MAX: usize = 65_534;
const TRUSTED_MAX: usize = 1000;
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;

/// Whether two addresses cannot both be listened on.
pub(super) fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let same_ip = a.ip() == b.ip()
        || (a.is_ipv4() == b.is_ipv4() && (a.ip().is_unspecified() || b.ip().is_unspecified()));
    a.port() == b.port() && a.port() != 0 && same_ip
}

/// A listener with its place in the file.
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    pub(super) path: String,
    pub(super) span: Range<usize>,
}

/// Where clients connect.
pub(super) fn listeners<'a>(reader: &mut Reader<'a>, sections: &[Section<'a>]) -> Vec<Listening> {
    too_many(reader, sections, LISTENERS_MAX);
    let mut out: Vec<Listening> = Vec::new();
    for section in sections.iter().take(LISTENERS_MAX) {
        let Some(address) = reader.text(section, "address", socket) else { continue };
        let span = section.span_of("address");
        if let Some(other) = out.iter().find(|other| collide(other.address, address)) {
            let what = format!("{address} collides with {} on {}", other.path, other.address);
            let remedy = "choose another port or remove one of the two".to_owned();
            reader.wrong(&section.key("address"), span.clone(), (what, remedy));
        }
        out.push(Listening { address, path: section.path.clone(), span });
    }
    out
}

/// A back-end with the place of its agent in the file.
pub(super) struct Answering {
    pub(super) config: BackendConfig,
    pub(super) agent_path: String,
    pub(super) agent_span: Range<usize>,
}

/// Who answers.
pub(super) fn backends<'a>(reader: &mut Reader<'a>, sections: &[Section<'a>]) -> Vec<Answering> {
    too_many(reader, sections, BACKENDS_MAX);
    let (mut names, mut addresses) = (BTreeMap::new(), BTreeMap::new());
    let mut out = Vec::new();
    for section in sections.iter().take(BACKENDS_MAX) {
        let address = reader.text(section, "address", |text| host_port(text).map(|at| (at, text.to_owned())));
        let name = reader.text(section, "name", |text| name(text).map(Arc::<str>::from));
        let weight = Weight::new(reader.number(section, "weight")).unwrap_or(Weight::ONE);
        let agent = match section.found("agent") {
            Some(_) => reader.text(section, "agent", host_port),
            None => None,
        };
        let max_connections = u32::try_from(reader.integer(section, "max_connections")).unwrap_or(1);
        let Some(((host, port), text)) = address else { continue };
        let name: BackendName = name.unwrap_or_else(|| text.into());
        unique(reader, section, "address", &mut addresses, (host.clone(), port));
        unique(reader, section, "name", &mut names, Arc::clone(&name));
        out.push(Answering {
            config: BackendConfig { name, host, port, weight, max_connections, agent },
            agent_path: section.key("agent"),
            agent_span: section.span_of("agent"),
        });
    }
    out
}

fn too_many(reader: &mut Reader<'_>, sections: &[Section<'_>], most: usize) {
    if let Some(section) = sections.get(most) {
        let what = format!("there are {}, more than {most}", sections.len());
        let wrong = (what, "remove the rest".to_owned());
        reader.wrong(&section.path, section.span.clone(), wrong);
    }
}

/// Reports a value that an earlier back-end has.
fn unique<'s, K: Ord>(
    reader: &mut Reader<'_>,
    section: &'s Section<'_>,
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

fn name(text: &str) -> Result<&str, Wrong> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        let what = format!("{} is no name", crate::reader::quoted(text));
        return Err((what, "write 1 to 64 letters, digits, `-`, `_` and `.`".to_owned()));
    }
    Ok(text)
}

/// Whose fields are believed.
pub(super) fn forwarded<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Forwarded {
    let mut trusted: Vec<IpNet> = Vec::new();
    let Some(found) = section.found("trusted") else { return Forwarded { trusted } };
    let Some(items) = items(&found) else {
        reader.wrong_type(&found);
        return Forwarded { trusted };
    };
    for (index, item) in items {
        let key = format!("{}[{index}]", found.key);
        if index == TRUSTED_MAX {
            let wrong = (format!("there are more than {TRUSTED_MAX}"), "join neighbouring blocks".to_owned());
            reader.wrong(&key, item.span(), wrong);
            break;
        }
        let read = match item.get_ref() {
            DeValue::String(text) => block(text),
            _ => Err(("is no text".to_owned(), "write e.g. \"10.0.0.0/8\" or \"::1\"".to_owned())),
        };
        match read {
            Ok(net) => trusted.push(net),
            Err(wrong) => reader.wrong(&key, item.span(), wrong),
        }
    }
    Forwarded { trusted }
}

/// The admin API; there is one unless it is switched off.
pub(super) fn admin<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Admin> {
    let enabled = reader.flag(section, "enabled");
    let address = reader.text(section, "address", socket);
    let before = reader.errors.len();
    let inline = reader.text(section, "token", |text| token(text).map(str::to_owned));
    let file = reader.text(section, "token_file", |text| logs::path(text).map(str::to_owned));
    if section.found("token").is_some() && section.found("token_file").is_some() {
        let wrong = ("stands beside `token`".to_owned(), "keep one of the two".to_owned());
        reader.wrong(&section.key("token_file"), section.span_of("token_file"), wrong);
    }
    let from_file = file.and_then(|name| {
        let read = read_token(&reader.resolve(&name));
        let wrong = read.map_err(|(what, remedy)| (format!("the file {what}"), remedy));
        wrong.map_err(|w| reader.wrong(&section.key("token_file"), section.span_of("token_file"), w)).ok()
    });
    let address = address?;
    let token = inline.or(from_file);
    if enabled
        && token.is_none()
        && reader.errors.len() == before
        && !address.ip().to_canonical().is_loopback()
    {
        let what = format!("{} is not loopback and there is no token", address.ip());
        let remedy = "write `token_file = \"FILE\"`, or listen on 127.0.0.1 or ::1".to_owned();
        reader.wrong(&section.key("address"), section.span_of("address"), (what, remedy));
    }
    enabled.then_some(Admin { address, token })
}

/// A token, which no message repeats.
fn token(text: &str) -> Result<&str, Wrong> {
    // The characters of RFC 6750, section 2.1.
    let good = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    let remedy =
        || "write 16 to 4096 letters, digits and `-._~+/=`, e.g. from `openssl rand -hex 16`".to_owned();
    if !TOKEN_BYTES.contains(&text.len()) {
        return Err((format!("has {} characters", text.chars().count()), remedy()));
    }
    if !text.chars().all(good) {
        return Err(("holds characters that a token cannot have".to_owned(), remedy()));
    }
    Ok(text)
}

fn read_token(path: &Path) -> Result<String, Wrong> {
    let unreadable = |why: String| {
        let remedy = "make it a file that holds the token alone and that this user may read".to_owned();
        (format!("{} {why}", path.display()), remedy)
    };
    // Reading something that is no file could wait for ever.
    let regular = std::fs::metadata(path).map_err(|e| unreadable(format!("cannot be read: {e}")))?.is_file();
    if !regular {
        return Err(unreadable("is no regular file".to_owned()));
    }
    let mut text = String::new();
    let most = *TOKEN_BYTES.end() as u64 + 3;
    std::fs::File::open(path)
        .and_then(|f| f.take(most).read_to_string(&mut text))
        .map_err(|e| unreadable(format!("cannot be read: {e}")))?;
    token(text.trim())
        .map(str::to_owned)
        .map_err(|(what, remedy)| (format!("{}: token {what}", path.display()), remedy))
}

/// Whether an address is written as IPv6 but is IPv4.
pub(super) fn is_mapped(ip: IpAddr) -> bool {
    ip.is_ipv6() && ip.to_canonical().is_ipv4()
}
