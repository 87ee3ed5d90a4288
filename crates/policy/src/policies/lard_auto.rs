//! LARD with replication without thresholds: expected times, learned from what the front-end sees, decide.
//!
//! Citation: after Pai et al., ASPLOS 1998, sections 2.4 and 2.5, which say what `T_low` and `T_high` are for, and leave their values to
//! the operator.
//!
//! ```text
//! learned by back-end b, from completions (older ones fade), mixed with what was learned of all as if that were 8 more hits and 128 more
//! reads; it counts where it differs from the mean of all by more than 1.6 times:
//!     hit[b]      <- response time of a request whose document b has, at most 4 times what all would take, over what is expected of the queue
//!     read[b]     <- what a request longer took whose small document b had to read, over its position among b's reads
//! learned over all back-ends:
//!     queue(n, m, s) <- a * n + c * m + g * s: response time with n requests that wait for no read, m reads under way, and s bytes that the
//!                       former ask for; c and g are 0 where reads or bytes hold nobody up
//!     line(m, s)  <- the same of a read: how many reads take as long as one that waits for m reads of s bytes
//!     evicted     <- likelihood that b has to read a document, by the reads that b began since its last request for it, and by its size
//!     again       <- of the reads that are not for moves, the share of documents which the back-end had before
//! wait(b)       =  queue(requests at b - those that wait for reads + 1, reads at b, bytes of the requests) * hit[b]
//! fetch(b)      =  line(reads under way at b + 1, bytes of the requests that wait for reads) * read[b]
//! mean          =  what a request waits on average: queue(n, m, s) * hit for the mean n, m and s of all back-ends
//!
//! if copies[r.target] is empty
//!     n <- of the next 64 back-ends in turn the one with the least wait(b) + fetch(b)                            (1)
//! else
//!     n <- the copy with the least wait(b) + evicted(b) * fetch(b), plus what is left where it is still read     (2)
//!     e <- evicted(n);  f <- requests for r.target lately
//!     price <- (e + (1 - e) * 4 / (1 - again)^2 * (1 + |copies|) / (1 + f)) * sqrt(size / mean size, from 1 to 256)
//!     p <- of the next 64 back-ends in turn without a copy the one with the least wait(b) + fetch(b) * price    (3)
//!     if cost(n) > cost(p) + mean                                                                                 (4)
//!         n <- p
//! add n to copies[r.target]
//! drop from copies[r.target] who got none of its last 16 * |copies| requests                                     (5)
//! send r to n
//! ```
//!
//! The reasons:
//! 1. A new target costs a read wherever it goes; the shortest way to its answer evens out both queues. In turn, since an idle
//!    cluster's memories are to be used evenly.
//! 2. As in LARD/R, the least loaded of those that have it. A copy that is still being read serves nobody: until it is there, requests
//!    go on to where the document is. One that was used long ago has probably been evicted, and a request for it is a read that may as
//!    well go elsewhere. Requests that wait for a read, their own or another one's, do not stand in the queue of the others.
//! 3. A move must pay. What it saves is saved again by later requests that the new copy gets, which are its share of those for the target:
//!    a hot target gets replicas at once, however few requests are under way, a rare one hardly ever, and each further copy serves fewer than
//!    the ones before. Four reads instead of one stand for waits that are over before the later requests come; a copy takes room from
//!    others, which are read again, and evict others in turn. What has probably been evicted anyway costs its read in either place. A
//!    document of many times the mean size takes longer to read and more room; requests for it take long anyway, so that the same wait slows them down
//!    less. So it stays where it is for longer, even where it was probably evicted. Small is what has up to 1.5 times the mean size of late requests.
//! 4. Never to a back-end that is no better off, by as much as requests wait on average: with many under way differences of that size come and
//!    go by chance, and moving everything moves the queue along. Where reads hold up hits, as results do that are computed, requests wait for
//!    those as well. This takes the place of both thresholds; it grows and shrinks with the load.
//! 5. Who is not needed gets nothing by rule 2, and so is forgotten; its memory keeps the document for as long as it likes.
//!
//! What is learned of hits counts whatever it takes where nothing was read at the back-end since the last request for the document: it
//! cannot have been evicted. So a back-end that becomes slow is noticed, and its hits are not taken for reads. Where a back-end tells
//! whether it had the document, it is believed; but caches tell of hits on their disks, too: a hit that took as long as a read teaches
//! nothing, and one of a document that was new there counts as a read then.
//!
//! Where requests are served one after the other, one for a large document holds up all behind it, and where each gets its turn it hardly does: how much
//! bytes count is learned from the response times of documents that are not large themselves.
//!
//! A slow back-end has a large `hit`, one with a busy disk a large `fetch`: unequal back-ends need no weights, and weights play no part
//! but that 0 takes no requests. How slow the disk itself is counts from 2.8 times the mean on, since single reads differ too much; a slow disk has
//! more reads under way. Most choices need not look for `p`: a bound below what a request costs anywhere shows that rule 4 would refuse it.
//! It is all arithmetic on what the front-end has counted: no clock, no random numbers.

mod auto_rule;
mod choice;
mod content;
mod costs;
mod document;
mod evictions;
mod floor;
mod learning;
mod own_ratio;
mod work;

use self::choice::{AskedDocument, ChosenCopy, PricedChoice};
use self::costs::LearnedCosts;
use self::document::KnownDocument;
use crate::capability::ShowsState;
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Completion, Decision};
use crate::load_use::LoadUse;
use crate::lru_map::{CacheLine, LruMap};
use crate::params::{ParamSet, Params as _};
use crate::policy::{Capabilities, Policy};
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Request, TargetId};
use crate::time::Time;

crate::params! {
    /// Parameters of LARD without thresholds: none that decides.
    pub struct LardAutoParams {
        /// Targets whose copies are remembered; the least recently requested is forgotten.
        max_targets: u64 = 1_000_000, 1..=4000000000, "targets";
        /// Rules to leave out, to see what they are for: the sum of 1 (evictions), 2 (hold-up by reads), 4 (joining), 8 (noise), 16 (room),
        /// 32 (share), 64 (margin), 128 (mixing), 256 (long hits), 512 (content, which is all that follows from sizes but evictions).
        without: u32 = 0, 0..=1023, "";
    }
}

/// See the module's documentation.
pub struct LardAuto {
    documents: LruMap<KnownDocument, CacheLine>,
    costs: LearnedCosts,
    counters: Counters,
    /// What the last choice was, until it is assigned.
    chosen: Option<PricedChoice>,
}

#[derive(Debug, Default)]
struct Counters {
    assigned: u64,
    first: u64,
    additions: u64,
    dropped: u64,
}

impl LardAuto {
    /// With these parameters.
    #[must_use]
    pub fn new(params: &LardAutoParams) -> Self {
        Self {
            documents: LruMap::in_cache_lines(params.max_targets as usize),
            costs: LearnedCosts::new(params.without),
            counters: Counters::default(),
            chosen: None,
        }
    }
}

impl Policy for LardAuto {
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        self.costs.grow(view);
        if view.eligible() == 0 {
            return Decision::Reject;
        }
        let (document, _) = self.documents.get_or_insert_with(request.target, KnownDocument::default);
        let recent = document.count(self.counters.assigned);
        self.counters.dropped += document.drop_unused(view);
        let Request { target, size_bytes, .. } = *request;
        let chosen = self.costs.choose(&AskedDocument { target, size_bytes, recent, now }, document, view);
        let Some(chosen) = chosen else { return Decision::Reject };
        match chosen.copy {
            ChosenCopy::Held => {}
            ChosenCopy::First => self.counters.first += 1,
            ChosenCopy::Further => self.counters.additions += 1,
        }
        let clock = self.costs.clock(chosen.backend);
        document.use_copy(chosen.backend, chosen.joins || chosen.likelihood > 0.5, clock);
        self.chosen = Some(chosen);
        Decision::Assign(chosen.backend)
    }

    fn on_assign(&mut self, request: &Request, b: BackendId, view: &ClusterView, now: Time) {
        self.counters.assigned += 1;
        match self.chosen.take().filter(|chosen| chosen.backend == b) {
            Some(chosen) => self.costs.assigned(request, &chosen, view, now),
            // Somebody else has chosen, such as a session that stays.
            None => {
                self.costs.add_content(request, b, 0.0);
            }
        }
    }

    fn on_complete(&mut self, completion: &Completion, view: &ClusterView, now: Time) {
        let b = completion.backend;
        self.costs.grow(view);
        if b.index() < view.len() {
            self.costs.learn(completion, now);
        }
    }

    fn on_membership(&mut self, b: BackendId, change: Change, _: &ClusterView, _: Time) {
        // What comes back, or has this index next, is empty and is measured anew.
        if matches!(change, Change::Joined | Change::Left | Change::Health(Health::Down)) {
            self.costs.forget(b);
            if matches!(change, Change::Joined | Change::Left) {
                self.costs.reads.forget(b);
                self.costs.content.forget(b);
            }
            self.documents.retain(|_, document| {
                document.copies.retain(|copy| copy.backend != b);
                !document.copies.is_empty()
            });
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for LardAuto {
    fn server_set(&self, target: TargetId) -> Vec<BackendId> {
        let copies = self.documents.peek(target).map(|document| &document.copies[..]).unwrap_or_default();
        copies.iter().map(|copy| copy.backend).collect()
    }

    fn tracked_targets(&self) -> usize {
        self.documents.len()
    }

    fn stats(&self) -> Vec<(&'static str, f64)> {
        let Counters { first, additions, dropped, .. } = self.counters;
        vec![
            ("targets", self.documents.len() as f64),
            ("assignments", first as f64),
            ("additions", additions as f64),
            ("removals", dropped as f64),
            ("hit_us", self.costs.hit_us()),
            ("read_us", self.costs.read_us()),
        ]
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.shows_state::<LardAuto>().needs_content("the target that a request asks for");

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    let mut policy = LardAuto::new(&LardAutoParams::of(params));
    policy.documents.reseed(context.table_seed);
    Ok(Box::new(policy))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "lard_auto",
    aliases: &["lard_without_thresholds"],
    summary: "LARD with replication that learns what waits and reads cost, in place of thresholds",
    source: "after Pai et al., ASPLOS 1998, sections 2.4 and 2.5",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::ViewAndResponseTimes,
    weighted: false,
    params: LardAutoParams::SPECS,
    build,
};

#[cfg(test)]
mod floor_tests;
#[cfg(test)]
mod tests;
