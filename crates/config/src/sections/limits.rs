//! Time-outs, bounds on what is sent, and whose fields are believed.

use std::time::Duration;

use crate::declare::{KeyValue, keys};
use crate::keys::Default::Is;
use crate::keys::KeyKind::{self, Integer, Size, SizeOrNone, Texts};
use crate::keys::SIZE_MAX;
use crate::reader::{ConfigReader, DeclaredTable, ListForm, quoted};
use crate::value::{ConfigValue, is_token_char};

keys! {
    /// How long is waited for what.
    ["timeouts"] pub struct Timeouts {
        /// A client's whole request head, from its first byte; also the time for that byte on a new connection.
        "head" head: Duration = Is("10s"), KeyKind::Duration;
        /// Between two reads or writes of a body, on either side. A client must besides send or take 1 KiB/s in the mean once that time has passed.
        "body" body: Duration = Is("60s"), KeyKind::Duration;
        /// A client's connection after an answer, without a further request.
        "idle" idle: Duration = Is("60s"), KeyKind::Duration;
        /// A kept connection to a back-end without a request.
        "backend_idle" backend_idle: Duration = Is("30s"), KeyKind::Duration;
        /// A connection to a back-end.
        "connect" connect: Duration = Is("1s"), KeyKind::Duration;
        /// The first byte of a response, from the end of the request.
        "first_byte" first_byte: Duration = Is("60s"), KeyKind::Duration;
        /// A connection that has changed its protocol (WebSocket), without a byte in either direction.
        "tunnel" tunnel: Duration = Is("1h"), KeyKind::Duration;
        /// Requests under way when draining or stopping.
        "drain" drain: Duration = Is("30s"), KeyKind::Duration;
    }
}

keys! {
    /// Bounds on what clients and back-ends may send.
    ["limits"] pub struct Limits {
        /// A head: request or status line, fields, trailers.
        "head" head_bytes: usize = Is("16KiB"), Size { min: 1 << 10, max: 1 << 20 };
        /// Fields of a head.
        "fields" fields: usize = Is("100"), Integer { min: 1, max: 256 };
        /// A request's body.
        "body" body_bytes: Option<u64> = Is("none"), SizeOrNone { min: 0, max: SIZE_MAX };
        /// Content that is held for clients that send or read slowly, over all requests, so that no back-end waits for them; for one request
        /// a 32nd of it at most.
        "held" held_bytes: usize = Is("32MiB"), Size { min: 0, max: 1 << 40 };
        /// Connections of clients at once, over all listeners.
        "connections" connections: usize = Is("10000"), Integer { min: 1, max: 10_000_000 };
        /// Requests on one client connection before it is closed.
        "requests_per_connection" requests_per_connection: u64 =
            Is("1000000"), Integer { min: 1, max: 1_000_000_000_000 };
        /// Protocols to which a client may change on its connection (`Upgrade`), at most 16; never to HTTP/2, by which requests would pass
        /// unseen.
        "upgrades" upgrades: Vec<UpgradeProtocol> = Is("[\"websocket\"]"), Texts("the name of a protocol, e.g. \"websocket\"");
        /// Further back-ends to which a request that did not reach one is offered.
        "retries" retries: u32 = Is("3"), Integer { min: 0, max: 16 };
    }
}

/// A protocol to which a client may change on its connection, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeProtocol(pub String);

const UPGRADES: ListForm =
    ListForm { most: 16, fewer: "name those that back-ends speak", remedy: "write e.g. \"websocket\"" };

impl KeyValue for Vec<UpgradeProtocol> {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        if section.found(name).is_none() {
            return Some(vec![UpgradeProtocol("websocket".to_owned())]);
        }
        Some(reader.list(section, name, UPGRADES, |text| {
            // A name, and perhaps a version (RFC 9110, section 7.8).
            let good = |c| c == '/' || is_token_char(c);
            match text.to_ascii_lowercase() {
                name if name == "h2c" || name == "h2" => Err((
                    format!("{} would let requests pass unseen", quoted(text)),
                    "clients speak HTTP/2 to the front-end: see `[http2]`".to_owned(),
                )),
                name if !name.is_empty() && name.len() <= 64 && name.chars().all(good) => {
                    Ok(UpgradeProtocol(name))
                }
                _ => Err((format!("{} is no name of a protocol", quoted(text)), UPGRADES.remedy.to_owned())),
            }
        }))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::List(self.iter().map(|protocol| protocol.0.clone()).collect()))
    }
}
