//! Sockets, buffers and deadlines of one worker.

pub(crate) mod buffer;
pub(crate) mod deadline;
pub(crate) mod listen;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod write;
