//! What is known of back-ends, and so what a choice costs.

use smallvec::SmallVec;

use super::auto_rule::AutoRule;
use super::choice::{AskedDocument, ChosenCopy, PricedChoice};
use super::content::{Content, ContentUnderWay, is_small};
use super::document::{CopyAt, KnownDocument};
use super::evictions::{Evictions, SeenCopy};
use super::floor::{CostFloor, ShortestTimes};
use super::own_ratio::OwnRatio;
use super::work::{Queue, WorkModel};
use crate::cluster::{BackendId, ClusterView};
use crate::fading_ratio::FadingRatio;
use crate::reads_under_way::{Read, ReadsUnderWay};
use crate::request::{Request, TargetId};
use crate::time::Time;

/// Costs above this share of another one are equal to it: estimates differ by rounding, too.
const EQUAL: f64 = 1.0 - 1e-6;
/// Requests of each back-end whose response times are learned from, at once.
const SAMPLES: usize = 4;
/// Back-ends that are looked at for each choice.
const MOST_LOOKED_AT: u32 = 64;
/// Less likely reads are none.
const UNLIKELY: f64 = 0.02;
/// How many reads a move stands for, which the requests share that the copy will get: its own, and those for waits that are over before they
/// come.
const MOVE_COSTS: f64 = 4.0;
/// The largest share of reads that were evicted before, in the price of a read.
const MOST_AGAIN: f64 = 0.95;

/// A request whose response time will be learned from.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingSample {
    pub(super) target: TargetId,
    pub(super) at: Time,
    pub(super) queue: Queue,
    pub(super) read_position: f64,
    pub(super) seen: Option<SeenCopy>,
    /// Its document is small, as far as is known; the response may tell.
    pub(super) is_small: bool,
}

/// How fast a back-end is, as far as it counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Speed {
    /// Response time of a hit in nanoseconds, by what is expected of the queue.
    pub(super) hit: OwnRatio,
    /// What a read adds in nanoseconds, by position among the reads.
    pub(super) read: OwnRatio,
}

/// What else is known of a back-end.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// What its speed follows from.
    pub(super) hit: FadingRatio,
    pub(super) read: FadingRatio,
    pub(super) samples: SmallVec<[PendingSample; SAMPLES]>,
    /// Reads that it began, in sixteenths: what may have evicted documents.
    clock: u32,
}

/// What was learned of all back-ends, looked up once for each choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfAll {
    hit_ns: f64,
    read_ns: f64,
    /// Whether differences of single back-ends count that may be chance.
    exact: bool,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct LearnedCosts {
    pub(super) known: Vec<Known>,
    /// Apart, as each choice looks at many.
    pub(super) speeds: Vec<Speed>,
    pub(super) work: WorkModel,
    /// The same of reads, in whose queue other reads are.
    pub(super) reading: WorkModel,
    pub(super) evictions: Evictions,
    /// Over all back-ends.
    pub(super) hit: FadingRatio,
    pub(super) read: FadingRatio,
    pub(super) reads: ReadsUnderWay,
    pub(super) content: ContentUnderWay,
    /// Of the reads that are not for moves, those of documents that the back-end had before.
    pub(super) again: FadingRatio,
    /// Who is looked at first.
    turn: usize,
    pub(super) floor: CostFloor,
    /// Sum of the rules that are left out.
    without: u32,
}

impl LearnedCosts {
    /// Nothing is known; `without` is the sum of the rules to leave out.
    pub(super) fn new(without: u32) -> Self {
        Self { without, ..Self::default() }
    }

    pub(super) fn has(&self, rule: AutoRule) -> bool {
        self.without & rule as u32 == 0
    }

    /// Has room for all back-ends of the view.
    #[inline]
    pub(super) fn grow(&mut self, view: &ClusterView) {
        if self.known.len() < view.len() {
            self.make_room(view.len());
        }
    }

    /// Apart from each decision's look whether it is needed.
    #[cold]
    fn make_room(&mut self, backends: usize) {
        self.known.resize(backends, Known::default());
        self.speeds.resize(backends, Speed::default());
    }

    pub(super) fn forget(&mut self, b: BackendId) {
        if let Some(known) = self.known.get_mut(b.index()) {
            *known = Known { clock: known.clock, ..Known::default() };
            self.speeds[b.index()] = Speed::default();
        }
        self.evictions.forget(b.index());
    }

    pub(super) fn clock(&self, b: BackendId) -> u32 {
        self.known[b.index()].clock
    }

    pub(super) fn of_all(&self) -> OfAll {
        OfAll {
            hit_ns: self.hit.get().unwrap_or(1.0),
            read_ns: self.read.get().unwrap_or(0.0).max(0.0),
            exact: !self.has(AutoRule::Noise),
        }
    }

    /// What waits at `b` for no read, and what one more read there waits for with itself.
    #[inline(always)]
    fn queues(&self, b: BackendId, view: &ClusterView) -> (Queue, Queue) {
        let (reads, waiting) = self.reads.at(b);
        let requests = (f64::from(view.load(b)) - waiting).max(0.0);
        let Content { queued, read } = self.content.at(b, view.load(b));
        let of_reads = Queue { requests: reads + 1.0, reads: 0.0, content: read };
        (Queue { requests, reads: self.holding_up(reads), content: queued }, of_reads)
    }

    /// How many of these reads count as such that hold up hits.
    #[inline(always)]
    fn holding_up(&self, reads: f64) -> f64 {
        if self.has(AutoRule::HoldUp) { reads } else { 0.0 }
    }

    /// How long a request would take for a document that `b` has, and how much longer where it has to be read.
    #[inline(always)]
    fn wait_and_fetch_ns(&self, b: BackendId, all: &OfAll, view: &ClusterView) -> (f64, f64) {
        let (mut queue, of_reads) = self.queues(b, view);
        queue.requests += 1.0;
        let (hit_ns, read_ns) = self.each_ns(b, all);
        (self.work.positions(queue) * hit_ns, self.reading.positions(of_reads) * read_ns)
    }

    /// Response time of a hit at `b`, by what is expected of the queue, and what a read adds, by its position.
    #[inline(always)]
    pub(super) fn each_ns(&self, b: BackendId, all: &OfAll) -> (f64, f64) {
        let Speed { hit, read } = &self.speeds[b.index()];
        (hit.beside(all.hit_ns, all.exact), read.beside(all.read_ns, all.exact).max(0.0))
    }

    /// How many reads another copy costs: one, and as many as follow from what it evicts and what that evicts in turn; squared, as it stays
    /// in the way for as long as it is used.
    pub(super) fn room(&self) -> f64 {
        if !self.has(AutoRule::Room) {
            return 1.0;
        }
        let stays = 1.0 - self.again.get().unwrap_or(0.0).clamp(0.0, MOST_AGAIN);
        1.0 / (stays * stays)
    }

    /// How many reads each of the requests bears that a further copy will get, which are its part of those for the document.
    pub(super) fn copy_price(&self, of: &AskedDocument, document: &KnownDocument) -> f64 {
        let requests = if self.has(AutoRule::Share) { 1.0 + of.recent } else { 1.0 };
        MOVE_COSTS * self.room() * (1.0 + document.copies.len() as f64) / requests
    }

    /// What is left of this read under way at `b`.
    fn rest_ns(&self, read: &Read, b: BackendId, all: &OfAll, now: Time) -> f64 {
        (read.position * self.each_ns(b, all).1 - now.since(read.at).as_nanos() as f64).max(0.0)
    }

    /// How long a request waits on average, by what is under way at all back-ends.
    pub(super) fn mean_ns(&self, all: &OfAll, view: &ClusterView) -> f64 {
        let waiting = (view.total_load() as f64 - self.reads.waiting()).max(0.0);
        let each = view.eligible().max(1) as f64;
        let reads = self.holding_up(self.reads.expected());
        let content = self.content.anywhere(view.total_load()).queued;
        let mean = Queue { requests: waiting / each, reads: reads / each, content: content / each };
        self.work.positions(mean) * all.hit_ns
    }

    /// What a request costs at least, wherever it goes, if a read counts as `price` ones.
    #[inline]
    pub(super) fn floor_ns(&self, price: f64, all: &OfAll, view: &ClusterView) -> f64 {
        let requests = (f64::from(view.least_load()) - self.reads.most_waiting()).max(0.0);
        self.floor.cost_ns(ShortestTimes { hit_ns: all.hit_ns, read_ns: all.read_ns }, price, requests)
    }

    /// Of the back-ends that take requests and have no copy the one with the least cost, ties in turn, where a read counts as `price`
    /// ones. In a large cluster the next ones in turn stand for all; the second value is where the look ended.
    pub(super) fn least(
        &self,
        document: &KnownDocument,
        price: f64,
        all: &OfAll,
        view: &ClusterView,
    ) -> (Option<(BackendId, f64)>, usize) {
        let start = if self.turn < view.len() { self.turn } else { 0 };
        let mut best: Option<BackendId> = None;
        let (mut below, mut least, mut looked_at) = (f64::INFINITY, f64::INFINITY, 0);
        let mut end = start;
        for b in (start..view.len()).chain(0..start).map(BackendId::new) {
            if !view.is_eligible(b) {
                continue;
            }
            looked_at += 1;
            if looked_at > MOST_LOOKED_AT {
                end = b.index();
                break;
            }
            let (wait_ns, fetch_ns) = self.wait_and_fetch_ns(b, all, view);
            let cost_ns = wait_ns + fetch_ns * price;
            if cost_ns < below {
                if document.copies.iter().any(|copy| copy.backend == b) {
                    looked_at -= 1;
                } else {
                    (best, least, below) = (Some(b), cost_ns, cost_ns * EQUAL);
                }
            }
        }
        (best.map(|b| (b, least)), end)
    }

    /// What a request costs at a copy, and what is expected to happen there.
    #[inline(always)]
    fn at_copy(
        &self,
        of: &AskedDocument,
        copy: &CopyAt,
        all: &OfAll,
        view: &ClusterView,
    ) -> (f64, PricedChoice) {
        let backend = copy.backend;
        let (wait_ns, fetch_ns) = self.wait_and_fetch_ns(backend, all, view);
        let there = PricedChoice { likelihood: 0.0, since: 0, backend, copy: ChosenCopy::Held, joins: false };
        if copy.reading
            && let Some(read) = self.reads.get(of.target, backend)
        {
            let rest_ns = self.rest_ns(read, backend, all, of.now);
            return (wait_ns + rest_ns, PricedChoice { joins: true, ..there });
        }
        let since = self.clock(backend).wrapping_sub(copy.clock);
        let seen = self.seen(since, of.size_bytes);
        let likelihood = seen.map_or(0.0, |seen| self.evictions.likelihood(backend.index(), seen));
        let likelihood = if likelihood < UNLIKELY { 0.0 } else { likelihood };
        (wait_ns + likelihood * fetch_ns, PricedChoice { likelihood, since, ..there })
    }

    /// How a copy looks that may have been evicted.
    fn seen(&self, since: u32, size_bytes: Option<u64>) -> Option<SeenCopy> {
        if self.has(AutoRule::Evictions) { SeenCopy::new(since, size_bytes) } else { None }
    }

    /// The copy with the least cost: of equal ones the one used last, so that a copy that is not needed is not used.
    #[inline(always)]
    fn cheapest_copy(
        &self,
        of: &AskedDocument,
        document: &KnownDocument,
        all: &OfAll,
        view: &ClusterView,
    ) -> Option<(f64, PricedChoice)> {
        let (last, others) = document.copies.split_last()?;
        let (mut least_ns, mut cheapest) = self.at_copy(of, last, all, view);
        for copy in others.iter().rev() {
            let (cost_ns, there) = self.at_copy(of, copy, all, view);
            if cost_ns < least_ns {
                (least_ns, cheapest) = (cost_ns, there);
            }
        }
        Some((least_ns, cheapest))
    }

    /// Rules 1 to 5; `None` when no back-end takes requests.
    #[inline]
    pub(super) fn choose(
        &mut self,
        of: &AskedDocument,
        document: &KnownDocument,
        view: &ClusterView,
    ) -> Option<PricedChoice> {
        let all = self.of_all();
        let Some((cost_ns, there)) = self.cheapest_copy(of, document, &all, view) else {
            let least = self.least(document, 1.0, &all, view).0;
            return least.map(|(b, _)| PricedChoice::read(b, ChosenCopy::First));
        };
        let margin_ns = if self.has(AutoRule::Margin) { self.mean_ns(&all, view) } else { 0.0 };
        if cost_ns <= margin_ns {
            return Some(there);
        }
        let price = there.likelihood + (1.0 - there.likelihood) * self.copy_price(of, document);
        let price = price * self.content.size_factor(of.size_bytes);
        if cost_ns <= margin_ns + self.floor_ns(price, &all, view) {
            return Some(there);
        }
        let (other, end) = self.least(document, price, &all, view);
        let Some((p, _)) = other.filter(|&(_, cost)| cost_ns > cost + margin_ns) else {
            self.turn = end;
            return Some(there);
        };
        Some(PricedChoice::read(p, ChosenCopy::Further))
    }

    /// A request was assigned as chosen; the view counts it already.
    pub(super) fn assigned(
        &mut self,
        request: &Request,
        chosen: &PricedChoice,
        view: &ClusterView,
        now: Time,
    ) {
        let Request { target, size_bytes, .. } = *request;
        let b = chosen.backend;
        if chosen.copy != ChosenCopy::Held {
            self.turn = b.index() + 1;
        }
        let (mut queue, of_reads) = self.queues(b, view);
        queue.requests = queue.requests.max(1.0);
        let read_position = self.reading.positions(of_reads);
        // One that joins a read reads nothing, but its content has to be sent.
        let is_small = self.add_content(request, b, if chosen.joins { 0.0 } else { chosen.likelihood });
        let joins = chosen.joins && self.has(AutoRule::Joining);
        let known = &mut self.known[b.index()];
        known.clock = known.clock.wrapping_add((16.0 * chosen.likelihood) as u32);
        if joins {
            self.reads.join(target, b);
            return;
        }
        if chosen.copy == ChosenCopy::Held && known.samples.len() < SAMPLES {
            let seen = self.seen(chosen.since, size_bytes);
            let sample = PendingSample { target, at: now, queue, read_position, seen, is_small };
            self.known[b.index()].samples.push(sample);
        }
        if chosen.likelihood > 0.0 {
            let likelihood = chosen.likelihood;
            match chosen.copy {
                ChosenCopy::Held => self.again.add(likelihood, likelihood),
                ChosenCopy::First => self.again.add(0.0, likelihood),
                ChosenCopy::Further => {}
            }
            let read = Read {
                at: now,
                queue_position: self.work.positions(queue),
                position: read_position,
                reads: of_reads.requests,
                content: of_reads.content,
                is_small,
                likelihood: chosen.likelihood,
                joined: 0,
            };
            self.reads.begin(target, b, read);
        }
    }

    /// Adds what this request has to get, which waits for a read with this likelihood; whether its document is small.
    pub(super) fn add_content(&mut self, request: &Request, b: BackendId, likelihood: f64) -> bool {
        let Request { target, size_bytes, .. } = *request;
        !self.has(AutoRule::Content) || is_small(self.content.begin(target, b, size_bytes, likelihood))
    }

    /// Response time of a hit for each position in the queue, in microseconds, over all back-ends.
    pub(super) fn hit_us(&self) -> f64 {
        self.hit.get().unwrap_or(0.0) / 1e3
    }

    /// What a read adds for each position, in microseconds, over all back-ends.
    pub(super) fn read_us(&self) -> f64 {
        self.read.get().unwrap_or(0.0).max(0.0) / 1e3
    }

    /// Requests that are expected to wait for a read.
    #[cfg(test)]
    pub(super) fn reads(&self) -> f64 {
        self.reads.waiting()
    }
}
