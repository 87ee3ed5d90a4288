//! How long a request for a document that its back-end has takes, by what is under way there.
//!
//! ```text
//! response time  <- a * requests in the queue + c * reads under way
//! ```
//!
//! Reads of a disk hardly hold up hits; results that are computed on the CPU do, and a network that both need. A regression over all
//! back-ends, in which older samples fade.

/// What each sample leaves of the ones before it.
const KEPT: f64 = 1.0 - 1.0 / 1024.0;
/// At least this share of the mean does not depend on reads.
const LEAST_FIXED: f64 = 0.05;

/// What is under way at a back-end: requests that wait for no read, and reads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Queue {
    pub(super) requests: f64,
    pub(super) reads: f64,
}

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkModel {
    samples: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    /// A read under way holds a hit up like so many requests in the queue.
    each_read: f64,
}

impl WorkModel {
    /// A hit took so long in this queue, itself included.
    pub(super) fn add(&mut self, queue: Queue, took_ns: f64) {
        let (x, y) = (queue.reads / queue.requests, took_ns / queue.requests);
        self.samples = self.samples * KEPT + 1.0;
        let gain = 1.0 / self.samples;
        let dx = x - self.x;
        self.x += gain * dx;
        self.y += gain * (y - self.y);
        self.xx += gain * (dx * (x - self.x) - self.xx);
        self.xy += gain * (dx * (y - self.y) - self.xy);
        let slope = if self.xx > 0.0 { self.xy / self.xx } else { 0.0 };
        let steepest = if self.x > 0.0 { (1.0 - LEAST_FIXED) * self.y / self.x } else { 0.0 };
        let each_read_ns = slope.clamp(0.0, steepest.max(0.0));
        let each_request_ns = self.y - each_read_ns * self.x;
        self.each_read = if each_request_ns > 0.0 { each_read_ns / each_request_ns } else { 0.0 };
    }

    /// How many requests in the queue take as long as a request that is the last in such a queue. Not a time: how fast each back-end is
    /// must not depend on what others, which get more requests, have taught.
    pub(super) fn positions(&self, queue: Queue) -> f64 {
        queue.requests + self.each_read * queue.reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn what_reads_hold_up_is_told_apart() {
        let mut model = WorkModel::default();
        let mut rng = Rng::new(1, 1);
        assert_eq!(model.positions(Queue { requests: 3.0, reads: 7.0 }), 3.0);
        for _ in 0..2000 {
            let requests = 1.0 + rng.below(6) as f64;
            let reads = rng.below(4) as f64;
            let noise = 0.5 + rng.unit();
            model.add(Queue { requests, reads }, noise * (300e3 * requests + 8e6 * reads));
        }
        let behind_a_read = model.positions(Queue { requests: 1.0, reads: 1.0 });
        assert!((10.0..40.0).contains(&behind_a_read), "as 1 + 8 / 0.3 positions: {model:?}");
    }

    #[test]
    fn reads_never_shorten_a_wait() {
        let mut model = WorkModel::default();
        for n in 1..100 {
            model.add(Queue { requests: 1.0, reads: f64::from(n) }, f64::from(200 - n));
            assert_eq!(model.positions(Queue { requests: 1.0, reads: 9.0 }), 1.0);
        }
    }
}
