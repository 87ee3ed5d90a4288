//! How a connection goes on.

/// What happens to the client's connection after a request.
pub(super) enum Then<P> {
    Keep,
    /// Closed gracefully, discarding the rest of what the client sends.
    Close,
    /// Already over.
    Over,
    /// Cut, so that nobody takes a partial response for a complete one.
    Cut,
    /// It leaves, with the request.
    Leave(P),
    /// It goes on as one of HTTP/2, which begins with these bytes.
    Http2(Vec<u8>),
}

/// How a connection goes on elsewhere.
pub(crate) enum GoesOn<P> {
    /// It leaves, with this.
    Leaves(P),
    /// As one of HTTP/2, which begins with these bytes.
    Http2(Vec<u8>),
}
