//! The beginning of a link to another node, as the side that opens it sees it.

use std::net::{IpAddr, SocketAddr};

use plimsoll_wire::session::{AgentTerms, Established, FrontEndHandshake, FrontEndId};
use plimsoll_wire::{Key, random};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Who opens it.
pub(super) struct LinkOpener<'a> {
    pub(super) key: &'a Key,
    pub(super) name: &'a str,
    /// The address by which the other node knows us.
    pub(super) from: IpAddr,
}

/// Opens a link to the node of this name.
///
/// # Errors
/// When there is none, or it has another key or name.
pub(super) async fn open_link(
    own: &LinkOpener<'_>,
    address: SocketAddr,
    name: &str,
) -> Result<(TcpStream, Established<AgentTerms>), String> {
    let text = |error: std::io::Error| error.to_string();
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(text)?;
    // The other node knows us by our address.
    socket.bind(SocketAddr::new(own.from, 0)).map_err(text)?;
    let mut stream = socket.connect(address).await.map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    let instance = u64::from_le_bytes(random().map_err(text)?);
    let id = FrontEndId { name: own.name.to_owned(), instance };
    let nonce = random().map_err(text)?;
    let (mut handshake, hello) =
        FrontEndHandshake::new(own.key, &id, nonce).map_err(|error| error.to_string())?;
    stream.write_all(&hello).await.map_err(text)?;
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.map_err(text)?;
        if count == 0 {
            return Err("it was closed within the handshake".to_owned());
        }
        let progress = handshake.feed(&buffer[..count]).map_err(|error| error.to_string())?;
        stream.write_all(&progress.send).await.map_err(text)?;
        let Some(mut established) = progress.done else { continue };
        if established.peer.name != name {
            return Err(format!("the node there is called {}", established.peer.name));
        }
        established.keys.reader.feed(&buffer[progress.consumed..count]);
        return Ok((stream, established));
    }
}
