//! Host names, and the addresses that they lead to.

use std::net::{SocketAddr, ToSocketAddrs};

use plimsoll_config::{Config, HostPort};

/// Names that are looked up at once.
const AT_ONCE: usize = 32;

/// A host name that leads to no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot find the address of {host}: {error}")]
pub struct UnresolvedHost {
    /// The name.
    pub host: String,
    /// Why not.
    pub error: String,
}

/// The names in a configuration that lead to no address now, each with the key where it stands.
#[must_use]
pub fn unresolved_hosts(config: &Config) -> Vec<(String, UnresolvedHost)> {
    let mut named: Vec<(String, HostPort)> = Vec::new();
    for (index, backend) in config.backends.iter().enumerate() {
        named.push((format!("backend[{index}].address"), backend.at.clone()));
        let agent = backend.agent.as_ref().filter(|_| config.handoff.is_some());
        named.extend(agent.map(|at| (format!("backend[{index}].agent"), at.clone())));
    }
    for (index, peer) in config.peers.iter().flat_map(|peers| peers.others.iter().enumerate()) {
        let at = HostPort { host: peer.host.clone(), port: peer.port };
        named.push((format!("peers.others[{index}]"), at));
    }
    let results = side_by_side(&named, |(_, at)| addresses_of(at).err());
    named.into_iter().zip(results).filter_map(|((key, _), error)| Some((key, error?))).collect()
}

/// The addresses of a name; never none.
pub(crate) fn addresses_of(at: &HostPort) -> Result<Vec<SocketAddr>, UnresolvedHost> {
    let failed = |error: String| UnresolvedHost { host: at.host.clone(), error };
    let found = (&*at.host, at.port).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(failed("the name has no address".to_owned())) } else { Ok(found) }
}

/// Does the work for all items, in threads where there are several: a name server that does not answer is waited for by many
/// at once.
pub(crate) fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let share = items.len().div_ceil(AT_ONCE).max(1);
    let each = |part: &[T]| part.iter().map(&work).collect::<Vec<R>>();
    std::thread::scope(|scope| {
        let threads = items.chunks(share).map(|part| {
            let started = std::thread::Builder::new().spawn_scoped(scope, || each(part));
            (part, started)
        });
        let threads: Vec<_> = threads.collect();
        let done = threads.into_iter().flat_map(|(part, thread)| {
            // Without a thread, or after a panic, which has been reported, it is done here.
            thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| each(part))
        });
        done.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_by_side_keeps_the_order() {
        for many in [0, 1, AT_ONCE, 3 * AT_ONCE + 1] {
            let numbers: Vec<usize> = (0..many).collect();
            assert_eq!(side_by_side(&numbers, |n| n + 1), (1..=many).collect::<Vec<_>>());
        }
    }
}
