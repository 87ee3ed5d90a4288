//! HTTP/2 with clients.

use crate::declare::keys;
use crate::keys::Default::Is;
use crate::keys::KeyKind::{Flag, Integer};

keys! {
    /// HTTP/2 with clients. To back-ends it is spoken where `http2 = true` stands below a `[[backend]]`.
    ["http2"] pub struct Http2Config {
        /// Whether clients may speak it: under TLS they choose it by ALPN, without TLS those begin with it that know (h2c).
        "clients" clients: bool = Is("true"), Flag;
        /// Requests of one connection that are under way at once at most.
        "streams" streams: u32 = Is("128"), Integer { min: 1, max: 1000 };
    }
}
