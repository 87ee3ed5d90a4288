//! The admin API: HTTP on the control thread, off the path of requests, bounded in connections, bytes and time.

mod agents;
mod backends;
mod decisions;
mod directory;
mod flows;
mod load_information;
mod metrics;
mod passed;
mod peers;
mod policy;
mod refused;
mod route;
mod snapshot;
mod tables;
mod why;

use std::convert::Infallible;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::mechanism::registry::MechanismSystems;
use crate::shared::FrontEndShared;

/// Connections at once; further ones wait.
const CONNECTIONS: usize = 64;
/// How long a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// How long a connection lasts; then it ends with the response that is under way.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// How long is waited when the system has no connection to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the admin API until the task is aborted.
pub(crate) async fn serve(shared: Arc<FrontEndShared>, systems: Arc<MechanismSystems>, socket: TcpListener) {
    let listener = match tokio::net::TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "cannot serve the admin API");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                drop(tokio::spawn(connection(Arc::clone(&shared), Arc::clone(&systems), stream, place)));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the admin API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    shared: Arc<FrontEndShared>,
    systems: Arc<MechanismSystems>,
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
) {
    let Ok(local) = stream.local_addr() else { return };
    let service = service_fn(|request| {
        let (shared, systems) = (Arc::clone(&shared), Arc::clone(&systems));
        async move { Ok::<_, Infallible>(route::answer(&shared, &systems, local, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // The reason why a client's connection ended does not matter.
        _ = connection.as_mut() => {}
        () = tokio::time::sleep(CONNECTION_TIME) => {
            connection.as_mut().graceful_shutdown();
            drop(tokio::time::timeout(route::RESPONSE_TIME, connection).await);
        }
    }
}
