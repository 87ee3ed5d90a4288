//! Names of back-ends: the addresses that they lead to, now and, where they lead to none, later.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use plimsoll_config::{BackendConfig, Config, HostPort};
use tokio::sync::Notify;

use super::members::Members;
use super::source::{MemberSpec, MembershipChange, MembershipSource};
use crate::backend::Backend;
use crate::host_names::{UnresolvedHost, addresses_of, side_by_side};
use crate::shared::FrontEndShared;

/// The pause after a name led nowhere. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MOST_PAUSE: Duration = Duration::from_secs(30);
/// The back-ends of a configuration, with the addresses of their names. A name that leads nowhere keeps the address that it
/// has in `known`; without one, the back-end has none for now.
pub(crate) fn members_of(config: &Config, known: &[Arc<Backend>]) -> Vec<MemberSpec> {
    let one = |b: &BackendConfig| {
        let known = known.iter().find(|k| k.name == b.name && !k.is_retired());
        member_of(config, b, known.map(|k| &**k))
    };
    // Addresses that are written as such need no thread.
    let is_name = |b: &&BackendConfig| {
        let agent = b.agent.iter().filter(|_| config.handoff.is_some());
        std::iter::once(&b.at).chain(agent).any(|at| at.host.parse::<std::net::IpAddr>().is_err())
    };
    let named: Vec<&BackendConfig> = config.backends.iter().filter(is_name).collect();
    let mut looked_up = side_by_side(&named, |b| one(b)).into_iter();
    let members = config.backends.iter().map(|b| {
        let found = if is_name(&b) { looked_up.next() } else { None };
        found.unwrap_or_else(|| one(b))
    });
    members.collect()
}

/// One back-end of a configuration.
fn member_of(config: &Config, b: &BackendConfig, known: Option<&Backend>) -> MemberSpec {
    let agent = b.agent.as_ref().filter(|_| config.handoff.is_some());
    let before = known.and_then(|k| k.address.as_ref().ok().copied());
    // Only the name that it was found by says that it is still there.
    let same = known.is_some_and(|k| k.authority == b.address());
    let agent = agent.map(|at| resolve(at, known.and_then(|k| k.agent), same)).transpose();
    let (address, agent) = match (resolve(&b.at, before, same), agent) {
        (Ok(address), Ok(agent)) => (Ok(address), agent),
        (Err(error), _) | (_, Err(error)) => (Err(error), None),
    };
    MemberSpec {
        name: Arc::clone(&b.name),
        weight: b.weight,
        address,
        agent,
        authority: b.address(),
        max_connections: b.max_connections,
    }
}

/// The address that a name led to `before`, if it still does, or, with `keep`, if it leads nowhere now; else its first one.
fn resolve(at: &HostPort, before: Option<SocketAddr>, keep: bool) -> Result<SocketAddr, UnresolvedHost> {
    match (addresses_of(at), before) {
        (Ok(found), Some(before)) if found.contains(&before) => Ok(before),
        (Ok(found), _) => Ok(found[0]),
        (Err(error), Some(before)) if keep => {
            tracing::warn!(%before, "{error}; the address that it had stays in use");
            Ok(before)
        }
        (Err(error), _) => Err(error),
    }
}

/// Says that a back-end has no address.
pub(crate) fn warn_of_unresolved(spec: &MemberSpec) {
    if let Err(error) = &spec.address {
        tracing::warn!(
            backend = &*spec.name,
            "back-end is down: {error}; it is looked up again at least every {} s",
            MOST_PAUSE.as_secs()
        );
    }
}

/// Looks the names of a back-end without address up until they lead somewhere; then it takes part, and `changed` is told.
pub(crate) async fn follow_name(shared: Arc<FrontEndShared>, backend: Arc<Backend>, changed: Arc<Notify>) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_PAUSE);
        let config = shared.config.load_full();
        let name = Arc::clone(&backend.name);
        let look_up = move || {
            let b = config.backends.iter().find(|b| b.name == name)?;
            Some(member_of(&config, b, None)).filter(|spec| spec.address.is_ok())
        };
        // A look-up that panics has said so; the next one may do better.
        let Ok(Some(spec)) = tokio::task::spawn_blocking(look_up).await else { continue };
        if take_in(&shared, &backend, spec) {
            changed.notify_one();
            return;
        }
    }
}

/// The back-end has this address now, unless a reload has changed it meanwhile.
fn take_in(shared: &FrontEndShared, backend: &Arc<Backend>, spec: MemberSpec) -> bool {
    let _one_at_a_time = shared.membership.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |now: &Arc<Backend>| Arc::ptr_eq(now, backend) && now.authority == spec.authority;
    if backend.is_retired() || !shared.backends.load().get(backend.id.index()).is_some_and(is_it) {
        return false;
    }
    let drained = backend.is_drained();
    if let Ok(address) = spec.address {
        tracing::info!(backend = &*backend.name, %address, "the back-end's name leads to an address");
    }
    let (dispatch, backends) = (&shared.dispatch, &shared.backends);
    Members { dispatch, backends, workers: shared.counts.len() }.follow(&mut FoundAddress(Some(spec)));
    if let Some(now) = shared.backends.load().get(backend.id.index()).filter(|_| drained) {
        now.set_drained(true);
        shared.tell_health(now);
    }
    true
}

/// A back-end's name leads to an address at last.
struct FoundAddress(Option<MemberSpec>);

impl MembershipSource for FoundAddress {
    fn changes(&mut self) -> Vec<MembershipChange> {
        let found = self.0.take();
        found.map(|spec| MembershipChange::Change { spec, reweighted: false }).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str) -> HostPort {
        HostPort { host: host.to_owned(), port: 80 }
    }

    #[test]
    fn a_name_keeps_its_address_while_it_may() {
        let (one, two) = (SocketAddr::from(([127, 0, 0, 1], 80)), SocketAddr::from(([127, 0, 0, 2], 80)));
        assert_eq!(resolve(&at("127.0.0.1"), None, false), Ok(one));
        assert_eq!(resolve(&at("127.0.0.1"), Some(two), true), Ok(one), "it leads elsewhere now");
        let nowhere = at("name.invalid..");
        assert_eq!(resolve(&nowhere, Some(two), true), Ok(two));
        let error = resolve(&nowhere, Some(two), false).unwrap_err();
        assert!(error.to_string().starts_with("cannot find the address of name.invalid..: "), "{error}");
    }

    #[test]
    fn a_back_end_takes_part_once_its_name_leads_somewhere() {
        use plimsoll_policy::Health;
        let shared = FrontEndShared::before_three("");
        let without = MemberSpec {
            address: Err(UnresolvedHost { host: "b".to_owned(), error: "none".to_owned() }),
            ..member_of(&shared.config.load(), &shared.config.load().backends[1], None)
        };
        let (dispatch, backends) = (&shared.dispatch, &shared.backends);
        Members { dispatch, backends, workers: 1 }.follow(&mut FoundAddress(Some(without)));
        let lost = shared.nth(1);
        let eligible = || shared.dispatch.inspect(|i| i.view.eligible());
        assert_eq!((lost.health(), eligible()), (Health::Down, 2));
        // No check can say that it is up.
        assert_eq!((lost.good_sign(1), lost.set_drained(true)), (None, Health::Down));
        let found = || member_of(&shared.config.load(), &shared.config.load().backends[1], None);
        assert!(take_in(&shared, &lost, found()));
        assert!(!take_in(&shared, &lost, found()), "another one has taken its place");
        assert_eq!((shared.nth(1).health(), eligible()), (Health::Draining, 2), "an operator's drain stays");
        shared.nth(1).set_drained(false);
        shared.tell_health(&shared.nth(1));
        assert_eq!((shared.nth(1).address.clone().ok(), eligible()), (Some(([127, 0, 0, 1], 2).into()), 3));
    }
}
