//! What a path leads to.

use std::sync::Arc;

use super::object::Object;

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found {
    Object(Arc<Object>),
    /// A directory asked for without its slash: the path, as in a URL, to ask for instead.
    Redirect(String),
}

/// Why a path leads to nothing.
#[derive(Debug)]
pub(crate) enum PathRefusal {
    /// It is no valid path.
    BadPath,
    /// There is nothing there, or nothing that is served.
    Missing,
    /// The system does not let us.
    Forbidden,
    /// The system failed.
    Failed(std::io::Error),
}
