//! A worker: one thread that accepts connections and serves them, sharing little with the others.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arc_swap::ArcSwap;
use plimsoll_config::{AccessLogFormat, Config};
use plimsoll_policy::{BackendId, Health};

use crate::access_log::{self, AccessLogSender, BUFFER_BYTES, Moment};
use crate::backend::Backend;
use crate::clock;
use crate::dispatch::Dispatch;
use crate::handoff::{Handoffs, System};
use crate::metrics::{BackendCounts, WorkerCounts, hundreds};
use crate::net::buffer::{Buffer, BufferPool};
use crate::net::deadline::{Deadlines, SWEEP};
use crate::net::is_local;
use crate::net::places::Places;
use crate::observe::Record;
use crate::peers::Peers;
use crate::pool::Pool;
use crate::proxy::outcome::CLIENT_GONE;

/// Bytes read at once from a back-end.
const RESPONSE_BYTES: usize = 64 << 10;
/// Least bytes read at once from a client.
const INPUT_BYTES: usize = 16 << 10;
/// Scratch space kept for later.
const MOST_SCRATCH: usize = 256;

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) dispatch: Arc<Dispatch>,
    /// The back-ends by the index of their id.
    pub(crate) backends: ArcSwap<Vec<Arc<Backend>>>,
    pub(crate) config: ArcSwap<Config>,
    pub(crate) access_log: AccessLogSender,
    /// By worker.
    pub(crate) counts: Box<[WorkerCounts]>,
    /// Places for connections of clients.
    pub(crate) places: Arc<Places>,
    /// Tells whoever waits that a back-end has just gone down, so that it is looked at again soon.
    pub(crate) suspected: tokio::sync::Notify,
    /// Set when the front-end begins to stop.
    pub(crate) stopping: AtomicBool,
    /// What handing connections off needs; `None` when requests are proxied.
    pub(crate) handoff: Option<Arc<System>>,
    /// Front-ends beside this one.
    pub(crate) peers: Option<Arc<Peers>>,
}

impl Shared {
    /// Takes a sign of a back-end's health: counts it, and tells dispatch when that changes its state.
    pub(crate) fn sign(&self, backend: &Arc<Backend>, good: bool) {
        let health = &self.config.load().health;
        let changed = if good { backend.good_sign(health.rise) } else { backend.bad_sign(health.fall) };
        if let Some(health) = changed
            && !backend.is_retired()
        {
            match health {
                Health::Down => tracing::warn!(backend = &*backend.name, "back-end is down"),
                Health::Up => tracing::info!(backend = &*backend.name, "back-end is up"),
                Health::Draining => tracing::info!(backend = &*backend.name, "back-end is up, and drained"),
            }
            self.tell_health(backend);
            self.suspected.notify_waiters();
        }
    }

    /// Tells dispatch how a back-end is. Whoever comes last with two changes at once tells the later one.
    pub(crate) fn tell_health(&self, backend: &Backend) {
        // Each further round is for a change that happened meanwhile.
        for _ in 0..16 {
            let health = backend.health();
            self.dispatch.set_health(backend.id, health);
            if backend.health() == health {
                break;
            }
        }
    }
}

/// Where a connection came in and from whom.
pub(crate) struct Accepted {
    /// The client's end.
    pub(crate) peer: SocketAddr,
    /// Our end, where that is known without asking the system.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) peer_text: Box<str>,
    /// Whether the peer's forwarding fields are believed.
    pub(crate) trusted: bool,
    /// Identity of the client for policies.
    pub(crate) client: u64,
    /// Set when its listener closes: the next response is the last.
    pub(crate) closing: Arc<AtomicBool>,
}

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

/// One worker, as its tasks see it.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) deadlines: Rc<Deadlines>,
    pub(crate) pool: Pool,
    responses: RefCell<Rc<BufferPool>>,
    inputs: RefCell<Rc<BufferPool>>,
    heads: Heads,
    dates: RefCell<clock::Dates>,
    lines: RefCell<Vec<u8>>,
    /// Connections being served.
    pub(crate) open: Cell<usize>,
    /// What this worker has handed off.
    pub(crate) handoffs: Option<Rc<Handoffs>>,
    /// Set when the worker begins to stop.
    pub(crate) stopping: Arc<AtomicBool>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Rc<Self> {
        let deadlines = Deadlines::new();
        let head_bytes = shared.config.load().limits.head_bytes;
        let handoffs = shared.handoff.as_ref().map(|system| Handoffs::new(Arc::clone(system), index));
        Rc::new(Self {
            handoffs,
            stopping: Arc::default(),
            shared,
            index,
            pool: Pool::new(Rc::clone(&deadlines)),
            deadlines,
            responses: RefCell::new(BufferPool::new(RESPONSE_BYTES.max(head_bytes))),
            inputs: RefCell::new(BufferPool::new(INPUT_BYTES.max(head_bytes))),
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

    pub(crate) fn backend(&self, b: BackendId) -> Option<Arc<Backend>> {
        self.shared.backends.load().get(b.index()).cloned()
    }

    pub(crate) fn scratch(&self) -> Scratch {
        let (head, out) = self.heads.borrow_mut().pop().unwrap_or_default();
        Scratch { input: self.inputs.borrow().take(), head, out, lender: Rc::clone(&self.heads) }
    }

    /// A buffer for a response.
    pub(crate) fn response_buffer(&self) -> Buffer {
        self.responses.borrow().take()
    }

    /// The time as HTTP writes it.
    pub(crate) fn date(&self) -> [u8; 29] {
        self.dates.borrow().http
    }

    /// How much may be under way on a connection that is handed off.
    pub(crate) fn state_limits(&self) -> plimsoll_datapath::tcp::Limits {
        let config = self.shared.config.load();
        let send_bytes = config.handoff.as_ref().map_or(0, |h| h.state_bytes);
        plimsoll_datapath::tcp::Limits { send_bytes, ..Default::default() }
    }

    /// Connections being served.
    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    /// A connection to `backend` was opened.
    pub(crate) fn connected(&self, backend: &Backend) {
        self.backend_counts(backend).connections.add(1);
    }

    /// A connection to `backend` could not be opened. With `again`, for one request the second time: it is taken for
    /// down, so that the policy chooses another.
    pub(crate) fn connect_failed(&self, backend: &Arc<Backend>, error: &std::io::Error, again: bool) {
        self.backend_counts(backend).connect_failures.add(1);
        tracing::debug!(backend = &*backend.name, %error, "cannot connect");
        let signs = match error.kind() {
            // One that is busy does not answer either: health checks find out.
            std::io::ErrorKind::TimedOut => 0,
            _ if is_local(error) => 0,
            _ if again => self.shared.config.load().health.fall,
            _ => 1,
        };
        for _ in 0..signs {
            self.shared.sign(backend, false);
        }
    }

    /// Keeps what there is to keep of a request.
    pub(crate) fn observe(&self, record: &Record<'_>) {
        let ended = Instant::now();
        let counts = &self.shared.counts[self.index];
        counts.requests[hundreds(record.status)].add(1);
        counts.retried.add(u64::from(record.attempts > 1));
        counts.waited.add(u64::from(record.waited));
        if let Some(backend) = record.backend {
            let counts = self.backend_counts(backend);
            counts.content_bytes.add(record.content_bytes);
            match (record.times.assigned, record.times.first_byte) {
                (Some(assigned), Some(first_byte)) => {
                    counts.answers[hundreds(record.status)].add(1);
                    counts.first_byte.add(first_byte.saturating_duration_since(assigned));
                    counts.response_time.add(ended.saturating_duration_since(record.times.received));
                }
                // A client that did not wait is no failure of the back-end.
                _ => counts.failed.add(u64::from(record.status != CLIENT_GONE)),
            }
        }
        let config = self.shared.config.load();
        if let Some(log) = &config.access_log {
            let mut lines = self.lines.borrow_mut();
            let dates = self.dates.borrow();
            let time =
                if log.format == AccessLogFormat::Combined { &dates.common_log } else { &dates.rfc3339 };
            let moment = Moment { time, at: ended };
            access_log::line(log.format, record, config.policy.spec.name, moment, &mut lines);
            if lines.len() >= BUFFER_BYTES {
                self.hand_over(&mut lines);
            }
        }
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

    /// Does what is due from time to time, until the worker ends.
    pub(crate) async fn housekeeping(self: Rc<Self>) {
        let mut interval = tokio::time::interval(SWEEP);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sweeps = 0u32;
        loop {
            interval.tick().await;
            self.deadlines.sweep();
            let config = self.shared.config.load_full();
            self.pool.sweep(config.timeouts.backend_idle);
            let fresh = clock::Dates::if_changed(&self.dates.borrow());
            if let Some(dates) = fresh {
                *self.dates.borrow_mut() = dates;
            }
            sweeps = sweeps.wrapping_add(1);
            if sweeps.is_multiple_of(10) {
                self.flush();
            }
            if let Some(handoffs) = &self.handoffs {
                handoffs.housekeeping(&self);
            }
            fit(&self.inputs, INPUT_BYTES.max(config.limits.head_bytes));
            fit(&self.responses, RESPONSE_BYTES.max(config.limits.head_bytes));
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

/// Lends buffers of another size from now on, where the configuration asks for it.
fn fit(pool: &RefCell<Rc<BufferPool>>, size_bytes: usize) {
    if pool.borrow().size_bytes() != size_bytes {
        *pool.borrow_mut() = BufferPool::new(size_bytes);
    }
}
