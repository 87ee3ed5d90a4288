//! How a chosen back-end gets a request.
//!
//! `carry` has the trait, `registry` the mechanisms that there are. A mechanism does not know what reads requests; what
//! reads them knows no mechanism but the trait.

pub(crate) mod carry;
pub(crate) mod handoff;
pub(crate) mod proxy;
pub(crate) mod registry;
