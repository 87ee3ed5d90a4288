//! What functions say.

// The macro makes a struct for C beside the enum, with no words of its own.
#![allow(missing_docs)]

use safer_ffi::prelude::*;

/// What a function has to say.
#[derive_ReprC]
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlimsollStatus {
    /// It is done.
    Ok = 0,
    /// An argument is NULL, is not UTF-8, or has no such value.
    WrongArgument = 1,
    /// There is no such service.
    UnknownService = 2,
    /// No replica serves this partition.
    UnknownPartition = 3,
    /// No replica takes accesses now.
    NoBackend = 4,
    /// Nothing was chosen in time.
    TimedOut = 5,
    /// The library has failed. This is an error in it.
    Internal = 6,
}
