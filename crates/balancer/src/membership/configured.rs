//! The configuration as a source of membership: a reload changes who is in the cluster.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use plimsoll_config::{BackendConfig, Config, HostPort};

use super::source::{MemberSpec, MembershipChange, MembershipSource};
use crate::backend::Backend;

/// A back-end's name that leads to no address.
#[derive(Debug)]
pub(crate) struct Unresolved {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) error: io::Error,
}

/// The back-ends of a configuration. Names lead to the addresses that they lead to in `known`, if they still do, else to
/// their first ones.
///
/// # Errors
/// When a name leads to no address.
pub(crate) fn members_of(config: &Config, known: &[Arc<Backend>]) -> Result<Vec<MemberSpec>, Unresolved> {
    let resolve = |b: &BackendConfig, at: &HostPort, before: Option<SocketAddr>| {
        let failed = |error| Unresolved { name: b.name.to_string(), host: at.host.clone(), error };
        let found: Vec<_> = (&*at.host, at.port).to_socket_addrs().map_err(failed)?.collect();
        let first = || failed(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        before.filter(|a| found.contains(a)).or(found.first().copied()).ok_or_else(first)
    };
    let member = |b: &BackendConfig| {
        let before = known.iter().find(|k| k.name == b.name);
        let agent = b.agent.as_ref().filter(|_| config.handoff.is_some());
        let agent = agent.map(|at| resolve(b, at, before.and_then(|k| k.agent)));
        Ok(MemberSpec {
            name: Arc::clone(&b.name),
            weight: b.weight,
            address: resolve(b, &b.at, before.map(|k| k.address))?,
            agent: agent.transpose()?,
            authority: b.address(),
            max_connections: b.max_connections,
        })
    };
    let members: Vec<MemberSpec> = config.backends.iter().map(member).collect::<Result<_, _>>()?;
    warn_of_strange_addresses(config, &members);
    Ok(members)
}

/// Warns where names lead to one address, or to this front-end.
fn warn_of_strange_addresses(config: &Config, members: &[MemberSpec]) {
    let mut names = BTreeMap::new();
    for MemberSpec { name, address, .. } in members {
        if let Some(first) = names.insert(address, name) {
            tracing::warn!(%address, "back-ends {first} and {name} have the same address: it counts twice");
        }
        if config.listeners.iter().any(|listener| listener.address == *address) {
            tracing::warn!(%address, "back-end {name} is this front-end itself: its requests come back");
        }
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
