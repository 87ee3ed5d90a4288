//! Where a route sends clients in place of having them served.

use std::fmt;

use crate::declare::KeyForm;
use crate::reader::{ConfigReader, DeclaredTable, Wrong, optional, quoted};
use crate::value::ConfigValue;

/// A part of the URL to which clients are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectPiece {
    /// As it is.
    Text(String),
    /// `http` or `https`, as the client has asked.
    Scheme,
    /// The host that it has asked for, without port.
    Host,
    /// The path that it has asked for.
    Path,
    /// What of that stands behind the path of the route.
    Rest,
    /// `?` and the query, where there is one.
    Query,
}

impl RedirectPiece {
    const NAMED: [(&'static str, Self); 5] = [
        ("{scheme}", Self::Scheme),
        ("{host}", Self::Host),
        ("{path}", Self::Path),
        ("{rest}", Self::Rest),
        ("{query}", Self::Query),
    ];
}

impl fmt::Display for RedirectPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            named => {
                let found = Self::NAMED.iter().find(|(_, piece)| piece == named);
                f.write_str(found.map_or("", |(name, _)| name))
            }
        }
    }
}

/// Where clients are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectTarget(pub Vec<RedirectPiece>);

impl RedirectTarget {
    /// Whether names stand before the host that was asked for.
    pub(crate) fn prolongs_host(&self) -> bool {
        let host = self.0.iter().position(|piece| *piece == RedirectPiece::Host);
        let before = host.and_then(|at| self.0.get(at.checked_sub(1)?));
        let Some(RedirectPiece::Text(text)) = before else { return false };
        text.split_once("://").is_some_and(|(_, names)| !names.is_empty() && !names.contains(['/', '?', '#']))
    }
}

impl fmt::Display for RedirectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| piece.fmt(f))
    }
}

pub(super) struct OfRedirect;

const REMEDY: &str = "write a URL, e.g. \"https://www.example.com{path}{query}\", or a path, e.g. \"/new{rest}{query}\"; \
                      `{scheme}`, `{host}`, `{path}`, `{rest}` and `{query}` stand for what was asked for";

impl KeyForm<Option<RedirectTarget>> for OfRedirect {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<RedirectTarget>> {
        optional(reader, section, key, target)
    }

    fn show(target: &Option<RedirectTarget>) -> Option<ConfigValue> {
        target.as_ref().map(|target| ConfigValue::Text(target.to_string()))
    }
}

fn target(text: &str) -> Result<RedirectTarget, Wrong> {
    let wrong = |what: &str| Err((format!("{} {what}", quoted(text)), REMEDY.to_owned()));
    if text.len() > 2048 || text.chars().any(|c| !c.is_ascii_graphic() || "\"<>\\^`|".contains(c)) {
        return wrong("is no URL");
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let literal = rest.find(['{', '}']).unwrap_or(rest.len());
        if literal > 0 {
            pieces.push(RedirectPiece::Text(rest[..literal].to_owned()));
            rest = &rest[literal..];
            continue;
        }
        let Some((name, piece)) = RedirectPiece::NAMED.into_iter().find(|(name, _)| rest.starts_with(name))
        else {
            return wrong("has braces that stand for nothing");
        };
        pieces.push(piece);
        rest = &rest[name.len()..];
    }
    // Nobody but the file may say which site it is: `{host}` is a whole host, and what a client says of the path begins behind that.
    let of_url = ["http://", "https://", "{scheme}://"].iter().find_map(|begin| text.strip_prefix(begin));
    let host = of_url.map(|rest| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let named = ["{path}", "{rest}", "{query}"].iter().filter_map(|name| rest.find(name));
        &rest[..named.fold(end, usize::min)]
    });
    let is_url = host.is_some_and(|host| match host.split_once("{host}") {
        Some((labels, port)) => {
            (labels.is_empty() || is_begin_of_host(labels))
                && (port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok()))
        }
        None => !host.is_empty() && !host.contains(['{', '@']),
    });
    let is_path = text.starts_with('/') && !text.starts_with("//");
    match (is_url || is_path, text.get(1..).is_some_and(|rest| rest.contains("{scheme}"))) {
        (true, false) => Ok(RedirectTarget(pieces)),
        _ if host.is_some_and(|host| host.contains("{host}")) => wrong(
            "has something else around `{host}` than names with their dots before it, as `www.`, and a port behind it",
        ),
        _ => wrong("begins neither with a scheme and a host nor with the path of one"),
    }
}

/// Whether a host may begin with this, such as `www.`.
fn is_begin_of_host(labels: &str) -> bool {
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    labels.strip_suffix('.').is_some_and(|labels| labels.split('.').all(is_label))
}

/// The status by which they are sent there.
pub(super) struct OfRedirectStatus;

impl KeyForm<u16> for OfRedirectStatus {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, key: &str) -> Option<u16> {
        let Some(found) = section.found(key) else { return Some(308) };
        let status = reader.integer_of(&found)?;
        match u16::try_from(status) {
            Ok(status @ (301 | 302 | 303 | 307 | 308)) => Some(status),
            _ => {
                let what = format!("{status} sends a client nowhere");
                let remedy = "write 301, 302, 303, 307 or 308".to_owned();
                reader.wrong(&section.key(key), section.span_of(key), (what, remedy));
                None
            }
        }
    }

    fn show(status: &u16) -> Option<ConfigValue> {
        Some(ConfigValue::Integer((*status).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        for good in [
            "https://www.example.com{path}{query}",
            "{scheme}://www.example.com:8443/new{rest}",
            "https://{host}{path}",
            "https://www.{host}/",
            "{scheme}://a-1.b.{host}:8443{path}",
            "https://{host}:8443{path}",
            "http://[::1]/",
            "/new{rest}{query}",
            "/{rest}",
            "/",
            "https://a.example?from={host}",
        ] {
            assert_eq!(target(good).map(|t| t.to_string()).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "www.example.com",
            "//www.example.com",
            "{path}",
            "{host}/x",
            "ftp://a/",
            "https://",
            "https://{path}",
            "https://www{host}/",
            "https://a..{host}/",
            "https://.{host}/",
            "https://{scheme}.{host}/",
            "https://{host}.example/",
            "https://a@b/",
            "https://a/{uri}",
            "https://a/}",
            "https://a/ b",
            "https://a/{scheme}",
            "https://a/\r\nX: y",
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }
}
