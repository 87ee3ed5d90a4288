//! The thread that answers inquiries.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_wire::load::{DATAGRAM_BYTES, Datagram, LoadAnswerer, LoadGauge, LoadIndex, asks_for_host};

use super::flood::FloodWatch;
use super::host::HostMeter;
use super::priority;

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Pause after a failure, such as of a network that is down.
const AFTER_FAILURE: Duration = Duration::from_millis(10);
/// Room for inquiries that wait, as far as the system allows.
const RECEIVE_BYTES: usize = 1 << 20;

/// What answers.
pub(super) enum LoadAnswering {
    /// For this back-end.
    Gauge(Box<LoadAnswerer>, LoadGauge, Option<HostMeter>),
    /// For all back-ends.
    Index(Box<LoadIndex>),
}

impl LoadAnswering {
    fn unauthentic(&self) -> u64 {
        match self {
            Self::Gauge(answerer, ..) => answerer.unauthentic(),
            Self::Index(index) => index.unauthentic(),
        }
    }

    fn answer(&mut self, source: SocketAddr, datagram: &[u8], now_ns: u64) -> Option<Datagram> {
        match self {
            Self::Gauge(answerer, _, Some(meter)) if asks_for_host(datagram) => {
                answerer.answer_host(source.ip(), datagram, now_ns, || meter.read())
            }
            Self::Gauge(answerer, gauge, _) => {
                answerer.answer(source.ip(), datagram, now_ns, || gauge.tell())
            }
            Self::Index(index) => index.answer(source.ip(), datagram, now_ns),
        }
    }
}

/// What the thread and its owner share.
#[derive(Debug, Default)]
pub(super) struct AnswerShared {
    pub(super) stopping: Arc<AtomicBool>,
    /// Whether it has a high priority: from its owner at first, as it may be asked about before it runs.
    pub(super) raised: AtomicBool,
}

pub(super) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    if let Err(error) = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES) {
        tracing::debug!(%error, "the receive buffer keeps its size");
    }
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// Nanoseconds of the agent's clock.
pub(super) fn clock_ns(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn start(
    socket: UdpSocket,
    mut answering: LoadAnswering,
    origin: Instant,
    shared: Arc<AnswerShared>,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("load-answer".to_owned()).spawn(move || {
        shared.raised.store(priority::raise(), Ordering::Relaxed);
        // One byte more than a datagram has: a longer one is told from one that was cut.
        let mut buffer = [0; DATAGRAM_BYTES + 1];
        let mut flood = FloodWatch::default();
        while !shared.stopping.load(Ordering::Relaxed) {
            match socket.recv_from(&mut buffer) {
                Ok((bytes, source)) => {
                    if let Some(reply) = answering.answer(source, &buffer[..bytes], clock_ns(origin)) {
                        // One that is not sent is as one that is lost: the front-end goes on without.
                        if let Err(error) = socket.send_to(&reply, source) {
                            tracing::debug!(%error, %source, "a reply was not sent");
                        }
                        // An agent that is always asked must notice the end of a flood, too.
                        if flood.lowered {
                            flood.look(&answering, &shared, clock_ns(origin));
                        }
                    } else {
                        flood.look(&answering, &shared, clock_ns(origin));
                    }
                }
                Err(error) if is_idle(&error) => flood.look(&answering, &shared, clock_ns(origin)),
                Err(error) => {
                    tracing::debug!(%error, "inquiries could not be read");
                    std::thread::sleep(AFTER_FAILURE);
                }
            }
        }
    })
}

impl FloodWatch {
    /// While there is a flood, what is no inquiry is not looked at before all else that this machine does.
    fn look(&mut self, answering: &LoadAnswering, shared: &AnswerShared, now_ns: u64) {
        match self.saw(answering.unauthentic(), now_ns) {
            Some(true) if shared.raised.load(Ordering::Relaxed) && priority::lower() => {
                shared.raised.store(false, Ordering::Relaxed);
                self.lowered = true;
                tracing::warn!(
                    "a flood of datagrams without the right key; inquiries are answered at the ordinary priority"
                );
            }
            Some(false) if std::mem::take(&mut self.lowered) => {
                shared.raised.store(priority::raise(), Ordering::Relaxed);
                tracing::info!("the flood of datagrams is over");
            }
            _ => {}
        }
    }
}

fn is_idle(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
