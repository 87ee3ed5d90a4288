//! What work costs, however busy the machine is with other things.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Does `work` in this thread; returns what it returned and the CPU time that it took, in the kernel too. Time in which
/// others ran is not in it.
pub fn cpu_time_of<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = used();
    let done = work();
    (done, used().saturating_sub(before))
}

fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock starts at zero.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_cpu_time_and_waiting_none() {
        let work = || (0..20_000_000u64).fold(1, |sum: u64, n| sum.rotate_left(5) ^ n);
        let (sum, took) = cpu_time_of(work);
        assert!(sum != 0 && took > Duration::from_millis(1), "{took:?}");
        let (other_sum, waited) = cpu_time_of(|| std::thread::spawn(work).join().unwrap());
        assert!(sum == other_sum && waited < took, "{waited:?}");
    }
}
