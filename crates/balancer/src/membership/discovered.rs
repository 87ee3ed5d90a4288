//! Back-ends that a directory of services tells.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_config::{Config, DiscoveryConfig, DiscoveryTransport, HostPort};
use plimsoll_directory::{
    DirectoryError, DirectorySettings, EtcdSettings, MulticastSettings, Replica, ServiceDirectory,
    TransportSettings,
};
use plimsoll_policy::Weight;
use plimsoll_wire::ServiceKey;
use tokio::sync::Notify;

use super::learned::{LearnedMembers, TakenIn, take_in};
use super::source::MemberSpec;
use crate::shared::FrontEndShared;

/// How often it is looked whether a reload asks for something else.
const LOOK: Duration = Duration::from_millis(500);
/// The pause while a reload is under way.
const RELOAD_PAUSE: Duration = Duration::from_millis(20);

/// Takes part in the directory, on the runtime that this is called on.
///
/// # Errors
/// When the network cannot be used.
pub(crate) fn start(config: &DiscoveryConfig) -> Result<ServiceDirectory, DirectoryError> {
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
    let only = Some(ServiceKey::new(&config.service, &config.partition)?);
    let (key, ttl) = (config.key.clone(), config.ttl);
    ServiceDirectory::start(DirectorySettings { key, transport, node: None, ttl, only })
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
        let members = now.replicas.iter().filter_map(|replica| member_of(&config, replica)).collect();
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

/// Where agents answer load inquiries that publish no such port.
const LOAD_PORT: u16 = 7401;

/// A replica as a back-end, which has the name of the replica's node.
fn member_of(config: &Config, replica: &Replica) -> Option<MemberSpec> {
    let discovery = config.discovery.as_ref()?;
    let offer = &replica.offer;
    let agent = offer.agent.filter(|_| config.handoff.is_some());
    let weight = Weight::new(f64::from(offer.weight_steps) / 256.0)?;
    Some(MemberSpec {
        name: replica.node.as_str().into(),
        weight,
        address: Ok(offer.address),
        agent,
        agent_at: agent.map(|at| HostPort { host: at.ip().to_string(), port: at.port() }),
        authority: offer.address.to_string(),
        // Its agent has the address of the back-end.
        load_port: offer.inquiry.map_or(LOAD_PORT, |at| at.port()),
        max_connections: discovery.max_connections,
    })
}
