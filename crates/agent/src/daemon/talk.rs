//! Runs one link from the handshake to its loss: handles the front-end's messages.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::now_ns;
use plimsoll_wire::codec::messages;
use plimsoll_wire::message::{Conn, FromAgent, Refusal, ToAgent};
use plimsoll_wire::session::FrameReader;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::config::FrontEnd;
use super::connection::{Connection, Cut, PlacementDecision};
use super::drive::{Taken, drive};
use super::greet::{check_name, greet, terms};
use super::link::{Flushed, FrontEndLink};
use super::lost::{LinkEnd, detach, reset_stalled};
use super::shared::{AgentShared, count};
use super::{succession, take};

/// Time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Looks at a link within the time for which it may be silent.
const LOOKS: u32 = 8;
/// Time between two messages that tell a front-end what has been counted.
const COUNTED: Duration = Duration::from_secs(1);
/// Reads in one turn, so that answers are sent in between.
const READS: usize = 16;

/// Serves a link to its end.
pub(super) async fn serve(shared: Arc<AgentShared>, mut stream: TcpStream, source: IpAddr) {
    let config = &shared.config;
    let own = terms(&config.name, config.window, config.state_bytes);
    let greeted = timeout(HANDSHAKE, greet(&config.key, own, &mut stream)).await;
    let greeted = greeted.unwrap_or_else(|_| Err("the handshake took too long".to_owned()));
    let established = match greeted.and_then(|established| check_name(&shared, established, source)) {
        Ok(established) => established,
        Err(why) => {
            shared.refused_link(source, &why);
            return;
        }
    };
    let number = shared.next_number();
    let link = Arc::new(FrontEndLink::new(number, established.peer, source, established.keys.writer));
    tracing::info!(front_end = link.peer.name, instance = link.peer.instance, %source, "a link begins");
    count(&shared.counters.links, 1);
    {
        let _turn = shared.succession();
        shared.give_up_silent(&link);
        shared.enter_link(&link);
        if shared.is_stopping() {
            link.push(&FromAgent::Stopping);
        }
        succession::begins(&shared, &link);
    }
    let mut talk = Talk {
        front_end: Arc::new(FrontEnd { name: link.peer.name.clone(), address: source }),
        shared: Arc::clone(&shared),
        link: Arc::clone(&link),
        stream,
        fresh: Vec::new(),
        waiting: Vec::new(),
        offered: BTreeMap::new(),
        offered_after: None,
        counted_at: None,
    };
    let end = talk.run(established.keys.reader).await;
    tracing::info!(front_end = link.peer.name, %source, "a link ends: {end}");
    let _turn = shared.succession();
    // First of all: who becomes active because of the end is offered what the link had.
    talk.lost(matches!(end, LinkEnd::Silent(_)));
    shared.forget_link(&link);
    succession::ends(&shared, &link);
}

/// Connections taken over that are not served yet, because the front-end must be told first.
struct WaitingConnections {
    /// Bytes of the link that must have been sent.
    mark: u64,
    taken: Vec<Taken>,
}

/// A link's own task.
struct Talk {
    shared: Arc<AgentShared>,
    link: Arc<FrontEndLink<Connection>>,
    front_end: Arc<FrontEnd>,
    stream: TcpStream,
    /// Taken over in this turn.
    fresh: Vec<Taken>,
    waiting: Vec<WaitingConnections>,
    /// Connections that were offered for adoption.
    offered: BTreeMap<u64, Arc<Connection>>,
    /// The count of lost links when orphans were last offered.
    offered_after: Option<u64>,
    /// When the front-end was last told what has been counted.
    counted_at: Option<Instant>,
}

impl Talk {
    /// Runs until the link is lost and returns why.
    async fn run(&mut self, reader: FrameReader) -> LinkEnd {
        match self.talk(reader).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn talk(&mut self, mut reader: FrameReader) -> Result<Infallible, LinkEnd> {
        let silence = self.shared.config.link_timeout;
        // A front-end sends something three times as often.
        let doubtful = silence * 2 / 3;
        let mut tick = interval(silence / LOOKS);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard_at = Instant::now();
        let mut sent_at = heard_at;
        let mut sent_before = 0;
        // Before any Pong: a front-end that has one knows what we have.
        self.offer_orphans();
        // Frames may have come with the handshake.
        self.take_frames(&mut reader)?;
        loop {
            // On each turn; there is at least one per tick.
            self.offer_orphans();
            let Flushed { left, sent_bytes, due } = self.link.flush(&self.stream)?;
            self.serve_waiting(sent_bytes);
            if sent_bytes != sent_before || !left {
                (sent_before, sent_at) = (sent_bytes, Instant::now());
            }
            tokio::select! {
                biased;
                ready = self.stream.readable() => {
                    ready?;
                    self.read(&mut reader)?;
                    heard_at = Instant::now();
                }
                () = self.link.woken() => {
                    if self.link.is_superseded() {
                        return Err("another process of its front-end has opened one".to_owned().into());
                    }
                    if self.link.take_doubt() && heard_at.elapsed() > doubtful && !self.has_input() {
                        return Err("it is silent, and its front-end has opened another".to_owned().into());
                    }
                }
                _ = self.stream.writable(), if left => {}
                () = until(due) => {}
                _ = tick.tick() => {
                    if heard_at.elapsed() > silence && !self.has_input() {
                        return Err(LinkEnd::Silent(format!("nothing was heard for {silence:?}")));
                    }
                    if sent_at.elapsed() > silence {
                        return Err(LinkEnd::Silent(format!("nothing could be sent for {silence:?}")));
                    }
                }
            }
        }
    }

    /// Whether there is unread input.
    fn has_input(&self) -> bool {
        let mut fds = [PollFd::new(&self.stream, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }

    /// Reads and handles the available input.
    fn read(&mut self, reader: &mut FrameReader) -> Result<(), LinkEnd> {
        for _ in 0..READS {
            match self.stream.try_read(reader.space()) {
                Ok(0) => return Err("it was closed".to_owned().into()),
                Ok(count) => reader.filled(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
            self.take_frames(reader)?;
        }
        Ok(())
    }

    fn take_frames(&mut self, reader: &mut FrameReader) -> Result<(), String> {
        while let Some(area) = reader.next_frame().map_err(|error| error.to_string())? {
            for message in messages::<ToAgent<'_>>(area) {
                self.take(&message.map_err(|error| error.to_string())?)?;
            }
        }
        if !self.fresh.is_empty() {
            let taken = std::mem::take(&mut self.fresh);
            self.waiting.push(WaitingConnections { mark: self.link.mark(), taken });
        }
        Ok(())
    }

    /// Serves the connections whose take-over has been reported to the front-end.
    fn serve_waiting(&mut self, sent_bytes: u64) {
        let told = self.waiting.iter().take_while(|waiting| waiting.mark <= sent_bytes).count();
        for taken in self.waiting.drain(..told).flat_map(|waiting| waiting.taken) {
            spawn_local(drive(Arc::clone(&self.shared), taken));
        }
    }

    fn take(&mut self, message: &ToAgent<'_>) -> Result<(), String> {
        match *message {
            ToAgent::Handoff { conn, request, lease_until_ns, ask, state } => {
                if self.link.knows(conn) {
                    return Err(format!("the front-end used the number {} twice", conn.0));
                }
                if !self.shared.active.has_say(&self.link) {
                    self.refuse(conn, Refusal::NotActive);
                    return Ok(());
                }
                let offer = take::HandoffOffer { conn, request, lease_until_ns, ask, state };
                match take::take(&self.shared, &self.link, &self.front_end, &offer) {
                    Ok(taken) => {
                        count(&self.shared.counters.taken, 1);
                        self.link.enter(conn, &taken.connection);
                        self.link.push(&FromAgent::Taken { conn });
                        self.fresh.push(taken);
                        succession::surrender_if_superseded(&self.shared, &self.link);
                    }
                    Err(why) => self.refuse(conn, why),
                }
            }
            ToAgent::Confirm { conn } => {
                if let Some(connection) = self.link.find(conn)
                    && connection.confirm()
                    && let Err(error) = self.shared.confirm(&connection)
                {
                    tracing::error!(%error, flow = ?connection.flow, "a lease could not be confirmed");
                }
            }
            ToAgent::Cancel { conn } => {
                if let Some(connection) = self.link.find(conn) {
                    count(&self.shared.counters.cancelled, 1);
                    // At once, without waiting for its task.
                    self.shared.release(&connection.flow, connection.number);
                    self.shared.flows.unwanted(connection.flow);
                    connection.cut(Cut::Silent);
                }
            }
            ToAgent::Stay { conn, request } => {
                if let Some(connection) = self.link.find(conn) {
                    connection.decide(request, PlacementDecision::Stay);
                }
            }
            ToAgent::Return { conn, request } => {
                if let Some(connection) = self.link.find(conn)
                    && !connection.decide(request, PlacementDecision::Return)
                {
                    self.link.push(&FromAgent::Kept { conn, request });
                }
            }
            ToAgent::Released { conn } => self.released(conn),
            ToAgent::Close { conn } => {
                if let Some(connection) = self.link.find(conn) {
                    connection.close();
                }
            }
            ToAgent::Adopted { orphan, conn } => self.adopted(orphan, conn),
            ToAgent::Ping { token } => self.pong(token),
            ToAgent::Activate { term } => {
                let shared = Arc::clone(&self.shared);
                let _turn = shared.succession();
                succession::activate(&shared, &self.link, term);
                self.offer_orphans();
                succession::tell(&shared, &self.link);
            }
            ToAgent::Deactivate => {
                let _turn = self.shared.succession();
                succession::deactivate(&self.shared, &self.link);
            }
        }
        Ok(())
    }

    fn pong(&mut self, token: u64) {
        self.link.push(&FromAgent::Pong { token, clock_ns: now_ns() });
        if self.counted_at.is_none_or(|at| at.elapsed() >= COUNTED) {
            self.counted_at = Some(Instant::now());
            self.link.push(&FromAgent::Counted { counts: self.shared.counts() });
        }
    }

    fn adopted(&mut self, orphan: u64, conn: Conn) {
        let shared = Arc::clone(&self.shared);
        let _turn = shared.succession();
        let offered = self.offered.remove(&orphan);
        if !shared.active.has_say(&self.link) {
            return;
        }
        let Some(connection) = offered else {
            // It was not offered on this link, or is taken back: the front-end has adopted what is not there.
            self.link.push(&FromAgent::Closed { conn });
            return;
        };
        // Before it can end, which removes it from the table.
        self.link.enter(conn, &connection);
        if !connection.adopt(Arc::clone(&self.link), conn) {
            self.link.forget(conn);
            self.link.push(&FromAgent::Closed { conn });
        }
    }

    fn refuse(&self, conn: Conn, why: Refusal) {
        tracing::debug!(conn = conn.0, ?why, "a connection was refused");
        count(&self.shared.counters.refused, 1);
        self.link.push(&FromAgent::Refused { conn, why });
    }

    fn released(&self, conn: Conn) {
        let Some(flow) = self.link.take_returned(conn) else { return };
        for packet in self.shared.flows.released(flow, now_ns()) {
            self.shared.emit(&packet);
        }
    }

    /// Offers connections of lost links to the front-end for adoption.
    fn offer_orphans(&mut self) {
        let losses = self.shared.losses();
        if self.offered_after.replace(losses) == Some(losses) {
            return;
        }
        let connections = match () {
            () if !self.shared.active.has_say(&self.link) => Vec::new(),
            () if self.shared.active.is_active(&self.link) => {
                self.shared.connections_of_name(&self.front_end.name)
            }
            () => self.shared.connections_of(&self.front_end),
        };
        // Others may be adopted here even if they were offered elsewhere since: the answer is on its way.
        self.offered.retain(|_, connection| !connection.is_over());
        for connection in connections {
            if let Some((request, active)) = connection.offer(self.link.number) {
                let (orphan, flow) = (connection.number, connection.flow);
                self.link.push(&FromAgent::Adopt { orphan, flow, request, active });
                self.offered.insert(orphan, connection);
            }
        }
    }

    /// Detaches the connections from the lost link, which was silent or has ended.
    fn lost(&mut self, silent: bool) {
        let confirmed = detach(&self.shared, &self.link, self.link.lose());
        if silent {
            spawn_local(reset_stalled(Arc::clone(&self.shared), confirmed));
        }
        for connection in std::mem::take(&mut self.offered).into_values() {
            connection.withdraw(self.link.number);
        }
        self.shared.link_lost();
        // Connections whose take-over was never reported end silently when dropped.
        for taken in self.waiting.drain(..).flat_map(|waiting| waiting.taken).chain(self.fresh.drain(..)) {
            taken.connection.cut(Cut::Silent);
            spawn_local(drive(Arc::clone(&self.shared), taken));
        }
    }
}

/// Waits until `time`; for ever without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
