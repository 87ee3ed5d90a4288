//! Spreading of whole-second stamps within their second.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::error::TraceError;
use crate::spool::SpoolCursor;
use crate::time::NS_PER_S;
use plimsoll_synth::Record;

/// Gives the n records of one second the sorted times of n independent uniform draws from that second. So the
/// order of records stays, and arrivals within the second form a Poisson process.
///
/// It draws the times one by one: with m to go, the smallest of m uniform numbers in the rest of the second
/// is at the share `1 - u^(1/m)` of it. A second cursor counts ahead, so nothing is buffered however many
/// requests a second has.
#[derive(Debug)]
pub(crate) struct Spread {
    records: SpoolCursor,
    ahead: SpoolCursor,
    ahead_record: Option<Record>,
    random: Pcg64,
    left: u64,
    offset_s: f64,
}

impl Spread {
    pub(crate) fn new(records: SpoolCursor, mut ahead: SpoolCursor, seed: u64) -> Result<Self, TraceError> {
        Ok(Self {
            records,
            ahead_record: ahead.next()?,
            ahead,
            random: Pcg64::seed_from_u64(seed),
            left: 0,
            offset_s: 0.0,
        })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Record>, TraceError> {
        let Some(mut record) = self.records.next()? else {
            return Ok(None);
        };
        if self.left == 0 {
            self.offset_s = 0.0;
            while self.ahead_record.is_some_and(|a| a.time_ns == record.time_ns) {
                self.left += 1;
                self.ahead_record = self.ahead.next()?;
            }
        }
        // A uniform number from the open interval: 53 random bits and a half.
        let uniform = ((self.random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let share = -libm::expm1(libm::log(uniform) / self.left as f64);
        self.offset_s += (1.0 - self.offset_s) * share;
        self.left -= 1;
        record.time_ns += ((self.offset_s * NS_PER_S as f64) as u64).min(NS_PER_S - 1);
        Ok(Some(record))
    }
}
