//! Front-ends beside one another.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{BackendConfig, Mechanism, PeerConfig, PeersConfig, PolicyConfig};
use crate::read::address::{host_port, socket};
use crate::read::handoff;
use crate::read::peers::Answering;
use crate::reader::{Reader, Section, Wrong, items, quoted};

const OTHERS_MAX: usize = 255;
const PERIOD_MIN: Duration = Duration::from_millis(50);

/// The table `[peers]`.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    backends: &[BackendConfig],
) -> Option<PeersConfig> {
    let name = reader.text(section, "name", |text| handoff::name(text).map(str::to_owned));
    let local = reader.text(section, "local", |text| {
        let found = backends.iter().find(|b| *b.name == *text).map(|b| Arc::clone(&b.name));
        found.ok_or_else(|| {
            let remedy = "write the `name` of the [[backend]] on this machine".to_owned();
            (format!("no back-end is called {}", quoted(text)), remedy)
        })
    });
    let address = reader.text(section, "address", socket);
    let key = handoff::key_file(reader, section);
    let others = others(reader, section, name.as_deref());
    let period = reader.duration(section, "period");
    let keep = reader.duration(section, "keep");
    if period < PERIOD_MIN {
        let wrong = ("is too short".to_owned(), "write at least \"50ms\"".to_owned());
        reader.wrong(&section.key("period"), section.span_of("period"), wrong);
    }
    if keep < period * 3 {
        let wrong = ("is too short".to_owned(), "write at least three times `period`".to_owned());
        reader.wrong(&section.key("keep"), section.span_of("keep"), wrong);
    }
    Some(PeersConfig { name: name?, local: local?, address: address?, key: key?, others, period, keep })
}

fn others<'a>(reader: &mut Reader<'a>, section: &Section<'a>, own: Option<&str>) -> Vec<PeerConfig> {
    let mut out: Vec<PeerConfig> = Vec::new();
    let Some(found) = section.found("others") else {
        let remedy = "name the other front-ends, e.g. `others = [\"n1=10.0.0.2:7500\"]`".to_owned();
        reader.wrong(&section.key("others"), section.span.clone(), ("missing".to_owned(), remedy));
        return out;
    };
    let Some(items) = items(&found) else {
        reader.wrong_type(&found);
        return out;
    };
    for (index, item) in items {
        let key = format!("{}[{index}]", found.key);
        let read = item.get_ref().as_str().ok_or_else(|| unreadable("is no text")).and_then(other);
        let read = read.and_then(|peer| match out.iter().any(|o| o.name == peer.name) {
            true => {
                Err((format!("{} is named twice", quoted(&peer.name)), "remove one of the two".to_owned()))
            }
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
    out
}

fn unreadable(what: &str) -> Wrong {
    (what.to_owned(), "write NAME=HOST:PORT, e.g. \"n1=10.0.0.2:7500\"".to_owned())
}

fn other(text: &str) -> Result<PeerConfig, Wrong> {
    let Some((name, at)) = text.split_once('=') else {
        return Err(unreadable(&format!("{} has no name", quoted(text))));
    };
    let name = handoff::name(name)?.to_owned();
    let (host, port) = host_port(at)?;
    Ok(PeerConfig { name, host, port })
}

/// What stands elsewhere in the file and does not go with every [peers].
pub(super) struct Beside<'a> {
    pub(super) mechanism: Mechanism,
    /// The `[[backend]]` on this machine.
    pub(super) local: Option<&'a Answering>,
    pub(super) policy: Option<&'a PolicyConfig>,
    pub(super) decision_log: bool,
}

/// Front-ends that share what they have seen ask something of the rest of the file.
pub(super) fn check(reader: &mut Reader<'_>, section: &Section<'_>, beside: &Beside<'_>) {
    let local = beside.local.filter(|local| local.config.agent.is_some());
    if let Some(local) = local.filter(|_| beside.mechanism == Mechanism::Handoff) {
        let what = "packets cannot be led on to the machine that they are on".to_owned();
        let remedy =
            "remove it: requests for the `local` of [peers] are proxied, those for the others handed off";
        reader.wrong(&local.agent_path, local.agent_span.clone(), (what, remedy.to_owned()));
    }
    let mut wrong = |what: String, remedy: &str| {
        reader.wrong(&section.path, section.span.clone(), (what, remedy.to_owned()));
    };
    let shares = |policy: &PolicyConfig| policy.build().is_ok_and(|policy| policy.sizes_seen().is_some());
    if let Some(policy) = beside.policy.filter(|policy| !shares(policy)) {
        let what = format!("the policy {} has nothing to share with other front-ends", policy.spec.name);
        wrong(what, "write `name = \"adaptload\"` in [policy], or remove [peers]");
    }
    if beside.decision_log {
        let what =
            "what other front-ends tell is not in the decision log, which could not be replayed".to_owned();
        wrong(what, "remove [decision_log], or [peers]");
    }
}
