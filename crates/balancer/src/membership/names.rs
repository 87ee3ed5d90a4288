//! Names of back-ends that are looked up again and again: each of their addresses is a back-end of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_config::{BackendConfig, BackendName, Config, HostPort};
use plimsoll_policy::{Health, Weight};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::learned::{LearnedMembers, TakenIn, take_in};
use super::resolve::{in_thread, tls_of};
use super::source::MemberSpec;
use crate::backend::{Backend, LoadAt};
use crate::backend_pool::BackendPool;
use crate::host_names::{FoundAddresses, UnresolvedHost, look_up, look_up_services};
use crate::partitioning::PartitionSet;
use crate::srv_names::{FoundService, LastAddresses, ServiceAddress, weights};

/// How long an answer is waited for.
const WAIT: Duration = Duration::from_secs(8);
/// The longest pause before it is looked whether a reload asks for something else.
const LOOK: Duration = Duration::from_millis(500);
/// The pause while a reload is under way.
const RELOAD_PAUSE: Duration = Duration::from_millis(20);
/// When a service that led nowhere is looked up again.
const AGAIN: Duration = Duration::from_secs(5);
/// The most addresses of one name.
const MOST_ADDRESSES: usize = 1024;

type FoundServices = BTreeMap<HostPort, Result<FoundService, UnresolvedHost>>;

/// A name, and where it led last.
#[derive(Debug)]
struct FollowedName {
    at: HostPort,
    /// In order; those of a host have the same priority and weight.
    addresses: Vec<ServiceAddress>,
    /// Of a service, where its hosts led last.
    hosts: LastAddresses,
    /// When it is looked up next.
    due: Instant,
    failing: bool,
}

impl FollowedName {
    /// Takes an answer. One that leads nowhere leaves the addresses in use that it had.
    fn answered(&mut self, name: &str, found: Result<Vec<ServiceAddress>, UnresolvedHost>) {
        match found {
            Ok(mut addresses) => {
                addresses.sort_unstable();
                addresses.dedup();
                addresses.truncate(MOST_ADDRESSES);
                (self.addresses, self.failing) = (addresses, false);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    let many = match self.addresses.len() {
                        1 => "the address that it had stays".to_owned(),
                        many => format!("the {many} addresses that it had stay"),
                    };
                    tracing::warn!(backend = name, "{error}; {many} in use");
                }
            }
        }
    }
}

/// The names of a configuration that are followed.
#[derive(Debug, Default)]
struct FollowedNames(BTreeMap<BackendName, FollowedName>);

fn followed(config: &Config) -> impl Iterator<Item = (&BackendConfig, &HostPort, Duration)> {
    config.backends.iter().filter_map(|b| Some((b, b.at.host()?, b.resolve?)))
}

impl FollowedNames {
    /// Those of this configuration, with what is known of them.
    fn update(&mut self, config: &Config, now: Instant) {
        let is_there = |name: &str, at: &HostPort| {
            followed(config).any(|(b, followed, _)| *b.name == *name && followed == at)
        };
        self.0.retain(|name, known| is_there(name, &known.at));
        for (b, at, _) in followed(config) {
            let fresh = || FollowedName {
                at: at.clone(),
                addresses: Vec::new(),
                hosts: LastAddresses::new(),
                due: now,
                failing: false,
            };
            self.0.entry(Arc::clone(&b.name)).or_insert_with(fresh);
        }
    }

    fn due(&self, now: Instant) -> Vec<HostPort> {
        self.0.values().filter(|known| known.due <= now).map(|known| known.at.clone()).collect()
    }

    fn answered(&mut self, config: &Config, found: &BTreeMap<HostPort, FoundAddresses>, now: Instant) {
        let plain = |address: &SocketAddr| ServiceAddress { priority: 0, address: *address, weight: 0 };
        self.each_answered(config, found, |known, found, interval| {
            known.due = now + interval;
            found.as_ref().map(|found| found.iter().map(plain).collect()).map_err(Clone::clone)
        });
    }

    fn services_answered(&mut self, config: &Config, found: &FoundServices, now: Instant) {
        self.each_answered(config, found, |known, found, interval| {
            known.due = now + found.as_ref().map_or(AGAIN, |found| found.ttl).min(interval);
            found.clone().map(|found| found.addresses(&mut known.hosts))
        });
    }

    /// Has each name that was looked up take its answer; `take` says where the answer leads, and notes when to look it up next.
    fn each_answered<R>(
        &mut self,
        config: &Config,
        found: &BTreeMap<HostPort, R>,
        take: impl Fn(&mut FollowedName, &R, Duration) -> Result<Vec<ServiceAddress>, UnresolvedHost>,
    ) {
        for (b, _, interval) in followed(config) {
            let Some(known) = self.0.get_mut(&b.name) else { continue };
            let Some(found) = found.get(&known.at) else { continue };
            let addresses = take(known, found, interval);
            known.answered(&b.name, addresses);
        }
    }

    /// The next time at which there is something to do.
    fn next(&self, now: Instant) -> Instant {
        self.0.values().map(|known| known.due).min().unwrap_or(now + LOOK).clamp(now, now + LOOK)
    }

    /// The back-ends that follow; of those with this name it is known that they take no requests.
    fn members(&self, config: &Config, is_down: impl Fn(&str) -> bool) -> Vec<MemberSpec> {
        let of = |b: &BackendConfig| -> Vec<MemberSpec> {
            let addresses = self.0.get(&b.name).map_or(&[][..], |known| &known.addresses);
            let weights = weights(addresses, b.weight, |address| is_down(&name_of(b, address)));
            let each = addresses.iter().zip(weights);
            each.map(|(found, weight)| member_of(config, b, found.address, weight)).collect()
        };
        followed(config).flat_map(|(b, ..)| of(b)).collect()
    }
}

/// What the back-end at one of the addresses is called.
fn name_of(b: &BackendConfig, address: SocketAddr) -> String {
    format!("{}@{address}", b.name)
}

fn member_of(config: &Config, b: &BackendConfig, address: SocketAddr, weight: Weight) -> MemberSpec {
    MemberSpec {
        name: name_of(b, address).into(),
        weight,
        address: Ok(address.into()),
        tls: tls_of(config, b),
        http2: b.http2,
        proxy_protocol: b.proxy_protocol,
        agent: None,
        agent_at: None,
        // The server behind the address knows itself by the name.
        authority: if b.at.is_service() { address.to_string() } else { b.authority() },
        load_at: LoadAt::Port(u16::try_from(b.load_port).unwrap_or(u16::MAX)),
        partitions: PartitionSet::held(&b.partitions),
        max_connections: b.max_connections,
        max_waiting: b.max_waiting,
        max_requests: b.max_requests,
    }
}

/// Whether a back-end takes no new requests, be it that it keeps its sessions, or only stands in.
fn takes_none(backend: &Backend) -> bool {
    backend.health() != Health::Up || backend.is_drained() || backend.is_doubtful()
}

/// Looks names up again and again, has their addresses as back-ends, and `changed` told of each change.
pub(crate) async fn follow_names(pool: Arc<BackendPool>, changed: Arc<Notify>) {
    let (mut names, mut learned) = (FollowedNames::default(), LearnedMembers::default());
    loop {
        let config = pool.config.load_full();
        names.update(&config, Instant::now());
        let due = names.due(Instant::now());
        if !due.is_empty() {
            // Without a thread nothing was looked up, and it is tried again.
            let (services, hosts): (Vec<_>, Vec<_>) = due.into_iter().partition(HostPort::is_service);
            let look = move || (look_up(hosts.into_iter(), WAIT), look_up_services(services, WAIT));
            let (found, services) = in_thread(look).await.unwrap_or_default();
            names.answered(&config, &found, Instant::now());
            names.services_answered(&config, &services, Instant::now());
        }
        let backends = pool.backends.load_full();
        let is_down = |name: &str| {
            let named = backends.iter().find(|b| *b.name == *name && !b.is_retired());
            named.is_some_and(|b| takes_none(b))
        };
        match take_in(&pool, &mut learned, &config, names.members(&config, is_down)) {
            TakenIn::Later => {
                tokio::time::sleep(RELOAD_PAUSE).await;
                continue;
            }
            TakenIn::Changed => changed.notify_one(),
            TakenIn::Same => {}
        }
        let now = Instant::now();
        // A name that could not be looked up at all is not asked for without a pause.
        tokio::time::sleep_until(names.next(now).max(now + RELOAD_PAUSE)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srv_names::ServiceHost;

    fn config(resolve: &str) -> Config {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"10.0.0.1:80\"\n\
             [[backend]]\nname = \"web\"\naddress = \"web.internal:80\"\nweight = 2\nresolve = \"{resolve}\"\n"
        );
        Config::parse(&text, "test.toml").unwrap()
    }

    fn found(last: &[u8]) -> BTreeMap<HostPort, FoundAddresses> {
        let at = HostPort { host: "web.internal".to_owned(), port: 80 };
        let addresses = last.iter().map(|&n| SocketAddr::from(([10, 0, 1, n], 80))).collect();
        [(at, Ok(addresses))].into()
    }

    fn shown(names: &FollowedNames, config: &Config) -> Vec<String> {
        names.members(config, |_| false).iter().map(|m| m.name.to_string()).collect()
    }

    #[test]
    fn each_address_is_a_back_end_until_the_name_leads_there_no_more() {
        let (config, now) = (config("5s"), Instant::now());
        let mut names = FollowedNames::default();
        names.update(&config, now);
        assert_eq!((names.due(now).len(), shown(&names, &config).len()), (1, 0));
        names.answered(&config, &found(&[2, 1, 2]), now);
        assert_eq!(shown(&names, &config), ["web@10.0.1.1:80", "web@10.0.1.2:80"]);
        let member = &names.members(&config, |_| false)[0];
        assert_eq!((member.weight.as_f64(), &*member.authority), (2.0, "web.internal:80"));
        assert!(names.due(now + Duration::from_secs(4)).is_empty());
        assert_eq!(names.due(now + Duration::from_secs(5)).len(), 1);
        names.answered(&config, &found(&[3]), now);
        assert_eq!(shown(&names, &config), ["web@10.0.1.3:80"]);
        let lost = found(&[]).into_keys().map(|at| {
            let error = UnresolvedHost { host: at.host.clone(), error: "no answer".to_owned() };
            (at, Err(error))
        });
        names.answered(&config, &lost.collect(), now);
        assert_eq!(shown(&names, &config), ["web@10.0.1.3:80"], "they stay while the name server is away");
    }

    #[test]
    fn a_service_is_looked_up_when_its_answer_says_so_and_its_priorities_count() {
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\nname = \"web\"\nweight = 2\n\
                    address = \"srv:_http._tcp.app.internal\"\n";
        let (config, now) = (Config::parse(text, "test.toml").unwrap(), Instant::now());
        let mut names = FollowedNames::default();
        names.update(&config, now);
        let at = names.due(now).remove(0);
        assert_eq!((at.is_service(), at.to_string()), (true, "srv:_http._tcp.app.internal".to_owned()));
        let found = |priority, n: u8, weight| {
            let host = ServiceHost { host: format!("h{n}"), port: 80, priority, weight };
            (host, Ok(vec![([10, 0, 1, n], 80).into()]))
        };
        let hosts = vec![found(1, 1, 3), found(1, 2, 1), found(2, 3, 0)];
        let service = FoundService { hosts, ttl: Duration::from_secs(30) };
        names.services_answered(&config, &[(at.clone(), Ok(service))].into(), now);
        let seen = |down: &[&str]| -> Vec<(String, f64)> {
            let members = names.members(&config, |name| down.contains(&name));
            members.iter().map(|m| (m.authority.clone(), m.weight.as_f64())).collect()
        };
        let at_port = |n: u8, weight: f64| (format!("10.0.1.{n}:80"), weight);
        assert_eq!(seen(&[]), [at_port(1, 3.0), at_port(2, 1.0), at_port(3, 0.0)]);
        let down = ["web@10.0.1.1:80", "web@10.0.1.2:80"];
        assert_eq!(seen(&down), [at_port(1, 0.0), at_port(2, 0.0), at_port(3, 2.0)]);
        assert!(names.due(now + Duration::from_secs(29)).is_empty());
        assert_eq!(names.due(now + Duration::from_secs(30)), [at]);
    }

    #[test]
    fn a_drained_one_takes_none_also_while_it_keeps_sessions() {
        let address = Ok(([127, 0, 0, 1], 1).into());
        let backend = Backend::new(plimsoll_policy::BackendId(0), "b".into(), address, "b".into(), 4, 1);
        assert!(!takes_none(&backend));
        backend.set_drained(true);
        backend.set_keeps_sessions(true);
        assert_eq!((backend.health(), takes_none(&backend)), (Health::Up, true));
    }

    #[test]
    fn a_reload_ends_and_begins_it() {
        let now = Instant::now();
        let mut names = FollowedNames::default();
        let (followed, once) = (config("5s"), config("once"));
        names.update(&followed, now);
        names.answered(&followed, &found(&[1]), now);
        names.update(&once, now);
        assert_eq!((names.0.len(), shown(&names, &once).len()), (0, 0));
        names.update(&followed, now);
        assert_eq!(names.due(now).len(), 1);
    }
}
