//! Checks the table `[peers]` against the rest of the file.

use toml::de::DeValue;

use crate::read::peers::Answering;
use crate::reader::{ConfigReader, DeclaredTable, quoted};
use crate::sections::{MechanismKind, PeersConfig, PolicyConfig};

/// The local back-end, which is one of the configured ones.
pub(super) fn local<'b>(
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
    /// The `[[backend]]` on this machine.
    pub(super) local: Option<&'a Answering>,
    pub(super) policy: Option<&'a PolicyConfig>,
}

/// Checks the rest of the file if front-ends share their observations.
pub(super) fn check(reader: &mut ConfigReader<'_>, section: &DeclaredTable<'_>, beside: &OtherSections<'_>) {
    let local = beside.local.filter(|local| local.config.agent.is_some());
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
