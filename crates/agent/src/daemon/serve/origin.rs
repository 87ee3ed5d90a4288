//! Answers by the origin, written to the connection as HTTP/1.1.

use std::io::Write as _;
use std::time::{Instant, SystemTime};

use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;

use super::super::client::ClientConnection;
use super::super::closing::Closing;
use super::super::head::{self, Foreign, Outline};
use super::answer::{AfterAnswer, Answer};
use plimsoll_origin::{OriginBody, OriginService};

/// Answers the request at the start of the client's input.
pub(super) async fn answer(
    service: &OriginService,
    client: &mut ClientConnection,
    outline: Outline,
    connection: &impl Closing,
) -> Answer {
    let bytes = client.input.split_to(outline.bytes.min(client.input.len()));
    let Some(parts) = head::parts(&bytes) else { return refuse(client, Foreign::Malformed).await };
    let response = service.answer(&parts).await;
    let kind = AnswerFraming::of(outline, response.headers(), connection);
    write(client, response, kind).await
}

/// How an answer is framed.
#[derive(Clone, Copy)]
pub(super) struct AnswerFraming {
    pub(super) keep_alive: bool,
    old: bool,
    is_head: bool,
}

impl AnswerFraming {
    pub(super) fn of(outline: Outline, headers: &HeaderMap, closing: &impl Closing) -> Self {
        let keep_alive = outline.keep_alive && !closing.is_closing() && !says_close(headers);
        Self { keep_alive, old: outline.old, is_head: outline.is_head }
    }
}

fn says_close(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONNECTION).iter().any(|value| head::has_token(value.as_bytes(), b"close"))
}

pub(super) async fn write(
    client: &mut ClientConnection,
    response: Response<OriginBody>,
    kind: AnswerFraming,
) -> Answer {
    let (parts, mut body) = response.into_parts();
    let status = parts.status;
    let without = kind.is_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let head = head_of(status, &parts.headers, body.size_hint().exact(), kind);
    let then = if kind.keep_alive { AfterAnswer::KeepAlive } else { AfterAnswer::Close };
    let mut answer =
        Answer { status: status.as_u16(), complete: false, content_bytes: 0, first_byte_at: None, then };
    let mut head = &head[..];
    if without {
        answer.first_byte_at = Some(Instant::now());
        return match client.write(head, b"").await {
            Ok(()) => Answer { complete: true, ..answer },
            Err(_) => Answer { then: AfterAnswer::Abort, ..answer },
        };
    }
    let before = client.written_bytes + head.len() as u64;
    loop {
        let data = match body.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            // Cut the connection off, so that the client notices.
            Some(Err(_)) => return Answer { then: AfterAnswer::Abort, ..answer },
            None if head.is_empty() => return Answer { complete: true, ..answer },
            None => bytes::Bytes::new(),
        };
        // Before the client takes it, which may last.
        answer.first_byte_at.get_or_insert_with(Instant::now);
        let written = client.write(head, &data).await;
        answer.content_bytes = client.written_bytes.saturating_sub(before);
        if written.is_err() {
            return Answer { then: AfterAnswer::Abort, ..answer };
        }
        head = b"";
    }
}

/// The head of an answer, as hyper writes it for the origin's own listener: with `Date`, `Content-Length` if
/// there may be content, and `Connection` if it differs from the default.
pub(super) fn head_of(
    status: StatusCode,
    headers: &HeaderMap,
    length_bytes: Option<u64>,
    kind: AnswerFraming,
) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    let reason = status.canonical_reason().unwrap_or_default();
    // Writing to memory does not fail.
    let _ = write!(head, "HTTP/1.1 {} {reason}\r\n", status.as_str());
    for (name, value) in headers {
        if name == header::CONNECTION || name == header::DATE {
            continue;
        }
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let has_length = headers.contains_key(header::CONTENT_LENGTH);
    let may_have = !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if let Some(length_bytes) = length_bytes.filter(|_| may_have && !has_length) {
        let _ = write!(head, "content-length: {length_bytes}\r\n");
    }
    let _ = write!(head, "date: {}\r\n", httpdate::fmt_http_date(SystemTime::now()));
    match (kind.keep_alive, kind.old) {
        (false, _) => head.extend_from_slice(b"connection: close\r\n"),
        (true, true) => head.extend_from_slice(b"connection: keep-alive\r\n"),
        (true, false) => {}
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Refuses a request that cannot be served and ends the connection.
pub(super) async fn refuse(client: &mut ClientConnection, why: Foreign) -> Answer {
    client.input.clear();
    let status = match why {
        Foreign::Body => StatusCode::METHOD_NOT_ALLOWED,
        Foreign::Malformed => StatusCode::BAD_REQUEST,
        Foreign::TooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    };
    answer_short(client, status).await
}

/// Answers with a status and a line of text and ends the connection.
pub(in super::super) async fn answer_short(client: &mut ClientConnection, status: StatusCode) -> Answer {
    let text = format!("{status}\n");
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD, OPTIONS"));
    }
    let kind = AnswerFraming { keep_alive: false, old: false, is_head: false };
    let head = head_of(status, &headers, Some(text.len() as u64), kind);
    let complete = client.write(&head, text.as_bytes()).await.is_ok();
    Answer {
        status: status.as_u16(),
        complete,
        content_bytes: if complete { text.len() as u64 } else { 0 },
        first_byte_at: complete.then(Instant::now),
        then: if complete { AfterAnswer::Close } else { AfterAnswer::Abort },
    }
}
