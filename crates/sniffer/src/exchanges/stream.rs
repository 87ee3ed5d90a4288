//! One direction of a connection: sequence numbers without their wrap.

use std::borrow::Cow;

/// What has come of a head or frame in two segments as one piece: the beginning that was kept, and what follows. Nothing is copied
/// where nothing was kept.
pub(super) fn joined<'a>(begun: &[u8], data: &'a [u8]) -> Cow<'a, [u8]> {
    if begun.is_empty() { Cow::Borrowed(data) } else { Cow::Owned([begun, data].concat()) }
}

/// The position of the first byte: far from 0, so that there is room for what came before.
const BEGIN: u64 = 1 << 40;

/// A direction of the stream: how far it has come, without the wrap of 32 bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stream {
    /// Position after the last byte that was seen, and its sequence number.
    reached: Option<(u64, u32)>,
}

impl Stream {
    /// The position of a segment; moves on to its end unless that was seen before.
    pub(super) fn place(&mut self, seq: u32, data_bytes: u32) -> u64 {
        let (reached, next) = self.reached.unwrap_or((BEGIN, seq));
        let at = reached.saturating_add_signed(i64::from(seq.wrapping_sub(next).cast_signed()));
        let end = at + u64::from(data_bytes);
        if self.reached.is_none() || end > reached {
            self.reached = Some((end, seq.wrapping_add(data_bytes)));
        }
        at
    }

    /// The position of this sequence number; where nothing was seen before, it begins there.
    pub(super) fn locate(&mut self, seq: u32) -> u64 {
        let (reached, next) = *self.reached.get_or_insert((BEGIN, seq));
        reached.saturating_add_signed(i64::from(seq.wrapping_sub(next).cast_signed()))
    }

    /// How far it has come; `None` before the first segment.
    pub(super) fn reached(self) -> Option<u64> {
        self.reached.map(|(at, _)| at)
    }

    /// The same, with 0 before the first segment.
    pub(super) fn position(self) -> u64 {
        self.reached().unwrap_or(0)
    }
}
