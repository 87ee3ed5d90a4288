//! Emulated hardware: how long the LARD study's disk and CPU would take, and the queues before them.
//!
//! Source: Pai et al., ASPLOS 1998, section 3.1.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A disk that reads one file after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskModel {
    /// Time before the first block of a file: two seeks and rotation.
    pub latency: Duration,
    /// Time to transfer 4,096 bytes.
    pub transfer_4096: Duration,
    /// Time before each further block: seek and rotation.
    pub seek: Duration,
    /// Bytes between two seeks.
    pub block_bytes: u64,
}

impl DiskModel {
    /// The disk of the LARD study: 28 ms of latency, 410 µs for 4 KB, and 14 ms more for each started 44 KB beyond the
    /// first 44 KB.
    #[must_use]
    pub const fn lard98() -> Self {
        Self {
            latency: Duration::from_millis(28),
            transfer_4096: Duration::from_micros(410),
            seek: Duration::from_millis(14),
            block_bytes: 44 * 1024,
        }
    }

    /// The same disk, `speed` times as fast. `None` if `speed` is not above 0, or so small that the times do not fit into
    /// a [`Duration`].
    #[must_use]
    pub fn faster(self, speed: f64) -> Option<Self> {
        Some(Self {
            latency: divided(self.latency, speed)?,
            transfer_4096: divided(self.transfer_4096, speed)?,
            seek: divided(self.seek, speed)?,
            ..self
        })
    }

    /// Time to read a file of `size_bytes` from its start to its end.
    #[must_use]
    pub fn read_time(&self, size_bytes: u64) -> Duration {
        let further = size_bytes.div_ceil(self.block_bytes.max(1)).saturating_sub(1);
        let seeks = nanos_times(self.seek, further);
        self.latency.saturating_add(seeks).saturating_add(linear(size_bytes, 4096, self.transfer_4096))
    }

    /// Time to read one block of `bytes`. `first` tells whether it is the first block of a read.
    pub(crate) fn block_time(&self, first: bool, bytes: u64) -> Duration {
        let seek = if first { self.latency } else { self.seek };
        seek.saturating_add(linear(bytes, 4096, self.transfer_4096))
    }
}

/// A CPU that serves one request after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuModel {
    /// Time to establish a connection, charged to every request.
    pub connect: Duration,
    /// Time to tear a connection down, charged to every request.
    pub teardown: Duration,
    /// Time to send 512 bytes of a body.
    pub transmit_512: Duration,
}

impl CpuModel {
    /// The CPU of the LARD study: 145 µs to establish a connection, as much to tear it down, and 40 µs for 512 bytes.
    #[must_use]
    pub const fn lard98() -> Self {
        Self {
            connect: Duration::from_micros(145),
            teardown: Duration::from_micros(145),
            transmit_512: Duration::from_micros(40),
        }
    }

    /// The same CPU, `speed` times as fast. `None` if `speed` is not above 0, or so small that the times do not fit into
    /// a [`Duration`].
    #[must_use]
    pub fn faster(self, speed: f64) -> Option<Self> {
        Some(Self {
            connect: divided(self.connect, speed)?,
            teardown: divided(self.teardown, speed)?,
            transmit_512: divided(self.transmit_512, speed)?,
        })
    }

    /// Time to send a body of `bytes` and tear the connection down.
    #[must_use]
    pub fn send_time(&self, bytes: u64) -> Duration {
        self.teardown.saturating_add(linear(bytes, 512, self.transmit_512))
    }
}

fn divided(time: Duration, speed: f64) -> Option<Duration> {
    if speed.is_nan() || speed <= 0.0 {
        return None;
    }
    Duration::try_from_secs_f64(time.as_secs_f64() / speed).ok()
}

/// The time for `bytes` when each `unit` bytes take `per_unit`: in proportion, rounded down to nanoseconds.
fn linear(bytes: u64, unit: u64, per_unit: Duration) -> Duration {
    let nanos = u128::from(bytes).saturating_mul(per_unit.as_nanos()) / u128::from(unit);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn nanos_times(time: Duration, times: u64) -> Duration {
    linear(times, 1, time)
}

/// Longest time for which one visit keeps a resource. A century is as good as for ever, and with it instants do not
/// overflow.
const LONGEST_VISIT: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A resource that serves visits one after another, first come first served.
///
/// It remembers the instant at which the last visit ends; no timer runs from one visit to the next. A timer that fires late
/// therefore delays its own visit and no other, and over time the resource does exactly the work it should.
#[derive(Debug, Default)]
pub struct Resource {
    free_at: Mutex<Option<Instant>>,
}

impl Resource {
    /// Adds a visit of length `time` to the queue. The returned future ends when the visit does. The visit takes its time
    /// even if the future is dropped.
    pub fn visit(&self, time: Duration) -> impl Future<Output = ()> + Send + use<> {
        sleep_until(self.reserve(time))
    }

    fn reserve(&self, time: Duration) -> Instant {
        let now = Instant::now();
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let start = free_at.map_or(now, |free_at| free_at.max(now));
        let end = start.checked_add(time.min(LONGEST_VISIT)).unwrap_or(start);
        *free_at = Some(end);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_lard_study() {
        let disk = DiskModel::lard98();
        // One block: 28 ms and two transfers of 4 KB.
        assert_eq!(disk.read_time(8192), Duration::from_micros(28_820));
        // Exactly one block has no further seek; one byte more has.
        assert_eq!(disk.read_time(45_056), Duration::from_micros(28_000 + 11 * 410));
        assert_eq!(disk.read_time(45_056 + 4096), Duration::from_micros(28_000 + 12 * 410 + 14_000));
        assert_eq!(disk.read_time(1), Duration::from_nanos(28_000_000 + 410_000 / 4096));
        assert_eq!(disk.read_time(0), Duration::from_millis(28));
        // Block by block comes to the same as the whole.
        let blocks = disk.block_time(true, 45_056) + disk.block_time(false, 4096);
        assert_eq!(blocks, disk.read_time(45_056 + 4096));
        // The paper: an 8 KB document from memory at about 1,075 requests per second.
        let cpu = CpuModel::lard98();
        let per_request = cpu.connect + cpu.send_time(8192);
        assert_eq!(per_request, Duration::from_micros(930));
    }

    #[test]
    fn speeds() {
        let disk = DiskModel::lard98().faster(10.0).unwrap();
        assert_eq!(disk.read_time(4096), Duration::from_micros(2_841));
        assert_eq!(DiskModel::lard98().faster(1.0), Some(DiskModel::lard98()));
        for bad in [0.0, -1.0, f64::NAN, 1e-300] {
            assert_eq!(DiskModel::lard98().faster(bad), None, "{bad}");
            assert_eq!(CpuModel::lard98().faster(bad), None, "{bad}");
        }
        assert_eq!(CpuModel::lard98().faster(f64::INFINITY).unwrap().send_time(512), Duration::ZERO);
    }

    #[test]
    fn enormous_files_do_not_overflow() {
        assert!(DiskModel::lard98().read_time(u64::MAX) > Duration::from_secs(1 << 32));
        assert!(CpuModel::lard98().send_time(u64::MAX) > Duration::from_secs(1 << 32));
    }

    #[tokio::test(start_paused = true)]
    async fn visits_queue_and_late_timers_do_not_add_up() {
        let resource = Resource::default();
        let began = Instant::now();
        let step = Duration::from_micros(300);
        let visits: Vec<_> = (0..1000).map(|_| resource.visit(step)).collect();
        let mut ends = Vec::new();
        for visit in visits {
            visit.await;
            ends.push(began.elapsed());
        }
        assert!(ends.is_sorted());
        let total = ends[999];
        assert!(total >= step * 1000 && total < step * 1000 + Duration::from_millis(2), "{total:?}");
        // An idle resource serves at once.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let again = Instant::now();
        resource.visit(Duration::from_millis(7)).await;
        let took = again.elapsed();
        assert!(took >= Duration::from_millis(7) && took < Duration::from_millis(9), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_visit_keeps_its_turn() {
        let resource = Resource::default();
        let began = Instant::now();
        drop(resource.visit(Duration::from_millis(50)));
        resource.visit(Duration::from_millis(10)).await;
        assert!(began.elapsed() >= Duration::from_millis(60));
        // However long the visits, instants do not overflow.
        for _ in 0..100 {
            drop(resource.visit(Duration::MAX));
        }
    }
}
