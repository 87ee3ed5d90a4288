//! Which paths a pattern matches.

use crate::bounds::{SEGMENTS_MOST, WILD_SEGMENTS_MOST};
use crate::uri::{self, PathSegments, UriDecoded};

/// One segment of a pattern's path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathSegment {
    /// The segment with these bytes, percent-decoded.
    Named(Vec<u8>),
    /// Any one segment, written `*`.
    Any,
}

/// The path of a pattern, as `/shop/item`, `/shop/*/reviews` or `/shop/**`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern {
    /// The segments; at most [`SEGMENTS_MOST`]. The last may be empty, after a final `/`.
    pub segments: Vec<PathSegment>,
    /// Whether it matches everything below these segments (`/**` at the end) instead of exactly them.
    pub below: bool,
}

impl PathPattern {
    /// Reads a path as it stands in a class file. It is percent-decoded and normalised as the path of a request.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let wrong = |what: &str, remedy: &str| Err((what.to_owned(), remedy.to_owned()));
        if !text.starts_with('/') {
            return wrong("does not begin with `/`", "write a path as \"/shop/item\" or \"/shop/**\"");
        }
        if text.contains(['?', '#']) {
            return wrong("has a query", "write parameters as `parameters = { name = \"value\" }`");
        }
        let (path, below) = match text.strip_suffix("/**") {
            Some(path) => (path, true),
            None => (text, false),
        };
        if below && path.is_empty() {
            return Ok(Self { segments: Vec::new(), below });
        }
        let found = PathSegments::of(path.as_bytes());
        if found.count > SEGMENTS_MOST {
            return wrong(
                &format!("has more than {SEGMENTS_MOST} segments"),
                "shorten it and end it with \"/**\"",
            );
        }
        let mut segments = Vec::with_capacity(found.count);
        for segment in (0..found.count).filter_map(|at| found.get(at)) {
            match segment {
                b"*" => segments.push(PathSegment::Any),
                _ if segment.contains(&b'*') => {
                    let remedy = "write `*` for a whole segment, `**` at the end for all that is below, and %2A for the character";
                    return wrong("has a `*` beside other characters", remedy);
                }
                _ => segments.push(PathSegment::Named(UriDecoded::segment(segment).collect())),
            }
        }
        if segments.iter().filter(|segment| **segment == PathSegment::Any).count() > WILD_SEGMENTS_MOST {
            let what = format!("has more than {WILD_SEGMENTS_MOST} segments `*`");
            return wrong(&what, "end it with \"/**\" at the first of them");
        }
        Ok(Self { segments, below })
    }

    /// The path as [`PathPattern::parse`] reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for segment in &self.segments {
            out.push('/');
            match segment {
                PathSegment::Any => out.push('*'),
                PathSegment::Named(bytes) => uri::encode(bytes, &mut out),
            }
        }
        if self.below {
            out.push_str("/**");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_back_as_they_are_written() {
        for text in ["/", "/**", "/a", "/a/", "/a/*/b", "/a/**", "/*", "/%2A/%C3%A9%20/**"] {
            assert_eq!(PathPattern::parse(text).unwrap().text(), text);
        }
        assert_eq!(PathPattern::parse("/a//b/./../c").unwrap().text(), "/a/c");
        assert_eq!(PathPattern::parse("/%61").unwrap().text(), "/a");
    }

    #[test]
    fn wrong_paths_are_explained() {
        for (text, what) in [
            ("a", "does not begin with `/`"),
            ("/a?b", "has a query"),
            ("/a*", "has a `*` beside other characters"),
            ("/**/a", "has a `*` beside other characters"),
            ("/*/*/*/*", "has more than 3 segments `*`"),
            ("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "has more than 16 segments"),
        ] {
            assert_eq!(PathPattern::parse(text).unwrap_err().0, what, "{text}");
        }
    }
}
