//! What a policy is told of a request: its target, and whether it is computed.

use std::fmt;

use plimsoll_wire::Key;

use super::handoff::read_key;
use crate::declare::{KeyValue, keys};
use crate::keys::Default::Is;
use crate::keys::KeyKind::{self, Integer, Text, Texts};
use crate::path::path;
use crate::reader::{ConfigReader, DeclaredTable, ListForm, Wrong, not_one_of, quoted};
use crate::value::{ConfigValue, is_token_char};

keys! {
    /// What a policy takes for the target of a request.
    ["target"] pub struct TargetConfig {
        /// `path`: the path without the query; `path_query`: both; `host_path`: host, path and query; `header:NAME`,
        /// `cookie:NAME`: the value of that field or cookie, and path and query when it is absent.
        "key" key: TargetKey = Is("path_query"),
            Text("\"path\", \"path_query\", \"host_path\", \"header:NAME\" or \"cookie:NAME\"");
        /// The secret with which targets are hashed, so that nobody can choose targets that are alike to a policy: the file of a
        /// key, which all front-ends that have it hash alike with; `random`, one that is drawn at each start (derived from
        /// `peers.key_file` where that is given); `none`, for clients that are trusted: targets are hashed as in the simulator.
        "hash_key" hash_key: HashKey = Is("random"), Text("\"random\", \"none\", or the path of a file"), restart;
        /// Targets whose response size is remembered.
        "sizes" sizes: usize = Is("1000000"), Integer { min: 1, max: 100_000_000 };
        /// Requests that are computed, as those of methods other than GET and HEAD are, whatever the size of earlier
        /// answers: by the path, or with `?` by having a query. At most 100.
        "dynamic" dynamic: Vec<DynamicPattern> = Is("[]"), Texts(
            "the beginning of a path, e.g. \"/cgi-bin/\", its end behind `*`, e.g. \"*.php\", or \"?\"",
        );
    }
}

/// The secret with which targets are hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashKey {
    /// None: as in the simulator.
    None,
    /// Drawn at each start, or derived from the key of the peers.
    Random,
    /// This one.
    Given(Key),
}

impl KeyValue for HashKey {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        match &*reader.text(section, name, |text| Ok(text.to_owned()))? {
            "none" => Some(Self::None),
            "random" => Some(Self::Random),
            file => {
                let key = path(file).and_then(|file| read_key(&reader.file(file)));
                key.map_err(|wrong| reader.wrong(&section.key(name), section.span_of(name), wrong))
                    .map(Self::Given)
                    .ok()
            }
        }
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(match self {
            Self::None => ConfigValue::Text("none".to_owned()),
            Self::Random => ConfigValue::Text("random".to_owned()),
            Self::Given(_) => ConfigValue::Secret,
        })
    }
}

/// By what a request is known to be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DynamicPattern {
    /// Its path begins so.
    Prefix(String),
    /// Its path, without the query, ends so.
    Suffix(String),
    /// It has a query.
    Query,
}

impl DynamicPattern {
    /// Whether a request for this path, which may have a query, is one.
    #[must_use]
    pub fn matches(&self, path_query: &[u8]) -> bool {
        let end = path_query.iter().position(|&b| b == b'?');
        match self {
            Self::Prefix(start) => path_query.starts_with(start.as_bytes()),
            Self::Suffix(text) => path_query[..end.unwrap_or(path_query.len())].ends_with(text.as_bytes()),
            Self::Query => end.is_some(),
        }
    }
}

impl fmt::Display for DynamicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(start) => f.write_str(start),
            Self::Suffix(end) => write!(f, "*{end}"),
            Self::Query => f.write_str("?"),
        }
    }
}

const PATTERN_REMEDY: &str = "write e.g. \"/cgi-bin/\", \"*.php\", or \"?\" for whatever has a query";
const PATTERNS: ListForm =
    ListForm { most: 100, fewer: "join patterns, e.g. by a common beginning", remedy: PATTERN_REMEDY };

impl KeyValue for Vec<DynamicPattern> {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(reader.list(section, name, PATTERNS, pattern))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::List(self.iter().map(ToString::to_string).collect()))
    }
}

fn pattern(text: &str) -> Result<DynamicPattern, Wrong> {
    // Characters of a request target, without the query and those with a meaning in patterns.
    let good = |text: &str| text.bytes().all(|b| b.is_ascii_graphic() && !b"?*#\"<>".contains(&b));
    match text.split_at_checked(1) {
        Some(("?", "")) => Ok(DynamicPattern::Query),
        Some(("/", rest)) if good(rest) => Ok(DynamicPattern::Prefix(text.to_owned())),
        Some(("*", end)) if !end.is_empty() && good(end) => Ok(DynamicPattern::Suffix(end.to_owned())),
        _ => Err((format!("{} is no pattern of paths", quoted(text)), PATTERN_REMEDY.to_owned())),
    }
}

/// From what the target of a request is derived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetKey {
    /// The path without the query.
    Path,
    /// Path and query.
    PathQuery,
    /// Host, path and query.
    HostPath,
    /// The value of this field (lower case); path and query when it is absent.
    Header(String),
    /// The value of this cookie; path and query when it is absent.
    Cookie(String),
}

impl fmt::Display for TargetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("path"),
            Self::PathQuery => f.write_str("path_query"),
            Self::HostPath => f.write_str("host_path"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
        }
    }
}

impl KeyValue for TargetKey {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        reader.text(section, name, target_key)
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Text(self.to_string()))
    }
}

fn target_key(text: &str) -> Result<TargetKey, Wrong> {
    let name = |name: &str| {
        // Also a cookie's name is a token (RFC 6265, section 4.1.1).
        if name.is_empty() || name.len() > 256 || !name.chars().all(is_token_char) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let is = |pattern: &DynamicPattern, path: &str| pattern.matches(path.as_bytes());
        let start = DynamicPattern::Prefix("/cgi-bin/".into());
        assert!(is(&start, "/cgi-bin/a") && is(&start, "/cgi-bin/?x") && !is(&start, "/a/cgi-bin/"));
        let end = DynamicPattern::Suffix(".php".into());
        assert!(is(&end, "/a.php") && is(&end, "/a.php?b=c") && !is(&end, "/a.html?b=.php"));
        assert!(is(&DynamicPattern::Query, "/a?") && !is(&DynamicPattern::Query, "/a"));
    }
}
