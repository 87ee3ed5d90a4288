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
        /// The largest share of the back-ends that may be ejected at once; one always stays.
        "most" most_permille: u16 = Is("0.5"), Number { min: 0.0, max: 1.0 } => Permille;
    }
}
