//! Bounds on what is kept while classes are learned.

/// The most requests; of a longer log the first so many count.
pub const REQUESTS_MOST: usize = 20_000_000;
/// The most different segments that may follow one path; others count as `*`.
pub const CHILDREN_MOST: usize = 2000;
/// The most nodes of the tree of paths with names of their own.
pub const NODES_MOST: usize = 100_000;
/// The most names of parameters; others are ignored.
pub const NAMES_MOST: usize = 1024;
/// The most values of a parameter that are told apart.
pub const VALUES_MOST: usize = 256;
/// The longest value or name in bytes that is told from others.
pub const VALUE_BYTES_MOST: usize = 200;
/// The most combinations of method, names and values.
pub const COMBINATIONS_MOST: usize = 1 << 17;
/// The most back-ends that are told apart; others count as one.
pub const BACKENDS_MOST: usize = 1000;
