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
