//! Whether this front-end is the active one of those that share a virtual address: a state machine without input or output.

/// What a front-end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailoverRole {
    /// Another machine has the virtual address.
    Standby,
    /// This machine has the address, and agents do as this front-end says.
    Active {
        /// What it tells agents: the highest term counts.
        term: u64,
    },
    /// This machine has the address, but another front-end has become active after this one: two machines take themselves for
    /// the owner. What this one accepts it proxies, until the other one is gone or gives the address up.
    Superseded,
}

impl FailoverRole {
    pub(super) fn is_active(self) -> bool {
        matches!(self, Self::Active { .. })
    }

    /// The term in which it is active.
    pub(super) fn term(self) -> Option<u64> {
        match self {
            Self::Active { term } => Some(term),
            Self::Standby | Self::Superseded => None,
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct RoleState {
    instance: u64,
    has_address: bool,
    /// The highest term of which an agent has told.
    highest: u64,
    role: FailoverRole,
}

impl RoleState {
    /// Of the process with this number.
    pub(super) fn new(instance: u64) -> Self {
        Self { instance, has_address: false, highest: 0, role: FailoverRole::Standby }
    }

    pub(super) fn role(&self) -> FailoverRole {
        self.role
    }

    /// The machine has the address now, or not. Returns whether the role has changed.
    pub(super) fn address(&mut self, is_here: bool) -> bool {
        if std::mem::replace(&mut self.has_address, is_here) == is_here {
            return false;
        }
        self.role = if is_here { self.next_term() } else { FailoverRole::Standby };
        true
    }

    /// An agent says which process is active, 0 for none, and its term. Returns whether the role has changed.
    pub(super) fn told(&mut self, term: u64, instance: u64) -> bool {
        self.highest = self.highest.max(term);
        let is_vacant = instance == 0;
        let next = match self.role {
            // The agent has not heard of this one yet.
            FailoverRole::Active { term: own } if (term, instance) <= (own, self.instance) && !is_vacant => {
                return false;
            }
            // It is told of this one as soon as its link is up.
            FailoverRole::Active { term: own } if is_vacant && term <= own => return false,
            // The agent has not heard yet of the one that is active now, only that this one is no longer.
            FailoverRole::Superseded if is_vacant && term < self.highest => return false,
            FailoverRole::Active { .. } | FailoverRole::Superseded if is_vacant => self.next_term(),
            FailoverRole::Active { .. } => FailoverRole::Superseded,
            FailoverRole::Standby | FailoverRole::Superseded => return false,
        };
        self.role = next;
        true
    }

    fn next_term(&mut self) -> FailoverRole {
        self.highest += 1;
        FailoverRole::Active { term: self.highest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(term: u64) -> FailoverRole {
        FailoverRole::Active { term }
    }

    #[test]
    fn the_address_decides_and_terms_grow() {
        let mut state = RoleState::new(7);
        assert!(!state.address(false) && state.role() == FailoverRole::Standby);
        assert!(!state.told(4, 9), "another one is active");
        assert!(state.address(true) && !state.address(true));
        assert_eq!(state.role(), active(5));
        assert!(!state.told(4, 9) && !state.told(5, 7), "the agent did not know, and then it did");
        assert!(state.address(false));
        assert_eq!(state.role(), FailoverRole::Standby);
        assert!(state.address(true));
        assert_eq!(state.role(), active(6));
    }

    #[test]
    fn the_later_one_wins_until_it_is_gone() {
        let mut state = RoleState::new(7);
        state.address(true);
        assert!(state.told(2, 9));
        assert_eq!(state.role(), FailoverRole::Superseded);
        assert!(!state.told(2, 9) && !state.told(1, 7));
        assert!(state.told(2, 0));
        assert_eq!(state.role(), active(3));
        assert!(state.told(3, 9), "both chose the same term");
        assert!(state.address(false) && state.role() == FailoverRole::Standby);
        assert!(!state.told(3, 0), "without the address it does not begin");
    }

    /// The fault that this is about: two that took the address at once superseded each other by turns, until one of them had it by chance.
    #[test]
    fn an_agent_that_has_not_heard_of_the_later_one_does_not_bring_this_one_back() {
        let mut state = RoleState::new(7);
        state.address(true);
        assert!(state.told(2, 9), "the first agent");
        assert!(
            !state.told(1, 0),
            "the second one has heard that this one is active no longer, and nothing else"
        );
        assert_eq!(state.role(), FailoverRole::Superseded);
        assert!(!state.told(2, 9));
        assert!(state.told(2, 0), "the later one is gone");
        assert_eq!(state.role(), active(3));
    }

    #[test]
    fn an_agent_with_a_higher_term_of_one_that_is_gone_hears_a_higher_one() {
        let mut state = RoleState::new(7);
        state.address(true);
        assert!(state.told(8, 0));
        assert_eq!(state.role(), active(9));
        assert!(!state.told(8, 0), "the next agent, before it has heard");
        assert!(!state.told(9, 0), "an agent that has lost all links and has one again");
        assert!(!state.told(9, 3), "another one with the same term and a lower number");
    }
}
