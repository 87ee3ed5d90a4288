//! Clones whose server is behind the accept shim: it gets the clone's socket, with the request in its receive buffer.
//!
//! It must not end the connection, as the original does: the shim keeps it from that, and a copy of the socket here outlives the server's.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::Instant;

use http::StatusCode;
use plimsoll_datapath::shim::{Header, send_connection};
use plimsoll_datapath::tcp;
use plimsoll_wire::cloning::FromClone;
use rustix::net::{Shutdown, connect_unspec, shutdown};

use super::super::client::ClientConnection;
use super::super::head::Outline;
use super::super::outcome::finish;
use super::super::serve::{AfterAnswer, Answer, answer_short};
use super::super::shim::{hear, reach};
use super::counters::CloneCounters;
use super::frames::FrameSink;
use super::fresh::{CutOff, FreshClone, all_taken, is_left_alone, report};
use super::shared::CloneShared;

/// Has the server answer on a clone, and lets that go once its client has everything.
pub(super) async fn answer(shared: &CloneShared, sink: &FrameSink, clone: FreshClone, path: &Path) {
    let began_at = Instant::now();
    let FreshClone { conn, flow, number, restored, head, outline, .. } = clone;
    let begun = restored.activate().and_then(|socket| {
        let written_bytes = tcp::written_bytes(socket.as_fd())?;
        Ok((socket, written_bytes))
    });
    let (socket, before_bytes) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            tracing::warn!(%error, "a clone was lost when it was made");
            let ended = report(Answer::NONE, began_at);
            sink.push(&FromClone::Ended { conn, sent_bytes: 0, keep: false, ended });
            return;
        }
    };
    let cut_off = CutOff::new(sink);
    let answer = tokio::select! {
        biased;
        answer = of_server(shared, path, &socket, (&head, outline), began_at) => answer,
        () = cut_off.ends(shared, &flow, number) => Answer::NONE,
    };
    let written = tcp::written_bytes(socket.as_fd());
    let whole = answer.complete && written.is_ok();
    let sent_bytes = written.unwrap_or(before_bytes).saturating_sub(before_bytes);
    shared.counters.made_content_bytes.add(answer.content_bytes);
    let keep = whole && outline.keep_alive && answer.then == AfterAnswer::KeepAlive;
    let ended = report(Answer { complete: whole, ..answer }, began_at);
    sink.push(&FromClone::Ended { conn, sent_bytes, keep, ended });
    let is_here = || shared.clones.is_here(&flow, number);
    let mut taken = false;
    if whole {
        CloneCounters::count(&shared.counters.answered_as_clone);
        taken = all_taken(socket.as_fd(), shared.config.write_timeout, &cut_off, &is_here).await;
        // Nobody may be there to go on: the client is told the end.
        if taken && is_left_alone(shared, sink, &is_here).await {
            let _ = shutdown(&socket, Shutdown::Write);
            return;
        }
    }
    // The same for one that has not all of its answer; this resets it, whatever copies of the socket there are.
    if !taken && is_here() && sink.is_lost() {
        match connect_unspec(&socket) {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, ?flow, "a client was not told of the end"),
        }
    }
    // Of an answer that broke off, the original tells the client. The server sees the end of its copy.
    if is_here()
        && let Err(error) = tcp::take_away(socket.as_fd())
    {
        tracing::debug!(%error, fd = socket.as_raw_fd(), "a clone could not be removed");
    }
}

/// What the server answers on a clone whose request it reads from the socket.
async fn of_server(
    shared: &CloneShared,
    path: &Path,
    socket: &OwnedFd,
    (head, outline): (&[u8], Outline),
    began_at: Instant,
) -> Answer {
    let access = shared.config.gauge.begin();
    let header = Header {
        give_back_at_next_request: true,
        head_request: outline.is_head,
        head_size_bytes: u32::try_from(head.len()).unwrap_or(0),
        no_end: true,
    };
    let unix = match reach(path).await.and_then(|unix| {
        send_connection(&unix, socket, header)?;
        Ok(unix)
    }) {
        Ok(unix) => unix,
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "the server took no clone");
            let copy = socket
                .try_clone()
                .and_then(|copy| ClientConnection::new(copy, b"", shared.config.write_timeout));
            return match copy {
                Ok(mut client) => answer_short(&mut client, StatusCode::BAD_GATEWAY).await,
                Err(_) => Answer::NONE,
            };
        }
    };
    let mut access = Some(access);
    let (tell, mut told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let followed = hear(&unix, began_at, |answer| {
        finish(access.take(), began_at);
        if let Some(tell) = tell.take() {
            let _ = tell.send(answer);
        }
    });
    tokio::select! {
        biased;
        answer = &mut told => answer.unwrap_or(Answer::NONE),
        // It may have answered, and ended the connection, in one go.
        _ = followed => told.try_recv().unwrap_or(Answer::NONE),
    }
}
