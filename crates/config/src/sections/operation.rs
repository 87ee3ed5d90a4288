//! The tables about the mechanism `handoff`, the admin API and the logs.

use super::{SIZE_MAX, fixed, key, table};
use crate::keys::Default::{Is, Required, Words};
use crate::keys::Kind::{Choice, Duration, Flag, Integer, Size, Text, Texts};
use crate::keys::SectionSpec;

pub(super) const ADMIN: SectionSpec = table(
    "admin",
    "The admin API.",
    &[
        fixed("enabled", Flag, Is("true"), "Whether there is one."),
        fixed(
            "address",
            Text("IP address and port, e.g. \"127.0.0.1:9090\""),
            Is("127.0.0.1:9090"),
            "Where it listens; without a token, on a loopback address only.",
        ),
        key(
            "token",
            Text("16 to 4096 letters, digits and `-._~+/=`"),
            Words("no token"),
            "Bearer token that every request must carry.",
        ),
        key(
            "token_file",
            Text("the path of a file"),
            Words("no file"),
            "File that holds the token, read when the configuration is; instead of `token`.",
        ),
    ],
);

pub(super) const HANDOFF: SectionSpec = table(
    "handoff",
    "How connections are handed off; used, and needed, with `mechanism = \"handoff\"`.",
    &[
        fixed(
            "name",
            Text("1 to 64 letters, digits, `-` and `_`"),
            Is("front-end"),
            "What agents call this front-end; after a restart they know it by this name.",
        ),
        fixed(
            "key_file",
            Text("the path of a file"),
            Required,
            "File with the key that front-end and agents share: 64 hexadecimal digits, which only its owner, and at most its group, may read.",
        ),
        fixed(
            "interfaces",
            Texts("the name of a network interface, e.g. \"eth0\""),
            Required,
            "Where packets of clients arrive and leave again for back-ends; at least one, at most 16.",
        ),
        key(
            "placement",
            Choice(&["request", "connection"]),
            Is("request"),
            "What the policy places: `request`, each request, so that a connection is handed on when its next request belongs elsewhere; `connection`, each connection by its first request.",
        ),
        key(
            "min_size",
            Size { min: 0, max: SIZE_MAX },
            Is("4KiB"),
            "A response expected to be smaller is proxied when the connection ends with it; so is one of unknown size below it.",
        ),
        fixed(
            "flows",
            Integer { min: 1, max: 10_000_000 },
            Is("100000"),
            "Connections that back-ends may have at once; further ones are proxied.",
        ),
        key(
            "take_over_timeout",
            Duration,
            Is("500ms"),
            "How long an agent may take to take a connection over; then the front-end takes it back. At least 50ms.",
        ),
        key(
            "state_size",
            Size { min: 64 << 10, max: 8 << 20 },
            Is("4MiB"),
            "What may be under way on a connection that is handed off or on; with more, it stays where it is.",
        ),
        fixed(
            "fallback",
            Choice(&["none", "proxy"]),
            Is("none"),
            "What to do when this system does not allow handoffs: `none`, not to start; `proxy`, to proxy.",
        ),
    ],
);

pub(super) const PEERS: SectionSpec = table(
    "peers",
    "Front-ends beside one another, one on each back-end's machine, which set the same boundaries of sizes; without this table a front-end is on its own. For the policy `adaptload`, and without a decision log; with `mechanism = \"handoff\"` the local back-end has no `agent`.",
    &[
        fixed(
            "name",
            Text("1 to 64 letters, digits, `-` and `_`"),
            Required,
            "What the others call this one.",
        ),
        fixed(
            "local",
            Text("the name of a back-end"),
            Required,
            "The back-end on this machine; requests for the others are passed on.",
        ),
        fixed(
            "address",
            Text("IP address and port, e.g. \"10.0.0.1:7500\""),
            Required,
            "Where the others connect.",
        ),
        fixed(
            "key_file",
            Text("the path of a file"),
            Required,
            "File with the key that all of them share: 64 hexadecimal digits, which only its owner, and at most its group, may read.",
        ),
        fixed(
            "others",
            Texts("NAME=HOST:PORT, e.g. \"n1=10.0.0.2:7500\""),
            Required,
            "The other front-ends, by name and address; at most 255.",
        ),
        fixed(
            "period",
            Duration,
            Is("1s"),
            "How often they tell one another what they have seen. At least 50ms.",
        ),
        fixed(
            "keep",
            Duration,
            Is("30s"),
            "How long what one has told counts when nothing more is heard of it; at least three periods.",
        ),
    ],
);

pub(super) const ACCESS_LOG: SectionSpec = table(
    "access_log",
    "One line for each request; without this table there is no such log.",
    &[
        key(
            "file",
            Text("the path of a file, or \"-\""),
            Is("-"),
            "Appended to and opened anew on reload; `-` is standard output.",
        ),
        key(
            "format",
            Choice(&["combined", "json"]),
            Is("combined"),
            "`combined`: as of Apache and nginx; `json`: with policy, back-end, reason and the split of the latency.",
        ),
    ],
);

pub(super) const DECISION_LOG: SectionSpec = table(
    "decision_log",
    "The log of every policy input, for replay; without this table there is none.",
    &[
        key(
            "directory",
            Text("the path of a directory"),
            Is("decisions"),
            "Where its files are; made when it is not there.",
        ),
        key("file_size", Size { min: 64 << 10, max: 1 << 40 }, Is("64MiB"), "One file at most."),
        key("files", Integer { min: 1, max: 100_000 }, Is("16"), "Files kept."),
        key(
            "when_full",
            Choice(&["rotate", "stop"]),
            Is("rotate"),
            "`rotate`: the oldest file goes; `stop`: nothing more is written.",
        ),
    ],
);
