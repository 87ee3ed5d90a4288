//! How long a request waits, by what is under way at its back-end.
//!
//! ```text
//! response time  <- a * requests in the queue + c * reads under way + g * content of the requests in the queue
//! ```
//!
//! Reads of a disk hardly hold up hits; results that are computed on the CPU do, and a network that both need. Content holds up others
//! where requests are served one after the other, and hardly where each gets its turn. A regression over all back-ends, in which older samples
//! fade, finds out which it is. Only small documents are samples: a large one takes long wherever it is.
//!
//! The same serves for reads, where what is waited for are other reads.

/// What each sample leaves of the ones before it.
const KEPT: f64 = 1.0 - 1.0 / 1024.0;
/// At least this share of the mean depends neither on reads nor on content.
const LEAST_FIXED: f64 = 0.05;
/// So many samples in which content plays no part are mixed with the others: a few large documents tell much by chance.
const CONTENT_PRIOR: f64 = 200.0;
/// What is left of a variance where the other quantity is known, as a share: with less, they are the same.
const LEAST_OWN: f64 = 1e-9;

/// What is under way at a back-end: requests that wait for no read, and reads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Queue {
    pub(super) requests: f64,
    pub(super) reads: f64,
    /// Content of the requests, in documents of the mean size.
    pub(super) content: f64,
}

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkModel {
    samples: f64,
    /// Means, for each request in the queue: of reads, of content, and of response times.
    reads: f64,
    content: f64,
    took: f64,
    /// Variances and covariances.
    reads_reads: f64,
    reads_content: f64,
    reads_took: f64,
    content_content: f64,
    content_took: f64,
    /// A read under way holds a hit up like so many requests in the queue.
    each_read: f64,
    /// And so does a document of the mean size.
    each_content: f64,
}

impl WorkModel {
    /// A hit took so long in this queue, itself included, but for its own content.
    pub(super) fn add(&mut self, queue: Queue, took_ns: f64) {
        let (reads, content) = (queue.reads / queue.requests, queue.content / queue.requests);
        let took = took_ns / queue.requests;
        self.samples = self.samples * KEPT + 1.0;
        let gain = 1.0 / self.samples;
        let (of_reads, of_content) = (reads - self.reads, content - self.content);
        self.reads += gain * of_reads;
        self.content += gain * of_content;
        self.took += gain * (took - self.took);
        let (reads, content, took) = (reads - self.reads, content - self.content, took - self.took);
        self.reads_reads += gain * (of_reads * reads - self.reads_reads);
        self.reads_content += gain * (of_reads * content - self.reads_content);
        self.reads_took += gain * (of_reads * took - self.reads_took);
        self.content_content += gain * (of_content * content - self.content_content);
        self.content_took += gain * (of_content * took - self.content_took);
        self.fit();
    }

    /// Finds out what reads and content count for.
    fn fit(&mut self) {
        let (each_read_ns, each_content_ns) = self.slopes();
        let share = each_read_ns * self.reads + each_content_ns * self.content;
        let most = (1.0 - LEAST_FIXED) * self.took;
        let part = if share > most && share > 0.0 { most.max(0.0) / share } else { 1.0 };
        let each_request_ns = self.took - part * share;
        (self.each_read, self.each_content) = (0.0, 0.0);
        if each_request_ns > 0.0 {
            let known = self.samples / (self.samples + CONTENT_PRIOR);
            self.each_read = part * each_read_ns / each_request_ns;
            self.each_content = known * part * each_content_ns / each_request_ns;
        }
    }

    /// How much longer a hit takes for each read and for each document of the mean size, neither below 0.
    fn slopes(&self) -> (f64, f64) {
        let both = self.reads_reads * self.content_content;
        let own = both - self.reads_content * self.reads_content;
        if own > LEAST_OWN * both {
            let read =
                (self.reads_took * self.content_content - self.content_took * self.reads_content) / own;
            let content = (self.content_took * self.reads_reads - self.reads_took * self.reads_content) / own;
            if read >= 0.0 && content >= 0.0 {
                return (read, content);
            }
        }
        let alone = |took: f64, own: f64| if own > 0.0 { (took / own).max(0.0) } else { 0.0 };
        let read = alone(self.reads_took, self.reads_reads);
        let content = alone(self.content_took, self.content_content);
        // The one that explains more.
        if read * self.reads_took >= content * self.content_took { (read, 0.0) } else { (0.0, content) }
    }

    /// How many requests in the queue take as long as a request that is the last in such a queue. Not a time: how fast each back-end is
    /// must not depend on what others, which get more requests, have taught.
    #[inline]
    pub(super) fn positions(&self, queue: Queue) -> f64 {
        queue.requests + self.each_read * queue.reads + self.each_content * queue.content
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// What is learned when hits take as long as `took` says.
    fn learned(took: impl Fn(Queue) -> f64) -> WorkModel {
        let mut model = WorkModel::default();
        let mut rng = Rng::new(1, 1);
        for _ in 0..2000 {
            let requests = 1.0 + rng.below(6) as f64;
            let reads = rng.below(4) as f64;
            // Few documents have most of the content.
            let content = (1..requests as u32).map(|_| libm::exp(5.0 * rng.unit() - 3.0)).sum();
            let queue = Queue { requests, reads, content };
            model.add(queue, (0.5 + rng.unit()) * took(queue));
        }
        model
    }

    const NONE: Queue = Queue { requests: 1.0, reads: 0.0, content: 0.0 };

    #[test]
    fn what_reads_hold_up_is_told_apart() {
        assert_eq!(WorkModel::default().positions(Queue { reads: 7.0, content: 5.0, ..NONE }), 1.0);
        let model = learned(|queue| 300e3 * queue.requests + 8e6 * queue.reads);
        let behind_a_read = model.positions(Queue { reads: 1.0, ..NONE });
        assert!((10.0..40.0).contains(&behind_a_read), "as 1 + 8 / 0.3 positions: {model:?}");
        let behind_content = model.positions(Queue { content: 1.0, ..NONE });
        assert!(behind_content < 0.1 * behind_a_read, "{model:?}");
    }

    #[test]
    fn what_content_holds_up_is_told_apart() {
        let model = learned(|queue| 100e3 * queue.requests + 500e3 * queue.content);
        let behind_content = model.positions(Queue { content: 1.0, ..NONE });
        assert!((3.0..8.0).contains(&behind_content), "as 1 + 5 positions: {model:?}");
        let both = learned(|queue| 100e3 * queue.requests + 500e3 * queue.content + 1e6 * queue.reads);
        let behind_a_read = both.positions(Queue { reads: 1.0, ..NONE });
        assert!((6.0..16.0).contains(&behind_a_read), "as 1 + 10 positions: {both:?}");
    }

    #[test]
    fn where_each_gets_its_turn_content_counts_little() {
        let model = learned(|queue| 300e3 * queue.requests);
        let behind_content = model.positions(Queue { content: 1.0, ..NONE });
        assert!(behind_content < 1.1, "{model:?}");
    }

    #[test]
    fn neither_reads_nor_content_shorten_a_wait() {
        let mut model = WorkModel::default();
        for n in 1..100 {
            let held_up = Queue { reads: f64::from(n), content: f64::from(n), ..NONE };
            model.add(held_up, f64::from(200 - n));
            assert_eq!(model.positions(Queue { reads: 9.0, content: 9.0, ..NONE }), 1.0);
        }
    }

    #[test]
    fn few_samples_tell_little_of_content() {
        let mut model = WorkModel::default();
        (0..10u8).for_each(|n| model.add(Queue { content: f64::from(n), ..NONE }, 1e5 + 1e5 * f64::from(n)));
        let behind_content = model.positions(Queue { content: 1.0, ..NONE });
        assert!(behind_content > 1.0 && behind_content < 1.5, "1 + 1 from far more: {model:?}");
    }
}
