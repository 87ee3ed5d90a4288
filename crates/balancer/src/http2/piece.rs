//! Memory for the pieces of content that wait to be sent on streams, used again: it is too large for what an allocator keeps at hand.

use std::cell::RefCell;

use bytes::Bytes;

use crate::net::shared_memory::shared;

/// The most content that is given to a stream at once: as much as fits into one record of TLS with the head of its frame.
pub(super) const PIECE_BYTES: usize = (16 << 10) - 9;
/// What is smaller comes from the allocator, and with a head in one piece.
pub(super) const LEAST_BYTES: usize = 1 << 10;

thread_local! {
    /// At most 4 MiB.
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A copy of `bytes`, at most [`PIECE_BYTES`].
pub(super) fn copied(bytes: &[u8]) -> Bytes {
    if bytes.len() < LEAST_BYTES {
        return Bytes::copy_from_slice(bytes);
    }
    let kept = FREE.with_borrow_mut(Vec::pop);
    let mut memory = kept.unwrap_or_else(|| Vec::with_capacity(PIECE_BYTES));
    memory.extend_from_slice(bytes);
    shared(memory, &FREE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::shared_memory::MOST_KEPT;

    #[test]
    fn memory_is_used_again_and_no_byte_of_before_shows() {
        let sizes = [PIECE_BYTES, LEAST_BYTES, LEAST_BYTES - 1, 0];
        for (round, size) in sizes.into_iter().cycle().take(12).enumerate() {
            let content = vec![round as u8; size];
            let (first, second) = (copied(&content), copied(&content));
            assert!(first == content && second == content);
            if size >= LEAST_BYTES {
                assert_eq!(FREE.with_borrow(Vec::len), 0);
            }
        }
        assert_eq!(FREE.with_borrow(Vec::len), 2);
        let many: Vec<_> = (0..=MOST_KEPT).map(|_| copied(&[7; LEAST_BYTES])).collect();
        drop(many);
        assert_eq!(FREE.with_borrow(Vec::len), MOST_KEPT);
    }
}
