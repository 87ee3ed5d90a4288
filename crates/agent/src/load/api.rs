//! Where servers of others tell their loads, by HTTP on a Unix socket or on loopback, and where the counters are.
//!
//! | Request | Effect |
//! | --- | --- |
//! | `PUT /load/NAME`, body `7` | NAME has 7 active accesses |
//! | `POST /load/NAME`, body `+1` or `-1` | as many more or fewer |
//! | `DELETE /load/NAME` | NAME has none |
//! | `GET /load` | load and counters, as JSON |
//! | `GET /metrics` | the same for Prometheus |
//!
//! With `?ttl_s=N` a load holds for N seconds, 60 at most, and else for 5: a writer repeats it, and one that dies is forgotten.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use super::api_address::{ApiAccess, ApiAddress};
use super::config::{LoadError, system};
use super::connections::ApiConnections;
use super::shared::LoadShared;
use super::writers::{HOLDS, LONGEST, WriterRefusal};

/// Most bytes of a body: a number.
const MOST_BODY_BYTES: usize = 32;
/// How often loads are looked through for those that have expired.
const SWEEP: Duration = Duration::from_millis(250);
/// Time for a request to come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// Pause after a failure to accept a connection.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// A bound listener.
#[derive(Debug)]
pub(super) enum ApiListener {
    Loopback(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl ApiListener {
    pub(super) fn bind(address: &ApiAddress, access: ApiAccess) -> Result<Self, LoadError> {
        let failed = |text: String| move |error| LoadError::Listen { address: text, error };
        match address {
            ApiAddress::Loopback(address) => {
                let bound = TcpListener::bind(address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    Ok(listener)
                });
                bound.map(Self::Loopback).map_err(failed(address.to_string()))
            }
            ApiAddress::Unix(path) => {
                let bound = UnixListener::bind(path).or_else(|error| {
                    // A socket that an earlier agent has left behind.
                    let is_left = error.kind() == io::ErrorKind::AddrInUse
                        && UnixStream::connect(path)
                            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
                    if !is_left {
                        return Err(error);
                    }
                    std::fs::remove_file(path)?;
                    UnixListener::bind(path)
                });
                let bound =
                    bound.map_err(|error| LoadError::Socket { path: path.display().to_string(), error })?;
                let system = system("cannot say who may use the socket at which loads are told");
                let allowed = bound.set_nonblocking(true).and_then(|()| allow(path, access));
                allowed.map(|()| Self::Unix(bound, path.clone())).map_err(system)
            }
        }
    }
}

/// Lets just these connect.
fn allow(path: &Path, access: ApiAccess) -> io::Result<()> {
    let mode = match access {
        ApiAccess::Owner => 0o600,
        ApiAccess::Group(group) => {
            std::os::unix::fs::chown(path, None, Some(group))?;
            0o660
        }
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// The thread that serves.
pub(super) struct ApiThread {
    pub(super) address: Option<SocketAddr>,
    /// The file of a Unix socket.
    path: Option<PathBuf>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl ApiThread {
    pub(super) fn stop(self) {
        // While it listens no other agent takes the file for one that was left behind. A user to whom the directory does not belong may not: the next agent replaces the file.
        if let Some(path) = &self.path
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::debug!(%error, path = %path.display(), "the socket stays");
        }
        // A thread that is gone has panicked, which joining reports.
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!("the thread that takes loads has failed");
        }
    }
}

pub(super) fn start(listener: ApiListener, shared: Arc<LoadShared>) -> Result<ApiThread, LoadError> {
    let (address, path) = match &listener {
        ApiListener::Loopback(listener) => (listener.local_addr().ok(), None),
        ApiListener::Unix(_, path) => (None, Some(path.clone())),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("cannot start a thread"))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let work = move || {
        runtime.block_on(async {
            tokio::select! {
                () = serve(listener, &shared) => {}
                () = sweep(&shared) => {}
                // Fails when the service was dropped: it keeps running.
                () = async { if stopped.await.is_err() { std::future::pending().await } } => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("load-api".to_owned()).spawn(work);
    Ok(ApiThread { address, path, stop, thread: thread.map_err(system("cannot start a thread"))? })
}

async fn sweep(shared: &LoadShared) {
    let mut tick = tokio::time::interval(SWEEP);
    loop {
        tick.tick().await;
        writers(shared).sweep(Instant::now());
    }
}

fn writers(shared: &LoadShared) -> std::sync::MutexGuard<'_, super::writers::Writers> {
    shared.writers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn serve(listener: ApiListener, shared: &Arc<LoadShared>) {
    let connections = Arc::<ApiConnections>::default();
    let watched = match listener {
        ApiListener::Loopback(listener) => tokio::net::TcpListener::from_std(listener).map(Ok),
        ApiListener::Unix(listener, _) => tokio::net::UnixListener::from_std(listener).map(Err),
    };
    let listener = match watched {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "loads cannot be taken"),
    };
    loop {
        let accepted = match &listener {
            Ok(tcp) => tcp.accept().await.map(|(stream, _)| begin(stream, shared, &connections)),
            Err(unix) => unix.accept().await.map(|(stream, _)| begin(stream, shared, &connections)),
        };
        if let Err(error) = accepted {
            tracing::debug!(%error, "a connection could not be accepted");
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }
}

/// Serves a connection on a task of its own.
fn begin<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    shared: &Arc<LoadShared>,
    connections: &Arc<ApiConnections>,
) {
    let (shared, open) = (Arc::clone(shared), Arc::clone(connections));
    connections.enter(|number| {
        let conversation = async move {
            converse(stream, &shared, || open.used(number)).await;
            open.leave(number);
        };
        tokio::spawn(conversation).abort_handle()
    });
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    shared: &LoadShared,
    used: impl Fn(),
) {
    let service = service_fn(async |request| {
        let answer = answer(request, shared).await;
        used();
        Ok::<_, Infallible>(answer)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection failed");
    }
}

fn reply(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let value = http::HeaderValue::from_static(content_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, value);
    response
}

fn wrong(status: StatusCode, what: &str) -> Response<Full<Bytes>> {
    reply(status, "text/plain", format!("{what}\n"))
}

async fn answer(request: Request<Incoming>, shared: &LoadShared) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/load") => {
            reply(StatusCode::OK, "application/json", format!("{:#}\n", shared.status().json()))
        }
        (&Method::GET, "/metrics") => {
            reply(StatusCode::OK, "text/plain; version=0.0.4", shared.status().metrics())
        }
        (method, path) => {
            let Some(name) = path.strip_prefix("/load/") else {
                return wrong(StatusCode::NOT_FOUND, "there are /load, /load/NAME and /metrics");
            };
            let Some(holds) = holds(head.uri.query()) else {
                let longest_s = LONGEST.as_secs();
                return wrong(
                    StatusCode::BAD_REQUEST,
                    &format!("give ?ttl_s=N with 1 to {longest_s} seconds"),
                );
            };
            let body = Limited::new(body, MOST_BODY_BYTES).collect();
            let Ok(Ok(body)) = tokio::time::timeout(HOLDS, body).await else {
                return wrong(StatusCode::PAYLOAD_TOO_LARGE, "the body is a number, and comes within 5 s");
            };
            write(method, name, &body.to_bytes(), holds, shared)
        }
    }
}

/// How long a load is to hold; `None` where that is not understood.
fn holds(query: Option<&str>) -> Option<Duration> {
    let Some(query) = query else { return Some(HOLDS) };
    let seconds: u64 = query.strip_prefix("ttl_s=")?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|holds| (Duration::from_secs(1)..=LONGEST).contains(holds))
}

fn write(
    method: &Method,
    name: &str,
    body: &[u8],
    holds: Duration,
    shared: &LoadShared,
) -> Response<Full<Bytes>> {
    let text = std::str::from_utf8(body).map(str::trim_ascii).unwrap_or_default();
    let now = Instant::now();
    let written = match *method {
        Method::PUT => match text.parse() {
            Ok(load) => writers(shared).set(name, load, holds, now),
            Err(_) => return wrong(StatusCode::BAD_REQUEST, "the body is the number of active accesses"),
        },
        Method::POST => match text.parse() {
            Ok(by) => writers(shared).add(name, by, holds, now),
            Err(_) => return wrong(StatusCode::BAD_REQUEST, "the body is +1, -1, or another difference"),
        },
        Method::DELETE => {
            return match writers(shared).remove(name) {
                true => reply(StatusCode::OK, "text/plain", "0\n".to_owned()),
                false => wrong(StatusCode::NOT_FOUND, "nobody of this name has told a load"),
            };
        }
        _ => return wrong(StatusCode::METHOD_NOT_ALLOWED, "PUT, POST or DELETE a load"),
    };
    match written {
        Ok(load) => reply(StatusCode::OK, "text/plain", format!("{load}\n")),
        Err(why @ WriterRefusal::TooMany) => wrong(StatusCode::SERVICE_UNAVAILABLE, &why.text()),
        Err(why @ WriterRefusal::BelowZero) => wrong(StatusCode::CONFLICT, &why.text()),
        Err(why) => wrong(StatusCode::BAD_REQUEST, &why.text()),
    }
}
