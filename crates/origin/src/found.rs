//! What is found at the path of a request.

use std::sync::Arc;

use super::object::Object;

/// What is found at the path of a request.
#[derive(Debug)]
pub(crate) enum Found {
    Object(Arc<Object>),
    /// A directory, asked for without the slash at its end. The client is sent to this path, escaped as in a URL.
    Redirect(String),
}

/// Why nothing is served at a path.
#[derive(Debug)]
pub(crate) enum PathRefusal {
    /// The path is not valid; for example, it has a `..` or a broken escape.
    BadPath,
    /// Nothing is there, or something that is not served, such as a pipe or a link that leads out of the root.
    Missing,
    /// The origin has no permission to read there.
    Forbidden,
    /// The system failed to look.
    Failed(std::io::Error),
}
