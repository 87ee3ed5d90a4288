mod ejection;
mod leaving;

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use plimsoll_config::Config;
use plimsoll_datapath::privileges::RunUser;
use plimsoll_policy::{BackendId, Kind, REGISTRY, TargetId, Tried};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf, WriteHalf,
};
use tokio::task::LocalSet;

use super::ConnectionService;
use super::client::serve;
use super::then::GoesOn;
use crate::accepted::{Accepted, GivenRequest, Start};
use crate::backend::Backend;
use crate::backend_address::BackendAddress;
use crate::dispatch::Offer;
use crate::http::Framing;
use crate::http::response::ResponseHead;
use crate::mechanism::carry::{Answered, Carried, ClientRequest, Failure, Mechanism};
use crate::mechanism::proxy::Proxy;
use crate::mechanism::registry::Mechanisms;
use crate::net::halves::{BackendIo, ClientIo, Halves, Input, OutputHalf};
use crate::net::proxy_protocol::ConnectionEnds;
use crate::net::stream::ClientStream;
use crate::passed_content::PassedContent;
use crate::shared::FrontEndShared;
use crate::worker::Worker;

/// A stream in memory, as a client's connection and as one to a back-end.
pub(super) struct Memory {
    stream: DuplexStream,
    reset: bool,
}

impl Memory {
    pub(super) fn pair() -> (Self, DuplexStream) {
        let (stream, other) = tokio::io::duplex(512);
        (Self { stream, reset: false }, other)
    }
}

impl Input for ReadHalf<&mut DuplexStream> {
    fn poll_broken(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl OutputHalf for WriteHalf<&mut DuplexStream> {}

impl Halves for Memory {
    type Input<'a> = ReadHalf<&'a mut DuplexStream>;
    type Output<'a> = WriteHalf<&'a mut DuplexStream>;

    fn halves(&mut self) -> io::Result<(Self::Input<'_>, Self::Output<'_>)> {
        Ok(tokio::io::split(&mut self.stream))
    }
}

impl AsyncRead for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Memory {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl ClientIo for Memory {
    fn poll_begun(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn end_output(&mut self) -> bool {
        false
    }

    fn reset(&mut self) {
        self.reset = true;
    }
}

impl BackendIo for Memory {
    type Shared = ();

    /// Opens a connection to a back-end that answers each request with its path, where that does not say otherwise.
    async fn open(
        _: &Arc<Backend>,
        address: &BackendAddress,
        _: Option<&ConnectionEnds>,
        (): &(),
    ) -> io::Result<Self> {
        let is_a = *address == BackendAddress::from(([127, 0, 0, 1], 1));
        let (ours, mut theirs) = Self::pair();
        tokio::task::spawn_local(async move {
            let mut head = Vec::new();
            while let Ok(byte) = theirs.read_u8().await {
                head.push(byte);
                if head.ends_with(b"\r\n\r\n") {
                    let text = String::from_utf8(std::mem::take(&mut head)).unwrap();
                    let path = text.split(' ').nth(1).unwrap();
                    let length = path.len();
                    if path == "/hangs-at-a" && is_a {
                        std::future::pending::<()>().await;
                    }
                    if path == "/never-ends" {
                        theirs.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun").await.unwrap();
                        std::future::pending::<()>().await;
                    }
                    let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}");
                    theirs.write_all(response.as_bytes()).await.unwrap();
                }
            }
        });
        Ok(ours)
    }

    fn is_open(&self, _: bool) -> bool {
        true
    }
}

/// A mechanism that answers out of its head, by the target of the request.
#[derive(Default)]
struct OwnAnswers {
    carried: Cell<u32>,
    trials: Cell<u32>,
    ended: Cell<u32>,
}

impl Mechanism for OwnAnswers {
    type System = ();
    type Parcel = u64;

    fn start(_: &Config, _: Option<&RunUser>) -> Result<Option<Arc<()>>, String> {
        Ok(Some(Arc::new(())))
    }

    fn new(_: &Arc<()>, _: &Rc<Worker>) -> Rc<Self> {
        Rc::default()
    }

    async fn carry<C: ClientIo>(&self, request: &mut ClientRequest<'_, C>) -> Carried<u64> {
        self.carried.set(self.carried.get() + 1);
        let on_trial = request.account.is_on_trial();
        self.trials.set(self.trials.get() + u32::from(on_trial));
        let head = String::from_utf8(request.scratch.head.clone()).unwrap();
        match head.split(' ').nth(1).unwrap() {
            "/declined" => Carried::Declined,
            "/leaves" => Carried::Leaves(request.requests),
            "/lost-once" if request.account.attempts == 1 => Carried::Failed(Failure::Lost),
            "/only-by-c" if &*request.account.backend.as_ref().unwrap().name != "c" => {
                Carried::Failed(Failure::Lost)
            }
            "/second-try" if request.account.attempts != 2 => Carried::Failed(Failure::BadResponse("")),
            "/stale-once" if request.account.attempts == 1 => Carried::Failed(Failure::Stale),
            "/bad-on-trial" if on_trial => Carried::Failed(Failure::BadResponse("")),
            "/long-on-trial" if on_trial => Carried::Failed(Failure::OverLimit("")),
            "/slow-on-trial" if on_trial => Carried::Failed(Failure::TimedOut),
            "/too-slow" => Carried::Failed(Failure::TimedOut),
            "/cut" => {
                request.stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
                Carried::Failed(Failure::Broken {
                    status: 200,
                    content: PassedContent::default(),
                    by_backend: true,
                })
            }
            _ => {
                request.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nme").await.unwrap();
                let (framing, keep_client) = (Framing::Length(2), request.keep);
                let head = ResponseHead {
                    status: 200,
                    framing,
                    coding: None,
                    hit: None,
                    chunked_out: false,
                    keep_backend: true,
                    says_kept: false,
                    keep_client,
                };
                let content = PassedContent::plain(2).since(Instant::now());
                Carried::Answered(Answered { head, content, keep_client, keep_backend: true })
            }
        }
    }

    fn take<C: ClientIo>(self: &Rc<Self>, _: &Rc<Worker>, _: C, _: &Rc<Accepted>, _: u64) {}

    fn client_ended(&self, _: &Accepted) {
        self.ended.set(self.ended.get() + 1);
    }
}

fn service<M: Mechanism<System = ()>>(tables: &str) -> Rc<ConnectionService<M>> {
    ConnectionService::new(FrontEndShared::before_three(tables), 0, &Arc::new(()))
}

fn under(policy: &str) -> String {
    format!("[policy]\nname = \"{policy}\"\n")
}
/// What became of a connection on which a client sent this, and closed.
struct Served<M: Mechanism> {
    service: Rc<ConnectionService<M>>,
    received: String,
    parcel: Option<M::Parcel>,
    reset: bool,
}

impl<M: Mechanism> Served<M> {
    /// Requests by the hundred of their status, and those that were tried twice. No load is left.
    fn counts(&self) -> ([u64; 5], u64) {
        let shared = &self.service.worker.shared;
        assert_eq!(shared.dispatch.first().inspect(|i| i.view.total_load()), 0);
        let counts = &shared.counts[0];
        (counts.requests.each_ref().map(|n| n.get()), counts.retried.get())
    }
}

async fn over_memory<M: Mechanism<System = ()>>(sent: &str) -> Served<M> {
    under_policy("round_robin", sent).await
}

async fn under_policy<M: Mechanism<System = ()>>(policy: &str, sent: &str) -> Served<M> {
    from_start(&under(policy), sent, |_| Start::default()).await
}

async fn from_start<M: Mechanism<System = ()>>(
    tables: &str,
    sent: &str,
    start: impl FnOnce(&Arc<FrontEndShared>) -> Start + 'static,
) -> Served<M> {
    let sent = sent.to_owned();
    let local = LocalSet::new();
    let run = local.run_until(async move {
        let service = service::<M>(tables);
        let (mut stream, mut client) = Memory::pair();
        let closing = Arc::default();
        let accepted = service.worker.accepted(([10, 0, 0, 9], 7).into(), None, &closing);
        let talk = tokio::task::spawn_local(async move {
            client.write_all(sent.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut received = String::new();
            client.read_to_string(&mut received).await.unwrap();
            received
        });
        let mut start = start(&service.worker.shared);
        let parcel = match serve(&service, &mut stream, &accepted, &mut start).await {
            Some(GoesOn::Leaves(parcel)) => Some(parcel),
            Some(GoesOn::Http2(_)) | None => None,
        };
        let reset = stream.reset;
        drop(stream);
        Served { service, received: talk.await.unwrap(), parcel, reset }
    });
    run.await
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

#[tokio::test]
async fn a_connection_in_memory_is_proxied_to_back_ends_in_memory() {
    let served = over_memory::<Proxy<Memory>>(&[get("/one"), get("/two"), get("/three")].concat()).await;
    for path in ["/one", "/two", "/three"] {
        assert!(served.received.contains(&format!("\r\n\r\n{path}")), "{}", served.received);
    }
    assert_eq!(served.counts(), ([0, 3, 0, 0, 0], 0));
    assert!(!served.reset);
}

#[tokio::test]
async fn a_mechanism_of_four_functions_has_retries_records_and_completion() {
    let served = over_memory::<OwnAnswers>(&[get("/"), get("/lost-once"), get("/")].concat()).await;
    assert_eq!(served.received.matches("\r\n\r\nme").count(), 3, "{}", served.received);
    assert_eq!((served.counts(), served.service.mechanism.carried.get()), (([0, 3, 0, 0, 0], 1), 4));
    let served = over_memory::<OwnAnswers>(&[get("/declined"), get("/too-slow")].concat()).await;
    assert!(served.received.starts_with("HTTP/1.1 503 "), "{}", served.received);
    assert!(served.received.contains("HTTP/1.1 504 "), "{}", served.received);
    assert_eq!(served.counts(), ([0, 0, 0, 0, 2], 0));
    let served = over_memory::<OwnAnswers>(&get("/cut")).await;
    assert!(served.reset, "nobody takes what came for a whole response");
    assert_eq!(served.counts(), ([0, 1, 0, 0, 0], 0));
}

#[tokio::test]
async fn no_policy_sends_a_request_back_to_the_back_end_that_failed_it() {
    for policy in REGISTRY.iter().map(|spec| spec.name) {
        let sent: Vec<String> = (0..20).map(|_| get("/only-by-c")).collect();
        let served = under_policy::<OwnAnswers>(policy, &sent.concat()).await;
        assert_eq!(served.counts().0, [0, 20, 0, 0, 0], "{policy}: {}", served.received);
        assert!((20..=60).contains(&served.service.mechanism.carried.get()), "{policy}");
    }
}

#[tokio::test]
async fn a_stale_connection_moves_no_target() {
    let mut sets = Vec::new();
    for path in ["/plain", "/stale-once", "/lost-once"] {
        let served = under_policy::<OwnAnswers>("lard", &[get("/x"), get(path)].concat()).await;
        assert_eq!(served.counts().0, [0, 2, 0, 0, 0]);
        let target = TargetId::from_key(path.as_bytes());
        sets.push(served.service.worker.shared.dispatch.first().inspect(|i| i.policy.server_set(target)));
    }
    assert_eq!(sets[0], sets[1]);
    assert_ne!(sets[0], sets[2], "a back-end that failed is left");
}

#[tokio::test]
async fn a_request_that_comes_back_keeps_its_attempts() {
    let sent = get("/second-try");
    let tables = under("lard");
    // With the back-end that was chosen for it, and where that has failed, too.
    for is_chosen in [true, false] {
        let served = from_start::<OwnAnswers>(&tables, &sent, move |shared| {
            let Offer::Assigned(assignment) = shared.dispatch.first().offer(TargetId(1), Kind::Static, 0)
            else {
                panic!("none")
            };
            let (assignment, attempts) = if is_chosen { (Some(assignment), 2) } else { (None, 1) };
            let tried = Tried::new([BackendId(2)]);
            let given = Some(Box::new(GivenRequest { assignment, attempts, tried }));
            Start { given, ..Start::default() }
        });
        assert_eq!(served.await.counts(), ([0, 1, 0, 0, 0], 1));
    }
}

#[tokio::test]
async fn a_connection_leaves_with_the_mechanism_s_parcel() {
    let served = over_memory::<OwnAnswers>(&[get("/"), get("/leaves"), get("/")].concat()).await;
    assert_eq!(served.parcel, Some(2));
    assert_eq!(served.received.matches("\r\n\r\nme").count(), 1);
    // The parcel would hold its account; this mechanism left it, and it has ended with the request.
    assert_eq!(served.counts(), ([0, 1, 0, 0, 0], 0));
}

#[tokio::test]
async fn a_connection_counts_before_its_task_has_begun() {
    let local = LocalSet::new();
    let run = local.run_until(async {
        let service = service::<Proxy<Memory>>(&under("round_robin"));
        let (stream, client) = Memory::pair();
        let accepted = service.worker.accepted(([10, 0, 0, 9], 7).into(), None, &Arc::default());
        service.serve(stream, Rc::new(accepted), Start::default(), None);
        assert_eq!(service.worker.open(), 1, "a worker that stops now waits for it");
        drop(client);
        while service.worker.open() > 0 {
            tokio::task::yield_now().await;
        }
    });
    run.await;
}

fn future_bytes<'a, F: Future>(
    _: impl FnOnce(&'a ConnectionService<Mechanisms>, &'a mut ClientStream, &'a Accepted, &'a mut Start) -> F,
) -> usize {
    size_of::<F>()
}

#[test]
fn an_idle_connection_is_small() {
    let bytes = future_bytes(serve);
    println!("{bytes} bytes");
    assert!(bytes <= 450, "{bytes} bytes for each connection, idle or not");
}
