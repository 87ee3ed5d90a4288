//! Answers requests: makes the response from the head of the request.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use foldhash::fast::FixedState;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts as Head;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};

use super::body::OriginBody;
use super::conditional::{self, Precondition, Validators};
use super::emulate::{CpuModel, Resource};
use super::found::{Found, PathRefusal};
use super::object::{ContentError, Object, now_s};
use super::range::{self, Piece, Selection};
use super::source::Source;
use super::stats::Counters;
use super::store::{FetchError, Served, Store};

/// Most bytes of a request's body; they are read and thrown away.
const MOST_BODY_BYTES: u64 = 64 * 1024;
/// Time for a client to send the body of its request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a request is tried if its file changes while it is read.
const MOST_TRIES: usize = 3;

const ALLOW: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const X_CACHE: HeaderName = HeaderName::from_static("x-cache");
const X_BACKEND: HeaderName = HeaderName::from_static("x-backend");

/// Answers requests.
#[derive(Debug)]
pub(crate) struct Responder {
    source: Source,
    store: Arc<Store>,
    cpu: Option<(CpuModel, Resource)>,
    name: Option<HeaderValue>,
    counters: Arc<Counters>,
    /// Number of multipart bodies made, from which each gets a boundary of its own.
    boundaries: AtomicU64,
}

/// A response that is no document: a status, perhaps a header, and a line of text.
#[derive(Debug)]
struct Short {
    status: StatusCode,
    header: Option<(HeaderName, HeaderValue)>,
    close: bool,
}

impl Short {
    fn new(status: StatusCode) -> Self {
        Self { status, header: None, close: false }
    }

    fn with(status: StatusCode, name: HeaderName, value: HeaderValue) -> Self {
        Self { status, header: Some((name, value)), close: false }
    }

    /// For a request that was not read to its end: no other one can follow it on the connection.
    fn closing(status: StatusCode) -> Self {
        Self { status, header: None, close: true }
    }

    /// For a request that the client may soon send again.
    fn busy() -> Self {
        Self::with(StatusCode::SERVICE_UNAVAILABLE, header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    fn into_response(self, counters: &Arc<Counters>) -> Response<OriginBody> {
        let has_body = !matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let text = has_body.then(|| Bytes::from(format!("{}\n", self.status)));
        let mut response = Response::new(OriginBody::given(VecDeque::from_iter(text), counters));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if has_body {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        }
        if let Some((name, value)) = self.header {
            headers.insert(name, value);
        }
        if self.close {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl From<PathRefusal> for Short {
    fn from(refusal: PathRefusal) -> Self {
        Self::new(match refusal {
            PathRefusal::BadPath => StatusCode::BAD_REQUEST,
            PathRefusal::Missing => StatusCode::NOT_FOUND,
            PathRefusal::Forbidden => StatusCode::FORBIDDEN,
            PathRefusal::Failed(error) => {
                tracing::warn!(%error, "a file could not be looked at");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        })
    }
}

/// Why a document was not sent.
enum Failure {
    /// The file changed after it was looked at: look again.
    Changed,
    Short(Short),
}

impl From<ContentError> for Failure {
    fn from(error: ContentError) -> Self {
        match error {
            ContentError::Changed => Self::Changed,
            ContentError::Io(error) => {
                if error.kind() == std::io::ErrorKind::PermissionDenied {
                    return Self::Short(Short::new(StatusCode::FORBIDDEN));
                }
                tracing::warn!(%error, "a file could not be read");
                Self::Short(Short::new(StatusCode::INTERNAL_SERVER_ERROR))
            }
        }
    }
}

impl Responder {
    pub(crate) fn new(
        source: Source,
        store: Arc<Store>,
        cpu: Option<CpuModel>,
        name: Option<HeaderValue>,
        counters: Arc<Counters>,
    ) -> Self {
        let cpu = cpu.map(|model| (model, Resource::default()));
        Self { source, store, cpu, name, counters, boundaries: AtomicU64::new(0) }
    }

    /// Answers a request; an error is an answer, too.
    pub(crate) async fn respond(&self, request: Request<Incoming>) -> Response<OriginBody> {
        let (head, body) = request.into_parts();
        let read = discard(body).await.map_err(Short::closing);
        self.conclude(&head, read).await
    }

    /// Answers a request. Its body, if it has one, is left to the caller.
    pub(crate) async fn respond_to(&self, head: &Head) -> Response<OriginBody> {
        self.conclude(head, Ok(())).await
    }

    async fn conclude(&self, head: &Head, read: Result<(), Short>) -> Response<OriginBody> {
        self.counters.requests.add(1);
        let answered = match read {
            Ok(()) => self.answer(head).await,
            Err(short) => Err(short),
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(short) => {
                self.spend(|cpu| cpu.connect.saturating_add(cpu.send_time(0))).await;
                short.into_response(&self.counters)
            }
        };
        if let Some(name) = &self.name {
            response.headers_mut().insert(X_BACKEND, name.clone());
        }
        response
    }

    async fn answer(&self, head: &Head) -> Result<Response<OriginBody>, Short> {
        // RFC 9112, section 3.2.
        if head.version == Version::HTTP_11 && head.headers.get_all(header::HOST).iter().count() != 1 {
            return Err(Short::new(StatusCode::BAD_REQUEST));
        }
        match head.method {
            Method::GET | Method::HEAD => {}
            Method::OPTIONS => return Err(Short::with(StatusCode::NO_CONTENT, header::ALLOW, ALLOW)),
            _ => return Err(Short::with(StatusCode::METHOD_NOT_ALLOWED, header::ALLOW, ALLOW)),
        }
        // The target of CONNECT is a host without a path.
        let Some(target) = head.uri.path_and_query().map(http::uri::PathAndQuery::as_str) else {
            return Err(Short::new(StatusCode::BAD_REQUEST));
        };
        for _ in 0..MOST_TRIES {
            let object = match self.source.find(target).await? {
                Found::Object(object) => object,
                Found::Redirect(path) => return Err(redirect(path, head.uri.query())),
            };
            match self.document(head, &object).await {
                Ok(response) => return Ok(response),
                Err(Failure::Short(short)) => return Err(short),
                Err(Failure::Changed) => self.source.forget(target),
            }
        }
        Err(Short::busy())
    }

    async fn document(&self, head: &Head, object: &Arc<Object>) -> Result<Response<OriginBody>, Failure> {
        let now_s = now_s();
        // Last-Modified must not lie in the future: RFC 9110, section 8.8.2.1.
        let modified_s = object.modified_s.map(|s| s.min(now_s));
        let tag = HeaderValue::try_from(format!("\"{}\"", object.tag))
            .map_err(|_| Failure::Short(Short::new(StatusCode::INTERNAL_SERVER_ERROR)))?;
        let short = |status| Failure::Short(Short::with(status, header::ETAG, tag.clone()));
        let use_range =
            match conditional::evaluate(&head.headers, Validators { tag: &object.tag, modified_s, now_s }) {
                Precondition::Proceed { range } => range && head.method == Method::GET,
                Precondition::NotModified => return Err(short(StatusCode::NOT_MODIFIED)),
                Precondition::Failed => return Err(short(StatusCode::PRECONDITION_FAILED)),
            };
        let size_bytes = object.size_bytes;
        let selection = if use_range { range::select(&head.headers, size_bytes) } else { Selection::Whole };
        let mut response = match selection {
            Selection::Unsatisfiable => {
                let value = value(&format!("bytes */{size_bytes}"));
                let status = StatusCode::RANGE_NOT_SATISFIABLE;
                return Err(Failure::Short(Short::with(status, header::CONTENT_RANGE, value)));
            }
            Selection::Whole if head.method == Method::HEAD || size_bytes == 0 => {
                self.spend(|cpu| cpu.connect.saturating_add(cpu.send_time(0))).await;
                let mut response = Response::new(OriginBody::given(VecDeque::new(), &self.counters));
                response.headers_mut().insert(header::CONTENT_LENGTH, size_bytes.into());
                response.headers_mut().insert(header::CONTENT_TYPE, object.content_type.clone());
                response
            }
            Selection::Whole => {
                let whole = vec![Piece::Part(0..size_bytes)];
                self.send(object, whole, object.content_type.clone()).await?
            }
            Selection::Ranges(ranges) => self.send_ranges(object, &ranges).await?,
        };
        let headers = response.headers_mut();
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(header::ETAG, tag);
        if let Some(modified_s) = modified_s {
            let date = UNIX_EPOCH.checked_add(Duration::from_secs(modified_s)).unwrap_or(UNIX_EPOCH);
            headers.insert(header::LAST_MODIFIED, value(&httpdate::fmt_http_date(date)));
        }
        Ok(response)
    }

    async fn send_ranges(
        &self,
        object: &Arc<Object>,
        ranges: &[std::ops::Range<u64>],
    ) -> Result<Response<OriginBody>, Failure> {
        let size_bytes = object.size_bytes;
        let mut response = if let [range] = ranges {
            let piece = vec![Piece::Part(range.clone())];
            let mut response = self.send(object, piece, object.content_type.clone()).await?;
            let content_range = value(&range::content_range(range, size_bytes));
            response.headers_mut().insert(header::CONTENT_RANGE, content_range);
            response
        } else {
            let boundary = self.boundary(object);
            let content_type = object.content_type.to_str().unwrap_or("application/octet-stream");
            let pieces = range::multipart(ranges, size_bytes, content_type, &boundary);
            self.send(object, pieces, value(&format!("multipart/byteranges; boundary={boundary}"))).await?
        };
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        Ok(response)
    }

    /// A boundary for a multipart body, too hard to foresee for anyone to put it into a file.
    fn boundary(&self, object: &Object) -> String {
        let count = self.boundaries.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let hash = |seed| FixedState::with_seed(seed).hash_one((count, now, object.id));
        format!("{:016x}{:016x}", hash(1), hash(2))
    }

    /// Fetches the bytes and makes a response of these pieces.
    async fn send(
        &self,
        object: &Arc<Object>,
        pieces: Vec<Piece>,
        content_type: HeaderValue,
    ) -> Result<Response<OriginBody>, Failure> {
        let length_bytes: u64 = pieces.iter().map(Piece::length_bytes).sum();
        let (body, served) = if self.store.takes(object.size_bytes) {
            let (whole, served) = self.fetch(object, length_bytes).await?;
            (OriginBody::memory(&whole, pieces, &self.counters), served)
        } else {
            self.spend(|cpu| cpu.connect.saturating_add(cpu.send_time(length_bytes))).await;
            let body = OriginBody::stream(&self.store, object, pieces, &self.counters).await?;
            (body, Served::Bypass)
        };
        let (counter, name) = match served {
            Served::Hit => (&self.counters.hits, "hit"),
            Served::Miss => (&self.counters.misses, "miss"),
            Served::Joined => (&self.counters.joined, "joined"),
            Served::Peer => (&self.counters.from_peers, "peer"),
            Served::Bypass => (&self.counters.bypassed, "bypass"),
        };
        counter.add(1);
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, length_bytes.into());
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.insert(X_CACHE, HeaderValue::from_static(name));
        Ok(response)
    }

    /// Fetches an object of a size that the cache takes. As in the simulator's model, a hit visits the CPU once; a miss
    /// visits it once before the disk and once after.
    async fn fetch(&self, object: &Arc<Object>, length_bytes: u64) -> Result<(Bytes, Served), Failure> {
        if self.cpu.is_some() {
            if let Some(whole) = self.store.hit(object) {
                self.spend(|cpu| cpu.connect.saturating_add(cpu.send_time(length_bytes))).await;
                return Ok((whole, Served::Hit));
            }
            self.spend(|cpu| cpu.connect).await;
        }
        let fetched = match self.store.fetch(object).await {
            Ok(fetched) => fetched,
            Err(FetchError::Busy) => return Err(Failure::Short(Short::busy())),
            Err(FetchError::Read(error)) => return Err(error.into()),
        };
        self.spend(|cpu| cpu.send_time(length_bytes)).await;
        Ok(fetched)
    }

    /// Waits for the emulated CPU, if there is one.
    async fn spend(&self, time: impl FnOnce(&CpuModel) -> Duration) {
        if let Some((model, queue)) = &self.cpu {
            queue.visit(time(model)).await;
        }
    }
}

/// Reads a request's body to its end and drops it. If that fails, returns the status to answer with.
async fn discard(mut body: Incoming) -> Result<(), StatusCode> {
    if body.is_end_stream() {
        return Ok(());
    }
    if body.size_hint().lower() > MOST_BODY_BYTES {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let all = async {
        let mut left_bytes = MOST_BODY_BYTES;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
            let length = frame.data_ref().map_or(0, |data| data.len() as u64);
            left_bytes = left_bytes.checked_sub(length).ok_or(StatusCode::PAYLOAD_TOO_LARGE)?;
        }
        Ok(())
    };
    tokio::time::timeout(BODY_TIMEOUT, all).await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
}

fn redirect(path: String, query: Option<&str>) -> Short {
    let location = match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    Short::with(StatusCode::MOVED_PERMANENTLY, header::LOCATION, value(&location))
}

/// A header's value from text of visible ASCII; an empty one from any other text.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}
