//! A whole cluster in one process on loopback, and clients that put a bounded load on it.
//!
//! For the demo, for studies by real traffic, and for tests of what the front-end does when back-ends fail.

pub mod load;
