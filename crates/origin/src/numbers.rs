//! Hashes of names.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

/// Two independent hashes of a name, the same on every machine.
pub(crate) fn numbers_of(name: &[u8]) -> (u64, u64) {
    let id = FixedState::with_seed(0x6f72_6967_696e).hash_one(name);
    (id, FixedState::with_seed(0x0063_6865_636b).hash_one(name))
}
