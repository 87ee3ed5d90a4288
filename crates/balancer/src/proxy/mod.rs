//! The mechanism `proxy`: request and response pass through the front-end.
//!
//! `client` drives one connection of a client, request by request; `pass` carries one request to a back-end and the
//! response back; `upload` and `relay` are the two directions of it.

pub(crate) mod client;
mod ending;
mod handing;
pub(crate) mod outcome;
mod pass;
mod read_head;
mod relay;
mod respond;
mod upload;

#[cfg(test)]
mod tests {
    use super::client::serve;

    use std::rc::Rc;

    use crate::proxy::client::Start;
    use crate::worker::{Accepted, Worker};

    fn future_bytes<'a, F: Future>(
        _: impl FnOnce(&'a Rc<Worker>, &'a mut crate::net::stream::ClientStream, &'a Rc<Accepted>, Start) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_is_small() {
        let bytes = future_bytes(serve);
        println!("{bytes} bytes");
        assert!(bytes < 3 << 10, "{bytes} bytes for each connection, idle or not");
    }
}
