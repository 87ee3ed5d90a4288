//! The service of a worker's connections.

use std::rc::Rc;

use crate::worker::Worker;

/// A worker and the mechanism by which its requests are carried.
pub(crate) struct ConnectionService<M> {
    pub(crate) worker: Rc<Worker>,
    pub(crate) mechanism: Rc<M>,
}
