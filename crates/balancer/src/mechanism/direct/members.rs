//! Back-ends as the switch has to know them: their state, weight, and the MAC address that leads to them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_config::OnFailure;
use plimsoll_datapath::{NextHop, neighbor};
use plimsoll_policy::{BackendId, Health};
use plimsoll_switch::{SwitchBackend, SwitchBackendState};

use crate::backend::Backend;
use crate::shared::FrontEndShared;

/// How long a MAC address is taken to be right.
const FRESH: Duration = Duration::from_secs(5);
/// How long one that was not found is not looked for.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a machine may take to tell its MAC address.
const WAIT: Duration = Duration::from_millis(100);

/// Ways to back-ends, as found last.
#[derive(Default)]
pub(super) struct Ways {
    found: BTreeMap<IpAddr, (Option<NextHop>, Instant)>,
}

impl Ways {
    /// The way to `address`. May wait a moment.
    fn to(&mut self, address: IpAddr, name: &str) -> Option<NextHop> {
        let known = self.found.get(&address);
        if let Some((hop, at)) = known
            && at.elapsed() < if hop.is_some() { FRESH } else { PAUSE }
        {
            return *hop;
        }
        let before = known.map(|(hop, _)| *hop);
        let found = match neighbor(address, WAIT) {
            Ok(hop) => Some(hop),
            // One that does not answer for a moment has not moved; whether it works is for health checks to say.
            Err(error) => match before.flatten() {
                Some(hop) => Some(hop),
                None => {
                    if before.is_none() {
                        tracing::warn!(backend = name, %error, "no packets can be sent to a back-end");
                    }
                    None
                }
            },
        };
        self.found.insert(address, (found, Instant::now()));
        found
    }
}

/// All back-ends that have, or may get, connections.
pub(super) fn members(shared: &FrontEndShared, ways: &mut Ways) -> Vec<SwitchBackend> {
    let config = shared.config.load_full();
    let waits = config.direct.as_ref().is_some_and(|direct| direct.on_failure == OnFailure::Wait);
    let backends = shared.backends.load_full();
    let known = shared.dispatch.inspect_members(|i| {
        let of = |b: &Arc<Backend>| {
            let there = b.id.index() < i.view.len();
            there.then(|| (i.view.weight(b.id).steps(), i.view.own_load(b.id)))
        };
        backends.iter().map(of).collect::<Vec<_>>()
    });
    let mut members = Vec::new();
    for (backend, known) in backends.iter().zip(known) {
        let (Ok(address), Some((weight, load))) = (&backend.address, known) else { continue };
        let state = match (backend.is_retired(), backend.health()) {
            // Its connections may end.
            (true, _) if load == 0 => continue,
            (true, _) | (false, Health::Draining) => SwitchBackendState::Draining,
            (false, Health::Up) => SwitchBackendState::Up,
            (false, Health::Down) if waits => SwitchBackendState::Draining,
            (false, Health::Down) => SwitchBackendState::Down,
        };
        members.push(SwitchBackend {
            id: backend.id,
            key: key_of(&backend.name, backend.id),
            weight,
            state,
            next_hop: ways.to(address.ip(), &backend.name),
        });
    }
    members
}

/// What every switch knows a back-end by: depends on its name alone.
fn key_of(name: &str, id: BackendId) -> u64 {
    match crate::dispatch::key_of(name) {
        0 => id.index() as u64 + 1,
        key => key,
    }
}
