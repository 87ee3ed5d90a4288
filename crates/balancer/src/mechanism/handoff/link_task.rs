//! The task of each link: connects to the agent, carries messages both ways, and connects again when the link is down.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::neighbor;
use plimsoll_wire::lease::AgentClock;
use plimsoll_wire::message::{FromAgent, ToAgent};
use plimsoll_wire::session::{FrameReader, FrontEndHandshake, FrontEndId};
use plimsoll_wire::{codec, random};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::failover::RoleTeller;
use super::handoffs::Handoffs;
use super::link::{AgentLink, Down};
use super::times::link_timeout;
use super::{messages, recover};
use crate::worker::Worker;

/// How long connecting and the handshake may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);
/// How long connecting alone may take: a lost SYN would be repeated after a second.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
/// The agent is asked so often within the time for which it may be silent whether it is there.
const PINGS: u32 = 3;
/// The shortest time between two looks whether it is.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);
/// How long the MAC address of the agent's machine may take to be found.
const NEIGHBOR_TIMEOUT: Duration = Duration::from_millis(300);
/// The pause after the first failed attempt to connect. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts to connect.
const MOST_PAUSE: Duration = Duration::from_millis(250);
/// Bytes read from a link before others have their turn.
const READ_TURN_BYTES: usize = 1 << 20;

/// Makes a link to the agent of each back-end that is configured now, and retires the others.
pub(super) fn update_links(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>) {
    let backends = worker.shared.backends.load_full();
    if handoffs.known.borrow().as_ref().is_some_and(|known| Arc::ptr_eq(known, &backends)) {
        return;
    }
    let mut links = handoffs.links.borrow_mut();
    links.resize_with(backends.len(), || None);
    for (backend, slot) in backends.iter().zip(links.iter_mut()) {
        let wanted = backend.agent.filter(|_| !backend.is_retired());
        let same = match (&*slot, wanted) {
            (Some(link), Some(agent)) => link.succeeded_by(backend, agent),
            (None, None) => true,
            _ => false,
        };
        if same {
            continue;
        }
        if let Some(old) = slot.take() {
            old.retire();
        }
        *slot = wanted.map(|agent| {
            let link = AgentLink::new(Arc::clone(backend), agent);
            tokio::task::spawn_local(run(Rc::clone(worker), Rc::clone(handoffs), Rc::clone(&link)));
            link
        });
    }
    drop(links);
    *handoffs.known.borrow_mut() = Some(backends);
}

/// Keeps a link up until it is retired and its last connection is over.
async fn run(worker: Rc<Worker>, handoffs: Rc<Handoffs>, link: Rc<AgentLink>) {
    let mut pause = FIRST_PAUSE;
    let mut told = false;
    while !link.is_retired() {
        match tokio::time::timeout(OPEN_TIMEOUT, open(&worker, &handoffs, &link)).await {
            Ok(Ok((stream, reader))) => {
                (pause, told) = (FIRST_PAUSE, false);
                tracing::info!(backend = &*link.backend().name, agent = %link.address, "the link to the agent is up");
                let name = Arc::clone(&link.backend().name);
                handoffs.system.count_link(&name, true);
                let down = serve(&worker, &handoffs, &link, &stream, reader).await;
                handoffs.system.count_link(&name, false);
                handoffs.system.offers.unheard(worker.index, link.address);
                link.set_down();
                tracing::warn!(backend = &*link.backend().name, ?down, "the link to the agent is down");
                recover::link_down(&worker, &handoffs, &link, down);
            }
            failed if !told => {
                told = true;
                let error = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => "no answer".to_owned(),
                };
                tracing::warn!(backend = &*link.backend().name, agent = %link.address, error, "there is no link to the agent");
            }
            _ => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_PAUSE);
    }
}

/// Connects, proves the key, and finds out where packets for the back-end go.
async fn open(
    worker: &Worker,
    handoffs: &Handoffs,
    link: &AgentLink,
) -> io::Result<(TcpStream, FrameReader)> {
    let system = &handoffs.system;
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(link.address)).await??;
    stream.set_nodelay(true)?;
    // Frames that nobody acknowledges are given up when the agent is, not minutes later.
    SockRef::from(&stream).set_tcp_user_timeout(Some(link_timeout(worker)))?;
    let us = FrontEndId { name: system.name.clone(), instance: system.instance };
    let (mut handshake, hello) =
        FrontEndHandshake::new(&system.key, &us, random()?).map_err(io::Error::other)?;
    write_all(&stream, &hello).await?;
    let mut bytes = [0; 4096];
    let established = loop {
        stream.readable().await?;
        let n = match stream.try_read(&mut bytes) {
            Ok(0) => {
                return Err(io::Error::other(
                    "the agent closed the connection; does it know this front-end?",
                ));
            }
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let progress = handshake.feed(&bytes[..n]).map_err(io::Error::other)?;
        write_all(&stream, &progress.send).await?;
        if let Some(established) = progress.done {
            break (established, bytes[progress.consumed..n].to_vec());
        }
    };
    let (established, rest) = established;
    let (writer, mut reader) = (established.keys.writer, established.keys.reader);
    reader.feed(&rest);
    let agent = link.address.ip();
    // The kernel usually knows the address, as packets have just gone there; if it has to ask, the call blocks.
    let hop = tokio::task::spawn_blocking(move || neighbor(agent, NEIGHBOR_TIMEOUT)).await?;
    let hop = hop.map_err(io::Error::other)?;
    let clock = AgentClock::new(established.clock_ns, system.now_ns());
    link.set_up(writer, hop, clock, established.peer.window);
    Ok((stream, reader))
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Carries messages both ways until the link is down.
async fn serve(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    link: &Rc<AgentLink>,
    stream: &TcpStream,
    mut reader: FrameReader,
) -> Down {
    let mut token = 0;
    let mut looked = Instant::now();
    let mut look_at = looked;
    let mut ping_at = looked;
    let mut teller = RoleTeller::new(&handoffs.system);
    teller.tell(worker, handoffs, link);
    loop {
        // What was queued in one turn goes out together.
        let all = match link.flush(stream) {
            Ok(all) => all,
            Err(error) => return failed(link, &error),
        };
        tokio::select! {
            readable = stream.readable() => {
                let read = readable.and_then(|()| read(worker, handoffs, link, stream, &mut reader));
                if let Err(error) = read {
                    return failed(link, &error);
                }
            }
            _ = stream.writable(), if !all => {}
            () = until(link.due()), if all => {}
            () = link.woken() => {}
            () = teller.changed() => teller.tell(worker, handoffs, link),
            () = tokio::time::sleep_until(look_at) => {
                let now = Instant::now();
                let timeout = link_timeout(worker);
                if now >= ping_at {
                    token += 1;
                    link.push(&ToAgent::Ping { token });
                    ping_at = now + timeout / PINGS;
                }
                // If this worker is the one that was late, what waits to be read may have come in time.
                if let Err(error) = read(worker, handoffs, link, stream, &mut reader) {
                    return failed(link, &error);
                }
                let late = now.duration_since(std::mem::replace(&mut looked, now)) > 2 * timeout / PINGS;
                if !late && link.is_silent(timeout) {
                    return Down::Silent;
                }
                look_at = ping_at.min(link.silent_at(timeout)).max(now + SHORTEST_LOOK);
                if link.is_retired() && handoffs.retire(link) {
                    return Down::Closed;
                }
            }
        }
    }
}

/// Why a link is down that failed with this error.
fn failed(link: &AgentLink, error: &io::Error) -> Down {
    // What the agent cannot have sent: someone between it and us, or a mistake of one of us.
    if !matches!(error.kind(), io::ErrorKind::UnexpectedEof) {
        tracing::warn!(backend = &*link.backend().name, %error, "the link to the agent has failed");
    }
    Down::of(error)
}

/// Waits until `time`, or for ever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Reads and handles the messages that have come, up to [`READ_TURN_BYTES`] of them.
fn read(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    link: &Rc<AgentLink>,
    stream: &TcpStream,
    reader: &mut FrameReader,
) -> io::Result<()> {
    let mut left = READ_TURN_BYTES;
    loop {
        while let Some(frame) = reader.next_frame().map_err(io::Error::other)? {
            for message in codec::messages::<FromAgent<'_>>(frame) {
                messages::take(worker, handoffs, link, &message.map_err(io::Error::other)?);
            }
        }
        if left == 0 {
            return Ok(());
        }
        match stream.try_read(reader.space()) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                reader.filled(n);
                left = left.saturating_sub(n);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
