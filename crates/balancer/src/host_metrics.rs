//! Measures back-ends for a policy that wants to know of their machines: agents are asked for host metrics, and a small request is
//! timed.
//!
//! Source: Hyun et al., "Content sniffer based load distribution in a web server cluster", section 4.1.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_policy::{BackendId, Health, HostMetrics, Nanos};
use plimsoll_wire::load::{HostFigures, HostTaken, LoadInquirer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::backend::Backend;
use crate::backend_address::BackendAddress;
use crate::load_information::nanos;
use crate::net::connect::connect_unix;
use crate::shared::FrontEndShared;

/// How often is looked whether the policy wants metrics.
const LOOK: Duration = Duration::from_millis(500);
/// How long agents may take to answer; half of the interval at most.
const WAIT: Duration = Duration::from_millis(100);
/// How long a small request may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer to it that is read.
const MOST_PROBE_BYTES: u64 = 1 << 20;

/// The small request to one back-end.
#[derive(Debug, Default)]
struct Probe {
    /// When the one under way began.
    began: Option<Instant>,
    last: Option<Duration>,
}

impl Probe {
    /// How long it takes; one under way counts with its age, if that is more.
    fn time(&self) -> Option<Duration> {
        self.last.into_iter().chain(self.began.map(|began| began.elapsed())).max()
    }
}

type SharedProbe = Arc<Mutex<Probe>>;

/// Measures until the front-end stops.
pub(crate) async fn run(shared: Arc<FrontEndShared>) {
    let mut measuring = Measuring::default();
    loop {
        let Some(interval) = shared.dispatch.first().metrics_interval() else {
            measuring = Measuring::default();
            tokio::time::sleep(LOOK).await;
            continue;
        };
        let interval = Duration::from_nanos(interval.as_nanos().max(1_000_000));
        let begun = Instant::now();
        measuring.measure(&shared, WAIT.min(interval / 2)).await;
        measuring.tell(&shared, interval);
        tokio::time::sleep(interval.saturating_sub(begun.elapsed())).await;
    }
}

/// What is asked, and was told.
#[derive(Default)]
struct Measuring {
    inquirer: Option<LoadInquirer>,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    addresses: BTreeMap<BackendId, SocketAddr>,
    told: BTreeMap<BackendId, (Instant, HostFigures)>,
    probes: BTreeMap<BackendId, (BackendAddress, SharedProbe)>,
}

/// Those that take requests.
fn measured(shared: &FrontEndShared) -> Vec<Arc<Backend>> {
    let backends = shared.backends.load_full();
    backends.iter().filter(|b| !b.is_retired() && b.health() == Health::Up).cloned().collect()
}

impl Measuring {
    /// Asks agents, begins small requests, and takes answers for a while.
    async fn measure(&mut self, shared: &FrontEndShared, wait: Duration) {
        let backends = measured(shared);
        for backend in &backends {
            if let Ok(address) = &backend.address {
                self.probe(backend.id, address);
            }
        }
        if self.inquirer.is_none() {
            self.inquirer = shared.load_information.inquirer();
            self.v4 = UdpSocket::bind("0.0.0.0:0").await.ok();
            self.v6 = UdpSocket::bind("[::]:0").await.ok();
        }
        let mut asked = Vec::new();
        for backend in &backends {
            let Some(address) = backend.load_address() else { continue };
            if self.addresses.insert(backend.id, address).is_some_and(|before| before != address) {
                self.told.remove(&backend.id);
                self.inquirer.iter_mut().for_each(|inquirer| inquirer.forget(backend.id.index()));
            }
            asked.extend(self.ask(shared, backend.id));
        }
        let until = tokio::time::Instant::now() + wait;
        while !asked.is_empty()
            && let Ok(Some(taken)) = tokio::time::timeout_at(until, self.next(shared)).await
        {
            let (HostTaken::Figures { sequence, .. } | HostTaken::Renewed { sequence, .. }) = taken;
            asked.retain(|&known| known != sequence);
            match taken {
                HostTaken::Figures { peer, figures, .. } => {
                    self.told.insert(BackendId::new(peer), (Instant::now(), figures));
                }
                HostTaken::Renewed { peer, .. } => asked.extend(self.ask(shared, BackendId::new(peer))),
            }
        }
        for sequence in asked {
            self.inquirer.iter_mut().for_each(|inquirer| inquirer.give_up(sequence));
        }
    }

    /// Asks one agent. Returns the sequence number.
    fn ask(&mut self, shared: &FrontEndShared, backend: BackendId) -> Option<u64> {
        let address = *self.addresses.get(&backend)?;
        let now_ns = shared.load_information.now_ns();
        let (sequence, datagram) = self.inquirer.as_mut()?.ask_host(backend.index(), now_ns)?;
        let socket = if address.is_ipv4() { &self.v4 } else { &self.v6 };
        // One that is not sent is as one that is lost.
        if let Err(error) = socket.as_ref()?.try_send_to(&datagram, address) {
            tracing::debug!(%error, %address, "host metrics were not asked for");
        }
        Some(sequence)
    }

    /// The next answer; `None` where none can come.
    async fn next(&mut self, shared: &FrontEndShared) -> Option<HostTaken> {
        let inquirer = self.inquirer.as_mut()?;
        let (mut four, mut six) = ([0; 128], [0; 128]);
        loop {
            let receive = async |socket: &Option<UdpSocket>, into: &mut [u8]| match socket {
                Some(socket) => socket.recv(into).await,
                None => std::future::pending().await,
            };
            let received = tokio::select! {
                received = receive(&self.v4, &mut four) => received.map(|bytes| &four[..bytes]),
                received = receive(&self.v6, &mut six) => received.map(|bytes| &six[..bytes]),
            };
            // An unreachable agent is told so, and does not end what others are asked.
            let Ok(datagram) = received else { continue };
            if let Ok(taken) = inquirer.take_host(datagram, nanos_now(shared)) {
                return Some(taken);
            }
        }
    }

    /// Begins a small request, unless one is under way.
    fn probe(&mut self, backend: BackendId, address: &BackendAddress) {
        let known = self.probes.get(&backend).filter(|(at, _)| at == address);
        let probe = known.map_or_else(SharedProbe::default, |(_, probe)| Arc::clone(probe));
        self.probes.insert(backend, (address.clone(), Arc::clone(&probe)));
        {
            let mut state = probe.lock().unwrap_or_else(PoisonError::into_inner);
            if state.began.is_some() {
                return;
            }
            state.began = Some(Instant::now());
        }
        let address = address.clone();
        tokio::spawn(async move {
            let asked = tokio::time::timeout(PROBE_TIMEOUT, small_request(&address)).await;
            let mut state = probe.lock().unwrap_or_else(PoisonError::into_inner);
            let took = state.began.take().map(|began| began.elapsed());
            // One that fails tells nothing: health checks do.
            if matches!(asked, Ok(Ok(()))) || asked.is_err() {
                state.last = took;
            }
        });
    }

    /// Tells the policy what is known of each back-end.
    fn tell(&self, shared: &FrontEndShared, interval: Duration) {
        let asks = self.inquirer.is_some();
        for backend in measured(shared) {
            let fresh = self.told.get(&backend.id).filter(|(at, _)| at.elapsed() < interval * 3);
            let figures = match (fresh, asks) {
                (Some((_, figures)), _) => *figures,
                // The policy does not wait for one that is silent.
                (None, true) if backend.load_address().is_some() => continue,
                (None, _) => HostFigures::default(),
            };
            let probe = self.probes.get(&backend.id);
            let probe =
                probe.and_then(|(_, probe)| probe.lock().unwrap_or_else(PoisonError::into_inner).time());
            shared.dispatch.host_metrics(&HostMetrics {
                backend: backend.id,
                probe_time: probe.map(|time| Nanos::new(nanos(time))),
                pending: figures.pending.into(),
                at_disk: figures.at_disk.into(),
                serving_static: figures.serving_static.into(),
                serving_dynamic: figures.serving_dynamic.into(),
            });
        }
    }
}

fn nanos_now(shared: &FrontEndShared) -> u64 {
    shared.load_information.now_ns()
}

/// `GET /`, and its answer to the end.
async fn small_request(address: &BackendAddress) -> std::io::Result<()> {
    match address {
        BackendAddress::Tcp(address) => {
            small_request_on(TcpStream::connect(address).await?, &address.to_string()).await
        }
        BackendAddress::Unix(path) => small_request_on(connect_unix(path).await?, "localhost").await,
    }
}

async fn small_request_on(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
) -> std::io::Result<()> {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    tokio::io::copy(&mut stream.take(MOST_PROBE_BYTES), &mut tokio::io::sink()).await?;
    Ok(())
}
