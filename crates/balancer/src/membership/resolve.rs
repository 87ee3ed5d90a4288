//! Names of back-ends: the addresses that they lead to, now and, where they lead to none, later.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

use plimsoll_config::{BackendConfig, BackendPlace, Config, HostPort};
use plimsoll_policy::Rng;
use rustls::pki_types::ServerName;
use tokio::sync::{Notify, Semaphore};

use super::configured::{MOST_PAUSE, warn_of_strange_address};
use super::source::{MemberSpec, MembershipChange, MembershipSource};
use crate::backend::{Backend, LoadAt};
use crate::backend_address::BackendAddress;
use crate::backend_pool::BackendPool;
use crate::health;
use crate::host_names::{AT_ONCE, FoundAddresses, UnresolvedHost, addresses_of, look_up};
use crate::net::backend_tls::BackendTls;
use crate::partitioning::PartitionSet;

/// How long a start or a reload waits for all names together: longer than the 5 s after which a resolver asks its next name
/// server. The rest is looked up later.
const WAIT: Duration = Duration::from_secs(8);
/// The pause after a name led nowhere. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Names that are followed and looked up at the same time.
static LOOK_UPS: Semaphore = Semaphore::const_new(AT_ONCE);

/// The back-ends of a configuration, with the addresses of their names, but without names that are looked up again and again. A name that leads nowhere keeps the address that it
/// has in `known`; without one, the back-end has none for now.
pub(crate) fn members_of(config: &Config, known: &[Arc<Backend>]) -> Vec<MemberSpec> {
    let named = || config.backends.iter().filter(|b| b.resolve.is_none());
    let names = named().flat_map(|b| b.at.host().into_iter().chain(agent_of(config, b)));
    let found = look_up(names.cloned(), WAIT);
    let addresses = |at: &HostPort| found.get(at).cloned().unwrap_or_else(|| addresses_of(at));
    let members = named().map(|b| {
        let known = known.iter().find(|k| k.name == b.name && !k.is_retired());
        member_of(config, b, known.map(|k| &**k), &addresses)
    });
    members.collect()
}

/// The name of a back-end's agent, where connections are handed off.
fn agent_of<'a>(config: &Config, b: &'a BackendConfig) -> Option<&'a HostPort> {
    b.agent.as_ref().filter(|_| config.handoff.is_some())
}

/// One back-end of a configuration.
fn member_of(
    config: &Config,
    b: &BackendConfig,
    known: Option<&Backend>,
    addresses: &impl Fn(&HostPort) -> FoundAddresses,
) -> MemberSpec {
    let agent_at = agent_of(config, b);
    // Only the name that it was found by says that it is still there.
    let before = known.filter(|k| k.authority == b.authority()).and_then(|k| k.address.as_ref().ok()?.tcp());
    let address = match &b.at {
        BackendPlace::Host(at) => resolve(at, addresses(at), before).map(BackendAddress::Tcp),
        BackendPlace::Socket(path) => Ok(BackendAddress::Unix(Arc::clone(path))),
    };
    let agent = known.filter(|k| k.agent_at.as_ref() == agent_at).and_then(|k| k.agent);
    let agent = agent_at.map(|at| resolve(at, addresses(at), agent)).transpose();
    let (address, agent) = match (address, agent) {
        (Ok(address), Ok(agent)) => (Ok(address), agent),
        (Err(error), _) | (_, Err(error)) => (Err(error), None),
    };
    MemberSpec {
        name: Arc::clone(&b.name),
        weight: b.weight,
        address,
        tls: tls_of(config, b),
        http2: b.http2,
        proxy_protocol: b.proxy_protocol,
        agent,
        agent_at: agent_at.cloned(),
        load_at: LoadAt::Port(u16::try_from(b.load_port).unwrap_or(u16::MAX)),
        authority: b.authority(),
        partitions: PartitionSet::held(&b.partitions),
        max_connections: b.max_connections,
        max_waiting: b.max_waiting,
        max_requests: b.max_requests,
    }
}

/// How TLS is spoken to a back-end; it is checked that there is such a name.
pub(super) fn tls_of(config: &Config, b: &BackendConfig) -> Option<BackendTls> {
    let client = config.client_tls.as_ref().filter(|_| b.tls)?;
    let name = b.tls_name.clone().or_else(|| b.at.host().map(|at| at.host.clone()))?;
    let name = ServerName::try_from(name).ok()?;
    Some(BackendTls { client: client.clone(), name })
}

/// The address that this name led to `before`, if it still does, or if it leads nowhere now; else its first one.
fn resolve(
    at: &HostPort,
    found: FoundAddresses,
    before: Option<SocketAddr>,
) -> Result<SocketAddr, UnresolvedHost> {
    match (found, before) {
        (Ok(found), Some(before)) if found.contains(&before) => Ok(before),
        (Ok(found), _) => Ok(found[0]),
        (Err(error), Some(before)) => {
            tracing::warn!(name = %at, %before, "{error}; the address that it had stays in use");
            Ok(before)
        }
        (Err(error), None) => Err(error),
    }
}

/// Addresses that were found while these names were looked up in vain stay in use. The caller sees to it that none is found
/// meanwhile.
pub(crate) fn keep_found(members: &mut [MemberSpec], known: &[Arc<Backend>]) {
    for spec in members.iter_mut().filter(|spec| spec.address.is_err()) {
        let known = known.iter().find(|k| k.name == spec.name && !k.is_retired());
        if let Some(known) = known
            && known.address.is_ok()
            && known.authority == spec.authority
            && known.agent_at == spec.agent_at
        {
            (spec.address, spec.agent) = (known.address.clone(), known.agent);
        }
    }
}

/// Looks the names of a back-end without address up until they lead somewhere; then it takes part, and `changed` is told.
pub(crate) async fn follow_name(pool: Arc<BackendPool>, backend: Arc<Backend>, changed: Arc<Notify>) {
    let mut rng = Rng::new(health::seed(&backend), 0);
    let mut pause = FIRST_PAUSE;
    loop {
        // Names that were lost together are not looked up in step.
        tokio::time::sleep(pause.mul_f64(1.0 - rng.unit() / 4.0)).await;
        pause = (pause * 2).min(MOST_PAUSE);
        // Nobody closes it.
        let Ok(turn) = LOOK_UPS.acquire().await else { continue };
        let config = pool.config.load_full();
        let (name, looked_up_by) = (Arc::clone(&backend.name), Arc::clone(&config));
        let found = in_thread(move || {
            let _turn = turn;
            let b = looked_up_by.backends.iter().find(|b| b.name == name)?;
            Some(member_of(&looked_up_by, b, None, &addresses_of)).filter(|spec| spec.address.is_ok())
        });
        let Some(spec) = found.await.flatten() else { continue };
        if take_in(&pool, &backend, &config, spec) {
            changed.notify_one();
            return;
        }
        // A reload is under way, or came between.
        pause = FIRST_PAUSE;
    }
}

/// Has a thread of its own do this; `None` where the system has none to give, or after a panic.
pub(super) async fn in_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("name".into());
    // Whoever asked may have gone.
    let started = thread.spawn(move || drop(sender.send(work())));
    if let Err(error) = started {
        tracing::warn!(%error, "cannot start a thread that looks a host name up; it is tried again");
    }
    receiver.await.ok()
}

/// The back-end has this address now, unless a reload is under way or has changed the configuration since `looked_up_by`.
fn take_in(pool: &BackendPool, backend: &Arc<Backend>, looked_up_by: &Arc<Config>, spec: MemberSpec) -> bool {
    // A reload may hold it for long; health checks and the admin API do not wait for that.
    let _one_at_a_time = match pool.membership.try_lock() {
        Ok(one_at_a_time) => one_at_a_time,
        Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
        Err(TryLockError::WouldBlock) => return false,
    };
    let backends = pool.backends.load();
    let is_there = backends.get(backend.id.index()).is_some_and(|now| Arc::ptr_eq(now, backend));
    if !is_there || backend.is_retired() || !Arc::ptr_eq(&pool.config.load(), looked_up_by) {
        return false;
    }
    if let Ok(address) = &spec.address {
        tracing::info!(backend = &*backend.name, %address, "the back-end's name leads to an address");
        let first = backends.iter().find(|b| !b.is_retired() && b.address == spec.address);
        warn_of_strange_address(looked_up_by, &spec.name, address, first.map(|b| &*b.name));
    }
    pool.members().follow(&mut FoundAddress(Some(spec)));
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
    use plimsoll_policy::{Health, Weight};

    use super::*;
    use crate::shared::FrontEndShared;

    fn at(host: &str) -> HostPort {
        HostPort { host: host.to_owned(), port: 80 }
    }

    /// What a name server that knows no name says.
    fn nowhere(at: &HostPort) -> FoundAddresses {
        Err(UnresolvedHost { host: at.host.clone(), error: "nobody knows it".to_owned() })
    }

    /// The back-end `b` of these front-ends, which this answers for.
    fn b_by(shared: &FrontEndShared, addresses: impl Fn(&HostPort) -> FoundAddresses) -> MemberSpec {
        let config = shared.config.load();
        member_of(&config, &config.backends[1], None, &addresses)
    }

    /// Tells the cluster that `b` is now like this.
    fn set(shared: &FrontEndShared, spec: MemberSpec) {
        shared.members().follow(&mut FoundAddress(Some(spec)));
    }

    #[test]
    fn a_name_keeps_its_address_while_it_may() {
        let (one, two) = (SocketAddr::from(([127, 0, 0, 1], 80)), SocketAddr::from(([127, 0, 0, 2], 80)));
        let of = |host, before| resolve(&at(host), addresses_of(&at(host)), before);
        assert_eq!(of("127.0.0.1", None), Ok(one));
        assert_eq!(of("127.0.0.1", Some(two)), Ok(one), "it leads elsewhere now");
        assert_eq!(of("name.invalid..", Some(two)), Ok(two));
        let error = of("name.invalid..", None).unwrap_err();
        assert!(error.to_string().starts_with("cannot find the address of name.invalid..: "), "{error}");
    }

    #[test]
    fn only_the_name_that_an_address_was_found_by_keeps_it() {
        let key = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(key.path(), "0123456789abcdef".repeat(4)).unwrap();
        let config = |host: &str, agent: &str| {
            let text = format!(
                "mechanism = \"handoff\"\n[[listener]]\naddress = \"10.0.0.1:80\"\n[[backend]]\n\
                 address = \"{host}:80\"\nagent = \"{agent}:7400\"\n\
                 [handoff]\ninterfaces = [\"lo\"]\nkey_file = {:?}\n",
                key.path()
            );
            Config::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{text}\n{e}"))
        };
        let found = |at: &HostPort| Ok(vec![SocketAddr::from(([127, 0, 0, 9], at.port))]);
        let before = config("web", "agent");
        let before = member_of(&before, &before.backends[0], None, &found);
        let known = super::super::members::backend(0, plimsoll_policy::BackendId(0), &before, 1);
        let lost = |host, agent| {
            let config = config(host, agent);
            member_of(&config, &config.backends[0], Some(&known), &nowhere)
        };
        assert_eq!(lost("web", "agent"), before);
        assert!(lost("web", "other").address.is_err(), "the agent's name is another one");
        assert!(lost("other", "agent").address.is_err());
    }

    #[test]
    fn a_back_end_takes_part_once_its_name_leads_somewhere() {
        let shared = FrontEndShared::before_three("");
        set(&shared, b_by(&shared, nowhere));
        let lost = shared.nth(1);
        let eligible = || shared.dispatch.first().inspect(|i| i.view.eligible());
        let weight = || shared.dispatch.first().inspect(|i| i.view.weight(lost.id));
        assert_eq!((lost.health(), eligible()), (Health::Down, 2));
        // No check can say that it is up.
        assert_eq!((lost.good_sign(1), lost.set_drained(true)), (None, Health::Down));
        let half = Weight::new(0.5).unwrap();
        shared.dispatch.set_weight(lost.id, half);
        let found = || b_by(&shared, addresses_of);
        let config = shared.config.load_full();
        {
            let _reload = shared.membership.lock().unwrap();
            assert!(!take_in(&shared, &lost, &config, found()), "a reload is not waited for");
        }
        assert!(take_in(&shared, &lost, &config, found()));
        assert!(!take_in(&shared, &lost, &config, found()), "another one has taken its place");
        assert_eq!((shared.nth(1).health(), eligible()), (Health::Draining, 2), "an operator's drain stays");
        assert_eq!(weight(), half, "and the weight");
        shared.nth(1).set_drained(false);
        shared.tell_health(&shared.nth(1));
        assert_eq!((shared.nth(1).address.clone().ok(), eligible()), (Some(([127, 0, 0, 1], 2).into()), 3));
    }

    #[test]
    fn what_was_looked_up_by_an_earlier_configuration_is_not_taken_in() {
        let shared = FrontEndShared::before_three("");
        set(&shared, b_by(&shared, nowhere));
        let (lost, config) = (shared.nth(1), shared.config.load_full());
        let found = b_by(&shared, addresses_of);
        shared.config.store(Arc::new(Config::clone(&config)));
        assert!(!take_in(&shared, &lost, &config, found.clone()));
        assert!(take_in(&shared, &lost, &shared.config.load_full(), found));
    }

    #[test]
    fn an_operators_drain_outlives_other_reasons_why_there_is_no_address() {
        let shared = FrontEndShared::before_three("");
        set(&shared, b_by(&shared, nowhere));
        shared.nth(1).set_drained(true);
        let because = |error: &str| Err(UnresolvedHost { host: "b".to_owned(), error: error.to_owned() });
        set(&shared, MemberSpec { address: because("another reason"), ..b_by(&shared, nowhere) });
        assert_eq!(shared.nth(1).address, because("another reason"));
        assert_eq!((shared.nth(1).is_drained(), shared.nth(1).health()), (true, Health::Down));
    }

    #[test]
    fn an_address_that_was_found_during_a_reload_stays() {
        let shared = FrontEndShared::before_three("");
        let mut late = [b_by(&shared, nowhere)];
        keep_found(&mut late, &shared.backends.load());
        assert_eq!(late[0].address, Ok(([127, 0, 0, 1], 2).into()));
        let mut other = [MemberSpec { authority: "elsewhere:80".to_owned(), ..b_by(&shared, nowhere) }];
        keep_found(&mut other, &shared.backends.load());
        assert!(other[0].address.is_err(), "that is of another name");
    }
}
