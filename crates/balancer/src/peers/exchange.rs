//! One exchange with a peer: the connecting side proves the key and sends its load; the other side answers
//! with its own.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_config::PeerConfig;
use plimsoll_wire::codec::Message as _;
use plimsoll_wire::random;
use plimsoll_wire::session::{
    AgentHandshake, AgentTerms, Established, FrameReader, FrameWriter, FrontEndHandshake, FrontEndId,
    HandshakeProgress,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::known::Peers;
use plimsoll_exchange::{MOST_MESSAGE_BYTES, Sizes};

/// How long an exchange may take.
pub(super) const MOST_TIME: Duration = Duration::from_secs(2);

/// Asks a peer; what it answers has been taken in when this returns.
pub(super) async fn ask(peers: &Peers, peer: &PeerConfig) -> io::Result<()> {
    let mut stream = TcpStream::connect((&*peer.host, peer.port)).await?;
    let us = FrontEndId { name: peers.config.name.clone(), instance: peers.instance };
    let (mut handshake, hello) =
        FrontEndHandshake::new(&peers.config.key, &us, random()?).map_err(io::Error::other)?;
    stream.write_all(&hello).await?;
    let established = establish(&mut stream, |bytes| handshake.feed(bytes).map_err(io::Error::other)).await?;
    let (Established { keys, peer: terms, .. }, rest) = established;
    if terms.name != peer.name {
        return Err(io::Error::other(format!("it calls itself {}", terms.name)));
    }
    let (mut writer, mut reader) = (keys.writer, keys.reader);
    reader.feed(&rest);
    tell(&mut stream, &mut writer, &peers.told()).await?;
    let sizes = hear(&mut stream, &mut reader).await?;
    peers.heard(&peer.name, sizes);
    Ok(())
}

/// Answers a peer that has connected.
pub(super) async fn answer(peers: &Peers, mut stream: TcpStream) -> io::Result<()> {
    let terms = AgentTerms { name: peers.config.name.clone(), window: 0, most_state_bytes: 0 };
    let mut handshake = AgentHandshake::new(&peers.config.key, terms, random()?).map_err(io::Error::other)?;
    let established =
        establish(&mut stream, |bytes| handshake.feed(bytes, 0).map_err(io::Error::other)).await?;
    let (Established { keys, peer, .. }, rest) = established;
    if !peers.config.others.iter().any(|other| other.name == peer.name) {
        return Err(io::Error::other(format!("{} is not among `others`", peer.name)));
    }
    let (mut writer, mut reader) = (keys.writer, keys.reader);
    reader.feed(&rest);
    let sizes = hear(&mut stream, &mut reader).await?;
    tell(&mut stream, &mut writer, &peers.told()).await?;
    peers.heard(&peer.name, sizes);
    Ok(())
}

/// Leads a handshake to its end; also what came behind it.
async fn establish<T>(
    stream: &mut TcpStream,
    mut feed: impl FnMut(&[u8]) -> io::Result<HandshakeProgress<Established<T>>>,
) -> io::Result<(Established<T>, Vec<u8>)> {
    let mut bytes = [0; 4096];
    // Each read gives at least a byte, and a handshake has no more.
    for _ in 0..bytes.len() {
        let n = read(stream, &mut bytes).await?;
        let mut fed = 0;
        while fed < n {
            let progress = feed(&bytes[fed..n])?;
            stream.write_all(&progress.send).await?;
            fed += progress.consumed;
            if let Some(done) = progress.done {
                return Ok((done, bytes[fed..n].to_vec()));
            }
            if progress.consumed == 0 {
                break;
            }
        }
    }
    Err(io::Error::other("the handshake does not end"))
}

async fn read(stream: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
    match stream.read(into).await? {
        0 => Err(io::Error::other(
            "it closed the connection; is it of the same release, does it have the same key, and this one among `others`?",
        )),
        n => Ok(n),
    }
}

async fn tell(stream: &mut TcpStream, writer: &mut FrameWriter, sizes: &Arc<Sizes>) -> io::Result<()> {
    writer.push(&**sizes).map_err(io::Error::other)?;
    stream.write_all(writer.finish()).await
}

async fn hear(stream: &mut TcpStream, reader: &mut FrameReader) -> io::Result<Sizes> {
    loop {
        if let Some(area) = reader.next_frame().map_err(io::Error::other)? {
            // Before it is decoded: what is decoded takes more memory.
            if area.len() > MOST_MESSAGE_BYTES {
                let bytes = area.len();
                return Err(io::Error::other(format!(
                    "a message of {bytes} bytes; {MOST_MESSAGE_BYTES} is the most"
                )));
            }
            return Sizes::decode(area).map_err(io::Error::other);
        }
        let n = read(stream, reader.space()).await?;
        reader.filled(n);
    }
}
