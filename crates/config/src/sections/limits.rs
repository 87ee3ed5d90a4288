//! Time-outs, bounds on what is sent, and whose fields are believed.

use std::time::Duration;

use crate::address::{IpNet, block};
use crate::declare::{KeyValue, keys};
use crate::keys::Default::Is;
use crate::keys::KeyKind::{self, Integer, Size, SizeOrNone, Texts};
use crate::keys::SIZE_MAX;
use crate::reader::{ConfigReader, DeclaredTable, ListForm};
use crate::value::ConfigValue;

keys! {
    /// How long is waited for what.
    ["timeouts"] pub struct Timeouts {
        /// A client's whole request head, from its first byte; also the time for that byte on a new connection.
        "head" head: Duration = Is("10s"), KeyKind::Duration;
        /// Between two reads or writes of a body, on either side.
        "body" body: Duration = Is("30s"), KeyKind::Duration;
        /// A client's connection after an answer, without a further request.
        "idle" idle: Duration = Is("60s"), KeyKind::Duration;
        /// A kept connection to a back-end without a request.
        "backend_idle" backend_idle: Duration = Is("30s"), KeyKind::Duration;
        /// A connection to a back-end.
        "connect" connect: Duration = Is("1s"), KeyKind::Duration;
        /// The first byte of a response, from the end of the request.
        "first_byte" first_byte: Duration = Is("60s"), KeyKind::Duration;
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
        /// Connections of clients at once, over all listeners.
        "connections" connections: usize = Is("10000"), Integer { min: 1, max: 10_000_000 };
        /// Requests on one client connection before it is closed.
        "requests_per_connection" requests_per_connection: u64 =
            Is("1000000"), Integer { min: 1, max: 1_000_000_000_000 };
        /// Further back-ends to which a request that did not reach one is offered.
        "retries" retries: u32 = Is("3"), Integer { min: 0, max: 16 };
    }
}

keys! {
    /// Whose `X-Forwarded-*` fields are believed.
    ["forwarded"] #[derive(Default)] pub struct Forwarded {
        /// Proxies in front of this one: their fields are added to, those of others replaced. At most 1000.
        "trusted" trusted: Vec<IpNet> = Is("[]"), Texts("an IP address or block, e.g. \"10.0.0.0/8\" or \"::1\"");
    }
}

const TRUSTED: ListForm = ListForm {
    most: 1000,
    fewer: "join neighbouring blocks",
    remedy: "write e.g. \"10.0.0.0/8\" or \"::1\"",
};

impl KeyValue for Vec<IpNet> {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(reader.list(section, name, TRUSTED, block))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::List(self.iter().map(ToString::to_string).collect()))
    }
}
