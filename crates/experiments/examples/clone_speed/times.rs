//! When requests were read and clones were there, as the nodes of this process trace it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plimsoll_agent::daemon::CLONE_TIMES;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static RECORDS: AtomicBool = AtomicBool::new(false);
static SEEN: Mutex<Vec<(&str, Instant)>> = Mutex::new(Vec::new());

struct Clock;

impl Subscriber for Clock {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == CLONE_TIMES
    }

    fn event(&self, event: &Event<'_>) {
        if RECORDS.load(Ordering::Relaxed) {
            SEEN.lock().unwrap().push((event.metadata().name(), Instant::now()));
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// To be called once, before the nodes start.
pub(crate) fn prepare() {
    tracing::subscriber::set_global_default(Clock).unwrap();
}

/// What `work` returns, and how long each clone of its time took from its request to its socket, in microseconds. Requests must come one
/// after the other, and each must have a clone.
pub(crate) fn until_restored<T>(work: impl FnOnce() -> T) -> (T, Vec<f64>) {
    SEEN.lock().unwrap().clear();
    RECORDS.store(true, Ordering::Relaxed);
    let done = work();
    RECORDS.store(false, Ordering::Relaxed);
    // Looking for documents asks, too, without a clone or with one.
    let seen = SEEN.lock().unwrap();
    let pairs = seen.windows(2).filter(|two| two[0].0 == "asked" && two[1].0 == "restored");
    let times = pairs.map(|two| super::us(two[1].1 - two[0].1)).collect();
    (done, times)
}
