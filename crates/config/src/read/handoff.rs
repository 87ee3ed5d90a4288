//! Reads `[handoff]` and checks it against listeners and back-ends.

use toml::de::DeTable;

use crate::read::peers::PlacedListener;
use crate::read::tables::one;
use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{BackendConfig, HandoffConfig, MechanismKind};

/// The table `[handoff]`; `None` inside with a mechanism that hands nothing off.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    top: &DeclaredTable<'_>,
    mechanism: MechanismKind,
    listeners: &[PlacedListener],
    backends: (&[BackendConfig], bool),
) -> Option<Option<HandoffConfig>> {
    let section = one(reader, root, "handoff")?;
    if section.table.is_none() && !mechanism.hands_off() {
        return Some(None);
    }
    let handoff = HandoffConfig::read(reader, &section).filter(|_| mechanism.hands_off());
    if mechanism.hands_off() {
        check_peers(reader, top, listeners, backends);
    }
    Some(handoff)
}

/// Checks that listeners and back-ends allow handoff.
fn check_peers(
    reader: &mut ConfigReader<'_>,
    top: &DeclaredTable<'_>,
    listeners: &[PlacedListener],
    (backends, others): (&[BackendConfig], bool),
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
    // Those that a directory tells bring their agents.
    if !others && !backends.is_empty() && backends.iter().all(|b| b.agent.is_none()) {
        let what = "there is no agent to hand connections to".to_owned();
        let remedy = "write `agent = \"HOST:PORT\"` in [[backend]], or `mechanism = \"proxy\"`".to_owned();
        reader.wrong("mechanism", top.span_of("mechanism"), (what, remedy));
    }
}
