//! Requests and their answers, from segments of TCP connections that are seen to pass.
//! Nothing is put together again but heads, each of which begins a segment or follows another message. The size of an answer is what
//! its head announces or what the sequence numbers tell. Segments that come again are passed over. A head that was not seen costs its
//! own exchange, and, where the client sends requests ahead, those after it: an unknown answer is better than that of another request.

mod answer_reader;
mod answer_start;
mod exchange;
mod follower;
mod frame;
mod request_reader;
mod segment;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_ahead;
mod waiting;

use std::collections::BTreeMap;

pub use exchange::SeenExchange;
use follower::Follower;
pub use segment::{Ends, Segment};

/// A connection that was silent for so long is over: ten minutes.
const SILENCE_NS: u64 = 600 * 1_000_000_000;

/// Follows connections.
#[derive(Debug)]
pub struct Exchanges {
    connections: BTreeMap<Ends, Follower>,
    most: usize,
    numbered: u64,
    refused: u64,
    swept_ns: u64,
}

impl Exchanges {
    /// Follows at most so many connections at a time, each with a few kilobytes at most for each request that waits.
    #[must_use]
    pub fn new(most_connections: usize) -> Self {
        Self { connections: BTreeMap::new(), most: most_connections, numbered: 0, refused: 0, swept_ns: 0 }
    }

    /// Takes a segment in, and passes on the exchanges that are over by it.
    pub fn take(&mut self, ends: Ends, segment: &Segment<'_>, done: &mut dyn FnMut(SeenExchange)) {
        self.sweep(segment.at_ns, done);
        if segment.syn {
            // The same addresses again are another connection.
            if segment.from_client
                && let Some(mut old) = self.connections.remove(&ends)
            {
                old.close(done);
            }
            return;
        }
        let full = self.connections.len() >= self.most;
        let follower = match self.connections.get_mut(&ends) {
            Some(follower) => follower,
            // An answer without its request, and an end, tell nothing.
            None if segment.data_bytes == 0 || !segment.from_client => return,
            None if full => {
                self.refused += 1;
                return;
            }
            None => {
                self.numbered += 1;
                self.connections.entry(ends).or_insert(Follower::new(ends, self.numbered))
            }
        };
        follower.take(segment, done);
        if follower.is_over()
            && let Some(mut over) = self.connections.remove(&ends)
        {
            over.close(done);
        }
    }

    /// Ends connections that have been silent, once a minute of the segments' time.
    fn sweep(&mut self, now_ns: u64, done: &mut dyn FnMut(SeenExchange)) {
        if now_ns.saturating_sub(self.swept_ns) < SILENCE_NS / 10 {
            return;
        }
        self.swept_ns = now_ns;
        self.connections.retain(|_, follower| {
            let stays = now_ns.saturating_sub(follower.last_ns) < SILENCE_NS;
            if !stays {
                follower.close(done);
            }
            stays
        });
    }

    /// Passes on what is left of all connections, as it is.
    pub fn close(&mut self, done: &mut dyn FnMut(SeenExchange)) {
        for follower in self.connections.values_mut() {
            follower.close(done);
        }
        self.connections.clear();
    }

    /// Segments of connections for which there was no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Connections on which something was sent.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.numbered
    }
}
