//! Reading the header by which a proxy begins a connection.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt as _, ReadBuf};

use super::deadline::{Deadline, Fired};
use super::halves::ClientIo as _;
use super::proxy_protocol::{ConnectionEnds, MOST_BYTES, ProxyHeader, parse};
use super::stream::ClientStream;

/// Why there is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoProxyHeader {
    /// The connection ended before.
    Gone,
    /// It took too long.
    Late,
    /// Another client needs the connection's place.
    MadeRoom,
    /// What came is none.
    Bad(&'static str),
}

/// Reads the header from a connection, and not a byte beyond; whose connection it is, unless it is the proxy's own. The caller has set
/// the deadline.
pub(crate) async fn read_proxy_header(
    stream: &mut ClientStream,
    deadline: &Deadline,
) -> Result<Option<ConnectionEnds>, NoProxyHeader> {
    let mut room = [0; MOST_BYTES];
    let mut taken = 0;
    loop {
        let peeked = deadline.guard(|cx| peek(stream, cx, &mut room[taken..])).await;
        let n = match peeked {
            Ok(Ok(n @ 1..)) => n,
            Err(Fired::TimedOut) => return Err(NoProxyHeader::Late),
            Err(Fired::MadeRoom) => return Err(NoProxyHeader::MadeRoom),
            _ => return Err(NoProxyHeader::Gone),
        };
        let (upto, told) = match parse(&room[..taken + n]) {
            ProxyHeader::Whole { length, told } => (length, Some(told)),
            ProxyHeader::Open => (taken + n, None),
            ProxyHeader::Bad(why) => return Err(NoProxyHeader::Bad(why)),
        };
        // It is there, so this does not wait.
        if stream.read_exact(&mut room[taken..upto]).await.is_err() {
            return Err(NoProxyHeader::Gone);
        }
        taken = upto;
        // The proxy may wait with what follows until this is acknowledged.
        stream.acknowledge();
        if let Some(told) = told {
            return Ok(told);
        }
    }
}

fn peek(stream: &mut ClientStream, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
    stream.poll_peek(cx, &mut ReadBuf::new(room))
}
