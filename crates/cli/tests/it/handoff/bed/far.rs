//! Clients that are far away.

use std::time::Duration;

use plimsoll_lab::{Conditions, Lab, Node};

use super::{Bed, Options};

impl Options {
    /// The usual, and clients far away.
    pub(in crate::handoff) fn far() -> Self {
        Self { is_quiet: true, is_far: true, ..Self::default() }
    }
}

/// Puts the client 50 ms away, there and back. Of a hundred frames one is lost and one overtakes others, each way.
pub(in crate::handoff) fn move_client(lab: &Lab) {
    let far = Conditions { loss: 0.01, reorder: 0.01, ..Conditions::delayed(Duration::from_millis(25)) };
    lab.link(Node::Client).unwrap().set(&far).unwrap();
}

impl Bed {
    /// Puts the client where it is to be.
    pub(super) fn move_client(&self) {
        if self.options.is_far {
            move_client(&self.lab);
        }
    }

    /// The link did what it should.
    pub(in crate::handoff) fn assert_far(&self) {
        let statistics = self.lab.link(Node::Client).unwrap().statistics().unwrap().unwrap();
        for direction in [statistics.from_node, statistics.to_node] {
            assert!(direction.lost > 0 && direction.reordered > 0, "{statistics:?}");
            assert_eq!((direction.missed, direction.overflowed), (0, 0), "{statistics:?}");
        }
        eprintln!("{statistics:?}");
    }
}
