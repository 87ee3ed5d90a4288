//! Compression of what back-ends have not compressed.

use std::fmt;

use crate::declare::{KeyForm, keys};
use crate::keys::Default::Is;
use crate::keys::KeyKind::{Flag, Integer, Size, Texts};
use crate::reader::{ConfigReader, DeclaredTable, ListForm, quoted};
use crate::value::{ConfigValue, is_token_char};

keys! {
    /// Compression of responses that back-ends have not compressed, for clients that take it; without this table there is none. Cannot be with
    /// other mechanisms than `proxy`. See [compression](mechanisms/proxy.md#compression).
    ["compression"] pub struct CompressionConfig {
        /// Whether there is any: `false` in `[pool.compression]` is for a pool that has none where the others have.
        "enabled" enabled: bool = Is("true"), Flag;
        /// Codings that are offered, the best first: `zstd` and `gzip`. Of those that a client likes best it gets the first.
        "codings" codings: Vec<ContentCoding> = Is("[\"zstd\", \"gzip\"]"), Texts("\"zstd\" or \"gzip\"") => Codings;
        /// The media types that are compressed, without parameters, at most 64: `text/*` is for all that begin with `text/` but
        /// `text/event-stream`, whose responses do not end; `+json` for all that end so.
        "types" types: Vec<MediaRange> = Is(DEFAULT_TYPES), Texts("a media type, e.g. \"application/json\", \"text/*\" or \"+json\"") => Types;
        /// The least content that is compressed, where its length is told.
        "min_size" min_bytes: u64 = Is("1KiB"), Size { min: 0, max: 1 << 30 };
        /// How much work is put into it: from 1, little, to 9, much.
        "level" level: u32 = Is("3"), Integer { min: 1, max: 9 };
        /// How many responses the front-end compresses at once. While there are so many, further ones go as they are.
        "responses" most_responses: usize = Is("128"), Integer { min: 1, max: 65_536 };
    }
}

/// A coding of content (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCoding {
    /// Zstandard (RFC 8878).
    Zstd,
    /// GZIP (RFC 1952).
    Gzip,
}

impl ContentCoding {
    /// All of them, the best first.
    pub const ALL: [Self; 2] = [Self::Zstd, Self::Gzip];

    /// Its name in fields.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }
}

struct Codings;

const CODINGS: ListForm = ListForm { most: 2, fewer: "name each once", remedy: "write \"zstd\" or \"gzip\"" };

impl KeyForm<Vec<ContentCoding>> for Codings {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Vec<ContentCoding>> {
        let Some(found) = section.found(key) else { return Some(ContentCoding::ALL.to_vec()) };
        let before = reader.errors.len();
        let codings = reader.list(section, key, CODINGS, |text| {
            let known = ContentCoding::ALL.into_iter().find(|coding| coding.name() == text);
            known.ok_or_else(|| (format!("{} is not offered here", quoted(text)), CODINGS.remedy.to_owned()))
        });
        let wrong = match &codings[..] {
            [] => Some(("nothing would be compressed", "name a coding, or write `enabled = false`")),
            [first, second] if first == second => Some(("names one twice", CODINGS.fewer)),
            _ => None,
        };
        if let Some((what, remedy)) = wrong.filter(|_| reader.errors.len() == before) {
            reader.wrong_value(&found, (what.to_owned(), remedy.to_owned()));
        }
        Some(codings)
    }

    fn show(codings: &Vec<ContentCoding>) -> Option<ConfigValue> {
        Some(ConfigValue::List(codings.iter().map(|coding| coding.name().to_owned()).collect()))
    }
}

/// Streams of events, each of which would hold the memory of a coder for hours: only for those who name them.
const EVENTS: &[u8] = b"text/event-stream";

/// Media types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaRange {
    /// In lower case: a whole one, what it begins with up to the slash, or what it ends with from the plus sign on.
    text: String,
}

impl MediaRange {
    /// Whether this type, without parameters, is one of them.
    #[must_use]
    pub fn contains(&self, media_type: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let length = media_type.len();
        let part = if text.ends_with(b"/") {
            media_type.get(..text.len()).filter(|_| !media_type.eq_ignore_ascii_case(EVENTS))
        } else if text.starts_with(b"+") {
            length.checked_sub(text.len()).map(|at| &media_type[at..])
        } else {
            Some(media_type)
        };
        part.is_some_and(|part| part.eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for MediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        f.write_str(if self.text.ends_with('/') { "*" } else { "" })
    }
}

struct Types;

const DEFAULT_TYPES: &str = "[\"text/*\", \"+json\", \"+xml\", \"application/json\", \"application/javascript\", \
                             \"application/xml\", \"application/wasm\"]";

const TYPES: ListForm = ListForm {
    most: 64,
    fewer: "name fewer types",
    remedy: "write e.g. \"application/json\", \"text/*\" or \"+json\"",
};

impl KeyForm<Vec<MediaRange>> for Types {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Vec<MediaRange>> {
        if section.found(key).is_none() {
            let words = DEFAULT_TYPES.split('"').skip(1).step_by(2);
            return Some(words.filter_map(media_range).collect());
        }
        Some(reader.list(section, key, TYPES, |text| {
            let wrong = || (format!("{} is no media type", quoted(text)), TYPES.remedy.to_owned());
            media_range(text).ok_or_else(wrong)
        }))
    }

    fn show(types: &Vec<MediaRange>) -> Option<ConfigValue> {
        Some(ConfigValue::List(types.iter().map(ToString::to_string).collect()))
    }
}

fn media_range(text: &str) -> Option<MediaRange> {
    let good = |part: &str| !part.is_empty() && part.chars().all(|c| is_token_char(c) && c != '*');
    let text = match text.split_once('/') {
        None if text.starts_with('+') && good(&text[1..]) => text.to_owned(),
        // It would read like an ending.
        _ if text.starts_with('+') => return None,
        Some((kind, "*")) if good(kind) => format!("{kind}/"),
        Some((kind, sub)) if good(kind) && good(sub) => text.to_owned(),
        _ => return None,
    };
    Some(MediaRange { text: text.to_ascii_lowercase() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let range = media_range("Text/*").unwrap();
        assert!(range.contains(b"text/html") && range.contains(b"TEXT/plain"));
        let events = media_range("text/event-stream").unwrap();
        assert!(!range.contains(b"text/event-Stream") && events.contains(b"text/event-Stream"));
        assert!(!range.contains(b"text") && !range.contains(b"application/text"));
        let json = media_range("application/json").unwrap();
        assert!(json.contains(b"application/JSON") && !json.contains(b"application/json5"));
        let suffix = media_range("+json").unwrap();
        assert!(suffix.contains(b"application/ld+JSON") && !suffix.contains(b"application/json"));
        assert!(!suffix.contains(b"json") && !suffix.contains(b""));
        let shown = [&range, &json, &suffix].map(ToString::to_string);
        assert_eq!(shown, ["text/*", "application/json", "+json"]);
        for bad in
            ["", "text", "*/*", "text/", "/x", "text/*x", "text/html; charset=utf-8", "+", "+a/b", "a+json"]
        {
            assert_eq!(media_range(bad), None, "{bad}");
        }
    }
}
