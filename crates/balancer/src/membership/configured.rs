//! The configuration as a source of membership: a reload changes who is in the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_config::Config;

use super::source::{MemberSpec, MembershipChange, MembershipSource};
use crate::backend_address::BackendAddress;

/// The longest pause between two look-ups of a name that leads nowhere.
pub(super) const MOST_PAUSE: Duration = Duration::from_secs(30);

/// Warns where names lead nowhere, to one address, or to this front-end.
pub(crate) fn warn_of_strange_addresses(config: &Config, members: &[MemberSpec]) {
    let mut names = BTreeMap::new();
    members.iter().for_each(warn_of_unresolved);
    for MemberSpec { name, address, .. } in members {
        let Ok(address) = address else { continue };
        warn_of_strange_address(config, name, address, names.insert(address, &**name));
    }
}

/// Says that a back-end has no address.
fn warn_of_unresolved(spec: &MemberSpec) {
    if let Err(error) = &spec.address {
        tracing::warn!(
            backend = &*spec.name,
            "back-end is down: {error}; it is looked up again at least every {} s",
            MOST_PAUSE.as_secs()
        );
    }
}

/// Warns where the address of a back-end is that of the back-end `first`, too, or of this front-end.
pub(super) fn warn_of_strange_address(
    config: &Config,
    name: &str,
    address: &BackendAddress,
    first: Option<&str>,
) {
    if let Some(first) = first {
        tracing::warn!(%address, "back-ends {first} and {name} have the same address: it counts twice");
    }
    if config.listeners.iter().any(|listener| address.tcp() == Some(listener.address)) {
        tracing::warn!(%address, "back-end {name} is this front-end itself: its requests come back");
    }
}

/// A configuration that takes the place of another one.
pub(crate) struct Reload<'a> {
    old: &'a Config,
    /// The back-ends of the new one; empty once they have been told.
    members: Vec<MemberSpec>,
    told: bool,
}

impl<'a> Reload<'a> {
    /// From the old configuration to these back-ends.
    pub(crate) fn new(old: &'a Config, members: Vec<MemberSpec>) -> Self {
        Self { old, members, told: false }
    }
}

impl MembershipSource for Reload<'_> {
    fn changes(&mut self) -> Vec<MembershipChange> {
        if std::mem::replace(&mut self.told, true) {
            return Vec::new();
        }
        let members = std::mem::take(&mut self.members);
        let before = |name: &str| self.old.backends.iter().find(|b| *b.name == *name);
        let gone = self.old.backends.iter().filter(|old| !members.iter().any(|m| m.name == old.name));
        let gone: Vec<_> = gone.map(|old| MembershipChange::Leave(Arc::clone(&old.name))).collect();
        let there = members.into_iter().map(|spec| match before(&spec.name) {
            None => MembershipChange::Join(spec),
            Some(old) => {
                let reweighted = old.weight != spec.weight;
                MembershipChange::Change { spec, reweighted }
            }
        });
        there.chain(gone).collect()
    }
}
