//! A bound below what a request costs at any back-end, so that most choices need not look at every one.
//!
//! ```text
//! floor  <- (1 + the shortest queue) * the fastest hit + price * the fastest read
//! ```

use crate::cluster::{BackendId, ClusterView};
use crate::min_blocks::MinBlocks;

/// How many samples are learned from before the fastest back-ends are looked for again.
const REFRESH: u32 = 64;
/// Stands for the queue of a back-end that takes no requests.
const TAKES_NONE: u32 = u32::MAX;

/// How long hits and reads take at a back-end beside all, as a share of that.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelativeSpeed {
    pub(super) hit: f64,
    pub(super) read: f64,
}

impl RelativeSpeed {
    pub(super) const OF_ALL: Self = Self { hit: 1.0, read: 1.0 };

    pub(super) fn faster(self, other: Self) -> Self {
        Self { hit: self.hit.min(other.hit), read: self.read.min(other.read) }
    }
}

/// See the module's documentation. It may lie a little above the least cost while what was learned of all has changed, and where a load was
/// reported since the back-end's last request: then a request stays where its document is.
#[derive(Debug)]
pub(super) struct CostFloor {
    /// Requests at each back-end that wait for no read, rounded down.
    queues: MinBlocks,
    fastest: RelativeSpeed,
    learned: u32,
}

impl Default for CostFloor {
    fn default() -> Self {
        Self { queues: MinBlocks::new(&[]), fastest: RelativeSpeed::OF_ALL, learned: 0 }
    }
}

impl CostFloor {
    /// There are more back-ends now, whose queues are those that `queue` tells.
    pub(super) fn grow(&mut self, view: &ClusterView, queue: impl Fn(BackendId) -> f64) {
        let of = |b| if view.is_eligible(b) { queue(b) as u32 } else { TAKES_NONE };
        self.queues = MinBlocks::new(&view.ids().map(of).collect::<Vec<_>>());
    }

    /// So many requests wait at `b` for no read.
    #[inline]
    pub(super) fn set_queue(&mut self, b: BackendId, requests: f64) {
        self.queues.set_unless(TAKES_NONE, b.index(), requests as u32);
    }

    /// `b` takes requests from now on, or takes none.
    pub(super) fn set_takes(&mut self, b: BackendId, takes: bool, requests: f64) {
        self.queues.set(b.index(), if takes { requests as u32 } else { TAKES_NONE });
    }

    /// Something was learned of a back-end, which is so fast now. Returns whether to look for the fastest ones again.
    pub(super) fn learn(&mut self, speed: RelativeSpeed) -> bool {
        self.fastest = self.fastest.faster(speed);
        self.learned = (self.learned + 1) % REFRESH;
        self.learned == 0
    }

    /// These are the fastest hit and the fastest read.
    pub(super) fn set_fastest(&mut self, fastest: RelativeSpeed) {
        self.fastest = fastest;
    }

    /// The bound, in nanoseconds, where hits and reads take so long and a read counts as `price` ones.
    #[inline]
    pub(super) fn cost_ns(&self, hit_ns: f64, read_ns: f64, price: f64) -> f64 {
        let positions = 1.0 + f64::from(self.queues.least());
        positions * self.fastest.hit * hit_ns + price * self.fastest.read * read_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};

    #[test]
    fn it_is_what_the_least_loaded_of_the_fastest_would_take() {
        let mut cluster = Cluster::new(3);
        cluster.set_health(BackendId(2), Health::Draining);
        let mut floor = CostFloor::default();
        floor.grow(&cluster, |b| [4.0, 6.5, 0.0][b.index()]);
        assert_eq!(floor.cost_ns(100.0, 1000.0, 2.0), 500.0 + 2000.0, "who takes no requests does not count");
        floor.set_queue(BackendId(0), 9.0);
        floor.set_queue(BackendId(2), 1.0);
        assert_eq!(floor.cost_ns(100.0, 1000.0, 2.0), 700.0 + 2000.0);
        floor.set_takes(BackendId(2), true, 1.0);
        assert_eq!(floor.cost_ns(100.0, 1000.0, 2.0), 200.0 + 2000.0);
        floor.learn(RelativeSpeed { hit: 0.5, read: 2.0 });
        assert_eq!(floor.cost_ns(100.0, 1000.0, 2.0), 100.0 + 2000.0);
    }

    #[test]
    fn the_fastest_are_looked_for_now_and_then() {
        let mut floor = CostFloor::default();
        let looked = (0..640).filter(|_| floor.learn(RelativeSpeed::OF_ALL)).count();
        assert_eq!(looked, 10);
    }
}
