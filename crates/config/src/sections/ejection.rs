//! When a back-end that fails requests of clients is left out for a while.

use std::time::Duration;

use crate::declare::keys;
use crate::keys::Default::Is;
use crate::keys::KeyKind::{self, Integer, Number};
use crate::sections::health::Permille;

keys! {
    /// When a back-end that fails requests of clients, whatever its health checks say, is left out for a while.
    ["ejection"] pub struct EjectionConfig {
        /// Requests in a row that fail at a back-end before it is ejected; with 0 none ever is.
        "failures" failures: u32 = Is("5"), Integer { min: 0, max: 1000 };
        /// The share of failed requests that ejects as well, of at least 20 within `window`.
        "share" share_permille: u16 = Is("0.3"), Number { min: 0.0, max: 1.0 } => Permille;
        /// Over which time that share is formed.
        "window" window: Duration = Is("10s"), KeyKind::Duration;
        /// How long a back-end is left out at first; twice as long each further time, up to 30 times.
        "time" time: Duration = Is("1s"), KeyKind::Duration;
        /// Requests in a row that it must then answer on trial, one at a time, to be back; without trials, time brings it back.
        "trials" trials: u32 = Is("3"), Integer { min: 1, max: 1000 };
        /// How many times as long as at the others of its pool the first byte must take, in the quantile of `window`, for a back-end to be
        /// ejected; with 0 none ever is for that.
        "slow_ratio" slow_ratio: u32 = Is("0"), Integer { min: 0, max: 1000 };
        /// How much longer it must take at least.
        "slow_difference" slow_difference: Duration = Is("100ms"), KeyKind::Duration;
        /// Requests that each of the back-ends must have answered within `window` to be compared.
        "slow_requests" slow_requests: u32 = Is("100"), Integer { min: 20, max: 1_000_000 };
        /// The quantile that is compared.
        "slow_quantile" slow_quantile_permille: u16 = Is("0.5"), Number { min: 0.0, max: 1.0 } => Permille;
        /// The largest share of the back-ends that may be ejected at once; one always stays.
        "most" most_permille: u16 = Is("0.5"), Number { min: 0.0, max: 1.0 } => Permille;
    }
}
