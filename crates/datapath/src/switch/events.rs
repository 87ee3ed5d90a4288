//! Reads what the packet program tells.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use super::layout::{ConnEvent, PacketSample};
use crate::error::{BPF_CAPABILITIES, DatapathError};

const WHAT: &str = "cannot read what the packet program tells";
/// Records taken at a time.
const BATCH: usize = 4096;

/// The reader of events of connections, for one thread.
pub struct ConnEvents {
    ring: RingBuffer<'static>,
    taken: Rc<RefCell<Vec<ConnEvent>>>,
}

impl ConnEvents {
    pub(crate) fn new(map: &dyn MapCore) -> Result<Self, DatapathError> {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let to = Rc::clone(&taken);
        let ring = build(map, move |record| to.borrow_mut().extend(ConnEvent::from_record(record)))?;
        Ok(Self { ring, taken })
    }

    /// Waits for events for at most `wait`; then calls `visit` with each that has come. Returns their number.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, wait: Duration, mut visit: impl FnMut(ConnEvent)) -> Result<usize, DatapathError> {
        wait_for(&self.ring, wait)?;
        let mut taken = self.taken.take();
        taken.iter().for_each(|&event| visit(event));
        let count = taken.len();
        taken.clear();
        // The memory serves again.
        self.taken.replace(taken);
        Ok(count)
    }
}

/// The reader of samples, for one thread.
pub struct Samples {
    ring: RingBuffer<'static>,
    visit: Visit,
}

type Visit = Rc<RefCell<Option<Box<dyn FnMut(&PacketSample<'_>)>>>>;

impl Samples {
    pub(crate) fn new(map: &dyn MapCore) -> Result<Self, DatapathError> {
        let visit = Visit::default();
        let to = Rc::clone(&visit);
        let ring = build(map, move |record| {
            if let (Some(visit), Some(sample)) = (&mut *to.borrow_mut(), PacketSample::from_record(record)) {
                visit(&sample);
            }
        })?;
        Ok(Self { ring, visit })
    }

    /// From now on `visit` is called with each sample.
    pub fn visit_with(&mut self, visit: impl FnMut(&PacketSample<'_>) + 'static) {
        *self.visit.borrow_mut() = Some(Box::new(visit));
    }

    /// Waits for samples for at most `wait`, and visits those that have come.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, wait: Duration) -> Result<(), DatapathError> {
        wait_for(&self.ring, wait)
    }
}

fn build(map: &dyn MapCore, take: impl Fn(&[u8]) + 'static) -> Result<RingBuffer<'static>, DatapathError> {
    let failed = |error| DatapathError::of_bpf(WHAT, BPF_CAPABILITIES, &error);
    let mut builder = RingBufferBuilder::new();
    let take = move |record: &[u8]| {
        take(record);
        0
    };
    builder.add(map, take).map_err(failed)?;
    builder.build().map_err(failed)
}

fn wait_for(ring: &RingBuffer<'_>, wait: Duration) -> Result<(), DatapathError> {
    let failed = |code: i32| {
        let source = std::io::Error::from_raw_os_error(-code);
        DatapathError::Failed { what: WHAT.to_owned(), source }
    };
    // What is there already has had its signal.
    let mut taken = ring.consume_raw_n(BATCH);
    if taken == 0 && !wait.is_zero() {
        taken = ring.poll_raw(wait);
        // A signal of the process ends the wait early.
        if taken == -libc::EINTR {
            taken = 0;
        }
    }
    if taken < 0 { Err(failed(taken)) } else { Ok(()) }
}
