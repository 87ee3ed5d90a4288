//! Content codings of responses: which are compressed, and what that changes of their heads.

use plimsoll_config::{CompressionConfig, ContentCoding, FieldEdit};

use super::accept_encoding::{accepted, has};
use super::fields::{is_replaced, push, trim};
use super::{Framing, HttpVersion};

/// The coding for the client of a request of this version with these fields, where responses are compressed.
pub(super) fn of_client(
    compression: Option<&CompressionConfig>,
    version: HttpVersion,
    fields: &[httparse::Header<'_>],
) -> Option<ContentCoding> {
    let compression = compression.filter(|_| version != HttpVersion::Http10)?;
    accepted(fields, &compression.codings)
}

/// How the responses to a request are compressed.
#[derive(Clone, Copy)]
pub(crate) struct ResponseCompression<'a> {
    pub(crate) config: &'a CompressionConfig,
    /// By what, if the client takes that.
    pub(crate) coding: Option<ContentCoding>,
    /// Whether another body may be compressed now; asked for bodies alone.
    pub(crate) has_room: &'a dyn Fn() -> bool,
    /// The head of the request, and perhaps more behind it.
    pub(crate) request: &'a [u8],
}

/// What compression changes of the head of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CodedHead {
    /// The coding that the content gets, or would get.
    pub(super) coding: Option<ContentCoding>,
    /// It speaks of content that is coded.
    pub(super) is_coded: bool,
    /// Other clients get other content.
    varies: bool,
}

impl CodedHead {
    /// Of a response with this status and these fields, for which there are these changes. `length`: of its content, if that is told.
    pub(super) fn of(
        compression: &ResponseCompression<'_>,
        (status, framing, to_head): (u16, Framing, bool),
        (fields, edits): (&[httparse::Header<'_>], &[FieldEdit]),
        length: Option<u64>,
    ) -> Self {
        if status == 304 {
            // It has no type. But the client has what was compressed here if it names what a back-end has never given. A cache may ask so
            // for a client that takes no coding: that one must not get what is compressed.
            let tag = fields.iter().find(|field| field.name.eq_ignore_ascii_case("etag"));
            let tag = tag.filter(|_| compression.coding.is_some());
            let is_coded = tag.is_some_and(|tag| names_weakly(compression.request, tag.value));
            return Self { coding: None, is_coded, varies: is_coded };
        }
        let has_content = framing != Framing::None || (to_head && length != Some(0));
        // 206: a part of one thing is none of another.
        let is_whole = has_content && status >= 200 && !matches!(status, 204..=206);
        let is_long = length.is_none_or(|length| length >= compression.config.min_bytes);
        let is_fixed = edits.iter().any(says_of_bytes);
        let facts = ContentFacts::gather(fields, edits);
        if !is_whole || !is_long || is_fixed || !facts.is_compressed_by(compression.config) {
            return Self::default();
        }
        let has_body = framing != Framing::None;
        let coding = compression.coding.filter(|_| !has_body || (compression.has_room)());
        Self { coding, is_coded: coding.is_some(), varies: true }
    }

    /// Writes a field of the response, unless it does not hold for what is coded.
    pub(super) fn push(self, field: &httparse::Header<'_>, out: &mut Vec<u8>) {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        let value = field.value;
        match field.name.len() {
            13 if is("accept-ranges") => {}
            16 if is("content-encoding") => {}
            // The content is the same, its bytes are not (RFC 9110, section 8.8.1).
            4 if is("etag") && !value.starts_with(b"W/") => {
                out.extend_from_slice(b"ETag: W/");
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
            _ => push(out, field.name.as_bytes(), value),
        }
    }

    /// Writes the fields that it adds.
    pub(super) fn push_own(self, fields: &[httparse::Header<'_>], edits: &[FieldEdit], out: &mut Vec<u8>) {
        let says_so = |(name, value): (&str, &[u8])| {
            name.eq_ignore_ascii_case("vary") && (has(value, "accept-encoding") || has(value, "*"))
        };
        if self.varies && !passed_on(fields, edits).any(says_so) {
            push(out, b"Vary", b"Accept-Encoding");
        }
        if let Some(coding) = self.coding {
            push(out, b"Content-Encoding", coding.name().as_bytes());
        }
    }
}

/// The fields of a response after these changes.
fn passed_on<'a>(
    fields: &'a [httparse::Header<'a>],
    edits: &'a [FieldEdit],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let stay = fields.iter().filter(|field| !is_replaced(edits, field.name));
    let come = edits.iter().enumerate().filter_map(|(at, edit)| match edit {
        FieldEdit::Set(name, value) | FieldEdit::Add(name, value) if !is_replaced(&edits[at + 1..], name) => {
            Some((&**name, value.as_bytes()))
        }
        _ => None,
    });
    stay.map(|field| (field.name, field.value)).chain(come)
}

/// Whether the request with this head asks for something else than what is named so, by the weak form of this strong name.
fn names_weakly(request: &[u8], tag: &[u8]) -> bool {
    if !tag.starts_with(b"\"") {
        return false;
    }
    let weak = [b"W/", tag].concat();
    let lines = request.split(|&b| b == b'\n').take_while(|line| !matches!(*line, b"" | b"\r"));
    lines
        .filter(|line| line.get(..14).is_some_and(|name| name.eq_ignore_ascii_case(b"if-none-match:")))
        .any(|line| memchr::memmem::find(line, &weak).is_some())
}

/// Whether a change of fields says something of content that would not hold for what is compressed.
fn says_of_bytes(edit: &FieldEdit) -> bool {
    const NAMES: [&str; 3] = ["etag", "accept-ranges", "content-encoding"];
    match edit {
        FieldEdit::Set(name, _) | FieldEdit::Add(name, _) => {
            NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
        }
        _ => false,
    }
}

/// Trailers for content that was compressed: without what holds for its bytes as they were.
pub(crate) fn coded_trailers(trailers: &[u8]) -> Vec<u8> {
    let lines = trailers.split_inclusive(|&b| b == b'\n');
    let is_of_bytes = |line: &[u8]| {
        let name = line.split(|&b| b == b':').next().unwrap_or_default();
        OF_BYTES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    lines.filter(|line| !is_of_bytes(line)).flatten().copied().collect()
}

/// Fields that hold for the bytes of some content, or sign them.
const OF_BYTES: [&str; 6] =
    ["digest", "content-md5", "content-digest", "repr-digest", "signature", "content-range"];

/// What the fields of a response say of its content, as far as compression has to know.
#[derive(Debug, Default)]
struct ContentFacts<'a> {
    media_type: &'a [u8],
    /// It is coded already, is a part, is not to be changed, or has a digest.
    is_fixed: bool,
}

impl<'a> ContentFacts<'a> {
    fn gather(fields: &'a [httparse::Header<'a>], edits: &'a [FieldEdit]) -> Self {
        let mut facts = Self::default();
        for (name, value) in passed_on(fields, edits) {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            match name.len() {
                12 if is("content-type") => {
                    facts.media_type = trim(value.split(|&b| b == b';').next().unwrap_or_default());
                }
                16 if is("content-encoding") => facts.is_fixed |= !value.eq_ignore_ascii_case(b"identity"),
                13 if is("cache-control") => facts.is_fixed |= has(value, "no-transform"),
                7 if is("trailer") => facts.is_fixed |= OF_BYTES.into_iter().any(|name| has(value, name)),
                _ => facts.is_fixed |= OF_BYTES.into_iter().any(is),
            }
        }
        facts
    }

    fn is_compressed_by(&self, config: &CompressionConfig) -> bool {
        // gRPC has codings of its own for each message.
        let is_grpc = self.media_type.get(..16).is_some_and(|b| b.eq_ignore_ascii_case(b"application/grpc"));
        !self.is_fixed && !is_grpc && config.types.iter().any(|range| range.contains(self.media_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(named: &'a [(&'a str, &'a str)]) -> Vec<httparse::Header<'a>> {
        named.iter().map(|&(name, value)| httparse::Header { name, value: value.as_bytes() }).collect()
    }

    fn config() -> CompressionConfig {
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n[compression]\n";
        plimsoll_config::Config::parse(text, "test.toml").unwrap().compression.unwrap()
    }

    fn coded(status: u16, framing: Framing, named: &[(&str, &str)], request: &str) -> CodedHead {
        let (config, fields) = (config(), fields(named));
        let coding = Some(ContentCoding::Gzip);
        let compression =
            ResponseCompression { config: &config, coding, has_room: &|| true, request: request.as_bytes() };
        let length = match framing {
            Framing::Length(length) => Some(length),
            _ => None,
        };
        CodedHead::of(&compression, (status, framing, false), (&fields, &[]), length)
    }

    #[test]
    fn a_304_speaks_of_what_its_client_can_read() {
        let text = "[compression]\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n";
        let config = plimsoll_config::Config::parse(text, "test.toml").unwrap();
        let config = config.compression.unwrap();
        let of = |coding| {
            let request = b"GET / HTTP/1.1\r\nIf-None-Match: W/\"a\"\r\n\r\n";
            let compression = ResponseCompression { config: &config, coding, has_room: &|| false, request };
            let fields = fields(&[("ETag", "\"a\"")]);
            CodedHead::of(&compression, (304, Framing::None, false), (&fields, &[]), None).is_coded
        };
        assert!(of(Some(ContentCoding::Gzip)));
        assert!(!of(None), "a cache asks for a client without codings");
    }

    #[test]
    fn trailers_of_bytes_do_not_hold_for_what_is_coded() {
        let trailers = b"X-Sum: 7\r\nContent-Digest: sha-256=:x:\r\nServer-Timing: a\r\n";
        assert_eq!(coded_trailers(trailers), b"X-Sum: 7\r\nServer-Timing: a\r\n");
    }

    #[test]
    fn what_is_compressed() {
        let of = |status, framing, named: &[(&str, &str)]| {
            let coded = coded(status, framing, named, "");
            assert_eq!((coded.is_coded, coded.varies), (coded.coding.is_some(), coded.coding.is_some()));
            coded.coding.is_some()
        };
        let html = ("Content-Type", "Text/HTML ; charset=utf-8");
        for status in [200, 201, 404, 500] {
            assert!(of(status, Framing::Chunked, &[html]));
        }
        for status in [100, 103, 205, 206] {
            assert!(!of(status, Framing::Chunked, &[html]));
        }
        assert!(of(200, Framing::UntilClose, &[html]) && !of(200, Framing::None, &[html]));
        assert!(of(200, Framing::Length(1024), &[html]) && !of(200, Framing::Length(1023), &[html]));
        for open in [("Content-Encoding", "identity"), ("Cache-Control", "max-age=5"), ("Trailer", "X-Sum")] {
            assert!(of(200, Framing::Chunked, &[html, open]), "{open:?}");
        }
        for other in ["image/png", "application/grpc+json", "application/octet-stream", ""] {
            assert!(!of(200, Framing::Chunked, &[("Content-Type", other)]), "{other}");
        }
        for fixed in [
            ("content-encoding", "br"),
            ("Content-Range", "bytes 0-1/2"),
            ("Cache-Control", "public, No-Transform"),
            ("Content-MD5", "x"),
            ("Content-Digest", "x"),
            ("Repr-Digest", "x"),
            ("Signature", "x"),
            ("Trailer", "Digest"),
        ] {
            assert!(!of(200, Framing::Chunked, &[html, fixed]), "{fixed:?}");
        }
    }

    #[test]
    fn what_has_not_changed_has_the_name_by_which_it_was_asked_for() {
        let request = |value: &str| {
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: {value}\r\nX: y\r\n\r\nIf-None-Match: W/\"b\"\r\n"
            )
        };
        let is_weak = |value: &str, tag: &str| {
            let coded = coded(304, Framing::None, &[("ETag", tag)], &request(value));
            assert_eq!((coded.coding, coded.varies), (None, coded.is_coded));
            coded.is_coded
        };
        assert!(is_weak("W/\"a\"", "\"a\"") && is_weak("\"x\", W/\"a\"", "\"a\""));
        assert!(!is_weak("\"a\"", "\"a\"") && !is_weak("*", "\"a\"") && !is_weak("W/\"ab\"", "\"a\""));
        assert!(!is_weak("W/\"a\"", "W/\"a\""), "the back-end has given it itself");
        assert!(!is_weak("W/\"a\"", "\"b\""), "a body is no head");
    }
}
