//! The state of each flow for the packets that the guard holds: its connection is here, still to come, or
//! given back. Bounded in flows, packets and bytes; packets without room are dropped, and TCP sends them
//! again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::{Flow, HeldLimits, HeldPacket, HeldStore};

const SECOND_NS: u64 = 1_000_000_000;
/// How long a connection that was given back is remembered, and how long packets are sent on after it was released.
const RETURNED_FOR_NS: u64 = 10 * SECOND_NS;
const RELEASED_FOR_NS: u64 = 3 * SECOND_NS;
/// The most packets of a flow injected per second. An injected packet without a socket comes back.
const MOST_INJECTED: u32 = 64;
const LIMITS: HeldLimits =
    HeldLimits { packets_per_flow: 64, flows: 16_384, bytes: 16 << 20, wait_ns: SECOND_NS };

/// What to do with a packet.
#[derive(Debug)]
pub(super) enum PacketFate {
    /// Its connection is here.
    Inject(HeldPacket),
    /// Its connection has been given back, and the flow leads elsewhere.
    Emit(HeldPacket),
    /// It waits.
    Kept,
    /// There is no room for it.
    Dropped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowPlace {
    /// The connection with this number is here. How many packets were injected in the second that began at `since_ns`.
    Here { number: u64, since_ns: u64, injected: u32 },
    /// It was given back, and packets may still be led here.
    Returned { since_ns: u64 },
    /// It was given back, and packets are led elsewhere.
    Released { since_ns: u64 },
}

#[derive(Debug)]
struct Inner {
    /// The known flows. Looked up by key, and swept in an order that does not matter.
    places: HashMap<Flow, FlowPlace, FixedState>,
    held: HeldStore,
}

/// See the module's documentation. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(super) struct Flows(Mutex<Inner>);

impl Flows {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Inner { places: HashMap::default(), held: HeldStore::new(LIMITS) }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet was held.
    pub(super) fn held(&self, packet: HeldPacket, now_ns: u64) -> PacketFate {
        let mut inner = self.inner();
        match inner.places.get_mut(&packet.flow) {
            Some(FlowPlace::Here { since_ns, injected, .. }) => {
                if now_ns.saturating_sub(*since_ns) > SECOND_NS {
                    (*since_ns, *injected) = (now_ns, 0);
                }
                *injected += 1;
                return if *injected > MOST_INJECTED {
                    PacketFate::Dropped
                } else {
                    PacketFate::Inject(packet)
                };
            }
            Some(FlowPlace::Released { .. }) => return PacketFate::Emit(packet),
            Some(FlowPlace::Returned { .. }) | None => {}
        }
        if inner.held.add(packet, now_ns) { PacketFate::Kept } else { PacketFate::Dropped }
    }

    /// Marks the connection as here and returns the packets to inject.
    pub(super) fn here(&self, flow: Flow, number: u64, now_ns: u64) -> Vec<HeldPacket> {
        let mut inner = self.inner();
        inner.places.insert(flow, FlowPlace::Here { number, since_ns: now_ns, injected: 0 });
        if inner.held.is_empty() { Vec::new() } else { inner.held.take(&flow) }
    }

    /// Marks the connection as given back.
    pub(super) fn returned(&self, flow: Flow, now_ns: u64) {
        self.inner().places.insert(flow, FlowPlace::Returned { since_ns: now_ns });
    }

    /// It was given back to a front-end that will not release it.
    pub(super) fn unreturned(&self, flow: Flow) {
        let mut inner = self.inner();
        if matches!(inner.places.get(&flow), Some(FlowPlace::Returned { .. })) {
            inner.places.remove(&flow);
        }
    }

    /// Packets now go elsewhere; returns those that came meanwhile, to be sent on. Empty if the connection is
    /// here again.
    pub(super) fn released(&self, flow: Flow, now_ns: u64) -> Vec<HeldPacket> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        match inner.places.get_mut(&flow) {
            Some(place @ FlowPlace::Returned { .. }) => {
                *place = FlowPlace::Released { since_ns: now_ns };
                inner.held.take(&flow)
            }
            _ => Vec::new(),
        }
    }

    /// The connection will not come, or belongs to another machine: drops its packets, so that they do not
    /// count as stray.
    pub(super) fn unwanted(&self, flow: Flow) {
        self.inner().held.take(&flow);
    }

    /// Removes a connection that is over; a newer one of the same flow stays.
    pub(super) fn gone(&self, flow: Flow, number: u64) {
        let mut inner = self.inner();
        if is_of(inner.places.get(&flow), number) {
            inner.places.remove(&flow);
        }
    }

    /// Whether the connection is here, and no other one of the same flow.
    pub(super) fn is_here(&self, flow: &Flow, number: u64) -> bool {
        is_of(self.inner().places.get(flow), number)
    }

    /// Drops packets that have waited too long, and returns their flows, which nobody has announced.
    pub(super) fn sweep(&self, now_ns: u64) -> Vec<Flow> {
        let mut inner = self.inner();
        let mut strays = inner.held.expire(now_ns);
        strays.retain(|flow| !inner.places.contains_key(flow));
        inner.places.retain(|_, place| match *place {
            FlowPlace::Here { .. } => true,
            FlowPlace::Returned { since_ns } => now_ns.saturating_sub(since_ns) < RETURNED_FOR_NS,
            FlowPlace::Released { since_ns } => now_ns.saturating_sub(since_ns) < RELEASED_FOR_NS,
        });
        strays
    }
}

fn is_of(place: Option<&FlowPlace>, number: u64) -> bool {
    matches!(place, Some(FlowPlace::Here { number: of, .. }) if *of == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16) -> Flow {
        Flow::new(([10, 0, 0, 9], port).into(), ([10, 0, 0, 1], 80).into())
    }

    fn packet(port: u16, bytes: usize) -> HeldPacket {
        HeldPacket { flow: flow(port), at_ns: 0, ifindex: 1, frame: vec![0; bytes].into() }
    }

    #[test]
    fn packets_wait_for_their_connection() {
        let flows = Flows::new();
        assert!(matches!(flows.held(packet(1, 60), 0), PacketFate::Kept));
        assert!(matches!(flows.held(packet(1, 70), 0), PacketFate::Kept));
        let waited: Vec<usize> = flows.here(flow(1), 70, 0).iter().map(|packet| packet.frame.len()).collect();
        assert_eq!(waited, [60, 70]);
        assert!(flows.is_here(&flow(1), 70));
        assert!(matches!(flows.held(packet(1, 60), 0), PacketFate::Inject(_)));
        flows.gone(flow(1), 70);
        assert!(!flows.is_here(&flow(1), 70));
        assert!(matches!(flows.held(packet(1, 60), 0), PacketFate::Kept));
    }

    #[test]
    fn the_end_of_a_connection_is_not_that_of_its_successor() {
        let flows = Flows::new();
        flows.here(flow(1), 70, 0);
        flows.here(flow(1), 71, 0);
        assert!(!flows.is_here(&flow(1), 70));
        flows.gone(flow(1), 70);
        assert!(flows.is_here(&flow(1), 71));
        flows.gone(flow(1), 71);
        assert!(!flows.is_here(&flow(1), 71));
    }

    #[test]
    fn what_nobody_tells_of_is_a_stray() {
        let flows = Flows::new();
        for port in [3, 1] {
            flows.held(packet(port, 60), 0);
        }
        flows.here(flow(2), 70, 0);
        flows.returned(flow(4), 0);
        flows.held(packet(4, 60), 0);
        assert_eq!(flows.sweep(SECOND_NS - 1), []);
        assert_eq!(flows.sweep(SECOND_NS), [flow(3), flow(1)]);
        assert!(flows.is_here(&flow(2), 70));
    }

    #[test]
    fn given_back_and_released() {
        let flows = Flows::new();
        flows.here(flow(1), 70, 0);
        assert!(flows.released(flow(1), 0).is_empty(), "not given back");
        assert!(flows.is_here(&flow(1), 70));
        flows.returned(flow(1), 0);
        assert!(matches!(flows.held(packet(1, 60), 0), PacketFate::Kept));
        assert_eq!(flows.released(flow(1), 0).len(), 1);
        assert!(matches!(flows.held(packet(1, 60), 0), PacketFate::Emit(_)));
        // Handed off to here anew.
        flows.here(flow(1), 70, 0);
        assert!(matches!(flows.held(packet(1, 60), 0), PacketFate::Inject(_)));
        flows.returned(flow(1), 0);
        assert!(flows.sweep(RETURNED_FOR_NS).is_empty(), "no stray");
        assert!(flows.inner().places.is_empty());
    }

    #[test]
    fn what_was_given_back_to_a_front_end_that_is_gone_is_a_stray() {
        let flows = Flows::new();
        flows.here(flow(2), 70, 0);
        flows.returned(flow(1), 0);
        flows.held(packet(1, 60), 0);
        flows.unreturned(flow(1));
        flows.unreturned(flow(2));
        assert_eq!(flows.sweep(SECOND_NS), [flow(1)]);
        assert!(flows.is_here(&flow(2), 70));
    }

    #[test]
    fn what_waits_for_a_connection_that_does_not_come_is_no_stray() {
        let flows = Flows::new();
        flows.held(packet(1, 60), 0);
        flows.held(packet(2, 60), 0);
        flows.unwanted(flow(1));
        assert_eq!(flows.sweep(SECOND_NS), [flow(2)]);
    }

    #[test]
    fn packets_of_a_lost_socket_do_not_go_round_for_ever() {
        let flows = Flows::new();
        flows.here(flow(2), 70, 0);
        for _ in 0..MOST_INJECTED {
            assert!(matches!(flows.held(packet(2, 60), 0), PacketFate::Inject(_)));
        }
        assert!(matches!(flows.held(packet(2, 60), 0), PacketFate::Dropped));
        assert!(matches!(flows.held(packet(2, 60), SECOND_NS + 1), PacketFate::Inject(_)));
    }
}
