//! How connections are handed off.

use std::path::Path;
use std::time::Duration;

use plimsoll_wire::{Key, KeyError};

use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::{Is, Required};
use crate::keys::KeyKind::{self, Choice, Integer, Size, Text, Texts};
use crate::keys::SIZE_MAX;
use crate::path::path;
use crate::reader::{ConfigReader, DeclaredTable, Wrong, items, quoted};
use crate::value::{ConfigValue, show_duration};

keys! {
    /// How connections are handed off; used, and needed, with `mechanism = "handoff"` and `"auto"`.
    ["handoff"] pub struct HandoffConfig {
        /// What agents call this front-end; after a restart they know it by this name.
        "name" name: String = Is("front-end"), Text("1 to 64 letters, digits, `-` and `_`") => MachineName, restart;
        /// File with the key that front-end and agents share: 64 hexadecimal digits, which only its owner, and at most its
        /// group, may read.
        "key_file" key: Key = Required, Text("the path of a file") => KeyFile, restart;
        /// Where packets of clients arrive and leave again for back-ends; at least one, at most 16.
        "interfaces" interfaces: Vec<String> =
            Required, Texts("the name of a network interface, e.g. \"eth0\"") => Interfaces, restart;
        /// What the policy places: `request`, each request, so that a connection is handed on when its next request belongs
        /// elsewhere; `connection`, each connection by its first request.
        "placement" placement: Placement = Is("request"), Choice(Placement::WORDS);
        /// A response that is expected to be smaller, or whose size is not known, is proxied when the connection ends with it. With
        /// `mechanism = "auto"`: smaller ones are proxied however busy the front-end is, unless the connection stays with its
        /// back-end.
        "min_size" min_bytes: u64 = Is("16KiB"), Size { min: 0, max: SIZE_MAX };
        /// With `mechanism = "auto"`: a response expected to be at least as large is handed off in any case.
        "large_size" large_bytes: u64 = Is("1MiB"), Size { min: 0, max: SIZE_MAX };
        /// Connections that back-ends may have at once; further ones are proxied.
        "flows" flows: u32 = Is("100000"), Integer { min: 1, max: 10_000_000 }, restart;
        /// How long an agent may take to take a connection over; then the front-end takes it back. At least 50ms.
        "take_over_timeout" take_over_timeout: Duration = Is("500ms"), KeyKind::Duration => NotTooShort;
        /// How long a link to an agent may be silent before it counts as lost. At least 50ms.
        "link_timeout" link_timeout: Duration = Is("1500ms"), KeyKind::Duration => NotTooShort;
        /// How long an agent whose link is lost has to come back. Then clients of its connections are reset, except those to
        /// whom something still comes.
        "lost_grace" lost_grace: Duration = Is("1250ms"), KeyKind::Duration;
        /// What may be under way on a connection that is handed off or on; with more, it stays where it is.
        "state_size" state_bytes: usize = Is("4MiB"), Size { min: 64 << 10, max: 8 << 20 };
        /// What to do when this system does not allow handoffs: `none`, not to start; `proxy`, to proxy.
        "fallback" fallback: bool = Is("none"), Choice(&["none", "proxy"]) => Fallback, restart;
    }
}

words! {
    /// What is placed by the policy when connections are handed off.
    pub enum Placement {
        Request = "request" / "Each request: a connection is handed on when its next request belongs elsewhere.",
        Connection = "connection" / "Each connection: its first request decides.",
    }
}

/// A name used in messages between machines.
pub(super) struct MachineName;

impl KeyForm<String> for MachineName {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<String> {
        reader.text(section, name, |text| machine_name(text).map(str::to_owned))
    }

    fn show(name: &String) -> Option<ConfigValue> {
        Some(ConfigValue::Text(name.clone()))
    }
}

/// A name used in messages between machines.
pub(super) fn machine_name(text: &str) -> Result<&str, Wrong> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        let what = format!("{} is no name", quoted(text));
        return Err((what, "write 1 to 64 letters, digits, `-` and `_`".to_owned()));
    }
    Ok(text)
}

/// The key in a file.
pub(super) struct KeyFile;

impl KeyForm<Key> for KeyFile {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Key> {
        let file = reader.text(section, name, |text| path(text).map(str::to_owned))?;
        let key = read_key(&reader.file(&file));
        key.map_err(|wrong| reader.wrong(&section.key(name), section.span_of(name), wrong)).ok()
    }

    fn show(_: &Key) -> Option<ConfigValue> {
        Some(ConfigValue::Secret)
    }
}

/// Reads the key file at `path`. [`Key::load`] checks it, for agents as well.
pub(super) fn read_key(path: &Path) -> Result<Key, Wrong> {
    const MAKE: &str =
        "make one: (umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > FILE)";
    Key::load(path).map_err(|error| match error {
        KeyError::File { path, error } => (format!("{}: {error}", path.display()), MAKE.to_owned()),
        KeyError::Exposed { path, mode } => {
            let what =
                format!("{} has mode {mode:03o}, so that others could read or replace it", path.display());
            (what, format!("chmod 600 {}, or 640 for a group", path.display()))
        }
        KeyError::Contents { path, error } => (format!("{}: {error}", path.display()), MAKE.to_owned()),
        error @ KeyError::Form { .. } => (error.to_string(), MAKE.to_owned()),
    })
}

const INTERFACES_MAX: usize = 16;
/// The most bytes of an interface's name (`IFNAMSIZ` without the NUL).
const INTERFACE_BYTES: usize = 15;

/// Names of network interfaces.
pub(super) struct Interfaces;

impl KeyForm<Vec<String>> for Interfaces {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Vec<String>> {
        let Some(found) = section.found(name) else {
            let remedy =
                "name the interface at which packets of clients arrive, e.g. `interfaces = [\"eth0\"]`";
            reader.wrong(&section.key(name), section.span.clone(), ("missing".to_owned(), remedy.to_owned()));
            return Some(Vec::new());
        };
        let Some(items) = items(&found) else {
            reader.wrong_type(&found);
            return Some(Vec::new());
        };
        let mut out: Vec<String> = Vec::new();
        for (index, item) in items {
            let key = format!("{}[{index}]", found.key);
            let Some(name) = item.get_ref().as_str() else {
                let wrong = ("is no text".to_owned(), "write the name of a network interface".to_owned());
                reader.wrong(&key, item.span(), wrong);
                continue;
            };
            let usable = |c: char| c.is_ascii_graphic() && c != '/';
            if name.is_empty() || name.len() > INTERFACE_BYTES || !name.chars().all(usable) {
                let what = format!("{} is no name of an interface", quoted(name));
                reader.wrong(&key, item.span(), (what, "write one that `ip link` shows".to_owned()));
            } else if out.iter().any(|other| other == name) {
                let wrong = ("is named twice".to_owned(), "remove one of the two".to_owned());
                reader.wrong(&key, item.span(), wrong);
            } else {
                out.push(name.to_owned());
            }
        }
        if out.is_empty() || out.len() > INTERFACES_MAX {
            let what = format!("{} interfaces are named", out.len());
            let remedy = format!("name at least one and at most {INTERFACES_MAX}");
            reader.wrong(&found.key, found.span.clone(), (what, remedy));
        }
        Some(out)
    }

    fn show(names: &Vec<String>) -> Option<ConfigValue> {
        Some(ConfigValue::List(names.clone()))
    }
}

/// Shorter time-outs expire while the other side merely waits for a CPU.
const SHORTEST: Duration = Duration::from_millis(50);

/// A duration of at least 50 ms.
pub(super) struct NotTooShort;

impl KeyForm<Duration> for NotTooShort {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Duration> {
        let span = reader.duration(section, name);
        if span < SHORTEST {
            let wrong = ("is too short".to_owned(), "write at least \"50ms\"".to_owned());
            reader.wrong(&section.key(name), section.span_of(name), wrong);
        }
        Some(span)
    }

    fn show(span: &Duration) -> Option<ConfigValue> {
        Some(ConfigValue::Text(show_duration(*span)))
    }
}

/// Whether to proxy.
struct Fallback;

impl KeyForm<bool> for Fallback {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<bool> {
        Some(reader.choice(section, name) == "proxy")
    }

    fn show(proxies: &bool) -> Option<ConfigValue> {
        Some(ConfigValue::Text(if *proxies { "proxy" } else { "none" }.to_owned()))
    }
}
