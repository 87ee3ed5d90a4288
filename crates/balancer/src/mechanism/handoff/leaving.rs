//! Flows of connections that are over, or lost: the last packets of their clients are still forwarded for a while.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::Flow;

use super::lost_client::LostClient;

/// What to do with a flow when its time comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowEnd {
    /// Forget the flow, once its client is quiet.
    Forget,
    /// Reset the client, once nothing new comes from it.
    Reset(LostClient),
}

/// Flows with the time at which each is looked at. It holds each flow at most once.
#[derive(Default)]
pub(super) struct Leaving {
    queue: BinaryHeap<Reverse<(Instant, u32, Flow)>>,
    flows: HashMap<Flow, (u32, FlowEnd), FixedState>,
    serial: u32,
}

impl Leaving {
    /// Schedules a look at a flow. Returns true if the flow was leaving already; then the new schedule replaces the old one.
    pub(super) fn add(&mut self, flow: Flow, then: FlowEnd, at: Instant) -> bool {
        self.serial = self.serial.wrapping_add(1);
        self.queue.push(Reverse((at, self.serial, flow)));
        self.flows.insert(flow, (self.serial, then)).is_some()
    }

    /// Removes a flow that a connection has again. Returns false if it was not leaving.
    pub(super) fn remove(&mut self, flow: &Flow) -> bool {
        self.flows.remove(flow).is_some()
    }

    /// Takes out the next flow whose time has come.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Flow, FlowEnd)> {
        while let Some(&Reverse((at, serial, flow))) = self.queue.peek() {
            let found = self.flows.get(&flow).filter(|(s, _)| *s == serial).map(|(_, then)| *then);
            if found.is_some() && at > now {
                return None;
            }
            self.queue.pop();
            if let Some(then) = found {
                self.flows.remove(&flow);
                return Some((flow, then));
            }
        }
        None
    }

    /// The flows that are leaving, each at least once.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.queue.iter().map(|Reverse((_, _, flow))| flow)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_flow_once_and_in_time() {
        let mut leaving = Leaving::default();
        let flow = |port: u16| Flow::new(([10, 0, 0, 9], port).into(), ([10, 0, 0, 1], 80).into());
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert!(!leaving.add(flow(1), FlowEnd::Forget, after(10)));
        let reset = FlowEnd::Reset(LostClient::new(None, None, Duration::ZERO));
        assert!(!leaving.add(flow(2), FlowEnd::Forget, after(10)) && leaving.add(flow(2), reset, after(10)));
        assert!(leaving.remove(&flow(1)) && !leaving.remove(&flow(1)));
        assert!(!leaving.add(flow(1), FlowEnd::Forget, after(20)));
        assert_eq!(leaving.next(after(9)), None);
        assert_eq!(leaving.next(after(10)), Some((flow(2), reset)));
        assert_eq!(leaving.next(after(10)), None, "its second entry counts");
        assert_eq!(leaving.next(after(20)), Some((flow(1), FlowEnd::Forget)));
        assert_eq!((leaving.next(after(99)), leaving.flows().count()), (None, 0));
        // None waits for one that was added before it and has more time.
        assert!(!leaving.add(flow(3), FlowEnd::Forget, after(90)) && !leaving.add(flow(4), reset, after(30)));
        assert_eq!(leaving.next(after(30)), Some((flow(4), reset)));
        assert_eq!(
            (leaving.next(after(89)), leaving.next(after(90))),
            (None, Some((flow(3), FlowEnd::Forget)))
        );
    }
}
