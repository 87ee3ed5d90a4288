//! Connections of clients, over any stream and for any mechanism.
//!
//! `accept` takes them from the system and counts them; `client` drives one of them, request by request; `read_head` reads
//! heads, `respond` writes our own answers, `ending` closes in good order.

mod accept;
mod client;
mod ending;
mod read_head;
mod respond;
mod service;

pub(crate) use service::Service;

#[cfg(test)]
mod tests {
    use super::Service;
    use super::client::serve;

    use crate::accepted::{Accepted, Start};
    use crate::mechanism::registry::Mechanisms;
    use crate::net::stream::ClientStream;

    fn future_bytes<'a, F: Future>(
        _: impl FnOnce(&'a Service<Mechanisms>, &'a mut ClientStream, &'a Accepted, Start) -> F,
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
