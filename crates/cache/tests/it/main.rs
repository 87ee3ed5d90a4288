//! The caches as their users see them.

mod golden;
mod model;
mod precision;
mod properties;
mod registry;
