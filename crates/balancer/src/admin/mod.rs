//! The admin API.

use std::net::TcpListener;
use std::sync::Arc;

use crate::worker::Shared;

/// Serves the admin API until the task is aborted.
pub(crate) async fn serve(_shared: Arc<Shared>, _socket: TcpListener) {}
