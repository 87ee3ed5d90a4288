//! Nodes of a directory on this machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use plimsoll_directory::{
    DirectorySettings, DirectoryView, EtcdSettings, MulticastSettings, ServiceDirectory, ServiceOffer,
    TransportSettings,
};
use plimsoll_testkit::{EtcdServer, eventually_async};
use plimsoll_wire::{Key, ServiceKey};

/// The key of all nodes.
pub(crate) fn key() -> Key {
    Key::new([7; 32])
}

/// A group on loopback that no other test uses: they run in one process, and others have another number.
pub(crate) fn own_group() -> MulticastSettings {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let [.., high, low] = std::process::id().to_be_bytes();
    let port = 20_000 + COUNT.fetch_add(1, Ordering::Relaxed);
    let group = SocketAddr::from(([239, 255, high, low], port));
    MulticastSettings { group, interface: Some("lo".to_owned()), hops: 1 }
}

/// Where nodes meet.
#[derive(Clone)]
pub(crate) struct Meeting {
    pub(crate) transport: TransportSettings,
    pub(crate) ttl: Duration,
}

impl Meeting {
    pub(crate) fn multicast() -> Self {
        Self { transport: TransportSettings::Multicast(own_group()), ttl: Duration::from_secs(2) }
    }

    pub(crate) fn etcd(server: &EtcdServer) -> Self {
        let settings = EtcdSettings::new(vec![server.endpoint()]);
        Self { transport: TransportSettings::Etcd(settings), ttl: Duration::from_secs(3) }
    }

    /// A node that offers these; without a name it only listens.
    pub(crate) fn node(&self, name: Option<&str>, offers: &[ServiceOffer]) -> ServiceDirectory {
        let directory = ServiceDirectory::start(DirectorySettings {
            key: key(),
            transport: self.transport.clone(),
            node: name.map(str::to_owned),
            ttl: self.ttl,
            only: None,
        });
        let directory = directory.unwrap_or_else(|error| panic!("{error}"));
        directory.publish(offers).unwrap();
        directory
    }
}

/// A replica of this partition, at this port of a machine that is not there.
pub(crate) fn offer(partition: &str, port: u16) -> ServiceOffer {
    let key: ServiceKey = partition.parse().unwrap();
    ServiceOffer::new(key, ([192, 0, 2, 1], port).into())
}

/// `PARTITION NODE` of all replicas.
pub(crate) fn names(view: &Arc<DirectoryView>) -> Vec<String> {
    view.replicas.iter().map(|r| format!("{} {}", r.offer.key, r.node)).collect()
}

/// Waits until a node knows exactly these.
pub(crate) async fn knows(directory: &ServiceDirectory, expected: &[&str]) {
    let what = format!("a map of {expected:?}");
    eventually_async(&what, async || names(&directory.view()) == expected).await;
}
