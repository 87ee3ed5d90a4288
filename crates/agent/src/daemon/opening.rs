//! The beginning of a link to another node, as the side that opens it sees it.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use plimsoll_wire::session::{AgentTerms, Established, FrontEndHandshake, FrontEndId};
use plimsoll_wire::{Key, random};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// How long a node that is not there is waited for before that is told: nodes start one after the other.
const START: Duration = Duration::from_secs(5);

/// Time for connecting and the handshake.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// Who opens it.
pub(super) struct LinkOpener<'a> {
    pub(super) key: &'a Key,
    pub(super) name: &'a str,
    /// The address by which the other node knows us.
    pub(super) from: IpAddr,
}

/// Why there is no link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoLink {
    /// The other node is not there, or goes.
    Away(String),
    /// It has another key or name: somebody has to change that.
    Wrong(String),
}

impl std::fmt::Display for NoLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Away(why) | Self::Wrong(why)) = self;
        f.write_str(why)
    }
}

/// A link that cannot be opened, and what has been told of that.
#[derive(Default)]
pub(super) struct LinkTrouble {
    away_since: Option<Instant>,
    away_told: bool,
    wrong: Option<NoLink>,
}

impl LinkTrouble {
    /// Tells why there is none: with a warning if somebody has to change something, once for each reason, and once if the node is not there for
    /// longer than a start takes.
    pub(super) fn tell(&mut self, peer: &str, address: SocketAddr, why: &NoLink) {
        if self.is_news(why, Instant::now()) {
            tracing::warn!(peer, %address, "no link to another node: {why}");
        } else {
            tracing::debug!(peer, %address, "no link to another node: {why}");
        }
    }

    fn is_news(&mut self, why: &NoLink, now: Instant) -> bool {
        match why {
            NoLink::Wrong(_) => self.wrong.replace(why.clone()).as_ref() != Some(why),
            NoLink::Away(_) => {
                let since = *self.away_since.get_or_insert(now);
                now.duration_since(since) >= START && !std::mem::replace(&mut self.away_told, true)
            }
        }
    }
}

/// Opens a link to the node of this name.
///
/// # Errors
/// When there is none within [`HANDSHAKE`], or it has another key or name.
pub(super) async fn open_link(
    own: &LinkOpener<'_>,
    address: SocketAddr,
    name: &str,
) -> Result<(TcpStream, Established<AgentTerms>), NoLink> {
    let opened = timeout(HANDSHAKE, open(own, address, name)).await;
    opened.unwrap_or_else(|_| Err(NoLink::Away("it took too long".to_owned())))
}

async fn open(
    own: &LinkOpener<'_>,
    address: SocketAddr,
    name: &str,
) -> Result<(TcpStream, Established<AgentTerms>), NoLink> {
    let text = |error: std::io::Error| NoLink::Away(error.to_string());
    let wrong = |error: &dyn std::fmt::Display| NoLink::Wrong(error.to_string());
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(text)?;
    // The other node knows us by our address.
    socket.bind(SocketAddr::new(own.from, 0)).map_err(text)?;
    let mut stream = socket.connect(address).await.map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    let instance = u64::from_le_bytes(random().map_err(text)?);
    let id = FrontEndId { name: own.name.to_owned(), instance };
    let nonce = random().map_err(text)?;
    let (mut handshake, hello) =
        FrontEndHandshake::new(own.key, &id, nonce).map_err(|error| wrong(&error))?;
    stream.write_all(&hello).await.map_err(text)?;
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.map_err(text)?;
        if count == 0 {
            return Err(NoLink::Away("it was closed within the handshake".to_owned()));
        }
        let progress = handshake.feed(&buffer[..count]).map_err(|error| wrong(&error))?;
        stream.write_all(&progress.send).await.map_err(text)?;
        let Some(mut established) = progress.done else { continue };
        if established.peer.name != name {
            return Err(NoLink::Wrong(format!("the node there is called {}", established.peer.name)));
        }
        established.keys.reader.feed(&buffer[progress.consumed..count]);
        return Ok((stream, established));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_and_a_node_that_is_away_after_a_while() {
        let mut trouble = LinkTrouble::default();
        let began = Instant::now();
        let mut is_news = |why: fn(String) -> NoLink, text: &str, after_s| {
            trouble.is_news(&why(text.to_owned()), began + Duration::from_secs(after_s))
        };
        assert!(!is_news(NoLink::Away, "refused", 0) && !is_news(NoLink::Away, "refused", 4));
        assert!(is_news(NoLink::Away, "refused", 5) && !is_news(NoLink::Away, "it took too long", 6));
        assert!(is_news(NoLink::Wrong, "another key", 7) && !is_news(NoLink::Wrong, "another key", 8));
        assert!(is_news(NoLink::Wrong, "another name", 9));
    }
}
