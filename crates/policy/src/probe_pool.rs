//! The probes that a front-end keeps, and how loads were distributed over back-ends lately.
//!
//! Source: Wydrowski, Kleinberg, Rumble and Archer, "Load is not what you should balance: introducing Prequal", NSDI 2024, section 4.

use crate::cluster::{BackendId, ClusterView};
use crate::time::{Nanos, Time};
use crate::weight::RelativeLoad;

/// How many reported loads make the distribution.
const RECENT: usize = 128;

/// What a back-end reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PooledProbe {
    pub(crate) backend: BackendId,
    pub(crate) at: Time,
    /// Its requests in flight, with those that were sent to it since.
    pub(crate) load: u32,
    pub(crate) latency: Nanos,
    /// Choices that may still be made by it.
    pub(crate) uses: u32,
}

impl PooledProbe {
    /// Its load per unit of weight; never below the front-end's own count.
    #[inline]
    pub(crate) fn relative(&self, view: &ClusterView) -> u32 {
        RelativeLoad::of(self.load.max(view.own_load(self.backend)), view.weight(self.backend))
    }
}

/// At most one probe for each back-end, oldest first.
#[derive(Debug)]
pub(crate) struct ProbePool {
    probes: Vec<PooledProbe>,
    most_age: Nanos,
}

impl ProbePool {
    pub(crate) fn new(most_age: Nanos) -> Self {
        Self { probes: Vec::new(), most_age }
    }

    pub(crate) fn probes(&self) -> &[PooledProbe] {
        &self.probes
    }

    /// Adds a probe. It replaces the one of the same back-end, and the oldest ones in a pool of which `room` is full.
    pub(crate) fn add(&mut self, probe: PooledProbe, room: usize) {
        if let Some(same) = self.probes.iter().position(|p| p.backend == probe.backend) {
            self.probes.remove(same);
        }
        // More than one where back-ends have gone.
        let surplus = (self.probes.len() + 1).saturating_sub(room.max(1));
        self.probes.drain(..surplus);
        self.probes.push(probe);
    }

    /// Removes those that are too old.
    #[inline]
    pub(crate) fn age(&mut self, now: Time) {
        let old = self.probes.iter().take_while(|p| now.since(p.at) > self.most_age).count();
        if old > 0 {
            self.probes.drain(..old);
        }
    }

    /// A request goes to `b`: its probe has one more in flight and one use less.
    pub(crate) fn used(&mut self, b: BackendId) {
        if let Some(at) = self.probes.iter().position(|p| p.backend == b) {
            let probe = &mut self.probes[at];
            probe.load = probe.load.saturating_add(1);
            probe.uses -= 1;
            if probe.uses == 0 {
                self.probes.remove(at);
            }
        }
    }

    /// `b` takes no more requests, or another back-end has its index.
    pub(crate) fn forget(&mut self, b: BackendId) {
        self.probes.retain(|p| p.backend != b);
    }

    pub(crate) fn remove_oldest(&mut self) {
        if !self.probes.is_empty() {
            self.probes.remove(0);
        }
    }

    /// Removes the one that would be chosen last: of the hot ones, whose load is above `hot_above`, the one with the most load;
    /// without a hot one, the slowest.
    pub(crate) fn remove_worst(&mut self, hot_above: u32, view: &ClusterView) {
        let rank = |p: &PooledProbe| {
            let relative = p.relative(view);
            if relative > hot_above { (1, u64::from(relative)) } else { (0, p.latency.as_nanos()) }
        };
        let worst = self.probes.iter().enumerate().max_by_key(|(_, p)| rank(p)).map(|(at, _)| at);
        if let Some(worst) = worst {
            self.probes.remove(worst);
        }
    }
}

/// The loads that were reported last.
#[derive(Debug)]
pub(crate) struct RecentLoads {
    /// In the order in which they came, from `next` on.
    ring: Vec<u32>,
    sorted: Vec<u32>,
    next: usize,
}

impl RecentLoads {
    pub(crate) fn new() -> Self {
        Self { ring: Vec::with_capacity(RECENT), sorted: Vec::with_capacity(RECENT), next: 0 }
    }

    pub(crate) fn add(&mut self, load: u32) {
        if self.ring.len() < RECENT {
            self.ring.push(load);
        } else {
            let gone = std::mem::replace(&mut self.ring[self.next], load);
            self.next = (self.next + 1) % RECENT;
            let at = self.sorted.partition_point(|&l| l < gone);
            self.sorted.remove(at);
        }
        let at = self.sorted.partition_point(|&l| l < load);
        self.sorted.insert(at, load);
    }

    /// The smallest load that is not below this share of them; above all loads without any.
    #[inline]
    pub(crate) fn quantile(&self, share: f64) -> u32 {
        let rank = (share * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or(u32::MAX)
    }
}

/// Whole numbers that come to a rate which need not be whole.
#[derive(Debug)]
pub(crate) struct Paced {
    rate: f64,
    credit: f64,
}

impl Paced {
    pub(crate) fn new(rate: f64) -> Self {
        Self { rate, credit: 0.0 }
    }

    pub(crate) fn next(&mut self) -> usize {
        self.credit += self.rate;
        let whole = self.credit.floor();
        self.credit -= whole;
        whole as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;

    fn probe(b: u16, s: u64, load: u32, ms: u64) -> PooledProbe {
        let (at, latency) = (Time::ZERO + Nanos::from_secs(s), Nanos::from_millis(ms));
        PooledProbe { backend: BackendId(b), at, load, latency, uses: 2 }
    }

    fn held(pool: &ProbePool) -> Vec<(u16, u32)> {
        pool.probes().iter().map(|p| (p.backend.0, p.load)).collect()
    }

    #[test]
    fn a_pool_holds_the_newest_of_each_for_a_time_and_a_number_of_uses() {
        let mut pool = ProbePool::new(Nanos::from_secs(5));
        [probe(0, 0, 1, 1), probe(1, 1, 1, 1), probe(2, 2, 1, 1)].into_iter().for_each(|p| pool.add(p, 3));
        pool.add(probe(0, 3, 9, 1), 3);
        assert_eq!(held(&pool), [(1, 1), (2, 1), (0, 9)], "the newer one of the same");
        pool.add(probe(3, 4, 4, 1), 3);
        assert_eq!(held(&pool), [(2, 1), (0, 9), (3, 4)], "the oldest one makes room");
        pool.used(BackendId(3));
        assert_eq!(held(&pool), [(2, 1), (0, 9), (3, 5)], "one more in flight");
        pool.used(BackendId(3));
        assert_eq!(held(&pool), [(2, 1), (0, 9)], "used up");
        pool.age(Time::ZERO + Nanos::from_secs(7));
        assert_eq!(held(&pool).len(), 2, "5 s are not too old");
        pool.age(Time::ZERO + Nanos::from_millis(7_001));
        assert_eq!(held(&pool), [(0, 9)]);
        pool.forget(BackendId(0));
        pool.remove_oldest();
        assert_eq!(held(&pool), []);
    }

    #[test]
    fn the_worst_is_the_hottest_or_else_the_slowest() {
        let view = Cluster::new(4);
        let mut pool = ProbePool::new(Nanos::MAX);
        let all = [probe(0, 0, 1, 30), probe(1, 0, 8, 1), probe(2, 0, 9, 2), probe(3, 0, 2, 50)];
        all.into_iter().for_each(|p| pool.add(p, 4));
        let five = RelativeLoad::threshold(5).0;
        let mut gone = || {
            pool.remove_worst(five, &view);
            held(&pool).iter().map(|&(b, _)| b).collect::<Vec<_>>()
        };
        assert_eq!([gone(), gone(), gone(), gone()], [vec![0, 1, 3], vec![0, 3], vec![0], vec![]]);
    }

    #[test]
    fn quantiles_are_of_the_last_128() {
        let mut recent = RecentLoads::new();
        assert_eq!(recent.quantile(0.5), u32::MAX);
        (1..=100).rev().for_each(|load| recent.add(load));
        assert_eq!([0.0, 0.01, 0.5, 0.84, 1.0].map(|q| recent.quantile(q)), [1, 1, 50, 84, 100]);
        (0..128).for_each(|_| recent.add(7));
        assert_eq!([0.0, 1.0].map(|q| recent.quantile(q)), [7, 7]);
        recent.add(9);
        assert_eq!([0.99, 1.0].map(|q| recent.quantile(q)), [7, 9]);
    }
}
