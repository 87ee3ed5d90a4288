//! Bounds on tables and on the work for one request.

/// The most classes of a table: class numbers are 16 bits, and 0 means "no class".
pub const CLASSES_MOST: usize = 65_534;

/// The most patterns of a table.
pub const PATTERNS_MOST: usize = 65_536;

/// The most parameters that one pattern may name.
pub const PARAMETERS_MOST: usize = 8;

/// The most segments of a pattern's path. What follows in the path of a request is not looked at, except the last segment.
pub const SEGMENTS_MOST: usize = 16;

/// The most bytes of a class file.
pub const FILE_BYTES_MOST: usize = 16 << 20;

/// The most segments of a pattern's path that are `*`. They bound how many branches of the tree one request can take.
pub(crate) const WILD_SEGMENTS_MOST: usize = 3;

/// The most sets of parameter names that begin with the same name, at one path: each may have to be tried.
pub(crate) const SHAPES_MOST: usize = 32;

/// How many bytes of a query are read.
pub(crate) const QUERY_BYTES_MOST: usize = 8192;

/// How many parameters of a request are read.
pub(crate) const REQUEST_PARAMETERS_MOST: usize = 64;

/// How many parameters of a request that some pattern names are kept.
pub(crate) const KNOWN_PARAMETERS_MOST: usize = 16;

/// The most bytes of a class's name.
pub(crate) const NAME_BYTES_MOST: usize = 200;

/// The largest number of requests or bytes that a file may give: the largest whole number that every reader of numbers keeps exact.
pub(crate) const COUNT_MOST: u64 = 1 << 53;
