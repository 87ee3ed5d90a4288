//! Requests and their expected responses.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use plimsoll_origin::synthetic;

/// A request to send.
#[derive(Debug, Clone)]
pub struct Req {
    /// GET, POST or another.
    pub method: Method,
    /// Path and query, percent-encoded; if invalid, the request fails as [`super::RequestFailure::Unusable`].
    pub path: String,
    /// Further header fields. Without `Host` the address of the target is sent as such.
    pub headers: HeaderMap,
    /// The body; `Content-Length` follows from it.
    pub body: Bytes,
    /// Expected body of a response with status 200.
    pub expect: Expect,
}

/// Expected body of a response with status 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expect {
    /// Anything.
    #[default]
    Anything,
    /// This many bytes.
    Length(u64),
    /// The generated document of this number and size in bytes: every byte is checked. See
    /// [`plimsoll_origin::synthetic`].
    Document {
        /// The document's number.
        number: u64,
        /// Its length in bytes.
        size_bytes: u64,
    },
}

impl Req {
    /// A GET request.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            expect: Expect::Anything,
        }
    }

    /// A POST request with this body.
    #[must_use]
    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, body: body.into(), ..Self::get(path) }
    }

    /// Sets a header field.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the expectation.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }

    /// The HTTP request; `None` when the path is not a URI.
    pub(super) fn to_http(&self, target: SocketAddr, keep_alive: bool) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.parse::<Uri>().ok().filter(|uri| uri.path_and_query().is_some())?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&target.to_string()).ok()?);
        if !keep_alive {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        Some(request)
    }
}

impl Expect {
    /// Whether `bytes` may be at `offset_bytes` of the body.
    pub(super) fn allows(self, offset_bytes: u64, bytes: &[u8]) -> bool {
        let end_bytes = offset_bytes.saturating_add(bytes.len() as u64);
        match self {
            Self::Anything => true,
            Self::Length(length) => end_bytes <= length,
            Self::Document { number, size_bytes } => {
                end_bytes <= size_bytes && synthetic::matches(number, offset_bytes, bytes)
            }
        }
    }

    /// Whether the body may have this length.
    pub(super) fn ends_at(self, length_bytes: u64) -> bool {
        match self {
            Self::Anything => true,
            Self::Length(length) => length == length_bytes,
            Self::Document { size_bytes, .. } => size_bytes == length_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations() {
        assert!(Expect::Anything.allows(5, b"abc") && Expect::Anything.ends_at(9));
        assert!(Expect::Length(3).allows(0, b"abc") && Expect::Length(3).ends_at(3));
        assert!(!Expect::Length(3).allows(1, b"abc") && !Expect::Length(3).ends_at(2));
        let mut bytes = [0; 20];
        synthetic::fill(7, 0, &mut bytes);
        let document = Expect::Document { number: 7, size_bytes: 20 };
        assert!(document.allows(0, &bytes) && document.allows(8, &bytes[8..]) && document.ends_at(20));
        assert!(!document.allows(1, &bytes[..10]) && !document.ends_at(19));
    }

    #[test]
    fn paths_that_are_none_are_refused() {
        let target = "127.0.0.1:80".parse().unwrap();
        assert!(Req::get("/a b").to_http(target, true).is_none());
        let request = Req::get("/a?b").to_http(target, false).unwrap();
        assert_eq!(request.headers()[HOST], "127.0.0.1:80");
        assert_eq!(request.headers()[CONNECTION], "close");
        let named = Req::get("/").header(HOST, HeaderValue::from_static("a.example"));
        assert_eq!(named.to_http(target, true).unwrap().headers()[HOST], "a.example");
    }
}
