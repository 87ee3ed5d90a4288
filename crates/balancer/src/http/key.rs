//! Derives the target that a policy sees from a request.

use std::borrow::Cow;

use plimsoll_config::{DynamicPattern, PartitionBy, TargetKey};
use plimsoll_policy::{Kind, TargetId};

use super::fields::{Field, classify, trim};
use super::target_hash::TargetHash;
use crate::partitioning::first_segment;

/// The target of a request. `path_query` starts with `/` (or is `*`); `host` is the host it is for.
///
/// Percent-encoding is normalised (RFC 3986, section 6.2.2) as the readers of access logs do it, so that a request
/// and its log line are the same target.
pub(crate) fn target(
    (key, hash): (&TargetKey, &TargetHash),
    path_query: &[u8],
    host: &[u8],
    fields: &[httparse::Header<'_>],
) -> TargetId {
    let or_path = |value: Option<&[u8]>| match value {
        Some(value) => hash.target(value),
        None => hash.target(&normal(path_query)),
    };
    match key {
        TargetKey::PathQuery => or_path(None),
        TargetKey::Path => {
            let end = memchr::memchr(b'?', path_query).unwrap_or(path_query.len());
            hash.target(&normal(&path_query[..end]))
        }
        TargetKey::HostPath => {
            let mut key = host.to_ascii_lowercase();
            key.extend_from_slice(&normal(path_query));
            hash.target(&key)
        }
        TargetKey::Header(name) => {
            or_path(fields.iter().find(|f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value))
        }
        TargetKey::Cookie(name) => or_path(cookie(name.as_bytes(), fields)),
    }
}

/// The partition of a request, of which the rest is as for its target. Another hash is used: that of targets may be secret, and
/// differ from front-end to front-end.
pub(crate) fn partition(
    (key, hash): (&TargetKey, &TargetHash),
    path_query: &[u8],
    host: &[u8],
    fields: &[httparse::Header<'_>],
) -> u16 {
    let Some(partitioning) = hash.partitioning() else { return 0 };
    match partitioning.by {
        PartitionBy::Target => {
            partitioning.partition_of(target((key, &TargetHash::PLAIN), path_query, host, fields))
        }
        PartitionBy::Segment => {
            partitioning.partition_of(TargetId::from_key(first_segment(&normal(path_query))))
        }
    }
}

/// Whether a request of this method for `path_query` asks for a stored document or for something that is computed.
pub(crate) fn kind(dynamic: &[DynamicPattern], method: &[u8], path_query: &[u8]) -> Kind {
    let stored = matches!(method, b"GET" | b"HEAD")
        && (dynamic.is_empty() || {
            let path_query = normal(path_query);
            !dynamic.iter().any(|pattern| pattern.matches(&path_query))
        });
    if stored { Kind::Static } else { Kind::Dynamic }
}

/// The target that a request has whose key is `text`: what someone who asks about a target writes. For paths that is the
/// path with its query, for `host_path` the host before it, for fields and cookies the value.
pub(crate) fn of_text((key, hash): (&TargetKey, &TargetHash), text: &[u8]) -> TargetId {
    match key {
        TargetKey::PathQuery | TargetKey::Path => target((key, hash), text, b"", &[]),
        TargetKey::HostPath => {
            let slash = memchr::memchr(b'/', text).unwrap_or(text.len());
            target((key, hash), &text[slash..], &text[..slash], &[])
        }
        TargetKey::Header(_) | TargetKey::Cookie(_) => hash.target(text),
    }
}

/// The partition that a request has whose key is `text`, as [`of_text`] takes it; `None` where it follows from the path, and that
/// is not in the text.
pub(crate) fn partition_of_text((key, hash): (&TargetKey, &TargetHash), text: &[u8]) -> Option<u16> {
    let Some(partitioning) = hash.partitioning() else { return Some(0) };
    if partitioning.by == PartitionBy::Target {
        return Some(partitioning.partition_of(of_text((key, &TargetHash::PLAIN), text)));
    }
    let path = match key {
        TargetKey::PathQuery | TargetKey::Path => text,
        TargetKey::HostPath => &text[memchr::memchr(b'/', text).unwrap_or(text.len())..],
        TargetKey::Header(_) | TargetKey::Cookie(_) => return None,
    };
    Some(partition((key, hash), path, b"", &[]))
}

fn cookie<'a>(name: &[u8], fields: &[httparse::Header<'a>]) -> Option<&'a [u8]> {
    let pairs = fields
        .iter()
        .filter(|f| classify(f.name) == Field::Cookie)
        .flat_map(|f| f.value.split(|&b| b == b';'));
    pairs.map(trim).find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// The value of a cookie in a head that is passed on.
pub(crate) fn cookie_in_head<'a>(name: &[u8], head: &'a [u8]) -> Option<&'a [u8]> {
    let lines = head.split(|&b| b == b'\n').skip(1);
    let of_cookies = lines.filter_map(|line| match line.split_at_checked(7) {
        Some((field, value)) if field.eq_ignore_ascii_case(b"cookie:") => Some(value),
        _ => None,
    });
    let pairs = of_cookies.flat_map(|value| value.split(|&b| b == b';'));
    pairs.map(|pair| pair.trim_ascii()).find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// Upper-case digits in percent-encoding, unreserved characters decoded.
fn normal(path: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'%', path) else {
        return Cow::Borrowed(path);
    };
    let digit = |at: usize| path.get(at).and_then(|&b| char::from(b).to_digit(16)).map(|d| d as u8);
    let mut out = path[..first].to_vec();
    let mut at = first;
    while at < path.len() {
        match (path[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                let byte = high * 16 + low;
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    out.push(byte);
                } else {
                    out.push(b'%');
                    out.extend(path[at + 1..at + 3].iter().map(u8::to_ascii_uppercase));
                }
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_target_however_it_is_encoded() {
        let id = |path: &str| target((&TargetKey::PathQuery, &TargetHash::PLAIN), path.as_bytes(), b"", &[]);
        assert_eq!(id("/%7euser/%2fa"), id("/~user/%2Fa"));
        assert_eq!(id("/a"), TargetId::from_key(b"/a"));
        assert_ne!(id("/a?b"), id("/a"));
        assert_eq!(id("/100%"), TargetId::from_key(b"/100%"));
        assert_eq!(id("/%4"), TargetId::from_key(b"/%4"));
    }

    #[test]
    fn what_is_computed() {
        let patterns = [DynamicPattern::Prefix("/~u/".into()), DynamicPattern::Query];
        let of = |method: &str, path: &str| kind(&patterns, method.as_bytes(), path.as_bytes());
        assert_eq!(
            (of("GET", "/a"), of("HEAD", "/a"), of("POST", "/a")),
            (Kind::Static, Kind::Static, Kind::Dynamic)
        );
        assert_eq!((of("GET", "/%7eu/a"), of("GET", "/a?b")), (Kind::Dynamic, Kind::Dynamic));
        assert_eq!(kind(&[], b"GET", b"/cgi-bin/a?b"), Kind::Static);
        assert_eq!(kind(&[], b"DELETE", b"/a"), Kind::Dynamic);
    }

    #[test]
    fn a_target_by_its_text() {
        let by_request = |key: &TargetKey| target((key, &TargetHash::PLAIN), b"/%7ea?b", b"Host:81", &[]);
        for (key, text) in [
            (TargetKey::PathQuery, "/~a?b"),
            (TargetKey::Path, "/%7Ea?c"),
            (TargetKey::HostPath, "HOST:81/~a?b"),
        ] {
            assert_eq!(of_text((&key, &TargetHash::PLAIN), text.as_bytes()), by_request(&key), "{key}");
        }
        assert_eq!(
            of_text((&TargetKey::Cookie("c".into()), &TargetHash::PLAIN), b"xyz"),
            TargetId::from_key(b"xyz")
        );
    }

    #[test]
    fn keys_from_elsewhere() {
        let fields = [
            httparse::Header { name: "Cookie", value: b"a=1; session=xyz; b=2" },
            httparse::Header { name: "X-Tenant", value: b"blue" },
        ];
        let id = |key: TargetKey| target((&key, &TargetHash::PLAIN), b"/p?q", b"Host", &fields);
        assert_eq!(id(TargetKey::Cookie("session".into())), TargetId::from_key(b"xyz"));
        assert_eq!(id(TargetKey::Cookie("none".into())), TargetId::from_key(b"/p?q"));
        assert_eq!(id(TargetKey::Header("x-tenant".into())), TargetId::from_key(b"blue"));
        assert_eq!(id(TargetKey::Path), TargetId::from_key(b"/p"));
        assert_eq!(id(TargetKey::HostPath), TargetId::from_key(b"host/p?q"));
    }
}
