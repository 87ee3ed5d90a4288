//! An origin whose CPU and disk are emulated: it computes when they would be done, and waits until then.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use plimsoll_origin::Resource;
use plimsoll_policy::Rng;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::mixed_requests::kind_of;

/// How requests at one origin share its CPU and its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One worker: a request has CPU and disk for itself, the others stand in line.
    Line,
    /// As in figure 17 of the LARD paper: a line before the CPU, and one before the disk.
    Lines,
    /// A thread for each request: they take turns at the CPU, and there is a line before the disk.
    Threads,
}

/// The turn of a thread at the CPU.
const TURN: Duration = Duration::from_millis(2);
/// The longest body of a request in bytes.
const BODY_MOST: usize = 64 * 1024;
/// What responses have; the longest one.
static ANSWER: [u8; 256 << 10] = [b'x'; 256 << 10];
/// The bytes of a response to a request of no kind.
const OTHER_BYTES: usize = 512;

/// A CPU or a disk, and for how long it has been, or will be, busy.
#[derive(Default)]
struct Station {
    line: Resource,
    busy_ns: AtomicU64,
}

impl Station {
    async fn visit(&self, time: Duration) {
        self.busy_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        self.line.visit(time).await;
    }

    fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns.load(Ordering::Relaxed))
    }
}

struct Machine {
    sharing: Sharing,
    speed: f64,
    cpu: Station,
    disk: Station,
    rng: Mutex<Rng>,
    /// Requests for documents, and computed ones, that are being answered.
    under_way: [AtomicU32; 2],
    at_disk: AtomicU32,
}

impl Machine {
    async fn work(&self, cpu_s: f64, disk_s: f64) {
        let factor = 0.8 + 0.4 * self.rng.lock().unwrap_or_else(PoisonError::into_inner).unit();
        let time = |mean_s: f64| Duration::from_secs_f64(mean_s * factor / self.speed);
        let (mut cpu, disk) = (time(cpu_s), time(disk_s));
        match self.sharing {
            Sharing::Line => return self.cpu.visit(cpu + disk).await,
            Sharing::Lines => self.cpu.visit(cpu).await,
            Sharing::Threads => {
                while !cpu.is_zero() {
                    let turn = cpu.min(TURN);
                    self.cpu.visit(turn).await;
                    cpu -= turn;
                }
            }
        }
        if !disk.is_zero() {
            self.at_disk.fetch_add(1, Ordering::Relaxed);
            self.disk.visit(disk).await;
            self.at_disk.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let kind = request.uri().path_and_query().and_then(|it| kind_of(it.as_str()));
        let bytes = kind.map_or(OTHER_BYTES, |kind| kind.answer_bytes).min(ANSWER.len());
        let mut response = Response::new(Full::new(Bytes::from_static(&ANSWER[..bytes])));
        let body = Limited::new(request.into_body(), BODY_MOST).collect().await;
        match kind.filter(|_| body.is_ok()) {
            Some(kind) => {
                let under_way = &self.under_way[usize::from(kind.is_dynamic)];
                under_way.fetch_add(1, Ordering::Relaxed);
                self.work(kind.cpu_s, kind.disk_s).await;
                under_way.fetch_sub(1, Ordering::Relaxed);
            }
            None => *response.status_mut() = StatusCode::BAD_REQUEST,
        }
        response
    }
}

/// A running origin; dropping it stops it.
pub(crate) struct EmulatedOrigin {
    pub(crate) address: SocketAddr,
    machine: Arc<Machine>,
    task: AbortHandle,
}

impl EmulatedOrigin {
    /// Starts one at a listener; its CPU and disk are `speed` times as fast as usual.
    pub(crate) fn start(
        listener: std::net::TcpListener,
        sharing: Sharing,
        speed: f64,
        seed: u64,
    ) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let (cpu, disk) = (Station::default(), Station::default());
        let machine = Arc::new(Machine {
            sharing,
            speed,
            cpu,
            disk,
            rng: Mutex::new(Rng::new(seed, 0)),
            under_way: Default::default(),
            at_disk: AtomicU32::new(0),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&machine))).abort_handle();
        Ok(Self { address, machine, task })
    }

    /// For how long its CPU has been, or will be, busy with the requests that came.
    pub(crate) fn cpu_busy(&self) -> Duration {
        self.machine.cpu.busy()
    }

    /// Requests at the disk, for documents, and computed ones, each once.
    #[allow(dead_code, reason = "only one of the examples asks")]
    pub(crate) fn under_way(&self) -> impl Fn() -> [u32; 3] + Send + 'static {
        let machine = Arc::clone(&self.machine);
        move || {
            let [documents, computed] = [0, 1].map(|n: usize| machine.under_way[n].load(Ordering::Relaxed));
            let at_disk = machine.at_disk.load(Ordering::Relaxed);
            [at_disk, documents.saturating_sub(at_disk), computed]
        }
    }
}

impl Drop for EmulatedOrigin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, machine: Arc<Machine>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&machine)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, machine: Arc<Machine>) {
    let service = service_fn(|request| async { Ok::<_, Infallible>(machine.answer(request).await) });
    // A connection that breaks is its client's to count.
    let _ = stream.set_nodelay(true);
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
