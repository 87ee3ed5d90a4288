//! Memory that several may own parts of, and that is used again once the last of them has dropped its part.

use std::cell::RefCell;
use std::thread::LocalKey;

use bytes::Bytes;

/// Memory that a thread keeps for later.
pub(crate) type KeptMemory = LocalKey<RefCell<Vec<Vec<u8>>>>;

/// So many pieces of it are kept; more are given back to the allocator.
pub(crate) const MOST_KEPT: usize = 256;

struct SharedMemory {
    bytes: Vec<u8>,
    /// Where it goes afterwards: to the thread that drops it.
    kept: &'static KeptMemory,
}

impl AsRef<[u8]> for SharedMemory {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        // While the thread ends there is nowhere to put it.
        let _ = self.kept.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < MOST_KEPT {
                kept.push(bytes);
            }
        });
    }
}

/// These bytes, whose memory is kept there once all parts of them are dropped.
pub(crate) fn shared(bytes: Vec<u8>, kept: &'static KeptMemory) -> Bytes {
    Bytes::from_owner(SharedMemory { bytes, kept })
}
