//! Clients whose connections were lost with a link, or given up: each is reset, unless something new comes from it.

use std::time::{Duration, Instant};

use plimsoll_datapath::FlowEntry;

use super::numbers::{Expected, Questions, SeenNumbers};

/// What is known of such a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostClient {
    /// What it expected when its connection was handed off.
    pub(super) expected: Option<Expected>,
    /// How often it was asked for its sequence numbers.
    pub(super) questions: Questions,
    /// What was seen of it at the last look.
    seen: Option<SeenNumbers>,
    /// How long nothing new may come from it.
    patience: Duration,
}

impl LostClient {
    /// The first look at a client. The next one is to follow after `patience` at the latest.
    pub(super) fn new(entry: Option<&FlowEntry>, expected: Option<Expected>, patience: Duration) -> Self {
        let questions = Questions::after_lost_link();
        Self { expected, questions, seen: Self::see(entry, expected), patience }
    }

    /// A client that has sent nothing since its connection was handed off may repeat what it had sent: that is nothing new.
    fn see(entry: Option<&FlowEntry>, expected: Option<Expected>) -> Option<SeenNumbers> {
        entry.map(|entry| SeenNumbers::of(entry).or(expected))
    }

    /// Looks again. Returns `None` if the client is to be reset, as it has neither sent nor acknowledged anything new since the
    /// last look, or for as long as it may; repetitions are nothing new, as they are of what nobody answers. Otherwise
    /// returns the time of the next look, which is after `now`; `now_ns` is this time on the clock of the entry.
    pub(super) fn look(&mut self, entry: Option<&FlowEntry>, now: Instant, now_ns: u64) -> Option<Instant> {
        let seen = Self::see(entry, self.expected);
        let is_new = std::mem::replace(&mut self.seen, seen) != seen;
        let entry = entry.filter(|entry| is_new && !entry.rst)?;
        // What is new came with the last packet, or earlier.
        let silence = Duration::from_nanos(now_ns.saturating_sub(entry.last_seen_ns));
        let left = self.patience.saturating_sub(silence);
        (!left.is_zero()).then(|| now + left)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_datapath::NextHop;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(1250);

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn entry(last_ack: Option<u32>, last_seq_end: Option<u32>, last_seen: Duration) -> FlowEntry {
        FlowEntry {
            next_hop: NextHop { ifindex: 1, mac: [2; 6], own_mac: [4; 6] },
            agent: 0,
            last_seen_ns: last_seen.as_nanos() as u64,
            last_ack,
            last_seq_end,
            fin: false,
            rst: false,
            over: false,
            packets: 1,
            bytes: 100,
            began_ns: 0,
            acked_bytes: 0,
        }
    }

    /// How long after a look at this time the next one is.
    fn look(client: &mut LostClient, entry: &FlowEntry, at: Duration) -> Option<Duration> {
        let now = Instant::now();
        client.look(Some(entry), now, at.as_nanos() as u64).map(|next| next - now)
    }

    #[test]
    fn a_client_from_whom_nothing_comes_is_reset_at_the_next_look() {
        let first = entry(Some(7), Some(9), ms(0));
        let mut client = LostClient::new(Some(&first), None, PATIENCE);
        // It has repeated what it had sent, just now.
        assert_eq!(look(&mut client, &entry(Some(7), Some(9), ms(1249)), PATIENCE), None);
        let mut client = LostClient::new(None, None, PATIENCE);
        assert_eq!(client.look(None, Instant::now(), 5), None);
    }

    #[test]
    fn what_is_new_counts_from_the_last_packet() {
        let mut client = LostClient::new(Some(&entry(Some(7), Some(9), ms(0))), None, PATIENCE);
        assert_eq!(look(&mut client, &entry(Some(8), Some(9), ms(600)), ms(1250)), Some(ms(600)));
        assert_eq!(look(&mut client, &entry(Some(8), Some(11), ms(1850)), ms(1850)), Some(PATIENCE));
        assert_eq!(look(&mut client, &entry(Some(8), Some(11), ms(3050)), ms(3100)), None);
        let mut client = LostClient::new(Some(&entry(Some(7), Some(9), ms(0))), None, ms(250));
        assert_eq!(look(&mut client, &entry(Some(8), Some(9), ms(5)), ms(255)), None, "long ago");
        let rst = FlowEntry { rst: true, ..entry(Some(9), Some(9), ms(300)) };
        assert_eq!(look(&mut client, &rst, ms(300)), None, "the client has ended it");
    }

    #[test]
    fn what_was_known_at_the_handoff_is_nothing_new() {
        let expected = Some(Expected { from_us: 100, from_client: 40 });
        let silent = entry(None, None, ms(0));
        let repeated = entry(Some(100), Some(40), ms(900));
        let mut client = LostClient::new(Some(&silent), expected, PATIENCE);
        assert_eq!(look(&mut client, &repeated, PATIENCE), None);
        let mut client = LostClient::new(Some(&silent), None, PATIENCE);
        assert_eq!(look(&mut client, &repeated, PATIENCE), Some(ms(900)), "unknown until then");
    }
}
