//! A replica of a service.

use std::net::SocketAddr;
use std::sync::Arc;

use plimsoll_policy::Weight;

/// A replica of a service, as it is handed to calls. Clones are cheap.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint(Arc<EndpointFields>);

#[derive(Debug, Clone, PartialEq)]
struct EndpointFields {
    name: String,
    address: SocketAddr,
    load_address: Option<SocketAddr>,
    weight: Weight,
    partitions: Vec<String>,
}

impl Endpoint {
    /// A replica with this name at this address, of weight 1, that serves calls which name no partition, and tells its load to
    /// nobody. The name is its identity: policies that hash go by it.
    #[must_use]
    pub fn new(name: impl Into<String>, address: SocketAddr) -> Self {
        let (name, partitions) = (name.into(), Vec::new());
        Self(Arc::new(EndpointFields { name, address, load_address: None, weight: Weight::ONE, partitions }))
    }

    /// Where load inquiries about it are answered: by its agent, or by itself.
    #[must_use]
    pub fn with_load_address(mut self, address: SocketAddr) -> Self {
        Arc::make_mut(&mut self.0).load_address = Some(address);
        self
    }

    /// Its weight, for policies that use weights.
    #[must_use]
    pub fn with_weight(mut self, weight: Weight) -> Self {
        Arc::make_mut(&mut self.0).weight = weight;
        self
    }

    /// The partitions that it serves, and no others.
    #[must_use]
    pub fn with_partitions<P: Into<String>>(mut self, partitions: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.0).partitions = partitions.into_iter().map(Into::into).collect();
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Where it serves.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Where load inquiries about it are answered.
    #[must_use]
    pub fn load_address(&self) -> Option<SocketAddr> {
        self.0.load_address
    }

    /// Its weight.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.0.weight
    }

    /// The partitions that it serves; none for one that serves calls without a partition.
    #[must_use]
    pub fn partitions(&self) -> &[String] {
        &self.0.partitions
    }
}
