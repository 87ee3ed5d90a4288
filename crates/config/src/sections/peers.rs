//! Front-ends beside one another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::Key;

use super::backends::BackendName;
use super::handoff::{KeyFile, MachineName, NotTooShort, machine_name};
use crate::address::{HostPort, host_port};
use crate::declare::{KeyForm, keys};
use crate::keys::Default::{Is, Required};
use crate::keys::KeyKind::{self, Text, Texts};
use crate::reader::{ConfigReader, DeclaredTable, Wrong, items, quoted};
use crate::value::{ConfigValue, show_duration};

keys! {
    /// Front-ends beside one another, one on each back-end's machine, which set the same boundaries of sizes; without this
    /// table a front-end is on its own. For the policy `adaptload`; with `mechanism = "handoff"`
    /// the local back-end has no `agent`.
    ["peers"] pub struct PeersConfig {
        /// What the others call this one.
        "name" name: String = Required, Text("1 to 64 letters, digits, `-` and `_`") => MachineName, restart;
        /// The back-end on this machine; requests for the others are passed on.
        "local" local: BackendName = Required, Text("the name of a back-end") => LocalName, restart;
        /// Where the others connect.
        "address" address: SocketAddr = Required, Text("IP address and port, e.g. \"10.0.0.1:7500\""), restart;
        /// File with the key that all of them share: 64 hexadecimal digits, which only its owner, and at most its group, may
        /// read.
        "key_file" key: Key = Required, Text("the path of a file") => KeyFile, restart;
        /// The other front-ends, by name and address; at most 255.
        "others" others: Vec<PeerConfig> =
            Required, Texts("NAME=HOST:PORT, e.g. \"n1=10.0.0.2:7500\"") => Others, restart;
        /// How often they tell one another what they have seen. At least 50ms.
        "period" period: Duration = Is("1s"), KeyKind::Duration => NotTooShort, restart;
        /// How long what one has told counts when nothing more is heard of it; at least three periods.
        "keep" keep: Duration = Is("30s"), KeyKind::Duration => ThreePeriods, restart;
    }
}

/// Another front-end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerConfig {
    /// What it calls itself.
    pub name: String,
    /// Its host: a name or an address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The name of a back-end. Its existence is checked with the back-ends.
struct LocalName;

impl KeyForm<BackendName> for LocalName {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<BackendName> {
        reader.text(section, name, |text| Ok(Arc::from(text)))
    }

    fn show(name: &BackendName) -> Option<ConfigValue> {
        Some(ConfigValue::Text(name.to_string()))
    }
}

const OTHERS_MAX: usize = 255;

/// The other front-ends.
struct Others;

impl KeyForm<Vec<PeerConfig>> for Others {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Vec<PeerConfig>> {
        let Some(found) = section.found(name) else {
            let remedy = "name the other front-ends, e.g. `others = [\"n1=10.0.0.2:7500\"]`".to_owned();
            reader.wrong(&section.key(name), section.span.clone(), ("missing".to_owned(), remedy));
            return Some(Vec::new());
        };
        let Some(items) = items(&found) else {
            reader.wrong_type(&found);
            return Some(Vec::new());
        };
        let own = section.found("name").and_then(|found| found.value.as_str());
        let mut out: Vec<PeerConfig> = Vec::new();
        for (index, item) in items {
            let key = format!("{}[{index}]", found.key);
            let read = item.get_ref().as_str().ok_or_else(|| unreadable("is no text")).and_then(other);
            let read = read.and_then(|peer| match out.iter().any(|o| o.name == peer.name) {
                true => Err((
                    format!("{} is named twice", quoted(&peer.name)),
                    "remove one of the two".to_owned(),
                )),
                false if own == Some(&*peer.name) => {
                    Err((format!("{} is this one", quoted(&peer.name)), "name the others only".to_owned()))
                }
                false => Ok(peer),
            });
            match read {
                Ok(peer) => out.push(peer),
                Err(wrong) => reader.wrong(&key, item.span(), wrong),
            }
        }
        if out.len() > OTHERS_MAX {
            let wrong = (format!("{} are named", out.len()), format!("name at most {OTHERS_MAX}"));
            reader.wrong(&found.key, found.span.clone(), wrong);
        }
        Some(out)
    }

    fn show(others: &Vec<PeerConfig>) -> Option<ConfigValue> {
        let at = |peer: &PeerConfig| HostPort { host: peer.host.clone(), port: peer.port };
        let shown = |peer: &PeerConfig| format!("{}={}", peer.name, at(peer));
        Some(ConfigValue::List(others.iter().map(shown).collect()))
    }
}

fn unreadable(what: &str) -> Wrong {
    (what.to_owned(), "write NAME=HOST:PORT, e.g. \"n1=10.0.0.2:7500\"".to_owned())
}

fn other(text: &str) -> Result<PeerConfig, Wrong> {
    let Some((name, at)) = text.split_once('=') else {
        return Err(unreadable(&format!("{} has no name", quoted(text))));
    };
    let name = machine_name(name)?.to_owned();
    let HostPort { host, port } = host_port(at)?;
    Ok(PeerConfig { name, host, port })
}

/// A duration of at least three times `period`.
struct ThreePeriods;

impl KeyForm<Duration> for ThreePeriods {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Duration> {
        let keep = reader.duration(section, name);
        // Errors of the period are reported where that is read.
        if section.duration("period").is_some_and(|period| keep < period * 3) {
            let wrong = ("is too short".to_owned(), "write at least three times `period`".to_owned());
            reader.wrong(&section.key(name), section.span_of(name), wrong);
        }
        Some(keep)
    }

    fn show(keep: &Duration) -> Option<ConfigValue> {
        Some(ConfigValue::Text(show_duration(*keep)))
    }
}
