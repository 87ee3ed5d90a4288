//! What is known of back-ends, and so what a choice costs.

use smallvec::SmallVec;

use super::auto_rule::AutoRule;
use super::choice::{AskedDocument, PricedChoice};
use super::document::{CopyAt, KnownDocument};
use super::evictions::{Evictions, SeenCopy};
use super::own_ratio::OwnRatio;
use super::work::{Queue, WorkModel};
use crate::cluster::{BackendId, ClusterView};
use crate::decision::Completion;
use crate::fading_ratio::FadingRatio;
use crate::reads_under_way::{Read, ReadsUnderWay};
use crate::request::{Outcome, TargetId};
use crate::time::Time;

/// Costs above this share of another one are equal to it: estimates differ by rounding, too.
const EQUAL: f64 = 1.0 - 1e-6;
/// Requests of each back-end whose response times are learned from, at once.
const SAMPLES: usize = 4;
/// Back-ends that are looked at for each choice.
const MOST_LOOKED_AT: u32 = 64;
/// Less likely reads are none.
const UNLIKELY: f64 = 0.02;
/// How many reads a move costs that no later request shares: its own, and waits that are over before later requests come.
const MOVE_COSTS: f64 = 8.0;
/// So many samples of all back-ends are mixed with those of one, for hits and for reads: single reads differ more. As older samples fade, a
/// back-end has 64 at most, so reads alone count from 2.8 times those of all on; the queue of reads says the rest.
const HIT_PRIOR: f64 = 8.0;
const READ_PRIOR: f64 = 128.0;
/// A hit that takes so many times as long as expected of all back-ends has waited for something else, and counts as if it had taken that.
const LONGEST_HIT: f64 = 4.0;
/// The largest share of reads that were evicted before, in the price of a read.
const MOST_AGAIN: f64 = 0.95;

/// A request whose response time will be learned from.
#[derive(Debug, Clone, Copy)]
struct Sample {
    target: TargetId,
    at: Time,
    queue: Queue,
    read_position: f64,
    seen: Option<SeenCopy>,
}

/// How fast a back-end is, as far as it counts.
#[derive(Debug, Clone, Copy, Default)]
struct Speed {
    /// Response time of a hit in nanoseconds, by what is expected of the queue.
    hit: OwnRatio,
    /// What a read adds in nanoseconds, by position among the reads.
    read: OwnRatio,
}

/// What else is known of a back-end.
#[derive(Debug, Clone, Default)]
struct Known {
    /// What its speed follows from.
    hit: FadingRatio,
    read: FadingRatio,
    samples: SmallVec<[Sample; SAMPLES]>,
    /// Reads that it began, in sixteenths: what may have evicted documents.
    clock: u32,
}

/// What was learned of all back-ends, looked up once for each choice.
#[derive(Debug, Clone, Copy)]
struct OfAll {
    hit_ns: f64,
    read_ns: f64,
    /// Whether differences of single back-ends count that may be chance.
    exact: bool,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct LearnedCosts {
    known: Vec<Known>,
    /// Apart, as each choice looks at many.
    speeds: Vec<Speed>,
    work: WorkModel,
    evictions: Evictions,
    /// Over all back-ends.
    hit: FadingRatio,
    read: FadingRatio,
    reads: ReadsUnderWay,
    /// Of the reads, those of documents that the back-end had before.
    again: FadingRatio,
    /// Who is looked at first.
    turn: usize,
    /// Sum of the rules that are left out.
    without: u32,
}

impl LearnedCosts {
    /// Nothing is known; `without` is the sum of the rules to leave out.
    pub(super) fn new(without: u32) -> Self {
        Self { without, ..Self::default() }
    }

    fn has(&self, rule: AutoRule) -> bool {
        self.without & rule as u32 == 0
    }

    pub(super) fn grow(&mut self, backends: usize) {
        if self.known.len() < backends {
            self.known.resize(backends, Known::default());
            self.speeds.resize(backends, Speed::default());
        }
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

    fn of_all(&self) -> OfAll {
        OfAll {
            hit_ns: self.hit.get().unwrap_or(1.0),
            read_ns: self.read.get().unwrap_or(0.0).max(0.0),
            exact: !self.has(AutoRule::Noise),
        }
    }

    /// What waits at `b` for no read, and the reads.
    #[inline(always)]
    fn queue(&self, b: BackendId, view: &ClusterView) -> (Queue, f64) {
        let (reads, waiting) = self.reads.at(b);
        let requests = (f64::from(view.load(b)) - waiting).max(0.0);
        (Queue { requests, reads: if self.has(AutoRule::HoldUp) { reads } else { 0.0 } }, reads)
    }

    /// How long a request would take for a document that `b` has, and how much longer where it has to be read.
    #[inline(always)]
    fn wait_and_fetch_ns(&self, b: BackendId, all: &OfAll, view: &ClusterView) -> (f64, f64) {
        let (mut queue, reads) = self.queue(b, view);
        queue.requests += 1.0;
        let (hit_ns, read_ns) = self.each_ns(b, all);
        (self.work.positions(queue) * hit_ns, (reads + 1.0) * read_ns)
    }

    /// Response time of a hit at `b`, by what is expected of the queue, and what a read adds, by its position.
    #[inline(always)]
    fn each_ns(&self, b: BackendId, all: &OfAll) -> (f64, f64) {
        let Speed { hit, read } = &self.speeds[b.index()];
        (hit.beside(all.hit_ns, all.exact), read.beside(all.read_ns, all.exact).max(0.0))
    }

    /// How many reads another copy costs: one, and as many as follow from what it evicts and what that evicts in turn; squared, as it stays
    /// in the way for as long as it is used.
    fn room(&self) -> f64 {
        if !self.has(AutoRule::Room) {
            return 1.0;
        }
        let stays = 1.0 - self.again.get().unwrap_or(0.0).clamp(0.0, MOST_AGAIN);
        1.0 / (stays * stays)
    }

    /// What is left of a reading under way.
    fn rest_ns(&self, of: &AskedDocument, b: BackendId, all: &OfAll) -> f64 {
        let Some(read) = self.reads.get(of.target, b) else { return 0.0 };
        (read.position * self.each_ns(b, all).1 - of.now.since(read.at).as_nanos() as f64).max(0.0)
    }

    /// How long a request waits in the mean.
    fn mean_ns(&self, all: &OfAll, view: &ClusterView) -> f64 {
        let waiting = (view.total_load() as f64 - self.reads.waiting()).max(0.0);
        let each = view.eligible().max(1) as f64;
        self.work.positions(Queue { requests: waiting / each, reads: 0.0 }) * all.hit_ns
    }

    /// Of the back-ends that take requests and have no copy the one with the least cost, ties in turn, where a read counts as `price`
    /// ones. In a large cluster the next ones in turn stand for all; the second value is where the look ended.
    fn least(
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
    fn at_copy(
        &self,
        of: &AskedDocument,
        copy: &CopyAt,
        all: &OfAll,
        view: &ClusterView,
    ) -> (f64, PricedChoice) {
        let backend = copy.backend;
        let (wait_ns, fetch_ns) = self.wait_and_fetch_ns(backend, all, view);
        let there = PricedChoice { backend, new: false, likelihood: 0.0, seen: None, joins: false };
        if copy.reading {
            let joins = self.has(AutoRule::Joining);
            return (wait_ns + self.rest_ns(of, backend, all), PricedChoice { joins, ..there });
        }
        let seen = SeenCopy::new(self.clock(backend).wrapping_sub(copy.clock), of.size_bytes);
        let seen = seen.filter(|_| self.has(AutoRule::Evictions));
        let likelihood = seen.map_or(0.0, |seen| self.evictions.likelihood(backend.index(), seen));
        if likelihood < UNLIKELY {
            return (wait_ns, PricedChoice { seen, ..there });
        }
        (wait_ns + likelihood * fetch_ns, PricedChoice { seen, likelihood, ..there })
    }

    /// Rules 1 to 5; `None` when no back-end takes requests.
    pub(super) fn choose(
        &mut self,
        of: &AskedDocument,
        document: &KnownDocument,
        view: &ClusterView,
    ) -> Option<PricedChoice> {
        let all = self.of_all();
        let new = |backend| PricedChoice { backend, new: true, likelihood: 1.0, seen: None, joins: false };
        // Of equal ones the one used last, so that a copy that is not needed is not used.
        let copies = document.copies.iter().rev().map(|copy| self.at_copy(of, copy, &all, view));
        let best = copies.reduce(|best, other| if other.0 < best.0 { other } else { best });
        let Some((cost_ns, there)) = best else {
            return self.least(document, 1.0, &all, view).0.map(|(b, _)| new(b));
        };
        let has_it = 1.0 - there.likelihood;
        let margin_ns = if self.has(AutoRule::Margin) { self.mean_ns(&all, view) * has_it } else { 0.0 };
        if cost_ns <= margin_ns {
            return Some(there);
        }
        let shared_by = if self.has(AutoRule::Share) { 1.0 + of.recent } else { 1.0 };
        let price = there.likelihood + has_it * MOVE_COSTS * self.room() / shared_by;
        let (other, end) = self.least(document, price, &all, view);
        let Some((p, _)) = other.filter(|&(_, cost)| cost_ns > cost + margin_ns) else {
            self.turn = end;
            return Some(there);
        };
        Some(new(p))
    }

    /// A request was assigned as chosen; the view counts it already.
    pub(super) fn assigned(
        &mut self,
        target: TargetId,
        chosen: &PricedChoice,
        view: &ClusterView,
        now: Time,
    ) {
        let b = chosen.backend;
        if chosen.new {
            self.turn = b.index() + 1;
        }
        let (mut queue, reads) = self.queue(b, view);
        queue.requests = queue.requests.max(1.0);
        let read_position = reads + 1.0;
        let known = &mut self.known[b.index()];
        known.clock = known.clock.wrapping_add((16.0 * chosen.likelihood) as u32);
        if chosen.joins {
            self.reads.join(target, b);
            return;
        }
        if !chosen.new && known.samples.len() < SAMPLES {
            known.samples.push(Sample { target, at: now, queue, read_position, seen: chosen.seen });
        }
        if chosen.likelihood > 0.0 {
            let likelihood = chosen.likelihood;
            self.again.add(if chosen.new { 0.0 } else { likelihood }, likelihood);
            let read = Read {
                at: now,
                queue_position: self.work.positions(queue),
                position: read_position,
                likelihood: chosen.likelihood,
                joined: 0,
            };
            self.reads.begin(target, b, read);
        }
    }

    /// Learns from a response. Returns whether the back-end has read the document for it.
    pub(super) fn learn(&mut self, completion: &Completion, now: Time) -> bool {
        let Completion { target, backend: b, response_time, .. } = *completion;
        let answered = completion.outcome == Outcome::Completed;
        let took_ns = response_time.as_nanos() as f64;
        let began = Time::from_nanos(now.as_nanos().saturating_sub(response_time.as_nanos()));
        let (each_ns, read_ns) = self.each_ns(b, &self.of_all());
        let known = &mut self.known[b.index()];
        let read = self.reads.end(target, b, began);
        let at = known.samples.iter().position(|sample| sample.target == target && sample.at == began);
        let sample = at.map(|at| known.samples.swap_remove(at));
        if let Some(sample) = sample.filter(|_| answered) {
            self.learn_from(b, &sample, (took_ns, completion.hit), (each_ns, read_ns));
        }
        let Some(read) = read else { return false };
        let hit_ns = each_ns * read.queue_position;
        // A back-end may have had the document before this policy knew it. One that has it on its disk tells of a hit, too.
        let longest_ns =
            if read_ns > 0.0 { hit_ns + read_ns * read.position / 2.0 } else { LONGEST_HIT * hit_ns };
        let was_there = completion.hit == Some(true) && (self.hit.get().is_none() || took_ns <= longest_ns);
        if answered && read.likelihood >= 1.0 && !was_there {
            self.learn_read(b, took_ns - hit_ns, read.position);
        }
        true
    }

    fn prior(&self, samples: f64) -> f64 {
        if self.has(AutoRule::Mixing) { samples } else { 0.0 }
    }

    fn learn_read(&mut self, b: BackendId, read_ns: f64, position: f64) {
        let prior = self.prior(READ_PRIOR);
        let known = &mut self.known[b.index()];
        known.read.add(read_ns, position);
        self.speeds[b.index()].read = OwnRatio::of(&known.read, prior);
        self.read.add(read_ns, position);
    }

    /// Learns from the response to a sample, which took so long, and of which the back-end told whether it was a hit, if it tells that.
    fn learn_from(
        &mut self,
        b: BackendId,
        sample: &Sample,
        (took_ns, told): (f64, Option<bool>),
        (each_ns, read_ns): (f64, f64),
    ) {
        let hit_ns = each_ns * self.work.positions(sample.queue);
        let fetch_ns = read_ns * sample.read_position;
        // By its time, where reads take longer than hits. What cannot have been evicted was no read, unless it is told so.
        let times_tell = sample.seen.is_some() && self.hit.get().is_some() && fetch_ns > hit_ns;
        let by_time = times_tell.then_some(took_ns > hit_ns + fetch_ns / 2.0);
        let read = told.map(|hit| !hit).or(by_time);
        if let (Some(seen), Some(read)) = (sample.seen, read) {
            self.evictions.learn(b.index(), seen, read);
        }
        // What was a hit, and took as long as a read, has waited for something else, or came from the disk of a cache.
        if told == Some(true) && by_time == Some(true) {
            return;
        }
        if read == Some(true) {
            self.learn_read(b, took_ns - hit_ns, sample.read_position);
            return;
        }
        // Uncapped: what holds hits up is what this learns.
        self.work.add(sample.queue, took_ns);
        let expected = self.work.positions(sample.queue);
        let usual_ns = self.hit.get().filter(|&all| all > 0.0 && self.has(AutoRule::LongHits));
        let longest_ns = usual_ns.map_or(took_ns, |all| LONGEST_HIT * all * expected);
        let took_ns = took_ns.min(longest_ns);
        let prior = self.prior(HIT_PRIOR);
        let known = &mut self.known[b.index()];
        known.hit.add(took_ns, expected);
        self.speeds[b.index()].hit = OwnRatio::of(&known.hit, prior);
        self.hit.add(took_ns, expected);
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
