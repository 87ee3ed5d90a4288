//! A worker, as everything that it serves sees it: buffers, deadlines, counters and logs of one thread, which shares
//! little with the others.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plimsoll_config::{AccessLogFormat, Config, DEFAULT_POOL};
use plimsoll_policy::BackendId;

use crate::accepted::{Accepted, ClientWay, Start, peer_text};
use crate::access_log::{self, LineContext};
use crate::backend::Backend;
use crate::backend_pool::{BackendPool, FIRST_POOL};
use crate::dispatch::AsksBackends;
use crate::metrics::{BackendCounts, WorkerCounts, hundreds};
use crate::net::buffer::{Buffer, BufferPool};
use crate::net::deadline::{Deadlines, SWEEP};
use crate::net::is_local;
use crate::net::stream::ClientStream;
use crate::net::tls::TlsHandshakes;
use crate::observe::{CLIENT_GONE, RequestRecord};
use crate::refusal_reason::RefusalReason;
use crate::shared::FrontEndShared;
use plimsoll_observe::access_log::BUFFER_BYTES;
use plimsoll_observe::clock;
use plimsoll_observe::line::Moment;

/// Bytes read at once from a back-end.
const RESPONSE_BYTES: usize = 64 << 10;
/// Least bytes read at once from a client.
const INPUT_BYTES: usize = 16 << 10;
/// Scratch space kept for later: a client may have many requests under way on one connection of HTTP/2.
const MOST_SCRATCH: usize = 1024;
/// What most heads take.
const HEAD_BYTES: usize = 512;

/// Buffers of request and response heads, kept for the next request.
type Heads = Rc<RefCell<Vec<(Vec<u8>, Vec<u8>)>>>;

/// What a connection needs while a request is under way.
pub(crate) struct Scratch {
    /// Bytes from the client.
    pub(crate) input: Buffer,
    /// The rewritten request head.
    pub(crate) head: Vec<u8>,
    /// The rewritten response head.
    pub(crate) out: Vec<u8>,
    lender: Heads,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut lender = self.lender.borrow_mut();
        // A head that was unusually large is not kept.
        if lender.len() < MOST_SCRATCH && self.head.capacity() + self.out.capacity() <= INPUT_BYTES {
            lender.push((std::mem::take(&mut self.head), std::mem::take(&mut self.out)));
        }
    }
}

/// Serves a connection that comes back to its worker.
pub(crate) type Resume = Box<dyn Fn(ClientStream, Rc<Accepted>, Start)>;

/// One worker, as its tasks see it.
pub(crate) struct Worker {
    pub(crate) shared: Arc<FrontEndShared>,
    pub(crate) index: usize,
    pub(crate) deadlines: Rc<Deadlines>,
    responses: RefCell<Rc<BufferPool>>,
    inputs: RefCell<Rc<BufferPool>>,
    ahead: Rc<BufferPool>,
    heads: Heads,
    dates: RefCell<clock::Dates>,
    lines: RefCell<Vec<u8>>,
    /// Connections being served.
    pub(crate) open: Cell<usize>,
    resume: OnceCell<Resume>,
    /// Asks back-ends for their loads, where that is configured.
    asks: OnceCell<Arc<dyn AsksBackends>>,
    /// Set when the worker begins to stop.
    pub(crate) stopping: Arc<AtomicBool>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<FrontEndShared>, index: usize) -> Rc<Self> {
        let deadlines = Deadlines::new();
        let head_bytes = shared.config.load().limits.head_bytes;
        Rc::new(Self {
            resume: OnceCell::new(),
            asks: OnceCell::new(),
            stopping: Arc::default(),
            shared,
            index,
            deadlines,
            responses: RefCell::new(BufferPool::sharing(RESPONSE_BYTES.max(head_bytes))),
            inputs: RefCell::new(BufferPool::new(INPUT_BYTES.max(head_bytes))),
            ahead: BufferPool::keeping(RESPONSE_BYTES, 4),
            heads: Rc::default(),
            dates: RefCell::new(clock::Dates::now()),
            lines: RefCell::default(),
            open: Cell::new(0),
        })
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        self.shared.config.load_full()
    }

    /// Takes over a configuration that has changed.
    pub(crate) fn refresh(&self, config: &mut Arc<Config>) {
        let now = self.shared.config.load();
        if !Arc::ptr_eq(&now, config) {
            *config = Arc::clone(&now);
        }
    }

    /// The back-end of this id in the first pool.
    pub(crate) fn backend(&self, b: BackendId) -> Option<Arc<Backend>> {
        self.shared.first.backend(b)
    }

    pub(crate) fn scratch(&self) -> Scratch {
        let kept = self.heads.borrow_mut().pop();
        let new = || (Vec::with_capacity(HEAD_BYTES), Vec::with_capacity(HEAD_BYTES));
        let (head, out) = kept.unwrap_or_else(new);
        Scratch { input: self.inputs.borrow().take(), head, out, lender: Rc::clone(&self.heads) }
    }

    /// A buffer for a response.
    pub(crate) fn response_buffer(&self) -> Buffer {
        self.responses.borrow().take()
    }

    /// A buffer for what is read ahead.
    pub(crate) fn ahead_buffer(&self) -> Buffer {
        self.ahead.take()
    }

    /// The time as HTTP writes it.
    pub(crate) fn date(&self) -> [u8; 29] {
        self.dates.borrow().http
    }

    /// What this worker counts.
    pub(crate) fn counts(&self) -> &WorkerCounts {
        &self.shared.counts[self.index]
    }

    /// Connections being served.
    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    /// From now on connections that come back are served by this.
    pub(crate) fn resume_by(&self, resume: Resume) {
        // A worker is set up once.
        drop(self.resume.set(resume));
    }

    /// From now on back-ends are asked for their loads by this.
    pub(crate) fn ask_by(&self, asks: Arc<dyn AsksBackends>) {
        // A worker is set up once.
        drop(self.asks.set(asks));
    }

    /// What asks back-ends for their loads.
    pub(crate) fn asks(&self) -> Option<&Arc<dyn AsksBackends>> {
        self.asks.get()
    }

    /// Serves a connection that comes back from elsewhere, or could not leave.
    pub(crate) fn resume(&self, stream: ClientStream, accepted: Rc<Accepted>, start: Start) {
        if let Some(resume) = self.resume.get() {
            resume(stream, accepted, start);
        }
    }

    /// A connection of a client is there.
    pub(crate) fn count_accepted(&self) {
        self.shared.counts[self.index].accepted.add(1);
    }

    /// A connection of a client has ended.
    pub(crate) fn count_closed(&self) {
        self.shared.counts[self.index].closed.add(1);
    }

    /// What is known of a connection between these ends.
    pub(crate) fn accepted(
        &self,
        peer: SocketAddr,
        local: Option<SocketAddr>,
        closing: &Arc<AtomicBool>,
    ) -> Accepted {
        let text = peer_text(peer.ip());
        Accepted {
            peer,
            local: Cell::new(local),
            trusted: self.shared.config.load().forwarded.trusted.iter().any(|net| net.contains(peer.ip())),
            client: self.shared.hash.target(text.as_bytes()).0,
            peer_text: text.into_boxed_str(),
            closing: Arc::clone(closing),
            over: Cell::default(),
            row: Cell::default(),
            way: ClientWay::default(),
        }
    }

    /// A connection to `backend` was opened.
    pub(crate) fn connected(&self, backend: &Backend) {
        self.backend_counts(backend).connections.add(1);
    }

    /// A connection to `backend` could not be opened, for a request that was sent there at the time `sent`. With `again`, for
    /// one request the second time, as no other back-end takes requests: it is taken for down.
    pub(crate) fn connect_failed(
        &self,
        backend: &Arc<Backend>,
        sent: Instant,
        error: &std::io::Error,
        again: bool,
    ) {
        self.backend_counts(backend).connect_failures.add(1);
        tracing::debug!(backend = &*backend.name, %error, "cannot connect");
        let signs = match error.kind() {
            // One that is busy does not answer either: health checks find out.
            std::io::ErrorKind::TimedOut => 0,
            _ if is_local(error) => 0,
            _ if again => u32::MAX,
            _ => 1,
        };
        if signs > 0 {
            self.attempt_failed(backend, sent);
        }
        self.shared.in_pool(backend.pool, |pool| {
            for _ in 0..signs.min(pool.config.load().health.fall) {
                pool.bad_sign(backend, error, false);
            }
        });
    }

    /// A request that was sent to `backend` at the time `sent` failed by the back-end's fault.
    pub(crate) fn attempt_failed(&self, backend: &Arc<Backend>, sent: Instant) {
        self.backend_counts(backend).attempts_failed.add(1);
        self.shared.in_pool(backend.pool, |pool| pool.attempt_failed(backend, sent, Instant::now()));
    }

    /// Keeps what there is to keep of a request.
    pub(crate) fn observe(&self, record: &RequestRecord<'_>) {
        let ended = Instant::now();
        let counts = &self.shared.counts[self.index];
        counts.requests[hundreds(record.status)].add(1);
        counts.retried.add(u64::from(record.attempts > 1));
        counts.waited.add(u64::from(record.waited));
        if let Some(backend) = record.backend {
            let counts = self.backend_counts(backend);
            if !record.is_own_answer() {
                counts.content_bytes.add(record.content_bytes);
            }
            if let Some(hit) = record.hit {
                (if hit { &counts.told_hits } else { &counts.told_misses }).add(1);
            }
            match (record.times.assigned, record.times.first_byte) {
                (Some(assigned), Some(first_byte)) => {
                    counts.answers[hundreds(record.status)].add(1);
                    counts.first_byte.add(first_byte.saturating_duration_since(assigned));
                    counts.response_time.add(ended.saturating_duration_since(record.times.received));
                    counts.failed.add(u64::from(record.refused == Some(RefusalReason::ResponseCut)));
                }
                // A client that did not wait, or asked for what may not be, is no failure of the back-end.
                _ => counts.failed.add(u64::from(
                    record.status != CLIENT_GONE
                        && !record.refused.is_some_and(RefusalReason::is_not_by_backend),
                )),
            }
        }
        let config = self.shared.config.load();
        if let Some(log) = &config.access_log {
            let mut lines = self.lines.borrow_mut();
            let dates = self.dates.borrow();
            let precise;
            let time = match log.format {
                AccessLogFormat::Combined => dates.common_log.as_bytes(),
                AccessLogFormat::Json => {
                    precise = dates.rfc3339_us(ended);
                    &precise
                }
            };
            let moment = Moment { time, at: ended };
            let number = record.head.map_or(FIRST_POOL, |head| head.pool);
            let is_routed = self.shared.routing.load().is_some();
            let classes = config.classes.as_ref();
            let mut write = |policy: &str, name: &str| {
                let context = LineContext { policy, classes, pool: Some(name).filter(|_| is_routed) };
                access_log::line(log.format, record, context, moment, &mut lines);
            };
            let of_pool = |pool: &Arc<BackendPool>| write(pool.config.load().policy.spec.name, pool.name());
            if number == FIRST_POOL || self.shared.in_pool(number, of_pool).is_none() {
                write(config.policy.spec.name, DEFAULT_POOL);
            }
            if lines.len() >= BUFFER_BYTES {
                self.hand_over(&mut lines);
            }
        }
    }

    /// Counts a request that the front-end itself answers, or a connection that it cuts, if that is for a reason that counts.
    pub(crate) fn count_refusal(&self, reason: Option<RefusalReason>, client: &str, line: Option<&[u8]>) {
        self.count_fault(reason, client, line, None);
    }

    /// The same; `fault` is a back-end, and what is wrong with its answer.
    pub(crate) fn count_fault(
        &self,
        reason: Option<RefusalReason>,
        client: &str,
        line: Option<&[u8]>,
        fault: Option<(&str, &str)>,
    ) {
        let Some(reason) = reason else { return };
        self.shared.counts[self.index].refusals.add(reason, 1);
        self.shared.refusal_examples.offer(reason, client, line, fault);
    }

    fn backend_counts<'a>(&self, backend: &'a Backend) -> &'a BackendCounts {
        &backend.counts[self.index.min(backend.counts.len() - 1)]
    }

    fn hand_over(&self, lines: &mut Vec<u8>) {
        let full = std::mem::replace(lines, Vec::with_capacity(BUFFER_BYTES + 1024));
        let count = memchr::memchr_iter(b'\n', &full).count() as u64;
        if !self.shared.access_log.push(full) {
            self.shared.counts[self.index].lines_lost.add(count);
        }
    }

    /// Ends connections without a request where a client waits for a place.
    pub(crate) fn make_room(&self) {
        if self.shared.room_wanted.load(Ordering::Relaxed) > 0 {
            self.deadlines.make_room();
        }
    }

    /// A connection has ended to make room: one whose request came in that moment has not.
    pub(crate) fn count_made_room(&self, client: &str, line: Option<&[u8]>) {
        self.shared.counts[self.index].made_room.add(1);
        self.count_refusal(Some(RefusalReason::MadeRoom), client, line);
    }

    /// Does what is due from time to time, and `also` this, until the worker ends.
    pub(crate) async fn housekeeping(self: Rc<Self>, also: impl Fn()) {
        let mut interval = tokio::time::interval(SWEEP);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sweeps = 0u32;
        loop {
            interval.tick().await;
            self.deadlines.sweep();
            self.make_room();
            self.shared.dispatch.serve_waiting_now();
            self.shared.others.load().iter().for_each(|pool| pool.dispatch.serve_waiting_now());
            let config = self.shared.config.load_full();
            let fresh = clock::Dates::if_changed(&self.dates.borrow());
            if let Some(dates) = fresh {
                *self.dates.borrow_mut() = dates;
            }
            sweeps = sweeps.wrapping_add(1);
            if sweeps.is_multiple_of(10) {
                self.flush();
            }
            also();
            BufferPool::fit(&self.inputs, INPUT_BYTES.max(config.limits.head_bytes));
            BufferPool::fit(&self.responses, RESPONSE_BYTES.max(config.limits.head_bytes));
        }
    }

    /// Hands the lines of the access log over.
    pub(crate) fn flush(&self) {
        let mut lines = self.lines.borrow_mut();
        if !lines.is_empty() {
            self.hand_over(&mut lines);
        }
    }
}

impl TlsHandshakes for Worker {
    fn shaken(&self, resumed: bool) {
        let counts = &self.counts().handshakes;
        if resumed { &counts.resumed } else { &counts.full }.add(1);
    }

    fn failed(&self, error: &io::Error) {
        self.counts().handshakes.failed.add(1);
        tracing::debug!(%error, "a TLS handshake failed");
    }
}
