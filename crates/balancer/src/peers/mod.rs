//! Peers: front-ends, each on a back-end's machine, that exchange the sizes they have seen and set boundaries
//! from the sum, so that all set the same.
//!
//! Source: AdaptLoad, section 5: in a two-level scheme the histogram is "built and maintained by the servers of the
//! cluster, provided they periodically communicate with each other".

mod exchange;
mod known;
#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use plimsoll_exchange::cluster_number;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::dispatch::Dispatch;
use exchange::MOST_TIME;

pub(crate) use known::Peers;

/// Exchanges at once that others have begun; further ones wait.
const CONNECTIONS: usize = 64;
/// How long is waited when the system has no connection to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Periodically exchanges loads with peers and sets the boundaries.
pub(crate) async fn run(dispatch: Arc<Dispatch>, peers: Arc<Peers>) {
    let listener = peers.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut tasks = JoinSet::new();
    if let Some(listener) = listener {
        tasks.spawn(serve(Arc::clone(&peers), listener));
    }
    let mut interval = tokio::time::interval(peers.config.period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        round(&dispatch, &peers).await;
    }
}

async fn round(dispatch: &Arc<Dispatch>, peers: &Arc<Peers>) {
    let seen = dispatch.inspect(|i| i.policy.seen().map(|load| (cluster_number(i.view), load)));
    // A reload may have brought another policy.
    let Some((cluster, load)) = seen else { return };
    peers.tell(cluster, load);
    let time = peers.config.period.clamp(Duration::from_millis(200), MOST_TIME);
    let mut asking = JoinSet::new();
    for peer in peers.config.others.clone() {
        let peers = Arc::clone(peers);
        asking.spawn(async move {
            let asked = tokio::time::timeout(time, exchange::ask(&peers, &peer)).await;
            let result = asked.unwrap_or_else(|_| Err(io::Error::other("it takes too long to answer")));
            peers.asked(&peer, &result);
        });
    }
    while asking.join_next().await.is_some() {}
    dispatch.share(&peers.sum());
}

/// Answers those that connect.
async fn serve(peers: Arc<Peers>, socket: TcpListener) {
    let listener = match tokio::net::TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "cannot listen for other front-ends");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, from)) => {
                let peers = Arc::clone(&peers);
                drop(tokio::spawn(async move {
                    let answered = tokio::time::timeout(MOST_TIME, exchange::answer(&peers, stream)).await;
                    let result = answered.unwrap_or_else(|_| Err(io::Error::other("it takes too long")));
                    if let Err(error) = result {
                        peers.refused.add(1);
                        tracing::debug!(%from, %error, "an exchange with another front-end came to nothing");
                    }
                    drop(place);
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of another front-end");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
