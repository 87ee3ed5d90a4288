//! The admin API: HTTP on the control thread, off the path of requests, bounded in connections, bytes and time.

mod agents;
mod backend_metrics;
mod backends;
mod compressed;
mod decisions;
mod directory;
mod flows;
pub(crate) mod fuzzed;
mod load_information;
mod metrics;
mod of_pool;
mod passed;
mod peers;
mod policy;
mod refused;
mod retries;
mod route;
mod snapshot;
mod tables;
mod why;
mod why_route;

use std::net::TcpListener;
use std::sync::Arc;

use plimsoll_observe::serving;

use crate::mechanism::registry::MechanismSystems;
use crate::shared::FrontEndShared;

/// Serves the admin API until the task is aborted.
pub(crate) async fn serve(shared: Arc<FrontEndShared>, systems: Arc<MechanismSystems>, socket: TcpListener) {
    let listener = match tokio::net::TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "cannot serve the admin API");
            return;
        }
    };
    let spawn = |connection: serving::AdminConnection| {
        let (shared, systems) = (Arc::clone(&shared), Arc::clone(&systems));
        drop(tokio::spawn(connection.serve(move |local, request| {
            let (shared, systems) = (Arc::clone(&shared), Arc::clone(&systems));
            async move { route::answer(&shared, &systems, local, request).await }
        })));
    };
    serving::accept(&listener, spawn).await;
}
