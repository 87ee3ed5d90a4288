//! The tables of the configuration file and their keys.

mod operation;

use crate::keys::Default::{Is, Required, Words};
use crate::keys::Kind::{
    Cache, Choice, ChoiceOrInteger, Duration, DurationOrZero, Integer, Number, Policy, Size, SizeOrNone,
    Text, Texts,
};
use crate::keys::{Default, KeySpec, Kind, SectionSpec};
use operation::{ACCESS_LOG, ADMIN, DECISION_LOG, HANDOFF, PEERS};

const fn key(name: &'static str, kind: Kind, default: Default, help: &'static str) -> KeySpec {
    KeySpec { name, kind, default, help, restart: false }
}

/// A key of which a change is applied by a restart only.
const fn fixed(name: &'static str, kind: Kind, default: Default, help: &'static str) -> KeySpec {
    KeySpec { name, kind, default, help, restart: true }
}

const fn table(name: &'static str, help: &'static str, keys: &'static [KeySpec]) -> SectionSpec {
    SectionSpec { name, many: false, policy_key: None, help, keys }
}

const fn list(name: &'static str, help: &'static str, keys: &'static [KeySpec]) -> SectionSpec {
    SectionSpec { name, many: true, policy_key: None, help, keys }
}

const SIZE_MAX: u64 = 1 << 50;

/// Every table, in the order in which the documentation has them; the keys of the top first.
pub(crate) static SECTIONS: &[SectionSpec] = &[
    ROOT,
    LISTENER,
    BACKEND,
    POLICY,
    SHADOW,
    TARGET,
    ADMISSION,
    HEALTH,
    TIMEOUTS,
    LIMITS,
    FORWARDED,
    HANDOFF,
    PEERS,
    ADMIN,
    ACCESS_LOG,
    DECISION_LOG,
];

/// The table of this name.
pub(crate) fn section(name: &str) -> Option<&'static SectionSpec> {
    SECTIONS.iter().find(|s| s.name == name)
}

const ROOT: SectionSpec = table(
    "",
    "These stand before the first table.",
    &[
        fixed(
            "workers",
            Integer { min: 1, max: 1024 },
            Words("the number of CPUs available"),
            "Threads that serve clients.",
        ),
        fixed(
            "mechanism",
            Choice(&["proxy", "handoff"]),
            Is("proxy"),
            "How a chosen back-end gets the request: `proxy`, the front-end passes request and response on; `handoff`, the back-end gets the client's connection and answers the client directly.",
        ),
    ],
);

const LISTENER: SectionSpec = list(
    "listener",
    "Where clients connect; at least one, at most 64.",
    &[key(
        "address",
        Text("IP address and port, e.g. \"0.0.0.0:8080\" or \"[::]:8080\""),
        Required,
        "Where to listen; port 0 lets the system choose.",
    )],
);

const BACKEND: SectionSpec = list(
    "backend",
    "Who answers; at least one, at most 65534.",
    &[
        key(
            "name",
            Text("1 to 64 letters, digits, `-`, `_` and `.`"),
            Words("the address"),
            "What logs, metrics and the admin API call it; unique. A reload recognises a back-end by it.",
        ),
        key(
            "address",
            Text("host and port, e.g. \"10.0.0.1:80\", \"app.internal:80\" or \"[fd00::1]:80\""),
            Required,
            "Where it answers; unique.",
        ),
        key(
            "weight",
            Number { min: 0.0, max: 65_536.0 },
            Is("1"),
            "Share of load relative to the others, in steps of 1/256; 0 takes nothing new.",
        ),
        key(
            "max_connections",
            Integer { min: 1, max: 1_000_000 },
            Is("1024"),
            "Connections that the front-end opens to it at most, over all workers.",
        ),
        key(
            "agent",
            Text("host and port, e.g. \"10.0.0.1:7400\""),
            Words("no agent"),
            "Where its agent takes handoffs; without one, its requests are proxied.",
        ),
    ],
);

const SEED: KeySpec =
    key("seed", Integer { min: 0, max: i64::MAX as u64 }, Is("1"), "Seed of its randomness.");
const CACHE_SIZE: KeySpec = key(
    "cache",
    Size { min: 1, max: SIZE_MAX },
    Is("32MiB"),
    "Memory cache of one back-end, for policies that model it.",
);
const CACHE_POLICY: KeySpec = key("cache_policy", Cache, Is("gds"), "Replacement policy of that cache.");

const POLICY: SectionSpec = SectionSpec {
    name: "policy",
    many: false,
    policy_key: Some("name"),
    help: "How a back-end is chosen. Every other key is a parameter of the policy, under its name there.",
    keys: &[key("name", Policy, Is("weighted_round_robin"), "The policy."), SEED, CACHE_SIZE, CACHE_POLICY],
};

const SHADOW: SectionSpec = SectionSpec {
    name: "shadow",
    many: false,
    policy_key: Some("policy"),
    help: "A policy that is scored beside the live one and moves no traffic; without this table there is none. The cache \
           is also the one by which miss ratios of both are predicted. Every other key is a parameter of the policy.",
    keys: &[key("policy", Policy, Required, "The policy."), SEED, CACHE_SIZE, CACHE_POLICY],
};

const TARGET: SectionSpec = table(
    "target",
    "What a policy takes for the target of a request.",
    &[
        key(
            "key",
            Text("\"path\", \"path_query\", \"host_path\", \"header:NAME\" or \"cookie:NAME\""),
            Is("path_query"),
            "`path`: the path without the query; `path_query`: both; `host_path`: host, path and query; `header:NAME`, `cookie:NAME`: the value of that field or cookie, and path and query when it is absent.",
        ),
        key(
            "sizes",
            Integer { min: 1, max: 100_000_000 },
            Is("1000000"),
            "Targets whose response size is remembered.",
        ),
        key(
            "dynamic",
            Texts(
                "the beginning of a path, e.g. \"/cgi-bin/\", its end behind `*`, e.g. \"*.php\", or \"?\"",
            ),
            Is("[]"),
            "Requests that are computed, as those of methods other than GET and HEAD are, whatever the size of earlier answers: by the path, or with `?` by having a query. At most 100.",
        ),
    ],
);

const ADMISSION: SectionSpec = table(
    "admission",
    "How many requests are let into the cluster at once.",
    &[
        key(
            "limit",
            ChoiceOrInteger { words: &["lard", "none"], min: 1, max: 1_000_000_000_000 },
            Is("lard"),
            "`lard`: (n - 1) * t_high + t_low - 1 for n back-ends of weight 1, with the thresholds of the policy, or 25 and 65 when it has none.",
        ),
        key(
            "queue",
            Integer { min: 0, max: 1_000_000 },
            Is("1024"),
            "Requests that may wait for room; further ones are refused.",
        ),
        key(
            "queue_timeout",
            DurationOrZero,
            Is("250ms"),
            "How long a request waits at most; with 0 none waits.",
        ),
        key(
            "retry_after",
            Duration,
            Is("1s"),
            "What a refused client is told to wait, rounded up to whole seconds.",
        ),
    ],
);

const HEALTH: SectionSpec = table(
    "health",
    "How back-ends are watched.",
    &[
        key(
            "probe",
            Choice(&["http", "tcp", "none"]),
            Is("http"),
            "What is asked: `http`, a GET; `tcp`, a connection; `none`: back-ends are taken to be up.",
        ),
        key("path", Text("a path that starts with `/`"), Is("/"), "What the GET asks for; with `http` only."),
        key(
            "host",
            Text("a host name, with or without port"),
            Words("the back-end's address"),
            "The field `Host` of the GET; with `http` only.",
        ),
        key(
            "status",
            Text("a status or range of them from 100 to 599, e.g. \"200\" or \"200-399\""),
            Is("200-399"),
            "Good answers, both ends included; with `http` only.",
        ),
        key("interval", Duration, Is("1s"), "Time between checks of a healthy back-end."),
        key(
            "fast_interval",
            Duration,
            Words("\"250ms\", or `interval` when that is shorter"),
            "Time between checks after one that disagreed with the present state; at most `interval`.",
        ),
        key("timeout", Duration, Is("500ms"), "How long an answer may take."),
        key(
            "jitter",
            Number { min: 0.0, max: 1.0 },
            Is("0.2"),
            "Each interval is changed at random by at most this share of it.",
        ),
        key(
            "rise",
            Integer { min: 1, max: 1000 },
            Is("2"),
            "Good answers in a row that bring a back-end up.",
        ),
        key(
            "fall",
            Integer { min: 1, max: 1000 },
            Is("2"),
            "Bad ones in a row, failed connections of requests included, that take it down.",
        ),
    ],
);

const TIMEOUTS: SectionSpec = table(
    "timeouts",
    "How long is waited for what.",
    &[
        key("head", Duration, Is("10s"), "A client's whole request head, from its first byte."),
        key("body", Duration, Is("30s"), "Between two reads or writes of a body, on either side."),
        key("idle", Duration, Is("60s"), "A client's connection without a request."),
        key("backend_idle", Duration, Is("30s"), "A kept connection to a back-end without a request."),
        key("connect", Duration, Is("1s"), "A connection to a back-end."),
        key("first_byte", Duration, Is("30s"), "The first byte of a response, from the end of the request."),
        key("drain", Duration, Is("30s"), "Requests under way when draining or stopping."),
    ],
);

const LIMITS: SectionSpec = table(
    "limits",
    "Bounds on what clients and back-ends may send.",
    &[
        key(
            "head",
            Size { min: 1 << 10, max: 1 << 20 },
            Is("16KiB"),
            "A head: request or status line, fields, trailers.",
        ),
        key("fields", Integer { min: 1, max: 256 }, Is("100"), "Fields of a head."),
        key("body", SizeOrNone { min: 0, max: SIZE_MAX }, Is("none"), "A request's body."),
        key(
            "connections",
            Integer { min: 1, max: 10_000_000 },
            Is("10000"),
            "Connections of clients at once, over all listeners.",
        ),
        key(
            "requests_per_connection",
            Integer { min: 1, max: 1_000_000_000_000 },
            Is("1000000"),
            "Requests on one client connection before it is closed.",
        ),
        key(
            "retries",
            Integer { min: 0, max: 16 },
            Is("3"),
            "Further back-ends to which a request that did not reach one is offered.",
        ),
    ],
);

const FORWARDED: SectionSpec = table(
    "forwarded",
    "Whose `X-Forwarded-*` fields are believed.",
    &[key(
        "trusted",
        Texts("an IP address or block, e.g. \"10.0.0.0/8\" or \"::1\""),
        Is("[]"),
        "Proxies in front of this one: their fields are added to, those of others replaced. At most 1000.",
    )],
);
