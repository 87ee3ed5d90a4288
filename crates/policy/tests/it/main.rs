//! Integration tests of the policies.

mod registry;
