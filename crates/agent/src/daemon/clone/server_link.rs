//! A link that another node has opened, by which it has clones made here.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_exchange::Sizes;
use plimsoll_wire::cloning::{FromClone, ToClone};
use plimsoll_wire::codec::messages;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::greet::{greet, terms};
use super::counters::CloneCounters;
use super::frames::{FrameSink, FramesEnd, run_frames};
use super::kept::KeptWord;
use super::made::{CloneOrder, ServerLink, begin, make, over};
use super::shared::CloneShared;

/// Time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Handshake field that clones do not use.
const WINDOW: u32 = 4096;

/// Serves a link to its end.
pub(super) async fn serve(shared: Arc<CloneShared>, mut stream: TcpStream, source: IpAddr) {
    let config = &shared.config;
    let own = terms(&config.name, WINDOW, config.state_bytes);
    let greeted = timeout(HANDSHAKE, greet(&config.key, own, &mut stream)).await;
    let greeted = greeted.unwrap_or_else(|_| Err("the handshake took too long".to_owned()));
    let established = match greeted {
        Ok(established) => established,
        Err(why) => return shared.refused_link(source, &why),
    };
    let name = established.peer.name;
    let known = config.peers.iter().position(|peer| peer.name == name && peer.address.ip() == source);
    let Some(peer) = known else {
        return shared.refused_link(source, &format!("no node called {name:?} is known at this address"));
    };
    // Before it leads anything here: what comes too late must not be answered.
    if let Err(why) = shared.learn_node(source) {
        return shared.refused_link(source, &why);
    }
    CloneCounters::count(&shared.counters.links);
    let keys = established.keys;
    let link = Rc::new(ServerLink::new(FrameSink::new(Rc::new(stream), keys.writer)));
    let take = |area: &[u8]| take(&shared, &link, peer, area);
    let end = run_frames(&link.sink, keys.reader, config.link_timeout, || {}, take).await;
    link.end(&shared);
    match end {
        FramesEnd::Lost(why) => tracing::info!(node = name, "a link of another node ends: {why}"),
        FramesEnd::Broken(why) => {
            CloneCounters::count(&shared.counters.broken_links);
            tracing::warn!(node = name, "a link of another node is closed: {why}");
        }
    }
}

fn take(shared: &Arc<CloneShared>, link: &Rc<ServerLink>, peer: usize, area: &[u8]) -> Result<(), String> {
    for message in messages::<ToClone<'_>>(area) {
        match message.map_err(|error| error.to_string())? {
            ToClone::Clone { conn, state, head, sent, role, followed } => {
                make(shared, link, &CloneOrder { conn, state, head, sent, role, followed });
            }
            ToClone::Begin { conn, send_next, client_window } => {
                begin(shared, link, conn, send_next, client_window);
            }
            ToClone::Give { conn } => link.with_word(conn, KeptWord::give),
            ToClone::Close { conn } => link.with_word(conn, KeptWord::close),
            ToClone::Over { conn } => over(shared, link, conn),
            ToClone::Ping { token } => {
                link.sink.push(&FromClone::Pong { token });
            }
            ToClone::Sizes { instance, number, cluster, load } => {
                shared.sharing.hear(peer, Sizes { instance, number, cluster, load });
            }
        }
    }
    Ok(())
}
