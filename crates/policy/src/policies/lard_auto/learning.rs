//! Learns from responses.

use super::auto_rule::AutoRule;
use super::content::is_small;
use super::costs::{Known, LearnedCosts, PendingSample};
use super::floor::ShortestTimes;
use super::own_ratio::OwnRatio;
use super::work::Queue;
use crate::cluster::BackendId;
use crate::decision::Completion;
use crate::fading_ratio::FadingRatio;
use crate::reads_under_way::Read;
use crate::request::Outcome;
use crate::time::Time;

/// So many samples of all back-ends are mixed with those of one, for hits and for reads: single reads differ more. As older samples fade, a
/// back-end has 64 at most, so reads alone count from 2.8 times those of all on; the queue of reads says the rest.
const HIT_PRIOR: f64 = 8.0;
const READ_PRIOR: f64 = 128.0;
/// A hit that takes so many times as long as expected of all back-ends has waited for something else, and counts as if it had taken that.
const LONGEST_HIT: f64 = 4.0;

impl LearnedCosts {
    /// Learns from a response.
    pub(super) fn learn(&mut self, completion: &Completion, now: Time) {
        let Completion { target, backend: b, response_time, .. } = *completion;
        let began = Time::from_nanos(now.as_nanos().saturating_sub(response_time.as_nanos()));
        let read = self.reads.end(target, b, began);
        self.content.end(target, b);
        let samples = &mut self.known[b.index()].samples;
        let at = samples.iter().position(|sample| sample.at == began && sample.target == target);
        let sample = at.map(|at| samples.swap_remove(at));
        if completion.outcome != Outcome::Completed {
            return;
        }
        let took_ns = response_time.as_nanos() as f64;
        let expected = self.each_ns(b, &self.of_all());
        // A front-end may not have known the size before this response.
        let told_small = completion.size_bytes.map(|bytes| is_small(self.content.relative(Some(bytes))));
        if let Some(mut sample) = sample {
            sample.is_small = told_small.unwrap_or(sample.is_small);
            self.learn_from(b, &sample, (took_ns, completion.hit), expected);
        }
        if let Some(mut read) = read.filter(|read| read.likelihood >= 1.0) {
            read.is_small = told_small.unwrap_or(read.is_small);
            self.learn_from_read(b, &read, (took_ns, completion.hit), expected);
        }
    }

    /// Learns from the response to a request whose document `b` had not, as far as was known.
    fn learn_from_read(
        &mut self,
        b: BackendId,
        read: &Read,
        (took_ns, told): (f64, Option<bool>),
        (each_ns, read_ns): (f64, f64),
    ) {
        let hit_ns = each_ns * read.queue_position;
        // A back-end may have had the document before this policy knew it. One that has it on its disk tells of a hit, too.
        let longest_ns =
            if read_ns > 0.0 { hit_ns + read_ns * read.position / 2.0 } else { LONGEST_HIT * hit_ns };
        let was_there = told == Some(true) && (self.hit.get().is_none() || took_ns <= longest_ns);
        if !was_there && read.is_small {
            let read_ns = took_ns - hit_ns;
            let queue = Queue { requests: read.reads, reads: 0.0, content: read.content };
            self.reading.add(queue, read_ns.max(0.0));
            self.learn_read(b, read_ns, read.position);
        }
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
        self.lower_floor(b);
    }

    /// Learns from the response to a sample, which took so long, and of which the back-end told whether it was a hit, if it tells that.
    fn learn_from(
        &mut self,
        b: BackendId,
        sample: &PendingSample,
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
            if sample.is_small {
                self.learn_read(b, took_ns - hit_ns, sample.read_position);
            }
            return;
        }
        // Uncapped: what holds hits up is what this learns.
        if sample.is_small {
            self.work.add(sample.queue, took_ns);
        }
        let expected = self.work.positions(sample.queue);
        let usual_ns = self.hit.get().filter(|&all| all > 0.0 && self.has(AutoRule::LongHits));
        let longest_ns = usual_ns.map_or(took_ns, |all| LONGEST_HIT * all * expected);
        let took_ns = took_ns.min(longest_ns);
        let prior = self.prior(HIT_PRIOR);
        let known = &mut self.known[b.index()];
        known.hit.add(took_ns, expected);
        self.speeds[b.index()].hit = OwnRatio::of(&known.hit, prior);
        self.hit.add(took_ns, expected);
        self.lower_floor(b);
    }

    /// Has the floor hold with the times of `b`, which have changed.
    fn lower_floor(&mut self, b: BackendId) {
        let known = &self.known;
        self.floor.learn(own_times(&known[b.index()]), || known.iter().map(own_times));
    }
}

/// What was learned of a back-end alone.
fn own_times(known: &Known) -> ShortestTimes {
    let time = |of: &FadingRatio| of.get().unwrap_or(f64::INFINITY);
    ShortestTimes { hit_ns: time(&known.hit), read_ns: time(&known.read) }
}
