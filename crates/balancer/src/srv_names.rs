//! Names of services (RFC 2782): a look-up of type SRV tells hosts with ports, priorities and weights.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use plimsoll_config::HostPort;
use plimsoll_policy::Weight;

use crate::host_addresses::{FoundAddresses, UnresolvedHost, addresses_of_host};

/// How long an answer counts at least and at most, whatever it says itself.
const LEAST_TTL: Duration = Duration::from_secs(1);
const MOST_TTL: Duration = Duration::from_secs(3600);
/// How long name servers are waited for before others are asked, so that the third answers while a start waits.
const MOST_SERVER_WAIT: Duration = Duration::from_millis(2500);
/// How often it is tried again where one name server is asked at a time.
const RETRIES: usize = 2;
/// Aliases that are followed, one after the other.
const MOST_ALIASES: usize = 8;
/// The most hosts of one name.
const MOST_HOSTS: usize = 256;

/// An address of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceAddress {
    /// The lowest one is used, as long as one of its addresses is up.
    pub(crate) priority: u16,
    pub(crate) address: SocketAddr,
    /// Its share beside others of the same priority.
    pub(crate) weight: u16,
}

/// A host that offers a service, as a record tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceHost {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) priority: u16,
    pub(crate) weight: u16,
}

/// What a name of a service leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundService {
    /// Each host with the addresses to which its name leads, or why to none; never none of all.
    pub(crate) hosts: Vec<(ServiceHost, FoundAddresses)>,
    /// How long this counts.
    pub(crate) ttl: Duration,
}

/// Where hosts led last, by name and port.
pub(crate) type LastAddresses = BTreeMap<(String, u16), Vec<SocketAddr>>;

impl FoundService {
    /// In order, each address once. A host whose name leads nowhere keeps the addresses that it had last.
    pub(crate) fn addresses(self, last: &mut LastAddresses) -> Vec<ServiceAddress> {
        let mut now = LastAddresses::new();
        let mut all = Vec::new();
        for (host, found) in self.hosts {
            let key = (host.host, host.port);
            let addresses = found.ok().or_else(|| last.get(&key).cloned()).unwrap_or_default();
            let (priority, weight) = (host.priority, host.weight);
            all.extend(addresses.iter().map(|&address| ServiceAddress { priority, address, weight }));
            now.insert(key, addresses);
        }
        *last = now;
        each_once(all)
    }
}

/// Looks a name of a service up, and the hosts to which it leads. Waits for that.
///
/// # Errors
/// When it leads nowhere.
pub(crate) fn look_up_service(at: &HostPort) -> Result<FoundService, UnresolvedHost> {
    let failed = |error: String| UnresolvedHost { host: at.to_string(), error };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(error.to_string()))?;
    // A name of the whole tree, so that no domain is searched.
    let name = format!("{}.", at.host.trim_end_matches('.'));
    let name = Name::from_utf8(name).map_err(|error| failed(error.to_string()))?;
    let answer = runtime.block_on(records_of(name)).map_err(|error| failed(error.to_string()))?;
    let (answer, until) = answer;
    let ttl = until.saturating_duration_since(Instant::now()).clamp(LEAST_TTL, MOST_TTL);
    let records = answer.answers().iter().filter_map(|record| match &record.data {
        RData::SRV(srv) => Some(ServiceHost {
            host: srv.target.to_utf8().trim_end_matches('.').to_owned(),
            port: srv.port,
            priority: srv.priority,
            weight: srv.weight,
        }),
        _ => None,
    });
    let hosts = best_hosts(records.collect());
    if hosts.is_empty() {
        return Err(failed("the service is not offered".to_owned()));
    }
    let of_host = |host: ServiceHost| {
        let found = addresses_of_host(&host.host, host.port);
        (host, found)
    };
    let hosts: Vec<_> = hosts.into_iter().map(of_host).collect();
    match hosts.iter().find_map(|(_, found)| found.as_ref().err()) {
        Some(error) if hosts.iter().all(|(_, found)| found.is_err()) => Err(failed(error.to_string())),
        _ => Ok(FoundService { hosts, ttl }),
    }
}

/// The records of type SRV of a name, or of that of which it is an alias, and how long they count.
async fn records_of(name: Name) -> Result<(Lookup, Instant), NetError> {
    // Two name servers at once: where one is silent, nobody waits.
    match follow_aliases(&resolver(2, 0)?, name.clone()).await {
        // But an answer that is too long for UDP is asked for by TCP only once the other one has answered.
        Err(NetError::Timeout | NetError::Truncated) => follow_aliases(&resolver(1, RETRIES)?, name).await,
        result => result,
    }
}

/// A resolver that asks so many of the system's name servers at once, and again so often where none has answered.
fn resolver(servers_at_once: usize, retries: usize) -> Result<TokioResolver, NetError> {
    let mut builder = Resolver::builder_tokio()?;
    let options = builder.options_mut();
    options.num_concurrent_reqs = servers_at_once;
    options.timeout = options.timeout.min(MOST_SERVER_WAIT);
    options.attempts = retries;
    builder.build()
}

async fn follow_aliases(resolver: &TokioResolver, mut name: Name) -> Result<(Lookup, Instant), NetError> {
    let mut until = Instant::now() + MOST_TTL;
    for _ in 0..MOST_ALIASES {
        let error = match resolver.srv_lookup(name.clone()).await {
            Ok(answer) => {
                let until = until.min(answer.valid_until());
                return Ok((answer, until));
            }
            Err(error) if error.is_no_records_found() => error,
            Err(error) => return Err(error),
        };
        // The resolver takes a record's host for the alias, and finds nothing.
        let alias = match resolver.lookup(name.clone(), RecordType::CNAME).await {
            Err(other) if other.is_no_records_found() => return Err(error),
            alias => alias?,
        };
        let target = alias.answers().iter().find_map(|record| match &record.data {
            RData::CNAME(target) if record.name == name => Some(target.0.clone()),
            _ => None,
        });
        let Some(target) = target else { return Err(error) };
        (name, until) = (target, until.min(alias.valid_until()));
    }
    Err(NetError::from("too many aliases, one after the other"))
}

/// Of many hosts those of the best priorities and greatest weights, whatever the order in which the answer has them.
fn best_hosts(mut hosts: Vec<ServiceHost>) -> Vec<ServiceHost> {
    // An empty one says that there is no such service.
    hosts.retain(|host| !host.host.is_empty());
    hosts.sort_by(|a, b| {
        let of = |host: &ServiceHost| (host.priority, Reverse(host.weight), host.port);
        of(a).cmp(&of(b)).then_with(|| a.host.cmp(&b.host))
    });
    hosts.truncate(MOST_HOSTS);
    hosts
}

/// In order of priority, each address where it comes first.
fn each_once(mut addresses: Vec<ServiceAddress>) -> Vec<ServiceAddress> {
    addresses.sort_unstable();
    let mut seen = BTreeSet::new();
    addresses.retain(|found| seen.insert(found.address));
    addresses
}

/// The weight of each of these addresses for a back-end of this weight: of the best priority of which one is not down, in proportion to what the
/// records say, so that the mean is that of the back-end; 0 for the others.
pub(crate) fn weights(
    addresses: &[ServiceAddress],
    of_backend: Weight,
    is_down: impl Fn(SocketAddr) -> bool,
) -> Vec<Weight> {
    let lowest = addresses.iter().map(|found| found.priority).min();
    // Where they do not differ there is nothing to ask.
    let differ = addresses.iter().any(|found| Some(found.priority) != lowest);
    let up = || addresses.iter().filter(|found| !is_down(found.address)).map(|found| found.priority).min();
    let best = if differ { up().or(lowest) } else { lowest };
    let of_best = || addresses.iter().filter(|found| Some(found.priority) == best);
    let sum: u64 = of_best().map(|found| u64::from(found.weight)).sum();
    let count = of_best().count() as f64;
    let weight = |found: &ServiceAddress| match (Some(found.priority) == best, sum) {
        (false, _) => Weight::ZERO,
        (true, 0) => of_backend,
        (true, sum) => {
            // A weight of 0 is a very small chance beside others, as RFC 2782 has it.
            let share = (f64::from(found.weight) / sum as f64 * count).max(1.0 / 256.0);
            let weight = (of_backend.as_f64() * share).min(65_536.0);
            Weight::new(weight).filter(|_| of_backend != Weight::ZERO).unwrap_or(of_backend)
        }
    };
    addresses.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(priority: u16, port: u16, weight: u16) -> ServiceAddress {
        ServiceAddress { priority, address: ([10, 0, 0, 1], port).into(), weight }
    }

    fn steps(addresses: &[ServiceAddress], down: &[u16]) -> Vec<u32> {
        let weights = weights(addresses, Weight::ONE, |at| down.contains(&at.port()));
        weights.into_iter().map(Weight::steps).collect()
    }

    #[test]
    fn the_best_priority_of_which_one_is_up_has_it_all() {
        let all = [found(1, 80, 30), found(1, 81, 10), found(2, 82, 0), found(2, 83, 0)];
        assert_eq!(steps(&all, &[]), [384, 128, 0, 0]);
        assert_eq!(steps(&all, &[80]), [384, 128, 0, 0], "one of them is up");
        assert_eq!(steps(&all, &[80, 81]), [0, 0, 256, 256]);
        assert_eq!(steps(&all, &[80, 81, 82, 83]), [384, 128, 0, 0], "all are down");
    }

    #[test]
    fn a_weight_of_nothing_is_a_small_chance_beside_others() {
        assert_eq!(steps(&[found(1, 80, 0), found(1, 81, 65_535)], &[]), [1, 512]);
        let none = weights(&[found(1, 80, 5)], Weight::ZERO, |_| false);
        assert_eq!(none, [Weight::ZERO]);
    }

    fn host(name: &str, priority: u16, weight: u16) -> ServiceHost {
        ServiceHost { host: name.to_owned(), port: 80, priority, weight }
    }

    #[test]
    fn of_many_hosts_the_best_stay_in_whatever_order_they_come() {
        let mut all: Vec<_> = (0..600).map(|n| host(&format!("h{n}"), n % 3, n)).collect();
        let best = best_hosts(all.clone());
        assert_eq!((best.len(), best.iter().filter(|h| h.priority == 0).count()), (MOST_HOSTS, 200));
        all.rotate_left(123);
        assert_eq!(best_hosts(all), best);
        assert!(best_hosts(vec![host("", 0, 0)]).is_empty());
    }

    #[test]
    fn a_host_that_leads_nowhere_for_a_while_keeps_its_addresses() {
        let lost = || Err(UnresolvedHost { host: "a".to_owned(), error: "no answer".to_owned() });
        let at = |n: u8| Ok(vec![SocketAddr::from(([10, 0, 0, n], 80))]);
        let ports = |a: FoundAddresses, b: FoundAddresses, last: &mut LastAddresses| -> Vec<String> {
            let hosts = vec![(host("a", 1, 1), a), (host("b", 2, 1), b)];
            let found = FoundService { hosts, ttl: LEAST_TTL }.addresses(last);
            found.iter().map(|found| found.address.to_string()).collect()
        };
        let mut last = LastAddresses::new();
        assert_eq!(ports(lost(), at(2), &mut last), ["10.0.0.2:80"]);
        assert_eq!(ports(at(1), at(2), &mut last), ["10.0.0.1:80", "10.0.0.2:80"]);
        assert_eq!(ports(lost(), at(3), &mut last), ["10.0.0.1:80", "10.0.0.3:80"]);
        assert_eq!(ports(lost(), lost(), &mut last), ["10.0.0.1:80", "10.0.0.3:80"]);
    }

    #[test]
    fn an_address_counts_where_it_is_best() {
        assert_eq!(
            each_once(vec![found(2, 80, 1), found(1, 81, 1), found(1, 80, 9)]),
            [found(1, 80, 9), found(1, 81, 1)]
        );
    }
}
