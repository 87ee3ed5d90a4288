//! The beginning of a link: who is at the other end.

use std::net::IpAddr;

use plimsoll_datapath::now_ns;
use plimsoll_wire::session::{AgentHandshake, AgentTerms, Established, FrontEndId};
use plimsoll_wire::{Key, random};
use tokio::net::TcpStream;

use super::shared::AgentShared;

/// What an agent of this name tells of itself.
pub(super) fn terms(name: &str, window: u32, state_bytes: usize) -> AgentTerms {
    let most_state_bytes = u32::try_from(state_bytes).unwrap_or(u32::MAX);
    AgentTerms { name: name.to_owned(), window, most_state_bytes }
}

/// The agent's part of the handshake.
pub(super) async fn greet(
    key: &Key,
    terms: AgentTerms,
    stream: &mut TcpStream,
) -> Result<Established<FrontEndId>, String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let nonce = random().map_err(|error| error.to_string())?;
    let mut handshake = AgentHandshake::new(key, terms, nonce).map_err(|e| e.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("it was closed within the handshake".to_owned());
        }
        let mut bytes = &buffer[..count];
        while !bytes.is_empty() {
            let progress = match handshake.feed(bytes, now_ns()) {
                Ok(progress) => progress,
                Err(error) => {
                    let _ = stream.write_all(&AgentHandshake::parting(&error)).await;
                    return Err(error.to_string());
                }
            };
            bytes = &bytes[progress.consumed..];
            stream.write_all(&progress.send).await.map_err(|error| error.to_string())?;
            if let Some(mut established) = progress.done {
                established.keys.reader.feed(bytes);
                return Ok(established);
            }
        }
    }
}

/// Refuses a front-end that is not known at its address.
pub(super) fn check_name(
    shared: &AgentShared,
    established: Established<FrontEndId>,
    source: IpAddr,
) -> Result<Established<FrontEndId>, String> {
    let name = &established.peer.name;
    let known = shared.config.front_ends.iter().any(|known| known.name == *name && known.address == source);
    if known {
        Ok(established)
    } else {
        Err(format!("no front-end called {name:?} is known at this address"))
    }
}
