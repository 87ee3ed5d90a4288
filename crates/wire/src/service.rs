//! The names of services and their partitions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The partition of a service that has one only.
const ONLY_PARTITION: &str = "0";

/// The most bytes of a name.
const MOST_NAME_BYTES: usize = 64;

/// A partition of a service: `photo-album/0`. Whoever offers it can answer any request for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceKey {
    /// What is done.
    pub service: String,
    /// Which part of its data.
    pub partition: String,
}

/// A name of a service, a partition or a node that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a service, partition or node; write 1 to 64 letters, digits, `-`, `_` and `.`")]
pub struct ServiceNameError(String);

/// Checks the name of a service, of a partition, or of a node that offers them.
///
/// # Errors
/// When it is not 1 to 64 letters, digits, `-`, `_` and `.`.
pub fn check_service_name(text: &str) -> Result<&str, ServiceNameError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.len() > MOST_NAME_BYTES || !text.chars().all(good) {
        return Err(ServiceNameError(text.chars().take(MOST_NAME_BYTES + 1).collect()));
    }
    Ok(text)
}

impl ServiceKey {
    /// This partition of this service.
    ///
    /// # Errors
    /// When one of them is no name.
    pub fn new(service: &str, partition: &str) -> Result<Self, ServiceNameError> {
        let (service, partition) = (check_service_name(service)?, check_service_name(partition)?);
        Ok(Self { service: service.to_owned(), partition: partition.to_owned() })
    }

    /// Whether both are names: what came from elsewhere may hold anything.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        check_service_name(&self.service).and_then(|_| check_service_name(&self.partition)).is_ok()
    }
}

/// `SERVICE/PARTITION`, or `SERVICE` alone for its partition `0`.
impl FromStr for ServiceKey {
    type Err = ServiceNameError;

    fn from_str(text: &str) -> Result<Self, ServiceNameError> {
        let (service, partition) = text.split_once('/').unwrap_or((text, ONLY_PARTITION));
        Self::new(service, partition)
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_they_are_written() {
        let key: ServiceKey = "image-store/1".parse().unwrap();
        assert_eq!((&*key.service, &*key.partition), ("image-store", "1"));
        assert_eq!(key.to_string(), "image-store/1");
        assert_eq!("gateway".parse::<ServiceKey>().unwrap().to_string(), "gateway/0");
        for bad in ["", "/", "a/", "/0", "a/b/c", "a b", "é", "a\n"] {
            let error = bad.parse::<ServiceKey>().unwrap_err().to_string();
            assert!(error.contains("1 to 64 letters"), "{error}");
        }
        assert!(check_service_name(&"x".repeat(64)).is_ok());
        assert!(check_service_name(&"x".repeat(65)).is_err());
    }
}
