//! How `lab link` reaches the process that has a lab: by a socket whose name is no file, so that nothing is left of it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::time::Duration;

use plimsoll_lab::Lab;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::conditions::ConditionOptions;
use super::link_report::LinkReport;
use crate::error::CliError;

/// Longest message.
const MOST_BYTES: u64 = 1 << 16;
/// How long the lab's process waits for what somebody has to say.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked of the process that has the lab: to change the conditions of a link, or only to show them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LinkRequest {
    pub(super) node: String,
    /// Begin with a perfect link.
    pub(super) clear: bool,
    /// Change the frames that the node sends, and those to it.
    pub(super) ways: [bool; 2],
    pub(super) options: ConditionOptions,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LinkAnswer {
    /// The link as it is now.
    Link(Box<LinkReport>),
    /// The request makes no sense.
    Wrong(String),
    /// It could not be done.
    Failed(String),
}

fn address(lab: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("plimsoll-lab/{lab}"))
}

/// Where the process of a lab listens.
pub(super) struct ControlSocket(UnixListener);

impl ControlSocket {
    /// Listens for the lab of this name.
    pub(super) fn bind(lab: &str) -> Result<Self, CliError> {
        let bound = address(lab).and_then(|address| {
            let listener = StdUnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        bound.map(Self).map_err(|e| CliError::Failed(format!("cannot listen for `plimsoll lab link`: {e}")))
    }

    /// The next one who asks something.
    pub(super) async fn accept(&self) -> UnixStream {
        loop {
            if let Ok((stream, _)) = self.0.accept().await {
                return stream;
            }
            // Too many open files, most likely, which takes a moment to get better.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Does what is asked by `stream`, which must be of the same user, as anybody can connect.
pub(super) async fn answer(lab: &Lab, stream: UnixStream, carry_out: fn(&Lab, &LinkRequest) -> LinkAnswer) {
    let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == own_user());
    if !is_own {
        return;
    }
    // Whoever asked may have gone, or say nothing.
    let _ = tokio::time::timeout(PATIENCE, exchange(lab, stream, carry_out)).await;
}

async fn exchange(
    lab: &Lab,
    stream: UnixStream,
    carry_out: fn(&Lab, &LinkRequest) -> LinkAnswer,
) -> io::Result<()> {
    let mut stream = tokio::io::BufReader::new(stream);
    let mut line = String::new();
    (&mut stream).take(MOST_BYTES).read_line(&mut line).await?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => carry_out(lab, &request),
        Err(error) => LinkAnswer::Failed(format!("the lab's process is of another version: {error}")),
    };
    let text = serde_json::to_string(&answer)? + "\n";
    stream.get_mut().write_all(text.as_bytes()).await
}

/// The user of this process, which owns its entry in `/proc`; root where that cannot be read.
fn own_user() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid())
}

/// Asks the process of a lab.
pub(super) fn ask(lab: &str, request: &LinkRequest) -> Result<LinkReport, CliError> {
    let failed = |error: io::Error| {
        CliError::Failed(format!(
            "cannot reach the process of the lab `{lab}`: {error}. Run this where the lab was started, not within a node"
        ))
    };
    let mut stream =
        address(lab).and_then(|address| StdUnixStream::connect_addr(&address)).map_err(failed)?;
    let text = serde_json::to_string(request).map_err(|e| CliError::Failed(e.to_string()))? + "\n";
    stream.write_all(text.as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line).map_err(failed)?;
    match serde_json::from_str(&line) {
        Ok(LinkAnswer::Link(report)) => Ok(*report),
        Ok(LinkAnswer::Wrong(text)) => Err(CliError::Usage(text)),
        Ok(LinkAnswer::Failed(text)) => Err(CliError::Failed(text)),
        Err(_) if line.is_empty() => Err(CliError::Failed(format!(
            "the process of the lab `{lab}` does not answer this user; try as root"
        ))),
        Err(error) => Err(CliError::Failed(format!("the lab's process is of another version: {error}"))),
    }
}
