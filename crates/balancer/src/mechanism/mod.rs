//! How a chosen back-end gets a request.
//!
//! `carry` has the trait, `registry` the list of mechanisms. A mechanism does not depend on what reads
//! requests, and that depends only on the trait.

pub(crate) mod carry;
pub(crate) mod direct;
pub(crate) mod handoff;
pub(crate) mod proxy;
pub(crate) mod registry;
