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

    /// The process at the other end of this link is active no longer: in the term that it has said there, or in any if it is
    /// gone. Returns false if it was not.
    pub(super) fn deactivate<C>(&self, link: &FrontEndLink<C>, is_gone: bool) -> bool {
        let instance = link.peer.instance;
        let mut all = self.all();
        let was = all.get_mut(&link.peer.name).filter(|now| {
            // On another link it may have begun a later one already.
            now.instance == instance && instance != 0 && (is_gone || now.term == link.term())
        });
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

    /// Whether what the front-end says on this link counts: always if no process is active; else if it is the active one, and has
    /// said its term there.
    pub(super) fn has_say<C>(&self, link: &FrontEndLink<C>) -> bool {
        self.of(&link.peer.name).is_none_or(|now| {
            now.instance == 0 || (now.instance == link.peer.instance && now.term == link.term())
        })
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

    fn activate(active: &ActiveFrontEnds, link: &FrontEndLink<()>, term: u64) -> bool {
        link.begins_term(term);
        active.activate(link, term)
    }

    #[test]
    fn the_highest_term_counts() {
        let (active, first, second) = (ActiveFrontEnds::default(), link(71, 1), link(72, 2));
        assert!(!active.is_active(&first) && active.has_say(&first), "nobody is");
        assert!(activate(&active, &first, 1) && !activate(&active, &first, 1));
        assert!(active.is_active(&first) && active.has_say(&first) && !active.has_say(&second));
        assert!(activate(&active, &second, 2) && !active.has_say(&first));
        assert!(!activate(&active, &first, 1), "it does not know yet");
        assert!(!active.deactivate(&first, false) && active.is_active(&second));
        assert!(active.deactivate(&second, false) && !active.deactivate(&second, true));
        assert!(active.has_say(&first) && !active.is_active(&second));
        assert_eq!(active.of("fe").map(|now| now.term), Some(2));
        assert!(activate(&active, &first, 3));
    }

    #[test]
    fn what_is_said_late_on_another_link_does_not_count() {
        let (active, link_of, other) = (ActiveFrontEnds::default(), link(71, 1), link(71, 1));
        assert!(activate(&active, &link_of, 1) && !activate(&active, &other, 1));
        assert!(active.has_say(&other) && active.deactivate(&link_of, false));
        assert!(activate(&active, &link_of, 2));
        assert!(!active.has_say(&other), "it has not said the new term yet");
        assert!(!active.deactivate(&other, false), "that concerns the earlier term");
        assert!(active.has_say(&link_of) && active.deactivate(&other, true), "but if it is gone, it is");
    }

    #[test]
    fn of_two_at_once_all_agents_choose_the_same() {
        for order in [[71, 72], [72, 71]] {
            let active = ActiveFrontEnds::default();
            for instance in order {
                activate(&active, &link(instance, instance as u8), 5);
            }
            assert_eq!(active.of("fe").map(|now| now.instance), Some(72));
        }
    }

    #[test]
    fn a_process_at_the_address_of_the_active_one_is_its_successor() {
        let (active, first, next, other) =
            (ActiveFrontEnds::default(), link(71, 1), link(70, 1), link(72, 2));
        assert!(activate(&active, &first, 1) && !active.replace(&first) && !active.replace(&other));
        assert!(active.replace(&next) && !active.replace(&next));
        assert!(activate(&active, &next, 1), "nobody else has this term");
    }
}
