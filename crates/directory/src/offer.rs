//! A replica as its node offers it, and what it may be.

use std::net::SocketAddr;

use plimsoll_wire::ServiceKey;
use serde::{Deserialize, Serialize};

/// The most replicas that one node offers.
pub const MOST_OFFERS: usize = 256;

/// The most bytes of one: the smallest announcement has room for it.
const MOST_OFFER_BYTES: usize = 1050;
/// The greatest weight, in steps of 1/256.
const MOST_WEIGHT_STEPS: u32 = 65_536 * 256;
/// The most methods of one replica, and bytes of each.
const MOST_METHODS: usize = 32;
const MOST_METHOD_BYTES: usize = 128;

/// A replica as its node offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceOffer {
    /// The partition of the service that it can answer for.
    pub key: ServiceKey,
    /// Where it answers.
    pub address: SocketAddr,
    /// Its share of requests relative to others, in steps of 1/256.
    pub weight_steps: u32,
    /// Where load inquiries are answered.
    pub inquiry: Option<SocketAddr>,
    /// Where its agent takes handoffs.
    pub agent: Option<SocketAddr>,
    /// The access interface: names of the methods or paths that can be called.
    pub methods: Vec<String>,
}

/// Why a replica cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} at {address} cannot be published: {why}")]
pub struct OfferError {
    /// Which partition.
    pub key: ServiceKey,
    /// Where it was to answer.
    pub address: SocketAddr,
    /// What is wrong, and what would be right.
    pub why: String,
}

impl ServiceOffer {
    /// A replica of weight 1 without anything else.
    #[must_use]
    pub fn new(key: ServiceKey, address: SocketAddr) -> Self {
        Self { key, address, weight_steps: 256, inquiry: None, agent: None, methods: Vec::new() }
    }

    /// Checks what a node is about to publish.
    ///
    /// # Errors
    /// When a part of it is out of its bounds, or all of it does not fit in one announcement.
    pub fn check(&self) -> Result<(), OfferError> {
        let wrong = |why: String| OfferError { key: self.key.clone(), address: self.address, why };
        if let Some(why) = self.fault() {
            return Err(wrong(why.to_owned()));
        }
        // It has neither maps nor floats, so that nothing can fail.
        let bytes = postcard::to_stdvec(self).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > MOST_OFFER_BYTES {
            return Err(wrong(format!(
                "it takes {bytes} bytes of an announcement, and {MOST_OFFER_BYTES} is the most; name fewer methods"
            )));
        }
        Ok(())
    }

    /// What is wrong with it.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let reachable =
            |at: &SocketAddr| at.port() != 0 && !at.ip().is_unspecified() && !at.ip().is_multicast();
        if !self.key.is_valid() {
            return Some("the names of service and partition are 1 to 64 letters, digits, `-`, `_` and `.`");
        }
        if ![Some(self.address), self.inquiry, self.agent].iter().flatten().all(reachable) {
            return Some("give addresses at which others reach this machine, each with a port");
        }
        if self.weight_steps > MOST_WEIGHT_STEPS {
            return Some("the weight is 65536 at most");
        }
        if self.methods.len() > MOST_METHODS {
            return Some("name 32 methods at most");
        }
        let good =
            |m: &String| (1..=MOST_METHOD_BYTES).contains(&m.len()) && !m.chars().any(char::is_control);
        if !self.methods.iter().all(good) {
            return Some("the name of a method has 1 to 128 bytes and no control characters");
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn offer(partition: usize) -> ServiceOffer {
        let key = ServiceKey::new("image-store", &partition.to_string()).unwrap();
        ServiceOffer::new(key, ([10, 0, 0, 1], 80).into())
    }

    /// As large as an offer can be.
    pub(crate) fn largest() -> ServiceOffer {
        let key = ServiceKey::new(&"s".repeat(64), &"p".repeat(64)).unwrap();
        let fits = |bytes: usize| {
            let methods = vec!["m".repeat(100); 8].into_iter().chain(["m".repeat(bytes)]).collect();
            let offer = ServiceOffer::new(key.clone(), ([10, 0, 0, 1], 80).into());
            Some(ServiceOffer { methods, ..offer }).filter(|offer| offer.check().is_ok())
        };
        (1..=MOST_METHOD_BYTES).rev().find_map(fits).unwrap()
    }

    #[test]
    fn an_offer_that_fits_in_no_announcement_is_refused_with_the_remedy() {
        let methods =
            |many: usize, bytes: usize| ServiceOffer { methods: vec!["m".repeat(bytes); many], ..offer(0) };
        assert_eq!(methods(7, 120).check(), Ok(()));
        for (bad, remedy) in [
            (methods(33, 1), "32 methods"),
            (methods(1, 129), "128 bytes"),
            (methods(20, 100), "fewer methods"),
            (ServiceOffer { address: ([0, 0, 0, 0], 80).into(), ..offer(0) }, "addresses"),
            (ServiceOffer { inquiry: Some(([10, 0, 0, 1], 0).into()), ..offer(0) }, "addresses"),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }
}
