//! Back-ends that a directory of services tells.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_config::{Config, DiscoveryConfig, DiscoveryTransport, HostPort};
use plimsoll_directory::{
    DirectoryError, DirectorySettings, EtcdSettings, MulticastSettings, Replica, ServiceDirectory,
    ServiceScope, TransportSettings,
};
use plimsoll_policy::Weight;
use plimsoll_wire::ServiceKey;
use tokio::sync::Notify;

use super::learned::{LearnedMembers, TakenIn, take_in};
use super::source::MemberSpec;
use crate::backend::LoadAt;
use crate::partitioning::{PartitionSet, Partitioning};
use crate::shared::FrontEndShared;

/// How often it is looked whether a reload asks for something else.
const LOOK: Duration = Duration::from_millis(500);
/// The pause while a reload is under way.
const RELOAD_PAUSE: Duration = Duration::from_millis(20);

/// Takes part in the directory, on the runtime that this is called on.
///
/// # Errors
/// When the network cannot be used.
pub(crate) fn start(
    config: &DiscoveryConfig,
    partitioning: Option<Partitioning>,
) -> Result<ServiceDirectory, DirectoryError> {
    let transport = match config.transport {
        DiscoveryTransport::Multicast => TransportSettings::Multicast(MulticastSettings {
            group: config.group,
            interface: config.interface.clone(),
            ..MulticastSettings::default()
        }),
        DiscoveryTransport::Etcd => TransportSettings::Etcd(EtcdSettings {
            endpoints: config.endpoints.clone(),
            prefix: config.prefix.clone(),
        }),
    };
    let only = match partitioning {
        Some(_) => ServiceScope::all_of(&config.service)?,
        None => ServiceKey::new(&config.service, &config.partition)?.into(),
    };
    let (key, ttl) = (config.key.clone(), config.ttl);
    ServiceDirectory::start(DirectorySettings { key, transport, node: None, ttl, only: Some(only) })
}

/// Has the replicas that the directory tells as back-ends, and `changed` told of each change.
pub(crate) async fn follow_directory(
    shared: Arc<FrontEndShared>,
    directory: ServiceDirectory,
    changed: Arc<Notify>,
) {
    let mut learned = LearnedMembers::default();
    let mut view = directory.subscribe();
    loop {
        let config = shared.config.load_full();
        let now = Arc::clone(&view.borrow_and_update());
        let members = members_of(&config, shared.hash.partitioning(), &now.replicas);
        match take_in(&shared, &mut learned, &config, members) {
            TakenIn::Later => {
                tokio::time::sleep(RELOAD_PAUSE).await;
                continue;
            }
            TakenIn::Changed => changed.notify_one(),
            TakenIn::Same => {}
        }
        tokio::select! {
            seen = view.changed() => if seen.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Where agents answer load inquiries that publish no such address: at the replica's own, with this port.
const LOAD_PORT: u16 = 7401;

/// Nodes as back-ends. One that offers several partitions at one address is one back-end that holds them all.
fn members_of(
    config: &Config,
    partitioning: Option<Partitioning>,
    replicas: &[Arc<Replica>],
) -> Vec<MemberSpec> {
    let mut members: BTreeMap<&str, MemberSpec> = BTreeMap::new();
    for replica in replicas {
        let partition = replica.offer.key.partition.parse().ok();
        let held = match (partitioning, partition) {
            (None, _) => PartitionSet::ALL,
            (Some(p), Some(partition)) if partition < p.count() => PartitionSet::of([partition]),
            (Some(p), _) => {
                let (offered, count) = (&replica.offer.key, p.count());
                tracing::debug!(node = replica.node, %offered, "left out: `partitions.count` is {count}");
                continue;
            }
        };
        let Some(member) = member_of(config, replica, held) else { continue };
        match members.get_mut(&*replica.node) {
            Some(known) if known.address == member.address => {
                known.partitions = known.partitions.with(held);
            }
            Some(_) => {
                tracing::debug!(node = replica.node, "left out: it offers another partition elsewhere");
            }
            None => drop(members.insert(&replica.node, member)),
        }
    }
    members.into_values().collect()
}

/// Requests that wait for a connection to a discovered back-end at once, as of a configured one by default.
const MAX_WAITING: u32 = 1024;

/// A replica as a back-end, which has the name of the replica's node and holds these partitions.
fn member_of(config: &Config, replica: &Replica, partitions: PartitionSet) -> Option<MemberSpec> {
    let discovery = config.discovery.as_ref()?;
    let offer = &replica.offer;
    let agent = offer.agent.filter(|_| config.handoff.is_some());
    let weight = Weight::new(f64::from(offer.weight_steps) / 256.0)?;
    Some(MemberSpec {
        name: replica.node.as_str().into(),
        weight,
        address: Ok(offer.address.into()),
        tls: None,
        http2: false,
        proxy_protocol: plimsoll_config::ProxyProtocol::None,
        agent,
        agent_at: agent.map(|at| HostPort { host: at.ip().to_string(), port: at.port() }),
        authority: offer.address.to_string(),
        load_at: offer.inquiry.map_or(LoadAt::Port(LOAD_PORT), LoadAt::Address),
        partitions,
        max_connections: discovery.max_connections,
        max_waiting: MAX_WAITING,
        max_requests: None,
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_directory::ServiceOffer;
    use plimsoll_policy::BackendId;

    use super::*;
    use crate::membership::members::backend;

    /// The configuration of a front-end of the service `album`.
    fn config() -> Config {
        config_with("")
    }

    /// The same with `more` at the end.
    fn config_with(more: &str) -> Config {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("directory.key");
        std::fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[discovery]\nservice = \"album\"\nkey_file = {:?}\n{more}",
            key.to_str().unwrap()
        );
        Config::parse(&text, "test.toml").unwrap()
    }

    #[test]
    fn a_node_is_one_back_end_with_all_partitions_that_it_offers() {
        let config = config_with("[partitions]\ncount = 3\n");
        let replica = |node: &str, partition: &str, port: u16| {
            let key = ServiceKey::new("album", partition).unwrap();
            let offer = ServiceOffer::new(key, ([127, 66, 1, 1], port).into());
            Arc::new(Replica { node: node.to_owned(), offer })
        };
        let replicas = [
            replica("a", "0", 80),
            replica("a", "2", 80),
            replica("a", "1", 81),
            replica("b", "1", 90),
            replica("b", "3", 90),
            replica("c", "north", 91),
        ];
        let members = members_of(&config, Partitioning::of(&config), &replicas);
        assert!(members.iter().all(|m| m.max_waiting == MAX_WAITING), "whatever it has of connections");
        let held: Vec<_> = members.iter().map(|m| (&*m.name, m.partitions)).collect();
        assert_eq!(held, [("a", PartitionSet::of([0, 2])), ("b", PartitionSet::of([1]))]);
    }

    #[test]
    fn the_agent_is_asked_where_it_was_published() {
        let config = config();
        let asked = |inquiry: Option<&str>| {
            let key = ServiceKey::new("album", "0").unwrap();
            let inquiry = inquiry.map(|at| at.parse().unwrap());
            let offer = ServiceOffer { inquiry, ..ServiceOffer::new(key, ([127, 66, 1, 1], 80).into()) };
            let replica = Replica { node: "n".to_owned(), offer };
            let spec = member_of(&config, &replica, PartitionSet::ALL).unwrap();
            backend(0, BackendId(0), &spec, 1).load_address().unwrap().to_string()
        };
        assert_eq!(asked(Some("127.66.9.9:7777")), "127.66.9.9:7777", "on another machine");
        assert_eq!(asked(Some("127.66.1.1:7500")), "127.66.1.1:7500");
        assert_eq!(asked(None), "127.66.1.1:7401");
    }
}
