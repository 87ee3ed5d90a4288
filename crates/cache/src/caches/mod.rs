//! The caches, one file each.

pub mod fifo;
pub mod gds;
pub mod gdsf;
pub mod lfu;
pub mod lru;
