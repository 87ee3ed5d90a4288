//! Answers load inquiries for a server on whose machine no agent runs.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_wire::load::{
    AnswerLimits, BootId, DATAGRAM_BYTES, LoadAnswerer, LoadCounters, LoadCounts, LoadGauge, LoadKeys,
};
use plimsoll_wire::{Key, random};

use crate::error::ClientError;

/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Pause after a failure, such as of a network that is down.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// Answers load inquiries by UDP from a thread of its own, as an agent would. Dropped, it ends.
#[derive(Debug)]
pub struct LoadResponder {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    counters: Arc<LoadCounters>,
    thread: Option<JoinHandle<()>>,
}

impl LoadResponder {
    /// Answers at this address with what `gauge` shows, to those who have the key.
    ///
    /// # Errors
    /// When the address cannot be used, or the system provides no thread or random numbers.
    pub fn start(listen: SocketAddr, key: &Key, gauge: LoadGauge) -> Result<Self, ClientError> {
        let system = |what| move |error| ClientError::System { what, error };
        let chance = || random::<8>().map_err(system("there are no random numbers"));
        let socket = UdpSocket::bind(listen).map_err(system("cannot listen for load inquiries"))?;
        let prepared = socket.set_read_timeout(Some(LOOK)).and_then(|()| socket.local_addr());
        let address = prepared.map_err(system("cannot use a UDP socket"))?;
        let (boot, seed) = (BootId::new(chance()?), u64::from_le_bytes(chance()?));
        let answerer = LoadAnswerer::new(LoadKeys::new(key), boot, AnswerLimits::default(), seed);
        let (stopping, counters) = (Arc::<AtomicBool>::default(), answerer.counters());
        let seen = Arc::clone(&stopping);
        let thread = std::thread::Builder::new().name("load-answer".to_owned());
        let thread = thread.spawn(move || answer(&socket, answerer, &gauge, &seen));
        let thread = Some(thread.map_err(system("cannot start a thread"))?);
        Ok(Self { address, stopping, counters, thread })
    }

    /// Where it answers, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has counted.
    #[must_use]
    pub fn counts(&self) -> LoadCounts {
        self.counters.counts()
    }
}

impl Drop for LoadResponder {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that answers load inquiries has failed");
        }
    }
}

fn answer(socket: &UdpSocket, mut answerer: LoadAnswerer, gauge: &LoadGauge, stopping: &AtomicBool) {
    let origin = Instant::now();
    // One byte more than a datagram has: a longer one is told from one that was cut.
    let mut buffer = [0; DATAGRAM_BYTES + 1];
    while !stopping.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((bytes, source)) => {
                let now_ns = u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
                if let Some(reply) = answerer.answer(source.ip(), &buffer[..bytes], now_ns, || gauge.tell())
                    && let Err(error) = socket.send_to(&reply, source)
                {
                    tracing::debug!(%error, %source, "a reply was not sent");
                }
            }
            Err(error) if is_idle(&error) => {}
            Err(error) => {
                tracing::debug!(%error, "inquiries could not be read");
                std::thread::sleep(AFTER_FAILURE);
            }
        }
    }
}

fn is_idle(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
