//! The access log of a node: a line for each request on connections that clients have opened here.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use plimsoll_config::{AccessLog, AccessLogFormat};
use plimsoll_observe::access_log::{self, AccessLogSender, BUFFER_BYTES};
use plimsoll_observe::clock::Dates;
use plimsoll_observe::counters::SharedCounter;
use plimsoll_observe::line::{AccessLine, Moment, Times, write_line};

use super::super::client::ClientConnection;
use super::super::head::with_fields;
use super::super::serve::Answer;
use super::config::CloneConfig;
use super::mapping::{MappedRequest, NodePlace, PlaceReason};

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestEnd {
    /// The status; 0 if there was no answer.
    pub(super) status: u16,
    pub(super) content_bytes: u64,
    /// When its place was known.
    pub(super) placed_at: Option<Instant>,
    pub(super) first_byte_at: Option<Instant>,
    pub(super) reason: Option<PlaceReason>,
    /// The peer whose clone has answered, or was to.
    pub(super) by_peer: Option<usize>,
    /// Whether it came to a clone that keeps its connection here.
    pub(super) on_clone: bool,
    /// Nodes that were tried.
    pub(super) attempts: u32,
}

impl RequestEnd {
    /// Nothing has happened yet.
    pub(super) const NONE: Self = Self {
        status: 0,
        content_bytes: 0,
        placed_at: None,
        first_byte_at: None,
        reason: None,
        by_peer: None,
        on_clone: false,
        attempts: 0,
    };
}

impl RequestEnd {
    /// Nothing but its place is known.
    pub(super) fn placed(placed: &MappedRequest) -> Self {
        let by_peer = match placed.place {
            NodePlace::Here => None,
            NodePlace::Peer(peer) => Some(peer),
        };
        let attempts = u32::from(by_peer.is_some());
        Self { placed_at: Some(Instant::now()), reason: Some(placed.reason), by_peer, attempts, ..Self::NONE }
    }

    /// It was answered here so.
    pub(super) fn answered(self, answer: &Answer) -> Self {
        let Answer { status, content_bytes, first_byte_at, .. } = *answer;
        Self { status, content_bytes, first_byte_at, by_peer: None, attempts: self.attempts + 1, ..self }
    }

    /// The same. If the client's connection was over before the answer, nobody was left to be answered.
    pub(super) fn answered_on(self, client: Option<&ClientConnection>, answer: &Answer) -> Self {
        let has_gone = !answer.complete && client.is_none_or(ClientConnection::is_over);
        let status = if has_gone { 0 } else { answer.status };
        self.answered(&Answer { status, ..*answer })
    }
}

/// What a request began with, as far as the log needs it.
pub(super) struct AccessBegin {
    head: Vec<u8>,
    client: SocketAddr,
    received: Instant,
}

/// The log.
pub(super) struct NodeAccessLog {
    format: AccessLogFormat,
    sender: AccessLogSender,
    gathered: Mutex<(Vec<u8>, Dates)>,
    lost: SharedCounter,
}

/// The status that logs show where nobody was left to be answered, as nginx has it.
const CLIENT_GONE: u16 = 499;

impl NodeAccessLog {
    /// Opens it, and starts the thread that writes it.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn open(config: &AccessLog) -> io::Result<(Self, JoinHandle<()>)> {
        let (sender, thread) = access_log::start(Some(config))?;
        let gathered = Mutex::new((Vec::new(), Dates::now()));
        Ok((Self { format: config.format, sender, gathered, lost: SharedCounter::default() }, thread))
    }

    /// A request with this head has come.
    pub(super) fn begin(&self, client: SocketAddr, head: &[u8]) -> AccessBegin {
        AccessBegin { head: head.to_vec(), client, received: Instant::now() }
    }

    /// Writes its line.
    pub(super) fn end(&self, begun: &AccessBegin, end: &RequestEnd, config: &CloneConfig) {
        let own = &*config.name;
        let by = end.by_peer.and_then(|peer| config.peers.get(peer)).map(|peer| &*peer.name);
        let at = Instant::now();
        let client = begun.client.ip().to_canonical().to_string();
        let times =
            Times { received: begun.received, assigned: end.placed_at, first_byte: end.first_byte_at };
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, dates) = &mut *gathered;
        if let Some(fresh) = Dates::if_changed(dates) {
            *dates = fresh;
        }
        let precise;
        let time = match self.format {
            AccessLogFormat::Combined => dates.common_log.as_bytes(),
            AccessLogFormat::Json => {
                precise = dates.rfc3339_us(at);
                &precise
            }
        };
        with_fields(&begun.head, |request, referer, user_agent| {
            let line = AccessLine {
                client: &client,
                request,
                referer,
                user_agent,
                status: if end.status == 0 { CLIENT_GONE } else { end.status },
                content_bytes: end.content_bytes,
                policy: config.policy.spec.name,
                backend: Some(by.unwrap_or(own)),
                reason: end.reason.map(PlaceReason::name),
                refused: None,
                mechanism: (end.by_peer.is_some() || end.on_clone).then_some("clone"),
                attempts: end.attempts,
                waited: false,
                times,
                routed: None,
                coded: None,
                hit: None,
                class: None,
            };
            write_line(self.format, &line, Moment { time, at }, lines);
        });
        if lines.len() >= BUFFER_BYTES {
            let full = std::mem::take(lines);
            self.hand_over(full);
        }
    }

    fn hand_over(&self, lines: Vec<u8>) {
        let count = lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
        if !lines.is_empty() && !self.sender.push(lines) {
            self.lost.add(count);
        }
    }

    /// Hands over what was gathered.
    pub(super) fn hand_over_all(&self) {
        let lines = std::mem::take(&mut self.gathered.lock().unwrap_or_else(PoisonError::into_inner).0);
        self.hand_over(lines);
    }

    /// Has everything written. For the end.
    pub(super) fn flush(&self) {
        self.hand_over_all();
        self.sender.flush();
    }

    /// Lines that could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.lost.get() + self.sender.lost()
    }
}
