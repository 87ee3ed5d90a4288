//! What a node wants to hear of.

use plimsoll_wire::{ServiceKey, ServiceNameError, check_service_name};

/// One partition of a service, or all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceScope {
    service: String,
    partition: Option<String>,
}

impl ServiceScope {
    /// All partitions of this service.
    ///
    /// # Errors
    /// When that is no name.
    pub fn all_of(service: &str) -> Result<Self, ServiceNameError> {
        Ok(Self { service: check_service_name(service)?.to_owned(), partition: None })
    }

    /// Whether this partition is a part of it.
    #[must_use]
    pub fn covers(&self, key: &ServiceKey) -> bool {
        self.service == key.service && self.partition.as_ref().is_none_or(|only| *only == key.partition)
    }

    /// What all keys of it in etcd begin with, under this prefix.
    pub(crate) fn under(&self, prefix: &str) -> String {
        match &self.partition {
            Some(partition) => format!("{prefix}/{}/{partition}/", self.service),
            None => format!("{prefix}/{}/", self.service),
        }
    }
}

impl From<ServiceKey> for ServiceScope {
    fn from(key: ServiceKey) -> Self {
        Self { service: key.service, partition: Some(key.partition) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_one_partition_or_all() {
        let key = |text: &str| text.parse::<ServiceKey>().unwrap();
        let covered = |scope: &ServiceScope| ["s/0", "s/1", "st/0"].map(|text| scope.covers(&key(text)));
        let (one, all) = (ServiceScope::from(key("s/1")), ServiceScope::all_of("s").unwrap());
        assert_eq!((covered(&one), covered(&all)), ([false, true, false], [true, true, false]));
        assert_eq!([one, all].map(|scope| scope.under("/p")), ["/p/s/1/", "/p/s/"]);
        assert!(ServiceScope::all_of("s/1").is_err());
    }
}
