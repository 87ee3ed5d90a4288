//! How connections are handed off.

use std::path::Path;
use std::time::Duration;

use plimsoll_wire::{Key, KeyError};

use crate::model::{BackendConfig, HandoffConfig, Mechanism, Placement};
use crate::read::logs;
use crate::read::peers::Listening;
use crate::reader::{Reader, Section, Wrong, items};

const INTERFACES_MAX: usize = 16;
/// A lease shorter than this would run out while an agent waits for its turn.
const TAKE_OVER_MIN: Duration = Duration::from_millis(50);
/// Bytes of an interface's name at most (`IFNAMSIZ` without the NUL).
const INTERFACE_BYTES: usize = 15;

/// The table `[handoff]`; `None` when the mechanism is another one.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    mechanism: Mechanism,
) -> Option<HandoffConfig> {
    if section.table.is_none() && mechanism != Mechanism::Handoff {
        return None;
    }
    let name = reader.text(section, "name", |text| name(text).map(str::to_owned));
    let key = key_file(reader, section);
    let interfaces = interfaces(reader, section);
    let placement = match reader.choice(section, "placement") {
        "connection" => Placement::Connection,
        _ => Placement::Request,
    };
    let min_bytes = reader.size(section, "min_size").unwrap_or_default();
    let flows = u32::try_from(reader.integer(section, "flows")).unwrap_or(1);
    let take_over_timeout = reader.duration(section, "take_over_timeout");
    if take_over_timeout < TAKE_OVER_MIN {
        let wrong = ("is too short".to_owned(), "write at least \"50ms\"".to_owned());
        reader.wrong(&section.key("take_over_timeout"), section.span_of("take_over_timeout"), wrong);
    }
    let state_bytes = usize::try_from(reader.size(section, "state_size").unwrap_or_default()).unwrap_or(0);
    let fallback = reader.choice(section, "fallback") == "proxy";
    let config = HandoffConfig {
        name: name?,
        key: key?,
        interfaces,
        placement,
        min_bytes,
        flows,
        take_over_timeout,
        state_bytes,
        fallback,
    };
    (mechanism == Mechanism::Handoff).then_some(config)
}

/// The key in the file that `key_file` names.
pub(super) fn key_file<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Key> {
    let path = reader.text(section, "key_file", |text| logs::path(text).map(str::to_owned))?;
    let path = reader.resolve(&path);
    let key = read_key(&path);
    key.map_err(|wrong| reader.wrong(&section.key("key_file"), section.span_of("key_file"), wrong)).ok()
}

/// What handing off asks of listeners and back-ends.
pub(super) fn check_peers(
    reader: &mut Reader<'_>,
    top: &Section<'_>,
    listeners: &[Listening],
    backends: &[BackendConfig],
) {
    for listener in listeners {
        let address = listener.address;
        if address.ip().is_unspecified() || address.port() == 0 {
            let what = format!("{address} is no address that back-ends could answer from");
            let remedy =
                "name the one address and port that clients connect to; with `mechanism = \"handoff\"` the \
                          back-ends have it as well"
                    .to_owned();
            reader.wrong(&format!("{}.address", listener.path), listener.span.clone(), (what, remedy));
        }
    }
    if !backends.is_empty() && backends.iter().all(|b| b.agent.is_none()) {
        let what = "there is no agent to hand connections to".to_owned();
        let remedy = "write `agent = \"HOST:PORT\"` in [[backend]], or `mechanism = \"proxy\"`".to_owned();
        reader.wrong("mechanism", top.span_of("mechanism"), (what, remedy));
    }
}

fn interfaces<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let Some(found) = section.found("interfaces") else {
        let remedy = "name the interface at which packets of clients arrive, e.g. `interfaces = [\"eth0\"]`"
            .to_owned();
        reader.wrong(&section.key("interfaces"), section.span.clone(), ("missing".to_owned(), remedy));
        return out;
    };
    let Some(items) = items(&found) else {
        reader.wrong_type(&found);
        return out;
    };
    for (index, item) in items {
        let key = format!("{}[{index}]", found.key);
        let Some(name) = item.get_ref().as_str() else {
            let wrong = ("is no text".to_owned(), "write the name of a network interface".to_owned());
            reader.wrong(&key, item.span(), wrong);
            continue;
        };
        let usable = |c: char| c.is_ascii_graphic() && c != '/';
        if name.is_empty() || name.len() > INTERFACE_BYTES || !name.chars().all(usable) {
            let what = format!("{} is no name of an interface", crate::reader::quoted(name));
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
    out
}

/// A name that stands in messages between machines.
pub(super) fn name(text: &str) -> Result<&str, Wrong> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        let what = format!("{} is no name", crate::reader::quoted(text));
        return Err((what, "write 1 to 64 letters, digits, `-` and `_`".to_owned()));
    }
    Ok(text)
}

/// The key in the file at `path`. What makes a file fit is for [`Key::load`] to say, which agents use as well.
fn read_key(path: &Path) -> Result<Key, Wrong> {
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
