//! Routes: which requests go to which pool, and what is changed of them on the way.

use std::fmt;
use std::sync::Arc;

use super::field_edits::{Edits, FieldEdit, field};
use super::pool_name::{NO_POOL, PoolName, PoolOrDefault};
use super::rates::{OfBurst, OfRate, RouteRate};
use super::redirects::{OfRedirect, OfRedirectStatus, RedirectTarget};
use crate::declare::{KeyForm, keys};
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{Flag, Integer, SizeOrNone, Text, Texts};
use crate::keys::SIZE_MAX;
use crate::name::name;
use crate::reader::{ConfigReader, DeclaredTable, ListForm, Wrong, optional, quoted};
use crate::value::ConfigValue;

/// The most routes.
pub(crate) const ROUTES_MAX: usize = 10_000;
/// The most segments of a path by which requests are routed.
const SEGMENTS_MAX: usize = 32;

keys! {
    /// Which requests go to which pool, and what is changed of them on the way; at most 10000. Of the routes that fit a request the most
    /// specific takes it: by host (exact, then the longest `*.`, then any), then the longest path, then the most fields. See
    /// [routing](routing.md).
    ["route", many] pub struct RouteConfig {
        /// What metrics and logs call it; unique.
        "name" name: Option<Arc<str>> =
            Words("none"), Text("1 to 64 letters, digits, `-`, `_` and `.`") => NameOfRoute;
        /// The host that requests are for, without port: `www.example.com`, or `*.example.com` for all below `example.com`.
        "host" host: RouteHost = Words("any"), Text("a host name, e.g. \"www.example.com\" or \"*.example.com\"") => OfHost;
        /// What their path begins with, up to the end of a segment: `/api` is for `/api` and `/api/v1`, and not for `/apis`.
        "path" path: String = Is("/"), Text("the beginning of a path, e.g. \"/api\"") => OfPath;
        /// Fields that they must have, all of them, at most 8: `NAME`, with whatever value, or `NAME: VALUE`.
        "header" header: Vec<RouteHeader> = Is("[]"), Texts("the name of a field, or \"NAME: VALUE\"") => OfHeader;
        /// The pool that takes them.
        "pool" pool: Option<PoolName> = NO_POOL, Text("the name of a pool") => PoolOrDefault;
        /// The status with which the front-end itself answers them, in place of a pool.
        "answer" answer: Option<u16> = Words("none"), Integer { min: 400, max: 599 } => OwnAnswer;
        /// Where the front-end sends clients in place of a pool. `{scheme}`, `{host}` (without port), `{path}`, `{rest}` (what stands in it behind
        /// `path`) and `{query}` (with its `?`) stand for what they have asked for.
        "redirect" redirect: Option<RedirectTarget> =
            Words("nowhere"), Text("a URL or a path, e.g. \"https://www.example.com{path}{query}\"") => OfRedirect;
        /// The status with which they are sent there: 301, 302, 303, 307 or 308.
        "redirect_status" redirect_status: u16 = Is("308"), Integer { min: 301, max: 308 } => OfRedirectStatus;
        /// How often each client may ask, by its address (of IPv6 by the first 64 bits): `10/s`, `600/m` or `5000/h`. What is beyond is answered
        /// with 429.
        "rate" rate: Option<RouteRate> = Words("none"), Text("a number per time, e.g. \"10/s\", \"600/m\" or \"5000/h\"") => OfRate;
        /// How many requests a client that has been silent may send at once.
        "rate_burst" rate_burst: Option<u32> =
            Words("as many as `rate` has in a second, and at least 1"), Integer { min: 1, max: 1_000_000 } => OfBurst;
        /// What stands in place of `path` in the path that the back-end gets.
        "replace_prefix" replace_prefix: Option<String> =
            Words("none"), Text("the beginning of a path, e.g. \"/v1\" or \"/\"") => NewPrefix;
        /// The largest body of a request.
        "body" body: RouteBody = Words("`limits.body`"), SizeOrNone { min: 0, max: SIZE_MAX } => OfBody;
        /// Whether responses are compressed, where `[compression]` says how.
        "compression" compression: bool = Is("true"), Flag;
        /// Changes of the request's fields, in this order, at most 32: `set NAME: VALUE` in place of those of this name, `add NAME: VALUE`
        /// beside them, `remove NAME`.
        "request_fields" request_fields: Vec<FieldEdit> = Is("[]"), Texts("a change, e.g. \"set X-Tenant: blue\"") => Edits;
        /// Changes of the response's fields.
        "response_fields" response_fields: Vec<FieldEdit> = Is("[]"), Texts("a change, e.g. \"remove Server\"") => Edits;
    }
}

/// The host of requests that a route takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteHost {
    /// Any.
    Any,
    /// Those below this one, however deep.
    Below(String),
    /// This one.
    Exact(String),
}

impl fmt::Display for RouteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Below(parent) => write!(f, "*.{parent}"),
            Self::Exact(host) => f.write_str(host),
        }
    }
}

/// A field that requests must have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteHeader {
    /// In lower case.
    pub name: String,
    /// Its value; none: whatever.
    pub value: Option<String>,
}

/// The largest body of requests that a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteBody {
    /// That of its pool.
    AsPool,
    /// So many bytes; none: as many as there are.
    AtMost(Option<u64>),
}

struct NameOfRoute;

impl KeyForm<Option<Arc<str>>> for NameOfRoute {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<Arc<str>>> {
        optional(reader, section, key, |text| name(text).map(Arc::from))
    }

    fn show(name: &Option<Arc<str>>) -> Option<ConfigValue> {
        name.as_ref().map(|name| ConfigValue::Text(name.to_string()))
    }
}

struct OfHost;

impl KeyForm<RouteHost> for OfHost {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, key: &str) -> Option<RouteHost> {
        Some(optional(reader, section, key, host)?.unwrap_or(RouteHost::Any))
    }

    fn show(host: &RouteHost) -> Option<ConfigValue> {
        (*host != RouteHost::Any).then(|| ConfigValue::Text(host.to_string()))
    }
}

fn host(text: &str) -> Result<RouteHost, Wrong> {
    let lower = text.to_ascii_lowercase();
    let (is_below, host) = lower.strip_prefix("*.").map_or((false, &*lower), |parent| (true, parent));
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !host.is_empty()
        && host.len() <= 253
        && host.chars().all(good)
        && host.split('.').all(|label| !label.is_empty());
    let is_literal = !is_below && host.starts_with('[') && host.ends_with(']') && {
        host[1..host.len() - 1].parse::<std::net::Ipv6Addr>().is_ok()
    };
    match (is_name || is_literal, is_below) {
        (true, true) => Ok(RouteHost::Below(host.to_owned())),
        (true, false) => Ok(RouteHost::Exact(host.to_owned())),
        _ => {
            let remedy =
                "write a host without port, e.g. \"www.example.com\", or \"*.example.com\" for all below it";
            Err((format!("{} is no host", quoted(text)), remedy.to_owned()))
        }
    }
}

struct OfPath;

impl KeyForm<String> for OfPath {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, key: &str) -> Option<String> {
        reader.text(section, key, path)
    }

    fn show(path: &String) -> Option<ConfigValue> {
        Some(ConfigValue::Text(path.clone()))
    }
}

struct NewPrefix;

impl KeyForm<Option<String>> for NewPrefix {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<String>> {
        optional(reader, section, key, path)
    }

    fn show(path: &Option<String>) -> Option<ConfigValue> {
        path.clone().map(ConfigValue::Text)
    }
}

/// The beginning of a path, in its shortest form: a slash at its end says nothing.
fn path(text: &str) -> Result<String, Wrong> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,=:@/".contains(c);
    let path = if text.len() > 1 { text.strip_suffix('/').unwrap_or(text) } else { text };
    let segments = || path[1..].split('/');
    let what = if !text.starts_with('/') || !text.chars().all(good) || text.len() > 1024 {
        format!("{} is no beginning of a path", quoted(text))
    } else if text.contains("//") || segments().any(|segment| matches!(segment, "." | "..")) {
        format!(
            "{} has an empty segment or one of dots, which paths of requests never have here",
            quoted(text)
        )
    } else if segments().count() > SEGMENTS_MAX {
        format!("has more than {SEGMENTS_MAX} segments")
    } else {
        return Ok(path.to_owned());
    };
    let remedy = "write e.g. \"/api\", without percent-encoding; `;`, `?` and `#` cannot be in it".to_owned();
    Err((what, remedy))
}

struct OfHeader;

const HEADER_REMEDY: &str = "write the name of a field, e.g. \"x-beta\", or \"NAME: VALUE\"";

impl KeyForm<Vec<RouteHeader>> for OfHeader {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Vec<RouteHeader>> {
        let form = ListForm { most: 8, fewer: "name fewer fields", remedy: HEADER_REMEDY };
        let mut fields = reader.list(section, key, form, |text| {
            let (name, value) =
                text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value.trim())));
            let (name, value) =
                field(name, value.unwrap_or_default()).map_err(|what| (what, HEADER_REMEDY.to_owned()))?;
            let value = text.contains(':').then_some(value);
            Ok(RouteHeader { name: name.to_ascii_lowercase(), value })
        });
        fields.sort();
        fields.dedup();
        Some(fields)
    }

    fn show(fields: &Vec<RouteHeader>) -> Option<ConfigValue> {
        let text =
            |f: &RouteHeader| f.value.as_ref().map_or(f.name.clone(), |value| format!("{}: {value}", f.name));
        Some(ConfigValue::List(fields.iter().map(text).collect()))
    }
}

struct OwnAnswer;

impl KeyForm<Option<u16>> for OwnAnswer {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<u16>> {
        let Some(found) = section.found(key) else { return Some(None) };
        Some(reader.integer_of(&found).and_then(|number| u16::try_from(number).ok()))
    }

    fn show(status: &Option<u16>) -> Option<ConfigValue> {
        status.map(|status| ConfigValue::Integer(status.into()))
    }
}

struct OfBody;

impl KeyForm<RouteBody> for OfBody {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, key: &str) -> Option<RouteBody> {
        Some(match section.found(key) {
            None => RouteBody::AsPool,
            Some(_) => RouteBody::AtMost(reader.size(section, key)),
        })
    }

    fn show(body: &RouteBody) -> Option<ConfigValue> {
        match body {
            RouteBody::AsPool => None,
            RouteBody::AtMost(most) => {
                Some(ConfigValue::Text(most.map_or_else(|| "none".to_owned(), crate::value::show_size)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_paths() {
        assert_eq!(host("*.Example.com"), Ok(RouteHost::Below("example.com".into())));
        assert_eq!(host("[fd00::1]"), Ok(RouteHost::Exact("[fd00::1]".into())));
        for bad in ["", "*", "*.", "a b", "a:80", "a..b", "*.[::1]", "www.*.com", ".a", "[::g]"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert_eq!((path("/api/").as_deref(), path("/").as_deref()), (Ok("/api"), Ok("/")));
        for bad in ["", "api", "//", "/a//b", "/a/../b", "/.", "/a%20b", "/a?b", "/a;b"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
