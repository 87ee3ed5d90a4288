//! Checks the table `[peers]` against the rest of the file.

use toml::de::{DeTable, DeValue};

use crate::read::peers::Answering;
use crate::read::tables::{if_there, one};
use crate::reader::{ConfigReader, DeclaredTable, quoted};
use crate::sections::{MechanismKind, PeersConfig, PolicyConfig};

/// The front-ends beside this one, if there are any; the rest of the file is checked against them.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    beside: &OtherSections<'_>,
) -> Option<Option<PeersConfig>> {
    let section = one(reader, root, "peers")?;
    let peers = if_there(reader, &section, PeersConfig::read);
    if section.table.is_some() {
        let local = local(reader, (&section, peers.as_ref()), beside.backends);
        check(reader, &section, local, beside);
    }
    Some(peers)
}

/// The local back-end, which is one of the configured ones.
fn local<'b>(
    reader: &mut ConfigReader<'_>,
    (section, peers): (&DeclaredTable<'_>, Option<&PeersConfig>),
    backends: &'b [Answering],
) -> Option<&'b Answering> {
    if let Some(found) = section.found("local")
        && let DeValue::String(text) = found.value
        && backends.iter().all(|b| *b.config.name != **text)
    {
        let remedy = "write the `name` of the [[backend]] on this machine".to_owned();
        reader.wrong_value(&found, (format!("no back-end is called {}", quoted(text)), remedy));
    }
    let local = &peers?.local;
    backends.iter().find(|b| b.config.name == *local)
}

/// The settings elsewhere in the file that `[peers]` restricts.
pub(super) struct OtherSections<'a> {
    pub(super) mechanism: MechanismKind,
    pub(super) backends: &'a [Answering],
    pub(super) policy: Option<&'a PolicyConfig>,
}

/// Checks the rest of the file if front-ends share their observations; `local` is the `[[backend]]` on this machine.
fn check(
    reader: &mut ConfigReader<'_>,
    section: &DeclaredTable<'_>,
    local: Option<&Answering>,
    beside: &OtherSections<'_>,
) {
    let local = local.filter(|local| local.config.agent.is_some());
    if let Some(local) = local.filter(|_| beside.mechanism.hands_off()) {
        let what = "packets cannot be led on to the machine that they are on".to_owned();
        let remedy =
            "remove it: requests for the `local` of [peers] are proxied, those for the others handed off";
        reader.wrong(&local.agent_path, local.agent_span.clone(), (what, remedy.to_owned()));
    }
    let mut wrong = |what: String, remedy: &str| {
        reader.wrong(&section.path, section.span.clone(), (what, remedy.to_owned()));
    };
    let shares = |policy: &PolicyConfig| policy.spec.capabilities.can_share_state();
    if let Some(policy) = beside.policy.filter(|policy| !shares(policy)) {
        let what = format!("the policy {} has nothing to share with other front-ends", policy.spec.name);
        wrong(what, "write `name = \"adaptload\"` in [policy], or remove [peers]");
    }
}
