//! The connections whose clones answer: their held packets, and how their tasks are woken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::tcp::TcpState;
use plimsoll_datapath::{Flow, HeldPacket, NextHop, PacketRouter};
use tokio::sync::Notify;

/// The most packets held of one connection; TCP sends others again.
const MOST_HELD: usize = 64;

/// A connection that stays frozen here while a clone answers.
#[derive(Debug)]
pub(super) struct Original {
    flow: Flow,
    state: Mutex<HeldState>,
    wake: Notify,
}

#[derive(Debug)]
struct HeldState {
    /// Where the clone is, once it is there.
    clone: Option<NextHop>,
    /// Whether it keeps the connection, and gets all.
    keeps: bool,
    /// The number after its answer, once that is known.
    end: Option<u32>,
    held: Vec<HeldPacket>,
    /// The number of a RST that was held: before the original's numbers were known, the router could not judge it.
    reset_seq: Option<u32>,
    /// It has gone on, or is over.
    left: bool,
}

impl Original {
    fn state(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet was held: what it acknowledges is for the clone, and what it brings for the original.
    fn held(&self, router: &PacketRouter, packet: HeldPacket) {
        let mut state = self.state();
        if state.left {
            return inject(router, &packet);
        }
        if let Some(seq) = packet.reset_seq() {
            state.reset_seq = Some(seq);
            self.wake.notify_one();
        }
        // The original goes on now, and tells the clone, which has nothing to send again meanwhile: that costs less than a packet.
        let is_last = state.end.is_some() && packet.acknowledged() == state.end;
        if let Some(clone) = &state.clone
            && !is_last
            && !sent_on(router, &packet, clone, state.keeps)
        {
            return;
        }
        if state.held.len() < MOST_HELD {
            state.held.push(packet);
        }
    }

    /// The clone is there: what was held until now is for it as well.
    pub(super) fn lead(&self, router: &PacketRouter, clone: NextHop) {
        let mut state = self.state();
        (state.clone, state.keeps, state.end) = (Some(clone), false, None);
        state.held.retain(|packet| sent_on(router, packet, &clone, false));
    }

    /// The clone is there and keeps the connection: what was held until now is for it.
    pub(super) fn leave_to(&self, router: &PacketRouter, clone: NextHop) {
        let mut state = self.state();
        (state.clone, state.keeps, state.end) = (Some(clone), true, None);
        state.held.retain(|packet| sent_on(router, packet, &clone, true));
    }

    /// The clone's answer ends before this number.
    pub(super) fn ends_at(&self, end: u32) {
        self.state().end = Some(end);
    }

    /// Takes the bytes that come next by these numbers out of the packets that are held, as far as they follow one another, if they
    /// are what is wanted. How many they are.
    pub(super) fn take_data(
        &self,
        numbers: &TcpState,
        most_bytes: usize,
        is_wanted: impl FnOnce(&[u8]) -> bool,
    ) -> u32 {
        let (mut next, ack) = (numbers.receive_next, numbers.send_next);
        let mut state = self.state();
        let (mut bytes, mut packets) = (Vec::new(), Vec::new());
        while let Some((at, data)) = state.held.iter().enumerate().find_map(|(at, packet)| {
            let data = packet.data_at(next, ack, numbers.window.send_max)?;
            Some((at, data))
        }) && bytes.len() + data.len() <= most_bytes
        {
            next = next.wrapping_add(u32::try_from(data.len()).unwrap_or(0));
            bytes.extend_from_slice(data);
            packets.push(at);
        }
        if bytes.is_empty() || !is_wanted(&bytes) {
            return 0;
        }
        packets.sort_unstable();
        for at in packets.into_iter().rev() {
            state.held.remove(at);
        }
        u32::try_from(bytes.len()).unwrap_or(0)
    }

    /// Whether no packet is held.
    pub(super) fn holds_nothing(&self) -> bool {
        self.state().held.is_empty()
    }

    /// Whether a RST with this number was held, which is the next one that is expected.
    pub(super) fn was_reset(&self, expected_seq: u32) -> bool {
        self.state().reset_seq == Some(expected_seq)
    }

    /// From now on the clone gets nothing.
    pub(super) fn lead_here(&self) {
        self.state().clone = None;
    }

    /// Waits until the packet router has told something of it; its entry says what.
    pub(super) async fn told(&self) {
        self.wake.notified().await;
    }
}

/// Whether the packet has something for the original.
fn sent_on(router: &PacketRouter, packet: &HeldPacket, clone: &NextHop, keeps: bool) -> bool {
    let sent =
        if keeps { router.pass_on(packet, clone).map(|()| false) } else { router.send_on(packet, clone) };
    sent.unwrap_or_else(|error| {
        tracing::debug!(%error, flow = ?packet.flow, "a held packet was not sent on");
        !keeps
    })
}

/// The connections whose clones answer. Looked up by flow only.
#[derive(Debug, Default)]
pub(super) struct Originals(Mutex<HashMap<Flow, Arc<Original>, FixedState>>);

impl Originals {
    fn table(&self) -> MutexGuard<'_, HashMap<Flow, Arc<Original>, FixedState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a connection whose packets are held from now on.
    pub(super) fn enter(&self, flow: Flow) -> Arc<Original> {
        let state = Mutex::new(HeldState {
            clone: None,
            keeps: false,
            end: None,
            held: Vec::new(),
            reset_seq: None,
            left: false,
        });
        let original = Arc::new(Original { flow, state, wake: Notify::new() });
        self.table().insert(flow, Arc::clone(&original));
        original
    }

    /// Removes it, and returns the packets that were held for it.
    pub(super) fn leave(&self, original: &Original) -> Vec<HeldPacket> {
        self.table().remove(&original.flow);
        let mut state = original.state();
        state.left = true;
        std::mem::take(&mut state.held)
    }

    /// Handles a packet that the router holds.
    pub(super) fn held(&self, router: &PacketRouter, packet: HeldPacket) {
        let table = self.table();
        if let Some(original) = table.get(&packet.flow).cloned() {
            drop(table);
            return original.held(router, packet);
        }
        // Still with the table locked: whoever enters a connection does so here before its packets are held, and removes it here afterwards.
        let entry = router.get(&packet.flow).ok().flatten();
        drop(table);
        // Inherited from an earlier process: its client is about to be reset. Injected, the packet would be held again.
        if entry.is_some_and(|entry| !entry.closing) {
            return;
        }
        // It went on meanwhile, or its clone has ended it.
        inject(router, &packet);
    }

    /// Does this unless the flow is entered; meanwhile nobody enters it.
    pub(super) fn unless_there(&self, flow: &Flow, work: impl FnOnce()) {
        let table = self.table();
        if !table.contains_key(flow) {
            work();
        }
    }

    /// The router has told something of this flow.
    pub(super) fn told(&self, flow: &Flow) {
        if let Some(original) = self.table().get(flow) {
            original.wake.notify_one();
        }
    }
}

pub(super) fn inject(router: &PacketRouter, packet: &HeldPacket) {
    if let Err(error) = router.inject(packet) {
        tracing::debug!(%error, flow = ?packet.flow, "a held packet was not injected");
    }
}
