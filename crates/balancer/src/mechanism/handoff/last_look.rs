//! What was seen of a link's connections while its back-end is down.

use std::time::{Duration, Instant};

use plimsoll_wire::message::Conn;

use super::numbers::SeenNumbers;

/// Time between two looks at one that is down: a client to whom nothing has come between them gets nothing.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);

/// A connection with a request under way: its number, how many requests it has had, and what its client had.
pub(super) type SeenRequest = (Conn, u64, Option<SeenNumbers>);

/// The last look at a back-end that is down.
pub(super) struct LastLook {
    pub(super) at: Instant,
    pub(super) requests: Vec<SeenRequest>,
}

impl LastLook {
    /// Whether it is time for another one, with this time between two.
    pub(super) fn is_due(&self, now: Instant, interval: Duration) -> bool {
        now.saturating_duration_since(self.at) >= interval
    }

    /// Those that are the same as before. Both are in the order of the table.
    pub(super) fn still<'a>(&'a self, found: &'a [SeenRequest]) -> impl Iterator<Item = Conn> + 'a {
        let mut before = self.requests.iter().peekable();
        found.iter().filter_map(move |now| {
            let slot = |conn: Conn| conn.0 & 0xffff_ffff;
            while before.next_if(|b| slot(b.0) < slot(now.0)).is_some() {}
            before.peek().is_some_and(|b| **b == *now).then_some(now.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_to_which_nothing_came_are_stuck() {
        let of =
            |conns: &[(u64, u64)]| conns.iter().map(|&(conn, n)| (Conn(conn), n, None)).collect::<Vec<_>>();
        let last = LastLook { at: Instant::now(), requests: of(&[(0, 1), (2, 1), (3, 5), (7, 1)]) };
        // The second has another request, the third slot another connection, and one is new.
        let found = of(&[(0, 1), (2, 2), (1 << 32 | 3, 5), (6, 1), (7, 1)]);
        assert_eq!(last.still(&found).collect::<Vec<_>>(), [Conn(0), Conn(7)]);
    }
}
