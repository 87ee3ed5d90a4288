//! Which process is the active one of all front-ends of a name, where several share a virtual address.
//!
//! A front-end that has got the address says so, with a *term* that is higher than any that it has heard of. The highest term
//! counts: a front-end that was active before, and may not know yet that it is not, can do nothing any more to connections that
//! the next one has. Front-ends that never say so are not concerned.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::link::FrontEndLink;

/// The active processes, by the name of their front-ends.
#[derive(Debug, Default)]
pub(super) struct ActiveFrontEnds(Mutex<BTreeMap<String, ActiveProcess>>);

/// The active process, or the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActiveProcess {
    pub(super) term: u64,
    /// As it introduced itself; 0 when it is gone.
    pub(super) instance: u64,
    source: IpAddr,
}

impl ActiveFrontEnds {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, ActiveProcess>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest one of this name, if any ever said that it is active.
    pub(super) fn of(&self, name: &str) -> Option<ActiveProcess> {
        self.all().get(name).copied()
    }

    /// The process at the other end of this link says that it is active from now on. Returns false if it may not be, or is
    /// already.
    pub(super) fn activate<C>(&self, link: &FrontEndLink<C>, term: u64) -> bool {
        let claimed = ActiveProcess { term, instance: link.peer.instance, source: link.source };
        let mut all = self.all();
        let accepted = all.get(&link.peer.name).is_none_or(|now| {
            // Of two that became active at once, all agents choose the same one.
            (now.term, now.instance) < (claimed.term, claimed.instance)
        });
        if accepted {
            all.insert(link.peer.name.clone(), claimed);
        }
        accepted
    }

    /// This process is active no longer. Returns false if it was not.
    pub(super) fn deactivate(&self, name: &str, instance: u64) -> bool {
        let mut all = self.all();
        let was = all.get_mut(name).filter(|now| now.instance == instance && instance != 0);
        was.map(|now| now.instance = 0).is_some()
    }

    /// A process has opened a link: one from the same address before it is gone. Returns whether that was the active one.
    pub(super) fn replace<C>(&self, link: &FrontEndLink<C>) -> bool {
        let mut all = self.all();
        let before = |now: &&mut ActiveProcess| {
            now.source == link.source && now.instance != 0 && now.instance != link.peer.instance
        };
        all.get_mut(&link.peer.name).filter(before).map(|now| now.instance = 0).is_some()
    }

    /// Whether the process at the other end of this link is the active one.
    pub(super) fn is_active<C>(&self, link: &FrontEndLink<C>) -> bool {
        self.of(&link.peer.name).is_some_and(|now| now.instance == link.peer.instance)
    }

    /// Whether another process is.
    pub(super) fn is_another<C>(&self, link: &FrontEndLink<C>) -> bool {
        self.of(&link.peer.name).is_some_and(|now| now.instance != 0 && now.instance != link.peer.instance)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::Key;
    use plimsoll_wire::session::{AgentHandshake, AgentTerms, FrontEndHandshake, FrontEndId};

    use super::*;

    fn link(instance: u64, last: u8) -> FrontEndLink<()> {
        let key = Key::new([3; 32]);
        let id = FrontEndId { name: "fe".to_owned(), instance };
        let terms = AgentTerms { name: "b1".to_owned(), window: 2, most_state_bytes: 1 << 20 };
        let (mut front_end, hello) = FrontEndHandshake::new(&key, &id, [1; 32]).unwrap();
        let mut agent = AgentHandshake::new(&key, terms, [2; 32]).unwrap();
        let welcome = agent.feed(&hello, 0).unwrap();
        let proof = front_end.feed(&welcome.send).unwrap().send;
        let established = agent.feed(&proof, 0).unwrap().done.unwrap();
        FrontEndLink::new(instance, established.peer, [10, 0, 0, last].into(), established.keys.writer)
    }

    #[test]
    fn the_highest_term_counts() {
        let (active, first, second) = (ActiveFrontEnds::default(), link(71, 1), link(72, 2));
        assert!(!active.is_active(&first) && !active.is_another(&first), "nobody is");
        assert!(active.activate(&first, 1) && !active.activate(&first, 1));
        assert!(active.is_active(&first) && active.is_another(&second));
        assert!(active.activate(&second, 2) && active.is_another(&first));
        assert!(!active.activate(&first, 1), "it does not know yet");
        assert!(!active.deactivate("fe", 71) && active.is_active(&second));
        assert!(active.deactivate("fe", 72) && !active.deactivate("fe", 72));
        assert!(!active.is_another(&first) && !active.is_active(&second));
        assert_eq!(active.of("fe").map(|now| now.term), Some(2));
        assert!(active.activate(&first, 3));
    }

    #[test]
    fn of_two_at_once_all_agents_choose_the_same() {
        for order in [[71, 72], [72, 71]] {
            let active = ActiveFrontEnds::default();
            for instance in order {
                active.activate(&link(instance, instance as u8), 5);
            }
            assert_eq!(active.of("fe").map(|now| now.instance), Some(72));
        }
    }

    #[test]
    fn a_process_at_the_address_of_the_active_one_is_its_successor() {
        let (active, first, next, other) =
            (ActiveFrontEnds::default(), link(71, 1), link(70, 1), link(72, 2));
        assert!(active.activate(&first, 1) && !active.replace(&first) && !active.replace(&other));
        assert!(active.replace(&next) && !active.replace(&next));
        assert!(active.activate(&next, 1), "nobody else has this term");
    }
}
