//! Answers by the origin whose rest another node sends: the beginning here, and the rest there.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use plimsoll_origin::{OriginBody, OriginService};
use plimsoll_wire::cloning::SentPart;

use super::super::client::ClientConnection;
use super::super::closing::Closing;
use super::super::head::{self, Outline};
use super::answer::{AfterAnswer, Answer};
use super::origin::{self, AnswerFraming};

/// Longest `ETag` of an answer that is divided.
const MOST_ETAG_BYTES: usize = 256;

/// An answer whose beginning is written.
pub(in super::super) struct BegunAnswer {
    body: OriginBody,
    /// Read and not written.
    read: Bytes,
    answer: Answer,
    /// The request's head.
    pub(in super::super) head: Vec<u8>,
    /// What is left.
    pub(in super::super) sent: SentPart,
}

/// What came of beginning an answer.
pub(in super::super) enum Beginning {
    /// It was written whole: it is no document of which a rest could be sent.
    Whole(Answer),
    Begun(Box<BegunAnswer>),
}

/// Answers the request at the start of the client's input with so many bytes of its content.
pub(in super::super) async fn begin(
    service: &OriginService,
    client: &mut ClientConnection,
    outline: Outline,
    closing: &impl Closing,
    first_bytes: u64,
) -> Beginning {
    let bytes = client.input.split_to(outline.bytes.min(client.input.len()));
    let Some(parts) = head::parts(&bytes) else {
        return Beginning::Whole(origin::refuse(client, head::Foreign::Malformed).await);
    };
    let plain = parts.method == Method::GET && !parts.headers.contains_key(header::RANGE);
    let response = service.answer(&parts).await;
    let kind = AnswerFraming::of(outline, response.headers(), closing);
    let size = response.body().size_hint().exact().filter(|size| *size > first_bytes);
    let (Some(size), Some(etag), StatusCode::OK, true) =
        (size, etag_of(response.headers()), response.status(), plain)
    else {
        return Beginning::Whole(origin::write(client, response, kind).await);
    };
    let (parts, mut body) = response.into_parts();
    let head = origin::head_of(parts.status, &parts.headers, Some(size), kind);
    let then = if kind.keep_alive { AfterAnswer::KeepAlive } else { AfterAnswer::Close };
    let mut answer =
        Answer { status: 200, then, first_byte_at: Some(std::time::Instant::now()), ..Answer::NONE };
    let mut head = &head[..];
    let mut left = usize::try_from(first_bytes).unwrap_or(usize::MAX);
    let mut read = Bytes::new();
    while left > 0 || !head.is_empty() {
        if left > 0 {
            match body.frame().await {
                Some(Ok(frame)) => read = frame.into_data().unwrap_or_default(),
                _ => return Beginning::Whole(Answer { then: AfterAnswer::Abort, ..answer }),
            }
        }
        let now = read.split_to(left.min(read.len()));
        if client.write(head, &now).await.is_err() {
            return Beginning::Whole(Answer { then: AfterAnswer::Abort, ..answer });
        }
        answer.content_bytes += now.len() as u64;
        left -= now.len();
        head = b"";
    }
    let sent = SentPart { from: first_bytes, left: size - first_bytes, etag };
    Beginning::Begun(Box::new(BegunAnswer { body, read, answer, head: bytes.to_vec(), sent }))
}

impl BegunAnswer {
    /// What follows for the connection once all is sent, whoever sends it.
    pub(in super::super) fn then(&self) -> AfterAnswer {
        self.answer.then
    }

    /// Sends the rest here.
    pub(in super::super) async fn finish(self, client: &mut ClientConnection) -> Answer {
        write_left(client, self.read, self.body, self.answer).await
    }
}

/// Writes what was read and what is left of the body; `answer` says what was written before.
async fn write_left(
    client: &mut ClientConnection,
    mut read: Bytes,
    mut body: OriginBody,
    mut answer: Answer,
) -> Answer {
    loop {
        if client.write(b"", &read).await.is_err() {
            return Answer { then: AfterAnswer::Abort, ..answer };
        }
        answer.content_bytes += read.len() as u64;
        match body.frame().await {
            Some(Ok(frame)) => read = frame.into_data().unwrap_or_default(),
            Some(Err(_)) => return Answer { then: AfterAnswer::Abort, ..answer },
            None => return Answer { complete: true, ..answer },
        }
    }
}

/// The rest of an answer that began elsewhere; `None` when it is none of what is here.
pub(in super::super) async fn rest(
    service: &OriginService,
    head: &[u8],
    sent: &SentPart,
) -> Option<Response<OriginBody>> {
    let mut parts = head::parts(head)?;
    for condition in [
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
        header::IF_RANGE,
    ] {
        parts.headers.remove(condition);
    }
    let range = HeaderValue::from_str(&format!("bytes={}-", sent.from)).ok()?;
    parts.headers.insert(header::RANGE, range);
    let response = service.answer(&parts).await;
    let is_rest = response.status() == StatusCode::PARTIAL_CONTENT
        && response.body().size_hint().exact() == Some(sent.left)
        && etag_of(response.headers()).as_deref() == Some(&*sent.etag);
    is_rest.then_some(response)
}

/// Writes the content of such an answer, without a head.
pub(in super::super) async fn write_rest(
    client: &mut ClientConnection,
    response: Response<OriginBody>,
) -> Answer {
    let answer = Answer { status: 200, then: AfterAnswer::KeepAlive, ..Answer::NONE };
    write_left(client, Bytes::new(), response.into_body(), answer).await
}

fn etag_of(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(header::ETAG)?.to_str().ok()?;
    // A weak one does not say that bytes are equal.
    (etag.len() <= MOST_ETAG_BYTES && !etag.starts_with("W/")).then(|| etag.to_owned())
}
