//! Back-ends as the switch has to know them: their state, weight, and the MAC address that leads to them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_config::{BackendName, OnFailure};
use plimsoll_datapath::switch::{FrameTag, Tunnel, TunnelKind};
use plimsoll_datapath::{DatapathError, NextHop, Way, neighbor, source_to, way};
use plimsoll_policy::Health;
use plimsoll_switch::{SwitchBackend, SwitchBackendState};

use crate::backend::Backend;
use crate::backend_address::BackendAddress;
use crate::shared::FrontEndShared;

/// How long a MAC address is taken to be right.
const FRESH: Duration = Duration::from_secs(5);
/// How long one that was not found is not looked for, once it was looked for [`EAGER`] times.
const PAUSE: Duration = Duration::from_secs(1);
/// So often it is looked for at once: a machine may take a moment to tell its MAC address.
const EAGER: u32 = 20;
/// The most ways that are looked for at a time, so that nobody waits for news of a back-end's health.
const MOST_LOOKS: usize = 64;

/// The way to a back-end, with its tunnel if it has one.
pub(super) type FoundWay = (NextHop, Option<Tunnel>);

/// What is known of the way to an address.
struct KnownWay {
    hop: Option<FoundWay>,
    /// When it was looked for.
    looked: Instant,
    /// How often in vain since it was found.
    misses: u32,
}

impl KnownWay {
    fn is_due(&self) -> bool {
        let pause = match (self.hop, self.misses) {
            (Some(_), _) => FRESH,
            (None, misses) if misses < EAGER => Duration::ZERO,
            (None, _) => PAUSE,
        };
        self.looked.elapsed() >= pause
    }
}

/// Ways to back-ends, as found last.
pub(super) struct Ways {
    by: Option<TunnelKind>,
    /// Virtual addresses, which back-ends have, too.
    shared: Vec<IpAddr>,
    known: BTreeMap<IpAddr, KnownWay>,
}

impl Ways {
    /// With none known. Packets go in a tunnel of this kind, or else as they are; back-ends have the addresses `shared`, too.
    pub(super) fn new(by: Option<TunnelKind>, shared: Vec<IpAddr>) -> Self {
        Self { by, shared, known: BTreeMap::new() }
    }

    /// Says so if the kernel would connect to `address` from an address that is also that machine's own: answers, those to health
    /// checks first, would never leave it.
    fn warn_of_shared_source(&self, address: IpAddr, name: &str) {
        if let Ok(source) = source_to(address)
            && self.shared.contains(&source)
        {
            tracing::warn!(backend = name, %source, "connections to a back-end come from a virtual address, so it cannot answer them; `plimsoll check --system` says what helps");
        }
    }

    fn to(&self, address: IpAddr) -> Option<FoundWay> {
        self.known.get(&address)?.hop
    }

    fn seek(&self, address: IpAddr) -> Result<FoundWay, DatapathError> {
        let Some(kind) = self.by else { return Ok((neighbor(address, Duration::ZERO)?, None)) };
        let Way { next_hop, source, most_bytes } = way(address, Duration::ZERO)?;
        Ok((next_hop, Some(Tunnel { kind, local: source, remote: address, most_bytes })))
    }

    /// Looks for all of these addresses, for at most `wait`.
    pub(super) fn find(&mut self, addresses: &[(IpAddr, BackendName)], wait: Duration) {
        let started = Instant::now();
        loop {
            self.look(addresses);
            let found = addresses.iter().all(|(address, _)| self.to(*address).is_some());
            if found || started.elapsed() >= wait {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Looks for those of these addresses whose time has come. Never waits: an address that the kernel has to ask for first is found
    /// by a later look.
    pub(super) fn look(&mut self, addresses: &[(IpAddr, BackendName)]) {
        self.known.retain(|known, _| addresses.iter().any(|(address, _)| address == known));
        let is_due =
            |(address, _): &&(IpAddr, BackendName)| self.known.get(address).is_none_or(KnownWay::is_due);
        let mut due: Vec<_> = addresses.iter().filter(is_due).collect();
        // Those first that nobody has looked for, or not for the longest time.
        due.sort_by_key(|(address, _)| self.known.get(address).map(|known| known.looked));
        for (address, name) in due.into_iter().take(MOST_LOOKS) {
            let found = self.seek(*address);
            if found.is_ok() && self.to(*address).is_none() {
                self.warn_of_shared_source(*address, name);
            }
            let known = self.known.entry(*address).or_insert(KnownWay {
                hop: None,
                looked: Instant::now(),
                misses: 0,
            });
            known.looked = Instant::now();
            match found {
                Ok(hop) => (known.hop, known.misses) = (Some(hop), 0),
                // One that does not answer for a moment has not moved; whether it works is for health checks to say.
                Err(error) => {
                    known.misses = known.misses.saturating_add(1);
                    if known.misses == EAGER && known.hop.is_none() {
                        tracing::warn!(backend = &**name, %error, "no packets can be sent to a back-end");
                    }
                }
            }
        }
    }
}

/// The addresses to which packets are, or may be, sent.
pub(super) fn addresses(shared: &FrontEndShared) -> Vec<(IpAddr, BackendName)> {
    let backends = shared.backends.load();
    let of = |b: &Arc<Backend>| Some((b.address.as_ref().ok()?.tcp()?.ip(), Arc::clone(&b.name)));
    backends.iter().filter_map(of).collect()
}

/// All back-ends that have, or may get, connections, with the ways as far as they are known.
pub(super) fn members(shared: &FrontEndShared, ways: &Ways) -> Vec<SwitchBackend> {
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
    let tags: BTreeMap<&str, u16> =
        config.backends.iter().filter_map(|b| Some((&*b.name, b.vlan?))).collect();
    let mut members = Vec::new();
    for (backend, known) in backends.iter().zip(known) {
        let address = backend.address.as_ref().ok().and_then(BackendAddress::tcp);
        let (Some(address), Some((weight, load))) = (address, known) else { continue };
        let state = match (backend.is_retired(), backend.health()) {
            // What its clients have not ended is at the switch to keep.
            (true, _) if load == 0 => continue,
            (true, _) | (false, Health::Draining) => SwitchBackendState::Draining,
            (false, Health::Up) => SwitchBackendState::Up,
            (false, Health::Down) if waits => SwitchBackendState::Draining,
            (false, Health::Down) => SwitchBackendState::Down,
        };
        let found = ways.to(address.ip());
        members.push(SwitchBackend {
            id: backend.id,
            key: key_of(backend, address.ip()),
            weight,
            state,
            next_hop: found.map(|(hop, _)| hop),
            tunnel: found.and_then(|(_, tunnel)| tunnel),
            tag: tag_of(&tags, &backend.name),
        });
    }
    members
}

/// The VLAN tag of frames for a back-end. One of several addresses of a name is called `NAME@ADDRESS`.
fn tag_of(tags: &BTreeMap<&str, u16>, name: &str) -> FrameTag {
    let configured = name.split_once('@').map_or(name, |(configured, _)| configured);
    match tags.get(configured) {
        None => FrameTag::Kept,
        Some(0) => FrameTag::Removed,
        Some(number) => FrameTag::Vlan(*number),
    }
}

/// What every switch knows a back-end by: depends on name and address alone. One that moves is another one, so that connections that
/// the old one has stay there.
fn key_of(backend: &Backend, address: IpAddr) -> u64 {
    match crate::dispatch::key_of(&format!("{} {address}", backend.name)) {
        0 => backend.id.index() as u64 + 1,
        key => key,
    }
}
