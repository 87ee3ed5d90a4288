//! Weights, and load in proportion to them.

/// Relative capacity of a back-end in steps of 1/256; 1 is the norm, 2 takes twice the load, 0 takes no new requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

impl Weight {
    /// The norm.
    pub const ONE: Self = Self(256);
    /// No new requests.
    pub const ZERO: Self = Self(0);

    /// The weight nearest to `w`, at least 1/256 unless `w` is 0; `None` unless `0 <= w <= 65,536`.
    #[must_use]
    pub fn new(w: f64) -> Option<Self> {
        (0.0..=65_536.0).contains(&w).then(|| Self(((w * 256.0).round() as u32).max(u32::from(w > 0.0))))
    }

    /// The weight as a number.
    #[must_use]
    #[inline]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 256.0
    }

    /// The weight in steps of 1/256.
    #[must_use]
    #[inline]
    pub const fn steps(self) -> u32 {
        self.0
    }
}

/// Load per unit of weight, in steps of 1/256 of a request. Policies with weights compare loads by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelativeLoad(pub(crate) u32);

impl RelativeLoad {
    /// For a back-end that takes no new requests: above every real load.
    pub(crate) const INELIGIBLE: u32 = u32::MAX;

    /// The relative load of `requests` on a back-end of weight 1: how thresholds such as `t_low` are expressed.
    #[must_use]
    #[inline]
    pub const fn threshold(requests: u32) -> Self {
        let steps = (requests as u64) << 8;
        Self(if steps < Self::INELIGIBLE as u64 { steps as u32 } else { Self::INELIGIBLE - 1 })
    }

    /// Of `load` requests on a back-end of this weight.
    #[inline]
    pub(crate) fn of(load: u32, weight: Weight) -> u32 {
        if weight == Weight::ONE {
            return load.saturating_mul(256).min(Self::INELIGIBLE - 1);
        }
        let steps = (u64::from(load) << 16) / u64::from(weight.0.max(1));
        u32::try_from(steps).unwrap_or(Self::INELIGIBLE).min(Self::INELIGIBLE - 1)
    }
}
