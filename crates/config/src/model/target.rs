//! What a policy is told of a request: its target, and whether it is computed.

use std::fmt;

/// What a policy takes for the target, and how much is learned of targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetConfig {
    /// The key.
    pub key: TargetKey,
    /// Targets whose response size is remembered.
    pub sizes: usize,
    /// Which requests are computed, besides those of methods other than GET and HEAD.
    pub dynamic: Vec<DynamicPattern>,
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

impl fmt::Display for DynamicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(start) => f.write_str(start),
            Self::Suffix(end) => write!(f, "*{end}"),
            Self::Query => f.write_str("?"),
        }
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
