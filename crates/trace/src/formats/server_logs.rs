//! Access logs of servers, balancers and stores whose fields have places: one declaration each.

use super::before_stamp::vhost_at;
use super::json_logs::ENDS;
use super::placed::{Layout, PlacedSplitter, SKIP, SKIP_QUOTED, before_port, part, quoted, whole};
use crate::field_role::{FieldRole, SpanUnit};
use crate::format::Format;
use crate::format_spec::{Decode, FormatSpec};
use crate::line_log::LineLog;
use crate::tally::ReadReport;

/// The same for all of them.
const BASE: FormatSpec = FormatSpec {
    format: Format::named(""),
    aliases: &[],
    summary: "",
    recognised_by: "lines that parse",
    sample: "",
    remark: "",
    binary: false,
    family: "",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&SQUID_LAYOUT)), named: false }),
    stamps: |_| "arrival, as the log has it",
    writer: None,
};

/// What the times of a log of Apache's form are taken for.
pub(crate) fn apache_stamps(_: &ReadReport) -> &'static str {
    "arrival, as Apache logs it. Such a log does not say who wrote it: nginx logs the end of the answer, and a request came \
     earlier than its time by what the answer took"
}

/// Apache's `vhost_combined`.
pub static VHOST: FormatSpec = FormatSpec {
    format: Format::named("vhost-combined"),
    aliases: &["vhost", "vhostcommon", "othervhosts"],
    summary: "Apache `vhost_combined`: site and port before a combined log line",
    recognised_by: "lines that parse, with a site before the client",
    sample: r#"www.example.org:80 192.0.2.7 - - [23/Nov/2026:21:22:09 +0000] "GET /img/a.png HTTP/1.1" 200 48217 "-" "curl/7.88.1""#,
    remark: "The site is the first part of the target. Debian's Apache counts heads in the size (`%O`).",
    family: "vhost-combined",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&VHOST_LAYOUT)), named: false }),
    stamps: apache_stamps,
    ..BASE
};

static VHOST_LAYOUT: Layout = Layout {
    begin: |line| vhost_at(line).map(|at| &line[at..]),
    places: &[
        before_port(FieldRole::Host),
        whole(FieldRole::Client),
        SKIP,
        SKIP,
        whole(FieldRole::Time),
        quoted(FieldRole::Request),
        whole(FieldRole::Status),
        whole(FieldRole::Size),
    ],
    optional: &[],
};

/// HAProxy with `option httplog`.
pub static HAPROXY: FormatSpec = FormatSpec {
    format: Format::named("haproxy"),
    aliases: &["haproxyhttp", "httplog"],
    summary: "HAProxy's HTTP log (`option httplog`), as in the system's log or alone",
    sample: r#"Nov 23 21:22:10 lb haproxy[829]: 192.0.2.7:56736 [23/Nov/2026:21:22:10.606] http-in static/srv1 0/0/0/2/3 200 1921 - - ---- 1/1/0/0/0 0/0 {www.example.org} "GET /index.html HTTP/1.1""#,
    remark: "The size counts heads. Times have no zone and are taken for UTC. Service time is `Tr`. `option logasap` leaves no sizes.",
    family: "haproxy",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&HAPROXY_LAYOUT)), named: false }),
    ..BASE
};

static HAPROXY_LAYOUT: Layout = Layout {
    begin: haproxy_client,
    places: &[
        before_port(FieldRole::Client),
        whole(FieldRole::Time),
        SKIP,
        whole(FieldRole::Backend),
        part(FieldRole::Service(SpanUnit::Ms), 3),
        whole(FieldRole::Status),
        whole(FieldRole::Size),
        quoted(FieldRole::Request),
    ],
    optional: &[],
};

/// What follows the head of the system's log: from the word before the time of arrival, `[23/Nov/2026:21:22:10.606]`.
fn haproxy_client(line: &[u8]) -> Option<&[u8]> {
    let bracket = memchr::memchr_iter(b'[', line).find(|&at| {
        line.get(at + 1..at + 26)
            .is_some_and(|s| s[2] == b'/' && s[6] == b'/' && s[20] == b'.' && s[24] == b']')
    })?;
    let before = line[..bracket].strip_suffix(b" ")?;
    Some(&line[memchr::memrchr(b' ', before).map_or(0, |at| at + 1)..])
}

/// An AWS application load balancer.
pub static ALB: FormatSpec = FormatSpec {
    format: Format::named("aws-alb"),
    aliases: &["alb"],
    summary: "Access log of an AWS application load balancer",
    sample: r#"https 2026-11-23T21:22:10.186641Z app/lb/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.000 0.048 0.000 200 200 34 1366 "GET https://www.example.org:443/index.html HTTP/2.0" "curl/7.88.1" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/t/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "www.example.org" "-" 0 2026-11-23T21:22:10.138000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#,
    remark: "The size counts heads. Service time is `target_processing_time`, the arrival `request_creation_time`.",
    family: "aws-alb",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&ALB_LAYOUT)), named: false }),
    ..BASE
};

static ALB_LAYOUT: Layout = Layout {
    begin: |line| {
        let kind = line.split(|&b| b == b' ').next()?;
        [&b"http"[..], b"https", b"h2", b"grpcs", b"ws", b"wss"].contains(&kind).then_some(line)
    },
    places: &[
        SKIP,
        whole(FieldRole::End),
        SKIP,
        before_port(FieldRole::Client),
        whole(FieldRole::Backend),
        SKIP,
        whole(FieldRole::Service(SpanUnit::S)),
        SKIP,
        whole(FieldRole::Status),
        SKIP,
        SKIP,
        whole(FieldRole::Size),
        quoted(FieldRole::Request),
    ],
    // User agent; cipher, protocol, group; trace, domain, certificate; rule.
    optional: &[
        SKIP_QUOTED,
        SKIP,
        SKIP,
        SKIP,
        SKIP_QUOTED,
        SKIP_QUOTED,
        SKIP_QUOTED,
        SKIP,
        whole(FieldRole::Time),
    ],
};

/// Server access log of Amazon S3.
pub static S3: FormatSpec = FormatSpec {
    format: Format::named("aws-s3"),
    aliases: &["s3"],
    summary: "Server access log of Amazon S3",
    sample: r#"79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be media [23/Nov/2026:21:22:10 +0000] 192.0.2.7 - 3E57427F3EXAMPLE REST.GET.OBJECT img/a.png "GET /img/a.png HTTP/1.1" 200 - 48000 48000 41 28 "-" "curl/7.88.1" -"#,
    remark: "The bucket is the first part of the target. Service time is the turn-around time.",
    family: "aws-s3",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&S3_LAYOUT)), named: false }),
    ..BASE
};

static S3_LAYOUT: Layout = Layout {
    begin: |line| Some(line),
    places: &[
        SKIP,
        whole(FieldRole::Host),
        whole(FieldRole::Time),
        whole(FieldRole::Client),
        SKIP,
        SKIP,
        SKIP,
        SKIP,
        quoted(FieldRole::Request),
        whole(FieldRole::Status),
        SKIP,
        whole(FieldRole::Size),
        SKIP,
        SKIP,
        whole(FieldRole::Service(SpanUnit::Ms)),
    ],
    optional: &[],
};

/// Squid's native log.
pub static SQUID: FormatSpec = FormatSpec {
    format: Format::named("squid"),
    aliases: &["squidnative"],
    summary: "Squid's native access log (`logformat squid`)",
    sample: "1795469027.494     12 192.0.2.7 TCP_MISS/200 48371 GET http://www.example.org/img/a.png - HIER_DIRECT/198.51.100.1 image/png",
    remark: "The site is the first part of the target, as one proxy asks many. The size counts heads.",
    family: "squid",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&SQUID_LAYOUT)), named: false }),
    stamps: |_| ENDS,
    ..BASE
};

static SQUID_LAYOUT: Layout = Layout {
    begin: |line| Some(line),
    places: &[
        whole(FieldRole::End),
        whole(FieldRole::Total(SpanUnit::Ms)),
        whole(FieldRole::Client),
        part(FieldRole::Status, 1),
        whole(FieldRole::Size),
        whole(FieldRole::Method),
        whole(FieldRole::Url),
    ],
    optional: &[],
};

/// Envoy's default text.
pub static ENVOY: FormatSpec = FormatSpec {
    format: Format::named("envoy"),
    aliases: &["envoytext"],
    summary: "Envoy's default access log",
    sample: r#"[2026-11-23T21:22:15.342Z] "GET /index.html HTTP/1.1" 200 - 0 1719 3 2 "192.0.2.7" "curl/7.88.1" "ac0f0b0b-25b7-43bf-9f34-466c38f8fb57" "www.example.org" "10.0.0.1:80""#,
    remark: "The client is that of `X-Forwarded-For`. Service time is that of the upstream.",
    family: "envoy",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&ENVOY_LAYOUT)), named: false }),
    ..BASE
};

/// From the time on, as `[2026-11-23T21:22:15.342Z]`; the log of a container has words before it.
fn iso_stamp(line: &[u8]) -> Option<&[u8]> {
    let dated =
        |at: usize| [(5, b'-'), (8, b'-'), (11, b'T')].iter().all(|(to, b)| line.get(at + to) == Some(b));
    memchr::memchr_iter(b'[', line).find(|&at| dated(at)).map(|at| &line[at..])
}

static ENVOY_LAYOUT: Layout = Layout {
    begin: iso_stamp,
    places: &[
        whole(FieldRole::Time),
        quoted(FieldRole::Request),
        whole(FieldRole::Status),
        SKIP,
        SKIP,
        whole(FieldRole::Size),
        whole(FieldRole::Total(SpanUnit::Ms)),
        whole(FieldRole::Service(SpanUnit::Ms)),
        quoted(FieldRole::Client),
    ],
    // User agent, number of the request.
    optional: &[SKIP_QUOTED, SKIP_QUOTED, quoted(FieldRole::Site)],
};

/// Istio's default text.
pub static ISTIO: FormatSpec = FormatSpec {
    format: Format::named("istio"),
    aliases: &["istiotext"],
    summary: "Istio's default access log, Envoy's with details of the response",
    sample: r#"[2026-11-23T21:22:15.342Z] "GET /index.html HTTP/1.1" 200 - via_upstream - "-" 0 1719 3 2 "192.0.2.7" "curl/7.88.1" "ac0f0b0b-25b7-43bf-9f34-466c38f8fb57" "www.example.org" "10.0.0.1:80" outbound|80||web.default.svc.cluster.local 10.0.0.2:43982 10.0.0.1:80 10.0.0.2:43980 - default"#,
    remark: "As `envoy`.",
    family: "istio",
    decode: Decode::Lines(LineLog { splitter: |_| Box::new(PlacedSplitter(&ISTIO_LAYOUT)), named: false }),
    ..BASE
};

static ISTIO_LAYOUT: Layout = Layout {
    begin: iso_stamp,
    places: &[
        whole(FieldRole::Time),
        quoted(FieldRole::Request),
        whole(FieldRole::Status),
        SKIP,
        SKIP,
        SKIP,
        SKIP_QUOTED,
        SKIP,
        whole(FieldRole::Size),
        whole(FieldRole::Total(SpanUnit::Ms)),
        whole(FieldRole::Service(SpanUnit::Ms)),
        quoted(FieldRole::Client),
    ],
    // User agent, number of the request.
    optional: &[SKIP_QUOTED, SKIP_QUOTED, quoted(FieldRole::Site)],
};
