//! Target, admission, health checks, time-outs and limits.

use std::time::Duration;

use toml::de::DeValue;

use crate::model::{
    AdmissionConfig, AdmissionLimitConfig, DynamicPattern, HealthConfig, HealthProbe, Limits, TargetConfig,
    TargetKey, Timeouts,
};
use crate::read::address::{host_name, host_port};
use crate::reader::{Reader, Section, Wrong, items, not_one_of, quoted};
use crate::value::show_duration;

/// Patterns of requests that are computed.
const PATTERNS_MAX: usize = 100;
const PATTERN_REMEDY: &str = "write e.g. \"/cgi-bin/\", \"*.php\", or \"?\" for whatever has a query";

/// What a policy takes for the target.
pub(super) fn target<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> TargetConfig {
    let key = reader.text(section, "key", target_key).unwrap_or(TargetKey::PathQuery);
    TargetConfig { key, sizes: count(reader, section, "sizes"), dynamic: dynamic(reader, section) }
}

fn dynamic<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Vec<DynamicPattern> {
    let Some(found) = section.found("dynamic") else { return Vec::new() };
    let Some(items) = items(&found) else {
        reader.wrong_type(&found);
        return Vec::new();
    };
    let mut out = Vec::new();
    for (index, item) in items {
        let key = format!("{}[{index}]", found.key);
        if index == PATTERNS_MAX {
            let remedy = "join patterns, e.g. by a common beginning".to_owned();
            reader.wrong(&key, item.span(), (format!("there are more than {PATTERNS_MAX}"), remedy));
            break;
        }
        let read = match item.get_ref() {
            DeValue::String(text) => pattern(text),
            _ => Err(("is no text".to_owned(), PATTERN_REMEDY.to_owned())),
        };
        match read {
            Ok(pattern) => out.push(pattern),
            Err(wrong) => reader.wrong(&key, item.span(), wrong),
        }
    }
    out
}

fn pattern(text: &str) -> Result<DynamicPattern, Wrong> {
    // What a request target can hold, without the query and what would be taken for a pattern of another kind.
    let good = |text: &str| text.bytes().all(|b| b.is_ascii_graphic() && !b"?*#\"<>".contains(&b));
    match text.split_at_checked(1) {
        Some(("?", "")) => Ok(DynamicPattern::Query),
        Some(("/", rest)) if good(rest) => Ok(DynamicPattern::Prefix(text.to_owned())),
        Some(("*", end)) if !end.is_empty() && good(end) => Ok(DynamicPattern::Suffix(end.to_owned())),
        _ => Err((format!("{} is no pattern of paths", quoted(text)), PATTERN_REMEDY.to_owned())),
    }
}

fn target_key(text: &str) -> Result<TargetKey, Wrong> {
    let name = |name: &str| {
        // A token of RFC 9110, section 5.6.2, also a cookie's name (RFC 6265, section 4.1.1).
        let good = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || name.len() > 256 || !name.chars().all(good) {
            let remedy = "write e.g. \"header:x-key\" or \"cookie:session\"".to_owned();
            return Err((format!("{} has no good name after the `:`", quoted(text)), remedy));
        }
        Ok(name.to_owned())
    };
    match text.split_once(':') {
        Some(("header", field)) => Ok(TargetKey::Header(name(field)?.to_ascii_lowercase())),
        Some(("cookie", cookie)) => Ok(TargetKey::Cookie(name(cookie)?)),
        None if text == "path" => Ok(TargetKey::Path),
        None if text == "path_query" => Ok(TargetKey::PathQuery),
        None if text == "host_path" => Ok(TargetKey::HostPath),
        _ => Err(not_one_of(text, &["path", "path_query", "host_path", "header:NAME", "cookie:NAME"])),
    }
}

/// How many requests are let in.
pub(super) fn admission<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> AdmissionConfig {
    let retry_after = reader.duration(section, "retry_after");
    AdmissionConfig {
        limit: limit(reader, section),
        queue: count(reader, section, "queue"),
        queue_timeout: reader.duration(section, "queue_timeout"),
        retry_after_s: u32::try_from(retry_after.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX),
    }
}

fn limit<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> AdmissionLimitConfig {
    let Some(found) = section.found("limit") else { return AdmissionLimitConfig::Lard };
    match found.value {
        DeValue::String(text) if text == "lard" => AdmissionLimitConfig::Lard,
        DeValue::String(text) if text == "none" => AdmissionLimitConfig::Unlimited,
        DeValue::String(text) => {
            let remedy = "write \"lard\", \"none\" or a number without quotes".to_owned();
            reader.wrong_value(&found, (format!("{} is no limit", quoted(text)), remedy));
            AdmissionLimitConfig::Lard
        }
        _ => reader.integer_of(&found).map_or(AdmissionLimitConfig::Lard, AdmissionLimitConfig::Fixed),
    }
}

/// How back-ends are watched.
pub(super) fn health<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> HealthConfig {
    let probe = probe(reader, section);
    let interval = reader.duration(section, "interval");
    let fast_interval = match section.found("fast_interval") {
        Some(_) => reader.duration(section, "fast_interval"),
        None => interval.min(Duration::from_millis(250)),
    };
    if fast_interval > interval {
        let (fast, slow) = (show_duration(fast_interval), show_duration(interval));
        let what = format!("{fast} is longer than interval ({slow})");
        let remedy = format!("write at most \"{slow}\", or a longer interval");
        reader.wrong(&section.key("fast_interval"), section.span_of("fast_interval"), (what, remedy));
    }
    HealthConfig {
        probe,
        interval,
        fast_interval,
        timeout: reader.duration(section, "timeout"),
        jitter_permille: (reader.number(section, "jitter") * 1000.0).round() as u16,
        rise: small(reader, section, "rise"),
        fall: small(reader, section, "fall"),
    }
}

fn probe<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> HealthProbe {
    let probe = reader.choice(section, "probe");
    let path = reader.text(section, "path", probe_path);
    let host = reader.text(section, "host", probe_host);
    let status = reader.text(section, "status", status);
    if probe != "http" {
        for name in ["path", "host", "status"] {
            if let Some(found) = section.found(name) {
                let what = format!("has no effect with probe = \"{probe}\"");
                reader.wrong_value(&found, (what, "remove it, or write probe = \"http\"".to_owned()));
            }
        }
    }
    match probe {
        "tcp" => HealthProbe::Tcp,
        "none" => HealthProbe::None,
        _ => {
            let (status_min, status_max) = status.unwrap_or((200, 399));
            HealthProbe::Http { path: path.unwrap_or_else(|| "/".to_owned()), host, status_min, status_max }
        }
    }
}

fn probe_path(text: &str) -> Result<String, Wrong> {
    if text.starts_with('/') && text.len() <= 4096 && text.chars().all(|c| c.is_ascii_graphic() && c != '#') {
        return Ok(text.to_owned());
    }
    let remedy = "write a path such as \"/health\", other characters than ASCII as %XX".to_owned();
    Err((format!("{} is no path", quoted(text)), remedy))
}

fn probe_host(text: &str) -> Result<String, Wrong> {
    if host_name(text).is_some() || host_port(text).is_ok() {
        return Ok(text.to_owned());
    }
    Err((format!("{} is no host name", quoted(text)), "write e.g. \"app.internal\"".to_owned()))
}

fn status(text: &str) -> Result<(u16, u16), Wrong> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let one = |t: &str| t.trim().parse::<u16>().ok().filter(|s| (100..=599).contains(s));
    match (one(min), one(max)) {
        (Some(min), Some(max)) if min <= max => Ok((min, max)),
        _ => {
            let remedy =
                "write a status or range of them from 100 to 599, e.g. \"200\" or \"200-399\"".to_owned();
            Err((format!("{} is no range of statuses", quoted(text)), remedy))
        }
    }
}

/// How long is waited for what.
pub(super) fn timeouts<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Timeouts {
    let mut of = |name| reader.duration(section, name);
    Timeouts {
        head: of("head"),
        body: of("body"),
        idle: of("idle"),
        backend_idle: of("backend_idle"),
        connect: of("connect"),
        first_byte: of("first_byte"),
        drain: of("drain"),
    }
}

/// Bounds on what peers may send.
pub(super) fn limits<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Limits {
    Limits {
        head_bytes: usize::try_from(reader.size(section, "head").unwrap_or_default()).unwrap_or(usize::MAX),
        fields: count(reader, section, "fields"),
        body_bytes: reader.size(section, "body"),
        connections: count(reader, section, "connections"),
        requests_per_connection: reader.integer(section, "requests_per_connection"),
        retries: small(reader, section, "retries"),
    }
}

fn count<'a>(reader: &mut Reader<'a>, section: &Section<'a>, name: &str) -> usize {
    usize::try_from(reader.integer(section, name)).unwrap_or(usize::MAX)
}

fn small<'a>(reader: &mut Reader<'a>, section: &Section<'a>, name: &str) -> u32 {
    u32::try_from(reader.integer(section, name)).unwrap_or(u32::MAX)
}
