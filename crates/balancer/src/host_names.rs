//! Host names, and the addresses that they lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use plimsoll_config::{Config, HostPort};

pub(crate) use crate::host_addresses::FoundAddresses;
pub use crate::host_addresses::UnresolvedHost;
use crate::host_addresses::addresses_of_host;
use crate::srv_names::{FoundService, LastAddresses, look_up_service};

/// Names that are looked up at once.
pub(crate) const AT_ONCE: usize = 32;

/// How long a check of a configuration waits for all names.
const CHECK_WAIT: Duration = Duration::from_secs(60);

/// The names in a configuration that lead to no address now, each with the key where it stands.
#[must_use]
pub fn unresolved_hosts(config: &Config) -> Vec<(String, UnresolvedHost)> {
    let mut named: Vec<(String, HostPort)> = Vec::new();
    for (index, backend) in config.all_backends().enumerate() {
        // With pools, the order of the file is not known any more.
        let table = match config.pools.is_empty() {
            true => format!("backend[{index}]"),
            false => format!("backend `{}`", backend.name),
        };
        named.extend(backend.at.host().map(|at| (format!("{table}.address"), at.clone())));
        let agent = backend.agent.as_ref().filter(|_| config.handoff.is_some());
        named.extend(agent.map(|at| (format!("{table}.agent"), at.clone())));
    }
    for (index, peer) in config.peers.iter().flat_map(|peers| peers.others.iter().enumerate()) {
        let at = HostPort { host: peer.host.clone(), port: peer.port };
        named.push((format!("peers.others[{index}]"), at));
    }
    let found = look_up(named.iter().map(|(_, at)| at.clone()), CHECK_WAIT);
    let error_of = |at: &HostPort| found.get(at)?.as_ref().err().cloned();
    named.into_iter().filter_map(|(key, at)| Some((key, error_of(&at)?))).collect()
}

/// The addresses of a name; also of that of a service.
pub(crate) fn addresses_of(at: &HostPort) -> FoundAddresses {
    if at.is_service() {
        let found = look_up_service(at)?;
        let addresses = found.addresses(&mut LastAddresses::new());
        return Ok(addresses.into_iter().map(|found| found.address).collect());
    }
    addresses_of_host(&at.host, at.port)
}

/// The addresses of all of these. A name for which there is no answer in this time has none.
pub(crate) fn look_up(
    names: impl Iterator<Item = HostPort>,
    wait: Duration,
) -> BTreeMap<HostPort, FoundAddresses> {
    let names: BTreeSet<HostPort> = names.collect();
    // Addresses that are written as such need no thread.
    let (written, names): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|at| at.host.parse::<IpAddr>().is_ok());
    let found = in_time(names, wait, addresses_of);
    let written = written.into_iter().map(|at| {
        let address = addresses_of(&at);
        (at, address)
    });
    found.into_iter().chain(written).collect()
}

/// What names of services lead to. One for which there is no answer in this time leads nowhere.
pub(crate) fn look_up_services(
    names: Vec<HostPort>,
    wait: Duration,
) -> BTreeMap<HostPort, Result<FoundService, UnresolvedHost>> {
    in_time(names, wait, look_up_service)
}

/// What `ask` says of each name, or that it has said nothing in this time.
fn in_time<R: Send + 'static>(
    names: Vec<HostPort>,
    wait: Duration,
    ask: fn(&HostPort) -> Result<R, UnresolvedHost>,
) -> BTreeMap<HostPort, Result<R, UnresolvedHost>> {
    let answers = side_by_side(names.clone(), wait, ask);
    let late = |at: &HostPort| UnresolvedHost {
        host: at.host.clone(),
        error: format!("no answer within {} s", wait.as_secs()),
    };
    let answered = names.into_iter().zip(answers).map(|(at, answer)| {
        let answer = answer.unwrap_or_else(|| Err(late(&at)));
        (at, answer)
    });
    answered.collect()
}

/// Does the work for all items, in threads: a name server that does not answer is waited for by many at once. What is not
/// done in this time is `None`; it is not waited for.
fn side_by_side<T, R>(
    items: Vec<T>,
    wait: Duration,
    work: impl Fn(&T) -> R + Send + Sync + 'static,
) -> Vec<Option<R>>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
{
    let mut done: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let threads = items.len().min(AT_ONCE);
    let shared = Arc::new((items, AtomicUsize::new(0), work));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..threads {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let thread = move || {
            let (items, next, work) = &*shared;
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { break };
                // Nobody waits for the rest any longer.
                if sender.send((index, work(item))).is_err() {
                    break;
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("names".into()).spawn(thread) {
            // The others do its work.
            tracing::warn!(%error, "cannot start a thread that looks host names up");
            break;
        }
    }
    drop(sender);
    let until = Instant::now() + wait;
    // It ends as well when all threads have ended.
    while let Ok((index, result)) = receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
        done[index] = Some(result);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn side_by_side_keeps_the_order() {
        for many in [0, 1, AT_ONCE, 3 * AT_ONCE + 1] {
            let numbers: Vec<usize> = (0..many).collect();
            let expected: Vec<_> = (1..=many).map(Some).collect();
            assert_eq!(side_by_side(numbers, LONG, |n| n + 1), expected);
        }
    }

    #[test]
    fn what_takes_too_long_is_not_waited_for() {
        let (release, held) = mpsc::channel::<()>();
        let held = Mutex::new(held);
        let numbers: Vec<usize> = (0..AT_ONCE).collect();
        // One of them takes as long as this test.
        let done = side_by_side(numbers, Duration::from_secs(1), move |&n| {
            if n == 1 {
                // An error says that the test is over.
                let _ = held.lock().unwrap().recv();
            }
            n
        });
        assert_eq!((done[1], done.iter().flatten().count()), (None, AT_ONCE - 1));
        drop(release);
    }

    #[test]
    fn a_name_without_an_answer_in_time_has_no_address() {
        let at = |host: &str| HostPort { host: host.to_owned(), port: 80 };
        let found = look_up([at("name.invalid.."), at("127.0.0.1")].into_iter(), Duration::ZERO);
        assert_eq!(found[&at("127.0.0.1")], Ok(vec![([127, 0, 0, 1], 80).into()]), "no name");
        assert!(found[&at("name.invalid..")].is_err());
    }
}
