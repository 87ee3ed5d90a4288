//! From the start of a request to its kind, class and size.
//!
//! ```text
//! the class table knows a class              dynamic, of that class, of the document's size where the file table has it
//! the rule says that it is computed          dynamic, of no class
//! the file table does not have the path      invalid, if it is complete; else static or conditional, of no known size
//! If-Modified-Since is not before the        conditional
//!   document's last change
//! otherwise                                  static, of the document's size
//! ```
//!
//! A table that is not complete, or empty, makes nothing invalid: what it does not have may have come since. A request with
//! If-Modified-Since for such a document counts as conditional.

use plimsoll_classes::ClassTable;
use plimsoll_policy::{BackendId, Nanos, SniffedKind, SniffedRequest, TargetId};

use crate::file_table::{FileTable, SiteFile};
use crate::request_start::RequestStart;

/// Which requests are computed, beside those of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DynamicRule {
    /// Those with a query or of another method than GET and HEAD, and those for `/cgi-bin/`.
    #[default]
    Usual,
    /// Only those of a class.
    Classes,
}

impl DynamicRule {
    fn is_dynamic(self, start: &RequestStart<'_>) -> bool {
        match self {
            Self::Usual => {
                !matches!(start.method, b"GET" | b"HEAD")
                    || start.path_and_query.contains(&b'?')
                    || start.path_and_query.starts_with(b"/cgi-bin/")
            }
            Self::Classes => false,
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SniffedContent {
    /// Its kind; never a connection, which no bytes tell.
    pub kind: SniffedKind,
    /// The document.
    pub target: TargetId,
    /// Its class; 0 for none.
    pub class: u16,
    /// Size of the document, where it is known.
    pub size_bytes: Option<u64>,
}

impl SniffedContent {
    /// The same as a request on its way to `backend`, on a connection with this round trip.
    #[must_use]
    pub fn to(self, backend: BackendId, round_trip: Nanos) -> SniffedRequest {
        let Self { kind, target, class, size_bytes } = self;
        SniffedRequest { backend, kind, target, class, size_bytes, round_trip }
    }
}

/// The tables by which requests are told apart. See the module's documentation.
#[derive(Debug, Clone)]
pub struct Sniffer {
    /// Classes of dynamic requests; may be empty.
    pub classes: ClassTable,
    /// The documents of the site; may be empty.
    pub files: FileTable,
    /// Whether `files` has every document of the site, so that others are invalid.
    pub is_complete: bool,
    /// Which requests are dynamic beside those of a class.
    pub rule: DynamicRule,
}

impl Sniffer {
    /// What the bytes of a packet ask for; `None` where no request begins with them: a later part of one, or no HTTP/1.
    #[must_use]
    pub fn sniff(&self, payload: &[u8]) -> Option<SniffedContent> {
        RequestStart::read(payload).map(|start| self.content(&start))
    }

    /// What a request asks for.
    #[must_use]
    pub fn content(&self, start: &RequestStart<'_>) -> SniffedContent {
        let class = match self.classes.is_empty() {
            true => 0,
            false => self.classes.class_of(start.method, start.path_and_query),
        };
        let target = TargetId::from_key(start.path_and_query);
        let of = |kind| SniffedContent { kind, target, class, size_bytes: None };
        // The answer to HEAD has no body.
        let size_of = |file: SiteFile| if start.method == b"HEAD" { 0 } else { file.size_bytes };
        if class != 0 {
            // A class says what it costs; how much its answer has is known all the same.
            let size_bytes = self.files.find(start.path()).map(|(_, file)| size_of(file));
            return SniffedContent { size_bytes, ..of(SniffedKind::Dynamic) };
        }
        if self.rule.is_dynamic(start) {
            return of(SniffedKind::Dynamic);
        }
        let since = start.if_modified_since();
        let Some((target, file)) = self.files.find(start.path()) else {
            return of(match (self.is_complete && !self.files.is_empty(), since) {
                (true, _) => SniffedKind::Invalid,
                (false, Some(_)) => SniffedKind::Conditional,
                (false, None) => SniffedKind::Static,
            });
        };
        let kind = match since {
            Some(since) if since >= file.modified_unix_s => SniffedKind::Conditional,
            _ => SniffedKind::Static,
        };
        SniffedContent { kind, target, class, size_bytes: Some(size_of(file)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: &str = r#"
        [[class]]
        name = "search"
        cpu_s = 0.02

        [[pattern]]
        class = "search"
        path = "/find/**"
    "#;

    fn sniffer(files: bool) -> Sniffer {
        let mut table = FileTable::new(10);
        if files {
            // Sun, 06 Nov 1994 08:49:37 GMT.
            table.set(b"/a.html", SiteFile { size_bytes: 5000, modified_unix_s: 784_111_777 }).unwrap();
            table.set(b"/find/b.bin", SiteFile { size_bytes: 70, modified_unix_s: 0 }).unwrap();
        }
        let classes = ClassTable::read(CLASSES).unwrap().table;
        Sniffer { classes, files: table, is_complete: true, rule: DynamicRule::Usual }
    }

    fn kind(sniffer: &Sniffer, line: &str, since: Option<&str>) -> SniffedContent {
        let since = since.map(|time| format!("If-Modified-Since: {time}\r\n")).unwrap_or_default();
        sniffer.sniff(format!("{line} HTTP/1.1\r\nHost: x\r\n{since}\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn kinds_with_a_file_table() {
        let sniffer = sniffer(true);
        let of = |line, since| kind(&sniffer, line, since).kind;
        assert_eq!(of("GET /a.html", None), SniffedKind::Static);
        assert_eq!(of("GET /a.html", Some("Sun, 06 Nov 1994 08:49:37 GMT")), SniffedKind::Conditional);
        assert_eq!(of("GET /a.html", Some("Sun, 06 Nov 1994 08:49:36 GMT")), SniffedKind::Static);
        assert_eq!(of("GET /b.html", Some("Sun, 06 Nov 1994 08:49:37 GMT")), SniffedKind::Invalid);
        assert_eq!(of("GET /a.html?x", None), SniffedKind::Dynamic);
        assert_eq!(of("POST /a.html", None), SniffedKind::Dynamic);
        assert_eq!(of("GET /cgi-bin/x", None), SniffedKind::Dynamic);
        let search = kind(&sniffer, "GET /find/it", None);
        assert_eq!((search.kind, search.class, search.size_bytes), (SniffedKind::Dynamic, 1, None));
        let listed = kind(&sniffer, "GET /find/b.bin", None);
        assert_eq!((listed.kind, listed.class, listed.size_bytes), (SniffedKind::Dynamic, 1, Some(70)));
        let document = kind(&sniffer, "GET http://x/a.html", None);
        assert_eq!((document.size_bytes, document.target), (Some(5000), TargetId::from_key(b"/a.html")));
        assert_eq!(kind(&sniffer, "HEAD /a.html", None).size_bytes, Some(0));
        let sent = document.to(BackendId(3), Nanos::from_millis(5));
        assert_eq!((sent.backend, sent.round_trip), (BackendId(3), Nanos::from_millis(5)));
    }

    #[test]
    fn unknown_ones_are_not_invalid_unless_the_table_is_complete() {
        let sniffer = Sniffer { is_complete: false, ..sniffer(true) };
        let unknown = kind(&sniffer, "GET /b.html", None);
        assert_eq!((unknown.kind, unknown.size_bytes), (SniffedKind::Static, None));
        let since = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(kind(&sniffer, "GET /b.html", since).kind, SniffedKind::Conditional);
        assert_eq!(kind(&sniffer, "GET /a.html", None).size_bytes, Some(5000));
    }

    #[test]
    fn kinds_without_one() {
        let mut sniffer = sniffer(false);
        let of = |line, since| kind(&sniffer, line, since).kind;
        assert_eq!(of("GET /b.html", None), SniffedKind::Static);
        assert_eq!(of("GET /b.html", Some("Sun, 06 Nov 1994 08:49:37 GMT")), SniffedKind::Conditional);
        sniffer.rule = DynamicRule::Classes;
        assert_eq!(kind(&sniffer, "GET /b.html?x", None).kind, SniffedKind::Static);
        assert_eq!(kind(&sniffer, "GET /find/?x", None).kind, SniffedKind::Dynamic);
        assert_eq!(sniffer.sniff(b"\x16\x03\x01\x00\xff"), None);
        assert_eq!(sniffer.sniff(b"the rest of a body"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), cut in 0usize..80) {
            let sniffer = sniffer(true);
            let _ = sniffer.sniff(&bytes);
            let text = b"GET /a.html?q=%zz&&= HTTP/1.1\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
            let mut mixed = text[..cut.min(text.len())].to_vec();
            mixed.extend_from_slice(&bytes);
            let _ = sniffer.sniff(&mixed);
        }
    }
}
