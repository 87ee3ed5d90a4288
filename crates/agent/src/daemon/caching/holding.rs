//! A link that another node has opened, by which it asks for documents and tells what it has.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_origin::SharedDocument;
use plimsoll_wire::caching::{FromHolder, ToHolder, digest};
use plimsoll_wire::codec::messages;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::super::clone::frames::{FrameSink, FramesEnd, run_frames};
use super::super::greet::{greet, terms};
use super::memory::Wanted;
use super::state::CacheState;

/// Time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Most documents of a link that are being fetched at once; more are refused.
const MOST_ANSWERS: usize = 64;

/// Serves a link to its end.
pub(super) async fn serve(thread: Rc<CacheState>, mut stream: TcpStream, source: IpAddr) {
    let config = &thread.config;
    let own = terms(&config.name, u32::try_from(MOST_ANSWERS).unwrap_or(u32::MAX), 0);
    let greeted = timeout(HANDSHAKE, greet(&config.key, own, &mut stream)).await;
    let greeted = greeted.unwrap_or_else(|_| Err("the handshake took too long".to_owned()));
    let established = match greeted {
        Ok(established) => established,
        Err(why) => return thread.refused_link(source, &why),
    };
    let name = established.peer.name;
    let known = config.peers.iter().position(|peer| peer.name == name && peer.address.ip() == source);
    let Some(peer) = known else {
        return thread.refused_link(source, &format!("no node called {name:?} is known at this address"));
    };
    thread.counters.links.add();
    let keys = established.keys;
    let link = Rc::new(HoldingLink {
        peer,
        sink: FrameSink::new(Rc::new(stream), keys.writer),
        answers: Semaphore::new(MOST_ANSWERS),
    });
    // What it had told by an earlier link it tells again.
    thread.places.borrow_mut().lost(peer);
    let take = |area: &[u8]| take(&thread, &link, area);
    let end = run_frames(&link.sink, keys.reader, config.link_timeout, || {}, take).await;
    thread.places.borrow_mut().lost(peer);
    match end {
        FramesEnd::Lost(why) => tracing::info!(node = name, "a link for documents ends: {why}"),
        FramesEnd::Broken(why) => {
            thread.counters.broken_links.add();
            tracing::warn!(node = name, "a link for documents is closed: {why}");
        }
    }
}

struct HoldingLink {
    peer: usize,
    sink: FrameSink,
    answers: Semaphore,
}

fn take(thread: &Rc<CacheState>, link: &Rc<HoldingLink>, area: &[u8]) -> Result<(), String> {
    for message in messages::<ToHolder<'_>>(area) {
        match message.map_err(|error| error.to_string())? {
            ToHolder::Ask { ask, name, size_bytes, modified_ns, held_only } => {
                let wanted = Wanted { name: name.to_owned(), size_bytes, modified_ns };
                spawn_local(answer(Rc::clone(thread), Rc::clone(link), ask, wanted, held_only));
            }
            ToHolder::Held { numbers } => {
                let mut places = thread.places.borrow_mut();
                numbers.into_iter().for_each(|number| places.held(link.peer, number));
            }
            ToHolder::Dropped { numbers } => {
                let mut places = thread.places.borrow_mut();
                numbers.into_iter().for_each(|number| places.dropped(link.peer, number));
            }
            ToHolder::Ping { token } => {
                link.sink.push(&FromHolder::Pong { token });
            }
        }
    }
    Ok(())
}

async fn answer(thread: Rc<CacheState>, link: Rc<HoldingLink>, ask: u64, wanted: Wanted, held_only: bool) {
    let found = match (link.answers.try_acquire(), thread.own.get()) {
        (Ok(_permit), Some(own)) if wanted.size_bytes <= thread.config.document_bytes as u64 => {
            let shared: SharedDocument<'_> = wanted.shared();
            let found = timeout(thread.config.fetch_timeout, own.document(shared, held_only)).await;
            found.ok().flatten()
        }
        _ => None,
    };
    match found {
        Some(bytes) => {
            thread.counters.sent.add();
            link.sink.push(&FromHolder::Document { ask, digest: digest(&bytes), bytes: &bytes });
        }
        None => {
            thread.counters.not_sent.add();
            link.sink.push(&FromHolder::Absent { ask });
        }
    }
}
