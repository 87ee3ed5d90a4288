//! Where the requests of a connection went, one after the other, and whether that suits handing it off.

use plimsoll_policy::BackendId;

/// Requests in a row to one back-end after which a connection that never came back is handed off.
const FEWEST_IN_ROW: u32 = 2;
/// The same for a connection that came back after few requests again and again.
const MOST_IN_ROW: u32 = 32;
/// A connection that comes back after fewer further requests has cost more than it spared.
const WORTHWHILE_STAY: u32 = 8;
/// Content that arrives in one packet with its head. The client acknowledges it with its next request.
const ONE_PACKET_BYTES: u64 = 1300;
/// What each further request costs less, in µs of a CPU of front-end and back-end together, where its back-end has the connection:
/// with a response of one packet; with a larger one, where further packets come to the front-end, and for each KiB of it.
const SPARED_ONE_PACKET_US: f32 = 10.0;
const SPARED_LARGER_US: f32 = -14.0;
const SPARED_PER_KIB_US: f32 = 0.6;
/// A connection leaves when a request on it is expected to cost that much less, and comes back when it costs that much more.
const MARGIN_US: f32 = 8.0;
/// The part of the latest request in what is expected.
const LATEST: f32 = 0.25;

/// How the requests of one connection were placed in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlacementRow {
    /// Who got the latest one.
    backend: Option<BackendId>,
    /// How many of the latest ones it got.
    length: u32,
    /// How many in a row are wanted before the connection is handed off.
    wanted: u32,
    /// What a request costs less if the back-end has the connection; `None` before a size was known.
    spared_us: Option<f32>,
}

impl Default for PlacementRow {
    fn default() -> Self {
        Self { backend: None, length: 0, wanted: FEWEST_IN_ROW, spared_us: None }
    }
}

impl PlacementRow {
    /// After one more request, for this back-end, with a response of about this size.
    pub(crate) fn and(self, backend: BackendId, size_bytes: Option<u64>) -> Self {
        let length = if self.backend == Some(backend) { self.length.saturating_add(1) } else { 1 };
        let spared_us = match (self.spared_us, size_bytes.map(spared_us)) {
            (Some(before), Some(now)) => Some(before + LATEST * (now - before)),
            (before, now) => now.or(before),
        };
        Self { backend: Some(backend), length, spared_us, ..self }
    }

    /// After the connection had to come back from its back-end.
    pub(crate) fn after_return(self) -> Self {
        let short = self.length < self.wanted + WORTHWHILE_STAY;
        let wanted = if short { (self.wanted * 2).min(MOST_IN_ROW) } else { FEWEST_IN_ROW };
        Self { backend: None, length: 0, wanted, ..self }
    }

    /// After the back-end had to keep a connection that was to come back: it is not asked for again at once.
    pub(crate) fn after_kept(self) -> Self {
        Self { spared_us: self.spared_us.map(|_| 0.0), ..self }
    }

    /// Whether the next requests are likely to go where the latest one goes.
    pub(crate) fn is_steady(self) -> bool {
        self.length >= self.wanted
    }

    /// Whether the back-end had better have the connection.
    pub(crate) fn pays_to_leave(self) -> bool {
        self.spared_us.is_some_and(|spared| spared >= MARGIN_US)
    }

    /// Whether the connection had better come back from the back-end.
    pub(crate) fn pays_to_return(self) -> bool {
        self.spared_us.is_some_and(|spared| spared <= -MARGIN_US)
    }
}

fn spared_us(size_bytes: u64) -> f32 {
    match size_bytes {
        0..=ONE_PACKET_BYTES => SPARED_ONE_PACKET_US,
        more => SPARED_LARGER_US + SPARED_PER_KIB_US * (more as f32 / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(backends: &[u32]) -> PlacementRow {
        backends
            .iter()
            .fold(PlacementRow::default(), |row, &b| row.and(BackendId::new(b as usize), Some(100)))
    }

    #[test]
    fn two_in_a_row_are_steady() {
        for (placed, steady) in [
            (&[][..], false),
            (&[1], false),
            (&[1, 1], true),
            (&[1, 2], false),
            (&[1, 2, 2], true),
            (&[1, 1, 2], false),
        ] {
            assert_eq!(row(placed).is_steady(), steady, "{placed:?}");
        }
    }

    #[test]
    fn a_connection_that_wanders_is_handed_off_ever_later() {
        let mut row = PlacementRow::default();
        let mut handed_off = 0;
        // Each time two in a row, then another back-end.
        for request in 0..3000 {
            let backend = BackendId::new(request / 2 % 2);
            if row.is_steady() && row.backend != Some(backend) {
                row = row.after_return();
                handed_off += 1;
            }
            row = row.and(backend, None);
        }
        assert_eq!(handed_off, 1, "then four in a row are wanted");
    }

    #[test]
    fn one_long_stay_makes_up_for_short_ones() {
        let mut row = row(&[1, 1]);
        for _ in 0..10 {
            row = row.after_return();
        }
        assert_eq!(row.wanted, MOST_IN_ROW);
        for _ in 0..MOST_IN_ROW + WORTHWHILE_STAY {
            row = row.and(BackendId::new(1), None);
        }
        assert_eq!(row.after_return().wanted, FEWEST_IN_ROW);
    }

    #[test]
    fn small_and_large_responses_pay_and_those_between_do_not() {
        let of = |sizes: &[u64]| {
            let backend = BackendId::new(0);
            let row = sizes.iter().fold(PlacementRow::default(), |row, &size| row.and(backend, Some(size)));
            (row.pays_to_leave(), row.pays_to_return())
        };
        assert_eq!(of(&[]), (false, false), "nothing is known");
        for (size_bytes, expected) in [
            (0, (true, false)),
            (1300, (true, false)),
            (1301, (false, true)),
            (8 << 10, (false, true)),
            (24 << 10, (false, false)),
            (32 << 10, (false, false)),
            (64 << 10, (true, false)),
            (u64::MAX, (true, false)),
        ] {
            assert_eq!(of(&[size_bytes; 5]), expected, "{size_bytes}");
        }
        assert_eq!(of(&[1000, 1000, 9000]), (false, false), "one request does not turn it round");
        assert_eq!(of(&[1000, 1000, 4000, 4000, 4000, 4000, 4000, 4000, 4000]), (false, true));
    }
}
