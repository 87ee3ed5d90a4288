//! What every measurement is given.

use std::path::Path;

use plimsoll_studies::lard::Effort;

use crate::Tell;

/// What every measurement is given.
#[derive(Clone, Copy)]
pub(super) struct Bench<'a> {
    pub(super) effort: Effort,
    /// The `plimsoll` program, which runs the clusters on a lab.
    pub(super) program: &'a Path,
    pub(super) tell: Tell<'a>,
}
