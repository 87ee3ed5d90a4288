//! Asks agents for their load, by UDP.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use plimsoll_policy::{BackendId, Candidates, PollAnswer};
use plimsoll_wire::load::{DATAGRAM_BYTES, InquiryLimits, LoadInquirer, LoadKeys};
use plimsoll_wire::{Key, random};
use tokio::sync::oneshot;

use crate::ask_table::{AskTable, AskedFor, OnAnswer, ToSend};
use crate::error::ClientError;

/// Loads are asked for by UDP, of agents or of whoever answers for a replica.
#[derive(Debug, Clone)]
pub struct LoadPolling {
    /// The key that client and agents share.
    pub key: Key,
    /// What is not answered within this time is discarded: a call never waits longer for answers.
    pub discard_after: Duration,
    /// How many replicas are asked before each choice of a policy that does not ask by itself: 1 to 8; `None` for nobody.
    pub size: Option<u8>,
}

impl LoadPolling {
    /// Discards after 10 ms, and asks for policies that ask by themselves.
    #[must_use]
    pub fn new(key: Key) -> Self {
        Self { key, discard_after: Duration::from_millis(10), size: None }
    }
}

/// What asking has brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskCounts {
    /// Answers that came in time.
    pub taken: u64,
    /// Inquiries that were not answered in time.
    pub discarded: u64,
    /// Datagrams that were refused: forged, replayed, late.
    pub refused: u64,
}

pub(crate) struct Asker {
    shared: Arc<AskerShared>,
    discard_after: Duration,
    receiver: tokio::task::AbortHandle,
}

struct AskerShared {
    /// The runtime's, for what comes in.
    socket: tokio::net::UdpSocket,
    /// The same, for what is sent: the runtime's lets nothing out before it has seen that there is room.
    sending: UdpSocket,
    /// Whether it is one of IPv6, which speaks to IPv4 addresses, too.
    is_v6: bool,
    origin: Instant,
    table: Mutex<AskTable>,
    counters: Arc<plimsoll_wire::load::LoadCounters>,
}

impl Asker {
    /// Must be called in a tokio runtime, which its task for answers then runs in.
    pub(crate) fn new(polling: &LoadPolling) -> Result<Self, ClientError> {
        let system = |what| move |error| ClientError::System { what, error };
        let client = random().map_err(system("there are no random numbers"))?;
        let inquirer = LoadInquirer::new(LoadKeys::new(&polling.key), client, InquiryLimits::default());
        let counters = inquirer.counters();
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| ClientError::System {
            what: "load inquiries need a tokio runtime",
            error: io::Error::other("the client was not built inside one"),
        })?;
        let (socket, is_v6) = bind().map_err(system("cannot open a UDP socket"))?;
        let sending = socket.try_clone().map_err(system("cannot use a UDP socket twice"))?;
        let socket = tokio::net::UdpSocket::from_std(socket).map_err(system("cannot use a UDP socket"))?;
        let discard_after_ns = u64::try_from(polling.discard_after.as_nanos()).unwrap_or(u64::MAX);
        let table = Mutex::new(AskTable::new(inquirer, discard_after_ns));
        let shared =
            Arc::new(AskerShared { socket, sending, is_v6, origin: Instant::now(), table, counters });
        let receiver = runtime.spawn(receive(Arc::clone(&shared))).abort_handle();
        Ok(Self { shared, discard_after: polling.discard_after, receiver })
    }

    /// Asks for an access. The answers are those that come in time; the back-ends, those whose agents are silent. The inquiries are
    /// sent when this returns.
    pub(crate) fn ask(
        &self,
        agents: &[(BackendId, SocketAddr)],
    ) -> impl Future<Output = (Vec<PollAnswer>, Candidates)> + Send + use<> {
        let (sender, answers) = oneshot::channel();
        let (poll, silent) = self.shared.send(AskedFor::Access(sender), agents);
        let (shared, discard_after) = (Arc::clone(&self.shared), self.discard_after);
        async move {
            let answers = match tokio::time::timeout(discard_after, answers).await {
                Ok(Ok(answers)) => answers,
                _ => shared.table().end(poll),
            };
            (answers, silent)
        }
    }

    /// Asks for nobody. Returns those whose agents are silent.
    pub(crate) fn probe(&self, agents: &[(BackendId, SocketAddr)], on_answer: OnAnswer) -> Candidates {
        self.shared.send(AskedFor::Probe(on_answer), agents).1
    }

    /// Only these agents are there now.
    pub(crate) fn retain(&self, is_there: impl Fn(&SocketAddr) -> bool) {
        self.shared.table().retain(is_there);
    }

    pub(crate) fn counts(&self) -> AskCounts {
        let counts = self.shared.counters.counts();
        let discarded = self.shared.table().discarded;
        AskCounts { taken: counts.taken, discarded, refused: counts.refused_total() }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}

impl AskerShared {
    fn send(&self, asked_for: AskedFor, agents: &[(BackendId, SocketAddr)]) -> (u64, Candidates) {
        let now_ns = self.now_ns();
        let (poll, outgoing, silent) = self.table().begin(asked_for, agents, now_ns);
        self.send_all(outgoing);
        (poll, silent)
    }

    /// What cannot be sent is as what is lost on the way.
    fn send_all(&self, outgoing: ToSend) {
        for (to, datagram) in outgoing {
            let to = match to {
                SocketAddr::V4(v4) if self.is_v6 => {
                    SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
                }
                other => other,
            };
            if let Err(error) = self.sending.send_to(&datagram, to) {
                tracing::debug!(%error, %to, "an inquiry was not sent");
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, AskTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A socket for both families, or for IPv4 where there is no IPv6.
fn bind() -> io::Result<(UdpSocket, bool)> {
    let v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).map(|socket| (socket, true));
    let (socket, is_v6) = match v6 {
        Ok(bound) => bound,
        Err(_) => (UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, false),
    };
    socket.set_nonblocking(true)?;
    Ok((socket, is_v6))
}

/// Pause after a failure, such as of a network that is down.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// Takes answers until its asker is dropped. A datagram longer than ours is cut to one byte more, so that it is told from one of ours.
async fn receive(shared: Arc<AskerShared>) {
    let mut buffer = [0; DATAGRAM_BYTES + 1];
    loop {
        match shared.socket.recv_from(&mut buffer).await {
            Ok((bytes, _)) => {
                let again = shared.table().take(&buffer[..bytes], shared.now_ns());
                shared.send_all(again.into_iter().collect());
            }
            // Such as an unreachable port, of which UDP sockets hear with the next call.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => {
                tracing::debug!(%error, "answers to inquiries could not be read");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

/// Passes answers to probes on to a group that may be gone.
pub(crate) fn to_group<G: Send + Sync + 'static>(
    group: Weak<G>,
    take: impl Fn(&Arc<G>, PollAnswer) + Send + 'static,
) -> OnAnswer {
    Box::new(move |answer| {
        if let Some(group) = group.upgrade() {
            take(&group, answer);
        }
    })
}
