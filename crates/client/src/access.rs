//! What is asked of a service.

use plimsoll_policy::TargetId;

/// An access to a service: which partition, and what is known of it. A partition's name alone is one, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceAccess<'p> {
    pub(crate) partition: &'p str,
    pub(crate) target: Option<TargetId>,
    pub(crate) client: u64,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) repeatable: bool,
}

impl<'p> ServiceAccess<'p> {
    /// An access to this partition; `""` for a service without partitions.
    #[must_use]
    pub const fn to(partition: &'p str) -> Self {
        Self { partition, target: None, client: 0, size_bytes: None, repeatable: false }
    }

    /// What is asked for. Policies that hash, and those that keep targets where they are cached, go by it. Without a key every
    /// access is for something else.
    #[must_use]
    pub fn key(self, key: &[u8]) -> Self {
        Self { target: Some(TargetId::from_key(key)), ..self }
    }

    /// On whose behalf, for policies that go by clients.
    #[must_use]
    pub const fn client(self, client: u64) -> Self {
        Self { client, ..self }
    }

    /// Expected size of the answer, for policies that go by sizes.
    #[must_use]
    pub const fn size_bytes(self, size_bytes: u64) -> Self {
        Self { size_bytes: Some(size_bytes), ..self }
    }

    /// Doing it twice does what doing it once does. Only then is it done again after it was lost on the way, and only then hedged.
    #[must_use]
    pub const fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }
}

impl<'p> From<&'p str> for ServiceAccess<'p> {
    fn from(partition: &'p str) -> Self {
        Self::to(partition)
    }
}
