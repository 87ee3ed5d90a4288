//! The requests, kept small.

/// The node of a request that is no example of its class.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// The group of a request that is in none.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// One request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) begins_ns: u64,
    pub(crate) takes_ns: u64,
    pub(crate) size_bytes: u64,
    /// Its node in the tree of paths.
    pub(crate) node: u32,
    /// Its combination of method and parameters.
    pub(crate) combination: u32,
    /// Its group by path and parameters, before its demand is known.
    pub(crate) group: u32,
    /// Its back-end, by number.
    pub(crate) backend: u16,
    /// Whether the duration includes the transmission to the client.
    pub(crate) with_client: bool,
}

impl Sample {
    pub(crate) fn ends_ns(&self) -> u64 {
        self.begins_ns.saturating_add(self.takes_ns)
    }

    /// Whether it is an example of its class.
    pub(crate) fn counts(&self) -> bool {
        self.node != NO_NODE
    }

    /// Its URI, as far as URIs are told apart.
    pub(crate) fn uri(&self) -> (u32, u32) {
        (self.node, self.combination)
    }
}
