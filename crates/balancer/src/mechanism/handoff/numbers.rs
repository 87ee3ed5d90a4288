//! Sequence numbers of clients: what is known of them, and how often a client is asked for them.

use plimsoll_datapath::FlowEntry;
use plimsoll_datapath::tcp::TcpState;

/// How often a client whose connection was lost with a link is asked before the last attempt to reset it. It is asked again
/// after `sweep::ANSWER_TIME`.
const MOST_AFTER_LOST_LINK: u8 = 6;

/// How often the client of a flow that an earlier process left is asked before the last attempt to reset it. It is asked in
/// each sweep of the control thread, so twice as often as after a lost link. Some packets are lost, and a client answers at
/// most twice a second.
const MOST_FOR_LEFT_OVER: u8 = 12;

/// The sequence numbers that come next, as a client's kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) from_us: u32,
    pub(super) from_client: u32,
}

impl Expected {
    /// The numbers for a connection in this state, if the client has all that was sent.
    pub(super) fn of(state: &TcpState) -> Self {
        Self { from_us: state.send_sent(), from_client: state.receive_next }
    }
}

/// What a client has acknowledged and sent, as far as the forwarder has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenNumbers {
    last_ack: Option<u32>,
    last_seq_end: Option<u32>,
}

impl SeenNumbers {
    /// Of the client of this flow.
    pub(super) fn of(entry: &FlowEntry) -> Self {
        Self { last_ack: entry.last_ack, last_seq_end: entry.last_seq_end }
    }

    /// With what the client expected when its connection was handed off, where it has not sent anything since. So it is
    /// nothing new when it repeats what was known then.
    pub(super) fn or(self, before: Option<Expected>) -> Self {
        Self {
            last_ack: self.last_ack.or(before.map(|b| b.from_us)),
            last_seq_end: self.last_seq_end.or(before.map(|b| b.from_client)),
        }
    }
}

/// Whether a client was told that its connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It was told, or cannot be.
    Done,
    /// Its sequence numbers are unknown: it was asked for them, and can be told when it answers.
    Asked,
}

/// Counts how often one client was asked for its sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Questions {
    asked: u8,
    most: u8,
}

impl Questions {
    /// For a client whose connection was lost with a link.
    pub(super) fn after_lost_link() -> Self {
        Self { asked: 0, most: MOST_AFTER_LOST_LINK }
    }

    /// For the client of a flow that an earlier process left.
    pub(super) fn for_left_over() -> Self {
        Self { asked: 0, most: MOST_FOR_LEFT_OVER }
    }

    /// Whether the client was asked already.
    pub(super) fn have_begun(self) -> bool {
        self.asked > 0
    }

    /// Counts the question of an attempt to reset the client. Returns true if another attempt is to follow, false if this one
    /// was the last.
    pub(super) fn go_on(&mut self, told: Told) -> bool {
        let goes_on = told == Told::Asked && self.asked < self.most;
        if goes_on {
            self.asked += 1;
        }
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_until_it_is_told_or_too_often() {
        let mut questions = Questions::after_lost_link();
        assert!(!questions.have_begun() && !questions.go_on(Told::Done) && !questions.have_begun());
        assert!((0..6).all(|_| questions.go_on(Told::Asked) && questions.have_begun()));
        assert!(!questions.go_on(Told::Asked));
        let mut questions = Questions::for_left_over();
        assert!((0..12).all(|_| questions.go_on(Told::Asked)) && !questions.go_on(Told::Asked));
    }
}
