//! Responses of the admin API.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

/// A response.
pub type Reply = Response<Full<Bytes>>;

/// A request that is refused.
#[derive(Debug)]
pub struct Refused {
    status: StatusCode,
    error: String,
    remedy: String,
    /// Methods that the path knows, for 405.
    allow: Option<&'static str>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
    remedy: &'a str,
}

impl Refused {
    /// `error` says what is wrong, `remedy` what would be right.
    pub fn new(status: StatusCode, error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status, error: error.into(), remedy: remedy.into(), allow: None }
    }

    /// The path does not know the method.
    pub fn method(allow: &'static str) -> Self {
        let refused = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this path does not know the method",
            format!("use {allow}"),
        );
        Self { allow: Some(allow), ..refused }
    }

    /// The response.
    pub fn reply(&self) -> Reply {
        let mut reply = json(self.status, &ErrorBody { error: &self.error, remedy: &self.remedy });
        if let Some(allow) = self.allow {
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"plimsoll\"");
            reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        reply
    }
}

/// A JSON response.
pub fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    of_json(status, serde_json::to_string_pretty(value))
}

/// The same on one line, for long values.
pub fn json_line(status: StatusCode, value: &impl Serialize) -> Reply {
    of_json(status, serde_json::to_string(value))
}

fn of_json(status: StatusCode, encoded: serde_json::Result<String>) -> Reply {
    match encoded {
        Ok(mut text) => {
            text.push('\n');
            of(status, "application/json", text)
        }
        Err(error) => {
            of(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", format!("{error}\n"))
        }
    }
}

/// A text response.
pub fn text(status: StatusCode, text: impl Into<String>) -> Reply {
    of(status, "text/plain; charset=utf-8", text.into())
}

/// A response of this media type.
pub fn of(status: StatusCode, media_type: &'static str, body: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    let fields = reply.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}
