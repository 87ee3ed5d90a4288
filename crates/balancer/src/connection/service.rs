//! The service of a worker's connections.

use std::rc::Rc;

use crate::accepted::Accepted;
use crate::http2::{ClientStreamText, OpenStream, StreamTasks};
use crate::worker::Worker;

/// A worker and the mechanism by which its requests are carried.
pub(crate) struct ConnectionService<M> {
    pub(crate) worker: Rc<Worker>,
    pub(crate) mechanism: Rc<M>,
    pub(super) streams: Rc<StreamTasks<GivenStream>>,
}

/// A stream of HTTP/2 that a task is to serve.
pub(super) struct GivenStream {
    pub(super) stream: ClientStreamText,
    /// Of the connection that it belongs to.
    pub(super) accepted: Rc<Accepted>,
    /// Dropped when it has ended.
    pub(super) open: OpenStream,
}
