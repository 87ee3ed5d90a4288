//! Access logs with a JSON object in each line: one declaration each.

use super::json::{JsonSplitter, KeyRoles};
use crate::field_role::{FieldRole, SpanUnit};
use crate::format::Format;
use crate::format_spec::{Decode, FormatSpec};
use crate::line_log::LineLog;

/// The same for all of them.
const BASE: FormatSpec = FormatSpec {
    format: Format::named(""),
    aliases: &[],
    summary: "",
    recognised_by: "lines that are objects with its keys",
    sample: "",
    remark: "",
    binary: false,
    family: "",
    decode: Decode::Lines(LineLog {
        splitter: |options| Box::new(JsonSplitter::new(&[], options)),
        named: true,
    }),
    stamps: |_| ENDS,
    writer: None,
};

/// What the times are taken for where a log has those of ends.
pub(crate) const ENDS: &str = "arrival: the log has the end of each answer, from which the time that it took is subtracted where it is logged";
const ARRIVES: &str = "arrival, as the log has it";

/// Our own access log.
pub static PLIMSOLL: FormatSpec = FormatSpec {
    format: Format::named("plimsoll-json"),
    aliases: &["plimsoll"],
    summary: "Plimsoll's own access log, `format = \"json\"`",
    sample: r#"{"time":"2026-11-20T22:29:49.318042Z","client":"127.0.0.1","method":"GET","target":"/page/3","version":"HTTP/1.1","status":200,"bytes":700,"policy":"lard_r","backend":"b0","reason":"locality","mechanism":"proxy","attempts":1,"waited":false,"assign_s":0.000028,"first_byte_s":0.005962,"transfer_s":0.000045,"total_s":0.006036,"referer":null,"user_agent":"curl/7.88.1"}"#,
    remark: "Service time is `first_byte_s`.",
    family: "plimsoll-json",
    decode: Decode::Lines(LineLog {
        splitter: |options| Box::new(JsonSplitter::new(PLIMSOLL_KEYS, options)),
        named: true,
    }),
    ..BASE
};

const PLIMSOLL_KEYS: KeyRoles = &[
    (FieldRole::End, &["time"]),
    (FieldRole::Client, &["client"]),
    (FieldRole::Method, &["method"]),
    (FieldRole::Target, &["target"]),
    (FieldRole::Status, &["status"]),
    (FieldRole::Size, &["original_bytes", "bytes"]),
    (FieldRole::Service(SpanUnit::S), &["first_byte_s"]),
    (FieldRole::Total(SpanUnit::S), &["total_s"]),
    (FieldRole::Backend, &["backend"]),
];

/// Caddy.
pub static CADDY: FormatSpec = FormatSpec {
    format: Format::named("caddy"),
    aliases: &["caddyjson"],
    summary: "Caddy's access log",
    sample: r#"{"level":"info","ts":1795468886.3688931,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"56052","proto":"HTTP/1.1","method":"GET","host":"www.example.org","uri":"/img/a.png","headers":{"User-Agent":["curl/7.88.1"]}},"user_id":"","duration":0.00569921,"size":48000,"status":200,"resp_headers":{"Content-Type":["image/png"]}}"#,
    remark: "Lines of other events do not count. Times may be in any `time_format`; with `duration_format ms` or `nano`, give \
             `--fields total_ms=duration` or `total_ns=duration`.",
    family: "caddy",
    decode: Decode::Lines(LineLog {
        splitter: |options| Box::new(JsonSplitter::new(CADDY_KEYS, options)),
        named: true,
    }),
    ..BASE
};

const CADDY_KEYS: KeyRoles = &[
    (FieldRole::End, &["ts"]),
    (FieldRole::Client, &["request.client_ip", "request.remote_ip", "request.remote_addr"]),
    (FieldRole::Method, &["request.method"]),
    (FieldRole::Site, &["request.host"]),
    (FieldRole::Target, &["request.uri"]),
    (FieldRole::Status, &["status"]),
    (FieldRole::Size, &["size"]),
    (FieldRole::Total(SpanUnit::DecimalS), &["duration"]),
];

/// Traefik.
pub static TRAEFIK: FormatSpec = FormatSpec {
    format: Format::named("traefik"),
    aliases: &["traefikjson"],
    summary: "Traefik's access log with `format: json`; its common format is read as `combined-log`",
    sample: r#"{"ClientAddr":"192.0.2.7:51234","ClientHost":"192.0.2.7","DownstreamContentSize":1719,"DownstreamStatus":200,"Duration":3483000,"OriginDuration":3300000,"OriginStatus":200,"RequestHost":"www.example.org","RequestMethod":"GET","RequestPath":"/index.html","RequestProtocol":"HTTP/1.1","RouterName":"web@docker","StartUTC":"2026-11-23T21:22:15.342Z","level":"info","msg":"","time":"2026-11-23T21:22:15Z"}"#,
    remark: "Service time is `OriginDuration`.",
    family: "traefik",
    decode: Decode::Lines(LineLog {
        splitter: |options| Box::new(JsonSplitter::new(TRAEFIK_KEYS, options)),
        named: true,
    }),
    stamps: |_| ARRIVES,
    ..BASE
};

const TRAEFIK_KEYS: KeyRoles = &[
    (FieldRole::Time, &["StartUTC", "StartLocal"]),
    (FieldRole::End, &["time"]),
    (FieldRole::Client, &["ClientHost", "ClientAddr"]),
    (FieldRole::Method, &["RequestMethod"]),
    (FieldRole::Site, &["RequestHost"]),
    (FieldRole::Target, &["RequestPath"]),
    (FieldRole::Status, &["DownstreamStatus", "OriginStatus"]),
    (FieldRole::Size, &["DownstreamContentSize", "OriginContentSize"]),
    (FieldRole::Service(SpanUnit::Ns), &["OriginDuration"]),
    (FieldRole::Total(SpanUnit::Ns), &["Duration"]),
    (FieldRole::Backend, &["ServiceAddr", "ServiceURL"]),
];

/// Cloudflare.
pub static CLOUDFLARE: FormatSpec = FormatSpec {
    format: Format::named("cloudflare"),
    aliases: &["logpush"],
    summary: "Cloudflare's HTTP requests (Logpush)",
    sample: r#"{"ClientIP":"192.0.2.7","ClientRequestHost":"www.example.org","ClientRequestMethod":"GET","ClientRequestURI":"/index.html","EdgeEndTimestamp":"2026-11-23T21:22:15Z","EdgeResponseBytes":2100,"EdgeResponseStatus":200,"EdgeStartTimestamp":"2026-11-23T21:22:15Z","OriginResponseDurationMs":48,"RayID":"3a6050bcbe121a87"}"#,
    remark: "The size counts heads unless `EdgeResponseBodyBytes` is logged.",
    family: "cloudflare",
    decode: Decode::Lines(LineLog {
        splitter: |options| Box::new(JsonSplitter::new(CLOUDFLARE_KEYS, options)),
        named: true,
    }),
    stamps: |_| ARRIVES,
    ..BASE
};

const CLOUDFLARE_KEYS: KeyRoles = &[
    (FieldRole::Time, &["EdgeStartTimestamp"]),
    (FieldRole::End, &["EdgeEndTimestamp"]),
    (FieldRole::Client, &["ClientIP"]),
    (FieldRole::Method, &["ClientRequestMethod"]),
    (FieldRole::Site, &["ClientRequestHost"]),
    (FieldRole::Target, &["ClientRequestURI", "ClientRequestPath"]),
    (FieldRole::Status, &["EdgeResponseStatus"]),
    (FieldRole::Size, &["EdgeResponseBodyBytes", "EdgeResponseBytes"]),
    (FieldRole::Service(SpanUnit::Ms), &["OriginResponseDurationMs"]),
    (FieldRole::Service(SpanUnit::Ns), &["OriginResponseTime"]),
];

/// Envoy with the keys that its documentation and Istio use.
pub static ENVOY: FormatSpec = FormatSpec {
    format: Format::named("envoy-json"),
    aliases: &["istiojson"],
    summary: "Envoy's access log as JSON, with Istio's keys",
    sample: r#"{"authority":"www.example.org","bytes_received":0,"bytes_sent":1719,"downstream_remote_address":"192.0.2.7:42254","duration":3,"method":"GET","path":"/index.html","protocol":"HTTP/1.1","response_code":200,"response_flags":"-","start_time":"2026-11-23T21:22:15.342Z","upstream_service_time":"2","user_agent":"curl/7.88.1","x_forwarded_for":null}"#,
    remark: "Service time is that of the upstream.",
    family: "envoy-json",
    decode: Decode::Lines(LineLog {
        splitter: |options| Box::new(JsonSplitter::new(ENVOY_KEYS, options)),
        named: true,
    }),
    stamps: |_| ARRIVES,
    ..BASE
};

const ENVOY_KEYS: KeyRoles = &[
    (FieldRole::Time, &["start_time"]),
    (FieldRole::Client, &["x_forwarded_for", "downstream_remote_address"]),
    (FieldRole::Method, &["method"]),
    (FieldRole::Site, &["authority"]),
    (FieldRole::Target, &["path"]),
    (FieldRole::Status, &["response_code"]),
    (FieldRole::Size, &["bytes_sent"]),
    (FieldRole::Service(SpanUnit::Ms), &["upstream_service_time"]),
    (FieldRole::Total(SpanUnit::Ms), &["duration"]),
    (FieldRole::Backend, &["upstream_host"]),
];

/// nginx, whose keys everyone chooses; here the names of its variables.
pub static NGINX: FormatSpec = FormatSpec {
    format: Format::named("nginx-json"),
    aliases: &[],
    summary: "nginx with a `log_format` of JSON whose keys are the names of the variables",
    sample: r#"{"msec":"1795468890.499","remote_addr":"192.0.2.7","request_method":"GET","request_uri":"/index.html","status":200,"body_bytes_sent":1719,"request_time":0.012,"upstream_response_time":"0.010"}"#,
    remark: "Read are `msec`, `time_iso8601`, `time_local`, `time`, `timestamp` or `@timestamp`; `request_uri`, `request`, or `uri` \
             with `args`, which nginx has rewritten; `body_bytes_sent` or `bytes_sent`, which counts heads; `status`, \
             `request_method`, `remote_addr`, `request_time`. Other keys: `--fields`. Service time is `upstream_response_time`. \
             Without `escape=json`, `\\x22` stays as logged.",
    family: "nginx-json",
    decode: Decode::Lines(LineLog {
        splitter: |options| Box::new(JsonSplitter::new(NGINX_KEYS, options)),
        named: true,
    }),
    ..BASE
};

const NGINX_KEYS: KeyRoles = &[
    (FieldRole::End, &["msec", "time_iso8601", "time_local", "time", "timestamp", "@timestamp"]),
    (FieldRole::Client, &["remote_addr", "remote_ip", "http_x_forwarded_for", "client_ip"]),
    (FieldRole::Method, &["request_method", "method"]),
    (FieldRole::Site, &["host", "http_host", "server_name"]),
    (FieldRole::Target, &["request_uri"]),
    (FieldRole::Request, &["request"]),
    // Rewriting, `try_files` and `index` change these.
    (FieldRole::ServedPath, &["uri"]),
    (FieldRole::ServedQuery, &["args", "query_string"]),
    (FieldRole::Status, &["status"]),
    (FieldRole::Size, &["body_bytes_sent", "bytes_sent"]),
    (FieldRole::Service(SpanUnit::S), &["upstream_response_time"]),
    (FieldRole::Total(SpanUnit::S), &["request_time"]),
    (FieldRole::Backend, &["upstream_addr"]),
];

/// Those of servers, with their keys.
pub(crate) static KNOWN: [(&FormatSpec, KeyRoles); 6] = [
    (&PLIMSOLL, PLIMSOLL_KEYS),
    (&CADDY, CADDY_KEYS),
    (&TRAEFIK, TRAEFIK_KEYS),
    (&CLOUDFLARE, CLOUDFLARE_KEYS),
    (&ENVOY, ENVOY_KEYS),
    (&NGINX, NGINX_KEYS),
];

/// Any keys.
pub static JSON: FormatSpec = FormatSpec {
    format: Format::named("json"),
    aliases: &["jsonlines", "jsonl", "ndjson"],
    summary: "JSON lines with other keys, which `--fields` names",
    recognised_by: "`--fields`, with lines that are objects",
    sample: r#"{"ts":1795468890.499,"http":{"url":"/index.html","status":200},"bytes":1719}"#,
    remark: "The sample is read with `--fields time=ts,target=http.url,size=bytes,status=http.status`.",
    family: "json",
    stamps: |_| ARRIVES,
    ..BASE
};
