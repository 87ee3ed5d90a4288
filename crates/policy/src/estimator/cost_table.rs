//! The cost table: what the steps of a request cost a back-end.
//!
//! Source: Hyun et al., sections 3.1 and 3.2, and table 3.

use crate::sniffed::SniffedKind;
use crate::time::Nanos;

/// Costs of the steps, and sizes that decide about them. The default is table 3: a 700 MHz Pentium III.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostTable {
    /// CPU time to open a connection, or to close it: half of table 3's 132 µs each.
    pub connection: Nanos,
    /// CPU time of the basic steps of each request.
    pub processing: Nanos,
    /// CPU time, beside those, of an answer that has no body: 304, or an error.
    pub short_answer: Nanos,
    /// CPU time to send [`CostTable::UNIT_BYTES`].
    pub unit: Nanos,
    /// Disk time to reach a document.
    pub seek: Nanos,
    /// Disk time to read [`CostTable::BLOCK_BYTES`].
    pub block: Nanos,
    /// A response up to this size in bytes is sent at once.
    pub send_buffer_bytes: u64,
}

impl Default for CostTable {
    fn default() -> Self {
        Self {
            connection: Nanos::from_micros(66),
            processing: Nanos::from_micros(213),
            short_answer: Nanos::from_micros(30),
            unit: Nanos::from_micros(37),
            seek: Nanos::from_micros(15_600),
            block: Nanos::from_micros(300),
            send_buffer_bytes: 64 << 10,
        }
    }
}

fn times(cost: Nanos, count: u64) -> Nanos {
    Nanos::new(cost.as_nanos().saturating_mul(count))
}

impl CostTable {
    /// Bytes that are sent for one [`CostTable::unit`].
    pub const UNIT_BYTES: u64 = 512;
    /// Bytes that are read for one [`CostTable::block`].
    pub const BLOCK_BYTES: u64 = 4096;

    /// CPU time before the response is sent. That of a dynamic request follows from its class and is added to it.
    #[must_use]
    pub fn before_response(&self, kind: SniffedKind) -> Nanos {
        match kind {
            SniffedKind::Connection => self.connection,
            SniffedKind::Static | SniffedKind::Dynamic => self.processing,
            SniffedKind::Conditional | SniffedKind::Invalid => self.processing + self.short_answer,
        }
    }

    /// CPU time to send so many bytes.
    #[must_use]
    #[inline]
    pub fn sending(&self, size_bytes: u64) -> Nanos {
        times(self.unit, size_bytes.div_ceil(Self::UNIT_BYTES))
    }

    /// Disk time to read a document of this size.
    #[must_use]
    pub fn reading(&self, size_bytes: u64) -> Nanos {
        self.seek + times(self.block, size_bytes.div_ceil(Self::BLOCK_BYTES))
    }
}

/// What a class of dynamic requests costs on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassCost {
    /// CPU time of the computation.
    pub cpu: Nanos,
    /// Disk time.
    pub disk: Nanos,
    /// Size of the response in bytes.
    pub size_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let costs = CostTable::default();
        assert_eq!(costs.sending(0), Nanos::ZERO);
        assert_eq!(costs.sending(1), Nanos::from_micros(37));
        assert_eq!(costs.sending(1025), Nanos::from_micros(111));
        assert_eq!(costs.reading(8192), Nanos::from_micros(15_600 + 600));
        assert_eq!(costs.before_response(SniffedKind::Invalid), Nanos::from_micros(243));
        assert_eq!(costs.sending(u64::MAX), Nanos::MAX);
    }
}
