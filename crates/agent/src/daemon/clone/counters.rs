//! What a node counts.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_datapath::RouterCounters;
use plimsoll_observe::counters::{FINE_BUCKETS_US, Histogram, SharedCounter};
use plimsoll_origin::OriginStats;
use plimsoll_wire::cloning::CloneRefusal;

/// The counters behind [`CloneStats`].
#[derive(Debug, Default)]
pub(super) struct CloneCounters {
    pub(super) connections: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) own: AtomicU64,
    pub(super) cloned: AtomicU64,
    pub(super) waited_ns: AtomicU64,
    pub(super) clone_answers: AtomicU64,
    pub(super) rests: AtomicU64,
    pub(super) declined: AtomicU64,
    pub(super) ahead: AtomicU64,
    pub(super) kept: AtomicU64,
    pub(super) given_back: AtomicU64,
    pub(super) fast_forwarded: AtomicU64,
    pub(super) client_resets: AtomicU64,
    pub(super) forged: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) made: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) answered_as_clone: AtomicU64,
    pub(super) answered_as_kept: AtomicU64,
    pub(super) links: AtomicU64,
    pub(super) refused_links: AtomicU64,
    pub(super) broken_links: AtomicU64,
    /// Content of answers of this node to its own clients, and of clones to them, and of clones here.
    pub(super) own_content_bytes: SharedCounter,
    pub(super) clone_content_bytes: SharedCounter,
    pub(super) made_content_bytes: SharedCounter,
    /// Requests that another node should have answered, by why it did not.
    pub(super) declined_for: [SharedCounter; DeclineReason::ALL.len()],
    /// Clones that were refused here, by why.
    pub(super) refused_for: [SharedCounter; REFUSALS.len()],
    /// From the decision for a clone to the word that it is there.
    pub(super) clone_time: CloneTimes,
}

/// Why a request that belongs to another node is answered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclineReason {
    /// There is no link to it, or too many clones of it are under way.
    NoLink,
    /// The client has ended its side.
    ClientEnded,
    /// The connection could not be frozen, or its state not be read.
    NotFrozen,
    /// The other node has refused.
    Refused,
}

impl DeclineReason {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Self; 4] = [Self::NoLink, Self::ClientEnded, Self::NotFrozen, Self::Refused];

    /// Its name in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NoLink => "no_link",
            Self::ClientEnded => "client_ended",
            Self::NotFrozen => "not_frozen",
            Self::Refused => "refused",
        }
    }
}

/// Why clones are refused, with the names in metrics.
pub(super) const REFUSALS: [(CloneRefusal, &str); 5] = [
    (CloneRefusal::Full, "full"),
    (CloneRefusal::Stopping, "stopping"),
    (CloneRefusal::Kernel, "kernel"),
    (CloneRefusal::BadState, "bad_state"),
    (CloneRefusal::OtherDocument, "other_document"),
];

/// A histogram with fine buckets.
#[derive(Debug)]
pub(super) struct CloneTimes(pub(super) Histogram);

impl Default for CloneTimes {
    fn default() -> Self {
        Self(Histogram::with(&FINE_BUCKETS_US))
    }
}

/// Counts of a node since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloneStats {
    /// Connections that clients have opened here.
    pub connections: u64,
    /// Requests on them that were answered, here or by clones, or given up.
    pub requests: u64,
    /// Those that were answered here.
    pub own: u64,
    /// Clones that were asked for.
    pub cloned: u64,
    /// Time from the decision for a clone to the word that it is there, in nanoseconds, summed over those that were made.
    pub waited_ns: u64,
    /// Answers of clones that clients have acknowledged to their end.
    pub clone_answers: u64,
    /// Those of them that were the rest of an answer that had begun here.
    pub rests: u64,
    /// Requests that another node should have answered, and that were answered here: it was not to be reached, or refused, or the
    /// connection could not be frozen.
    pub declined: u64,
    /// Those of them that came from clones made ahead, in turn.
    pub ahead: u64,
    /// Those of them that came from a clone which kept the connection, after its first one.
    pub kept: u64,
    /// Connections that came back from clones which kept them.
    pub given_back: u64,
    /// Originals that were brought up to where their clone had come.
    pub fast_forwarded: u64,
    /// Connections that their client has reset while a clone answered.
    pub client_resets: u64,
    /// Connections that were reset because more was acknowledged than can have been sent.
    pub forged: u64,
    /// Connections that ended because their clone, or the link to its node, was lost.
    pub lost: u64,
    /// Clones that were made here for other nodes.
    pub made: u64,
    /// Clones that were refused here.
    pub refused: u64,
    /// Answers of clones made here that their kernel has taken whole.
    pub answered_as_clone: u64,
    /// Those of them that followed the first one, of clones that keep their connection.
    pub answered_as_kept: u64,
    /// Links of other nodes that began.
    pub links: u64,
    /// Links that were refused: from other addresses than those of nodes, or without the right key.
    pub refused_links: u64,
    /// Links that were closed because what came was not authentic, or not understood.
    pub broken_links: u64,
    /// What the packet router counts.
    pub router: RouterCounters,
    /// Counts of the origin, if it answers.
    pub origin: Option<OriginStats>,
}

impl CloneCounters {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A request that belongs to another node is answered here.
    pub(super) fn declined(&self, why: DeclineReason) {
        Self::count(&self.declined);
        self.declined_for[why as usize].add(1);
    }

    /// A clone was refused here.
    pub(super) fn refused(&self, why: CloneRefusal) {
        Self::count(&self.refused);
        if let Some(number) = REFUSALS.iter().position(|(refusal, _)| *refusal == why) {
            self.refused_for[number].add(1);
        }
    }

    pub(super) fn stats(&self, router: RouterCounters, origin: Option<OriginStats>) -> CloneStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CloneStats {
            connections: of(&self.connections),
            requests: of(&self.requests),
            own: of(&self.own),
            cloned: of(&self.cloned),
            waited_ns: of(&self.waited_ns),
            clone_answers: of(&self.clone_answers),
            rests: of(&self.rests),
            declined: of(&self.declined),
            ahead: of(&self.ahead),
            kept: of(&self.kept),
            given_back: of(&self.given_back),
            fast_forwarded: of(&self.fast_forwarded),
            client_resets: of(&self.client_resets),
            forged: of(&self.forged),
            lost: of(&self.lost),
            made: of(&self.made),
            refused: of(&self.refused),
            answered_as_clone: of(&self.answered_as_clone),
            answered_as_kept: of(&self.answered_as_kept),
            links: of(&self.links),
            refused_links: of(&self.refused_links),
            broken_links: of(&self.broken_links),
            router,
            origin,
        }
    }
}
