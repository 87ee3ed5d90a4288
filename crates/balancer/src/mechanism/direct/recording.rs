//! Requests that were seen to pass, kept for a moment for whoever records them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_datapath::switch::PacketSample;
use plimsoll_sniffer::RequestStart;
use serde::Serialize;

/// How long requests are kept for without being asked for.
const LEASE: Duration = Duration::from_secs(5);
/// Most requests that are kept, and most bytes of their targets.
const MOST: usize = 100_000;
const MOST_BYTES: usize = 32 << 20;
/// Most requests of an answer.
const MOST_AT_ONCE: usize = 20_000;

/// A request that has passed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PassedRequest {
    time_unix_ns: u64,
    client: String,
    method: String,
    target: String,
    http11: bool,
    /// Of the document, where the list of files has it.
    size_bytes: Option<u64>,
}

/// Some of them, in order.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct PassedBatch {
    /// The number to ask for next.
    next: u64,
    /// Requests after the number asked for that are kept no more.
    missed: u64,
    /// Samples for which there was no room, since the tables of the packet program were made.
    pub(super) samples_lost: u64,
    requests: Vec<PassedRequest>,
}

#[derive(Debug, Default)]
struct Kept {
    until: Option<Instant>,
    /// The number of the first one.
    first: u64,
    bytes: usize,
    requests: VecDeque<PassedRequest>,
}

impl Kept {
    fn drop_first(&mut self) {
        if let Some(gone) = self.requests.pop_front() {
            self.bytes -= gone.target.len();
            self.first += 1;
        }
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct PassedRequests(Mutex<Kept>);

impl PassedRequests {
    /// Whether somebody records.
    pub(super) fn is_on(&self) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_on = kept.until.is_some_and(|until| Instant::now() < until);
        if !is_on {
            while !kept.requests.is_empty() {
                kept.drop_first();
            }
            (kept.requests, kept.until) = (VecDeque::new(), None);
        }
        is_on
    }

    /// Keeps a request, if somebody records.
    pub(super) fn note(&self, sample: &PacketSample<'_>, start: &RequestStart<'_>, size_bytes: Option<u64>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.until.is_none() {
            return;
        }
        let ago = Duration::from_nanos(plimsoll_datapath::now_ns().saturating_sub(sample.at_ns));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let request = PassedRequest {
            time_unix_ns: u64::try_from(now.saturating_sub(ago).as_nanos()).unwrap_or(u64::MAX),
            client: sample.conn.flow.client.ip().to_canonical().to_string(),
            method: text(start.method),
            target: text(start.path_and_query),
            http11: start.http11,
            size_bytes,
        };
        kept.bytes += request.target.len();
        kept.requests.push_back(request);
        while kept.requests.len() > MOST || kept.bytes > MOST_BYTES {
            kept.drop_first();
        }
    }

    /// Those from this number on, and keeps further ones for a while. None from a number that is not reached yet.
    pub(super) fn since(&self, after: u64) -> PassedBatch {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.until = Some(Instant::now() + LEASE);
        let from = after.min(kept.first + kept.requests.len() as u64);
        while kept.first < from && !kept.requests.is_empty() {
            kept.drop_first();
        }
        let requests: Vec<PassedRequest> = kept.requests.iter().take(MOST_AT_ONCE).cloned().collect();
        PassedBatch {
            next: kept.first + requests.len() as u64,
            missed: kept.first.saturating_sub(from),
            samples_lost: 0,
            requests,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_datapath::Flow;
    use plimsoll_datapath::switch::{ConnHolder, SwitchConn, Transport};

    use super::*;

    fn note(recording: &PassedRequests, number: u64) {
        let text = format!("GET /{number} HTTP/1.1\r\n\r\n");
        let flow = Flow::new("10.0.0.9:4711".parse().unwrap(), "10.0.0.1:80".parse().unwrap());
        let sample = PacketSample {
            at_ns: plimsoll_datapath::now_ns(),
            conn: SwitchConn { flow, transport: Transport::Tcp },
            holder: ConnHolder { backend: 0, generation: 0 },
            round_trip_us: 0,
            seq: 0,
            payload_bytes: text.len() as u32,
            payload: text.as_bytes(),
        };
        recording.note(&sample, &RequestStart::read(text.as_bytes()).unwrap(), Some(number));
    }

    #[test]
    fn kept_only_for_who_asks() {
        let recording = PassedRequests::default();
        note(&recording, 0);
        assert!(!recording.is_on());
        let first = recording.since(0);
        assert!(recording.is_on() && first.requests.is_empty());
        (1..=3).for_each(|number| note(&recording, number));
        let batch = recording.since(first.next);
        let targets: Vec<_> = batch.requests.iter().map(|r| (&*r.target, r.size_bytes)).collect();
        assert_eq!(targets, [("/1", Some(1)), ("/2", Some(2)), ("/3", Some(3))]);
        assert_eq!((batch.next, batch.missed), (3, 0));
        // Those that were answered for are gone, once the next ones are asked for.
        note(&recording, 4);
        let batch = recording.since(batch.next);
        assert_eq!((batch.requests.len(), batch.next), (1, 4));
    }

    #[test]
    fn no_more_than_there_is_room_for() {
        let recording = PassedRequests::default();
        let first = recording.since(0);
        (0..MOST as u64 + 7).for_each(|number| note(&recording, number));
        let batch = recording.since(first.next);
        assert_eq!(first.next, 0);
        assert_eq!((batch.missed, batch.requests.len()), (7, MOST_AT_ONCE));
        assert_eq!(batch.requests[0].target, "/7");
        assert_eq!(recording.since(batch.next).missed, 0);
        let end = recording.since(u64::MAX);
        assert_eq!((end.requests.len(), end.next), (0, MOST as u64 + 7));
    }
}
