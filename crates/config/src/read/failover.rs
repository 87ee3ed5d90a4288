//! Reads `[failover]` and checks it against mechanism and listeners.

use toml::de::DeTable;

use crate::read::peers::PlacedListener;
use crate::read::tables::one;
use crate::reader::ConfigReader;
use crate::sections::{FailoverConfig, MechanismKind};

/// The table `[failover]`; `None` without it.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    mechanism: MechanismKind,
    listeners: &[PlacedListener],
) -> Option<FailoverConfig> {
    let section = &one(reader, root, "failover")?;
    section.table?;
    let failover = FailoverConfig::read(reader, section);
    if !mechanism.hands_off() {
        let what = "only connections that back-ends have survive a front-end".to_owned();
        let remedy = "write `mechanism = \"handoff\"` at the top, or remove [failover]".to_owned();
        reader.wrong("failover", section.span.clone(), (what, remedy));
    }
    let failover = failover?;
    let is_there = |l: &PlacedListener| l.address.ip().to_canonical() == failover.address;
    // Without any listener, that is the error.
    if !listeners.is_empty() && !listeners.iter().any(is_there) {
        let what = format!("no listener listens at {}", failover.address);
        let remedy = "write the IP address of a [[listener]]".to_owned();
        reader.wrong(&section.key("address"), section.span_of("address"), (what, remedy));
    }
    Some(failover)
}
