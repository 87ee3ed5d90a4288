//! The mechanism `proxy`: request and response pass through the front-end.
//!
//! `client` drives one connection of a client, request by request; `pass` carries one request to a back-end and the
//! response back; `upload` and `relay` are the two directions of it.

pub(crate) mod client;
mod pass;
mod read_head;
mod relay;
mod respond;
mod upload;
