//! Links to agents, as the tests open them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_testkit::{PATIENCE, uninterrupted};
use plimsoll_wire::session::{FrontEndHandshake, FrontEndId, Keys};
use plimsoll_wire::{Key, random};

/// Shakes hands on a connection to an agent, as a node of this name with this key; nothing when the agent ends it.
pub(crate) fn establish(mut stream: TcpStream, name: &str, key: &Key) -> Option<(TcpStream, Keys)> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let id = FrontEndId { name: name.to_owned(), instance: 1 };
    let (mut handshake, hello) = FrontEndHandshake::new(key, &id, random().unwrap()).unwrap();
    stream.write_all(&hello).ok()?;
    let mut buffer = [0; 4096];
    loop {
        let count = uninterrupted(|| stream.read(&mut buffer)).ok().filter(|count| *count > 0)?;
        let progress = handshake.feed(&buffer[..count]).ok()?;
        stream.write_all(&progress.send).ok()?;
        if let Some(established) = progress.done {
            return Some((stream, established.keys));
        }
    }
}
