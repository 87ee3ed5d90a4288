//! A request that is sent on trial to a back-end that was ejected.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::ejection::TrialEnd;

/// How long a trial waits for the back-end at most: its client must not pay much for it.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A trial under way. Dropped without an end, it has told nothing about the back-end.
pub(crate) struct BackendTrial {
    pool: Arc<BackendPool>,
    pub(crate) backend: Arc<Backend>,
    number: u64,
    end: TrialEnd,
}

impl BackendTrial {
    /// Begins one with a request for this partition, where a back-end that holds it is due for it.
    pub(crate) fn begin(pool: &Arc<BackendPool>, partition: u16) -> Option<Self> {
        let (backend, number) = pool.begin_trial(partition, Instant::now())?;
        Some(Self { pool: Arc::clone(pool), backend, number, end: TrialEnd::Unknown })
    }

    /// Ends it.
    pub(crate) fn end(mut self, end: TrialEnd) {
        self.end = end;
    }
}

impl Drop for BackendTrial {
    fn drop(&mut self) {
        self.pool.end_trial(&self.backend, self.number, self.end, Instant::now());
    }
}

/// How long a request waits for the first byte: this long, but not on trial. One that is slow has the time within which it must answer to come
/// back.
pub(crate) fn first_byte(timeout: Duration, on_trial: bool, backend: &Backend) -> Duration {
    let longest = || backend.slow_limit().unwrap_or_default().max(LONGEST_WAIT);
    if on_trial { timeout.min(longest()) } else { timeout }
}

/// How long a request waits for a back-end: this long, but not on trial.
pub(crate) fn wait(timeout: Duration, on_trial: bool) -> Duration {
    if on_trial { timeout.min(LONGEST_WAIT) } else { timeout }
}

/// There is an answer: a trial does not take as long as the client takes it.
pub(crate) fn answered(trial: &mut Option<BackendTrial>) {
    if let Some(trial) = trial.take() {
        trial.end(TrialEnd::Answered);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_config::{Config, EjectionConfig};
    use plimsoll_policy::BackendId;

    use super::*;

    #[test]
    fn a_slow_one_has_the_time_that_brings_it_back() {
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n";
        let config: EjectionConfig = Config::parse(text, "test.toml").unwrap().ejection;
        let address = Ok(([127, 0, 0, 1], 1).into());
        let backend = Backend::new(BackendId(0), "b".into(), address, "b".into(), 4, 1);
        let of = |s, on_trial| first_byte(Duration::from_secs(s), on_trial, &backend);
        assert_eq!((of(30, false), of(30, true)), (Duration::from_secs(30), LONGEST_WAIT));
        backend.eject_slow(Duration::from_millis(7500), Instant::now(), &config);
        assert_eq!((of(30, true), of(5, true)), (Duration::from_millis(7500), Duration::from_secs(5)));
        backend.readmit(Instant::now());
        assert_eq!(of(30, true), LONGEST_WAIT);
    }
}
