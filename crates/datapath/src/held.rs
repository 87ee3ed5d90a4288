//! Packets that wait for their connection, bounded in number, bytes and time. Reads no clock: callers pass
//! times in.

use std::collections::{BTreeMap, VecDeque};

use crate::{Flow, HeldPacket};

/// Bounds on waiting packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLimits {
    /// Packets of one flow.
    pub packets_per_flow: usize,
    /// Flows.
    pub flows: usize,
    /// Bytes of all frames.
    pub bytes: usize,
    /// Nanoseconds from a flow's first packet until the flow counts as stray.
    pub wait_ns: u64,
}

impl Default for HeldLimits {
    /// 16 packets of a flow, 4096 flows, 4 MiB, one second.
    fn default() -> Self {
        Self { packets_per_flow: 16, flows: 4096, bytes: 4 << 20, wait_ns: 1_000_000_000 }
    }
}

#[derive(Debug)]
struct WaitingPackets {
    since_ns: u64,
    packets: Vec<HeldPacket>,
}

/// Packets of flows that have no socket yet, oldest flow first.
#[derive(Debug)]
pub struct HeldStore {
    limits: HeldLimits,
    flows: BTreeMap<Flow, WaitingPackets>,
    /// In order of arrival. An entry whose flow was taken, or came again, is skipped: its time differs.
    order: VecDeque<(u64, Flow)>,
    bytes: usize,
    dropped: u64,
}

impl HeldStore {
    /// An empty store.
    #[must_use]
    pub fn new(limits: HeldLimits) -> Self {
        Self { limits, flows: BTreeMap::new(), order: VecDeque::new(), bytes: 0, dropped: 0 }
    }

    /// Keeps `packet`, which came at `now_ns`. Without room it drops the packet, which the sender repeats,
    /// and returns false.
    pub fn add(&mut self, packet: HeldPacket, now_ns: u64) -> bool {
        let bytes = packet.frame.len();
        let known = self.flows.get(&packet.flow).map(|waiting| waiting.packets.len());
        let room = match known {
            Some(packets) => packets < self.limits.packets_per_flow,
            None => self.flows.len() < self.limits.flows && self.limits.packets_per_flow > 0,
        };
        if !room || self.bytes.saturating_add(bytes) > self.limits.bytes {
            self.dropped += 1;
            return false;
        }
        if known.is_none() {
            self.forget_taken();
            self.order.push_back((now_ns, packet.flow));
        }
        self.bytes += bytes;
        let new = || WaitingPackets { since_ns: now_ns, packets: Vec::new() };
        self.flows.entry(packet.flow).or_insert_with(new).packets.push(packet);
        true
    }

    /// Removes and returns the packets of `flow` in order of arrival.
    pub fn take(&mut self, flow: &Flow) -> Vec<HeldPacket> {
        let packets = self.flows.remove(flow).map(|waiting| waiting.packets).unwrap_or_default();
        self.bytes -= packets.iter().map(|packet| packet.frame.len()).sum::<usize>();
        packets
    }

    /// Drops and returns the flows that have waited too long at `now_ns`.
    pub fn expire(&mut self, now_ns: u64) -> Vec<Flow> {
        let mut stray = Vec::new();
        while let Some(&(since_ns, flow)) = self.order.front() {
            if now_ns.saturating_sub(since_ns) < self.limits.wait_ns {
                break;
            }
            self.order.pop_front();
            if self.flows.get(&flow).is_some_and(|waiting| waiting.since_ns == since_ns) {
                self.take(&flow);
                stray.push(flow);
            }
        }
        stray
    }

    /// When [`HeldStore::expire`] may have something to do next.
    #[must_use]
    pub fn next_expiry_ns(&self) -> Option<u64> {
        self.order.front().map(|(since_ns, _)| since_ns.saturating_add(self.limits.wait_ns))
    }

    /// Flows that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Bytes of all frames that wait.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets for which there was no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Compacts `order`, in which entries of taken flows stay until they expire.
    fn forget_taken(&mut self) {
        if self.order.len() < 2 * self.limits.flows {
            return;
        }
        let flows = &self.flows;
        self.order
            .retain(|(since_ns, flow)| flows.get(flow).is_some_and(|waiting| waiting.since_ns == *since_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(port: u16, bytes: usize) -> HeldPacket {
        let flow = Flow::new(([10, 0, 0, 9], port).into(), "10.0.0.1:80".parse().unwrap());
        HeldPacket { flow, at_ns: 0, ifindex: 1, frame: vec![0; bytes].into() }
    }

    fn store() -> HeldStore {
        HeldStore::new(HeldLimits { packets_per_flow: 2, flows: 3, bytes: 100, wait_ns: 10 })
    }

    #[test]
    fn packets_of_a_flow_come_out_in_order_and_once() {
        let mut store = store();
        assert!(store.add(packet(1, 10), 0) && store.add(packet(2, 11), 1) && store.add(packet(1, 12), 2));
        let taken = store.take(&packet(1, 0).flow);
        assert_eq!(taken.iter().map(|packet| packet.frame.len()).collect::<Vec<_>>(), [10, 12]);
        assert!(store.take(&packet(1, 0).flow).is_empty());
        assert_eq!((store.len(), store.bytes()), (1, 11));
    }

    #[test]
    fn everything_is_bounded() {
        let mut store = store();
        assert!(store.add(packet(1, 10), 0) && store.add(packet(1, 10), 0));
        assert!(!store.add(packet(1, 10), 0), "packets of a flow");
        assert!(!store.add(packet(2, 81), 0), "bytes");
        assert!(store.add(packet(2, 80), 0));
        store.take(&packet(2, 0).flow);
        assert!(store.add(packet(2, 1), 0) && store.add(packet(3, 1), 0));
        assert!(!store.add(packet(4, 1), 0), "flows");
        assert_eq!(store.dropped(), 3);
    }

    #[test]
    fn taken_flows_do_not_pile_up() {
        let mut store = store();
        for round in 0..1000 {
            assert!(store.add(packet(round, 1), 0));
            store.take(&packet(round, 0).flow);
            assert!(store.order.len() <= 6);
        }
        assert_eq!(store.bytes(), 0);
    }

    #[test]
    fn strays_are_named_once_when_their_time_is_over() {
        let mut store = store();
        store.add(packet(1, 1), 0);
        store.add(packet(2, 1), 5);
        store.add(packet(1, 1), 9);
        assert_eq!(store.next_expiry_ns(), Some(10));
        assert!(store.expire(9).is_empty());
        assert_eq!(store.expire(10), [packet(1, 0).flow]);
        assert!(store.expire(14).is_empty());
        assert_eq!(store.expire(15), [packet(2, 0).flow]);
        assert!(store.is_empty() && store.bytes() == 0 && store.next_expiry_ns().is_none());
    }

    #[test]
    fn a_flow_that_comes_anew_has_its_own_time() {
        let mut store = store();
        store.add(packet(1, 1), 0);
        store.take(&packet(1, 0).flow);
        store.add(packet(1, 1), 8);
        assert!(store.expire(10).is_empty());
        assert_eq!(store.expire(18), [packet(1, 0).flow]);
    }
}
