//! Connections of clients, over any stream and for any mechanism.
//!
//! `accept` takes them from the system and counts them; `client` drives one of them, request by request; `read_head` reads
//! heads, `hold_body` those bodies that are held until they are whole (`read_body`, `read_chunked`), `respond` writes our own answers, `ending` closes in good order; `then` has the ways in which a connection goes on.

mod accept;
mod client;
mod ending;
mod hold_body;
mod read_body;
mod read_chunked;
mod read_head;
mod redirect;
mod respond;
mod service;
mod then;

pub(crate) use service::ConnectionService;

#[cfg(test)]
mod tests;
