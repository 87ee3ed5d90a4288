//! Measures the total use of a CPU.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::commands;
use crate::cpus::pin;
use crate::error::LabError;

/// The longest time between two clock readings without an interruption.
const UNINTERRUPTED: Duration = Duration::from_nanos(500);

/// Measures the use of one CPU: processes, interrupts and what the kernel does for packets all count, unlike in the times
/// of processes, and exactly, unlike in `/proc/stat`, which looks only at every tick.
///
/// A thread of the lowest priority (`SCHED_IDLE`) reads the clock in a loop on that CPU. While readings
/// follow one another closely, nothing else runs there; longer gaps are use by something else. So the CPU
/// never sleeps while it is measured. The measured processes must be in the same session (`setsid`) and
/// control group as this process, because the kernel shares CPUs among those first.
#[derive(Debug)]
pub struct CpuMeter {
    shared: Arc<MeterState>,
    start: Instant,
    unused_at_start_ns: u64,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct MeterState {
    /// Time in which nothing else ran, in nanoseconds.
    unused_ns: AtomicU64,
    stop: AtomicBool,
}

/// Use of a CPU since the start of the meter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Time that passed.
    pub elapsed: Duration,
    /// Of that, time in which the CPU did something.
    pub busy: Duration,
}

impl CpuUse {
    /// The use since `earlier`, a reading of the same meter.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            busy: self.busy.saturating_sub(earlier.busy),
        }
    }

    /// Share of the time in which the CPU was in use, 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.busy.as_secs_f64() / self.elapsed.as_secs_f64() }
    }
}

impl CpuMeter {
    /// Starts to measure a CPU, counted from 0. Measuring has begun when this returns.
    ///
    /// # Errors
    /// When there is no such CPU, or no `chrt` to give a thread the lowest priority.
    pub fn start(cpu: usize) -> Result<Self, LabError> {
        let shared = Arc::new(MeterState::default());
        let (ready, result) = mpsc::channel();
        let thread = std::thread::Builder::new().name("cpu-meter".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                let prepared = pin(&[cpu]).and_then(|()| lower_priority());
                let good = prepared.is_ok();
                if ready.send(prepared).is_ok() && good {
                    measure(&shared);
                }
            }
        });
        let thread = thread.map_err(|e| LabError::system("start a thread", e))?;
        let mut meter = Self { shared, start: Instant::now(), unused_at_start_ns: 0, thread: Some(thread) };
        result.recv().map_err(|_| LabError::Invalid("the thread that measures a CPU ended".to_owned()))??;
        meter.start = Instant::now();
        meter.unused_at_start_ns = meter.shared.unused_ns.load(Ordering::Relaxed);
        Ok(meter)
    }

    /// The use since the start; [`CpuUse::since`] gives that between two readings.
    #[must_use]
    pub fn read(&self) -> CpuUse {
        let elapsed = self.start.elapsed();
        let unused_ns = self.shared.unused_ns.load(Ordering::Relaxed).saturating_sub(self.unused_at_start_ns);
        CpuUse { elapsed, busy: elapsed.saturating_sub(Duration::from_nanos(unused_ns)) }
    }
}

impl Drop for CpuMeter {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic.
            let _ = thread.join();
        }
    }
}

/// Makes the calling thread run only when its CPU is otherwise idle.
fn lower_priority() -> Result<(), LabError> {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    commands::run(Command::new("chrt").args(["--idle", "--pid", "0", &thread]), "").map(drop)
}

fn measure(shared: &MeterState) {
    let mut last = Instant::now();
    let mut unused_ns = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let gap = now - last;
        last = now;
        if gap < UNINTERRUPTED {
            // Less than a microsecond.
            unused_ns += u64::from(gap.subsec_nanos());
            shared.unused_ns.store(unused_ns, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let use_of =
            |elapsed, busy| CpuUse { elapsed: Duration::from_secs(elapsed), busy: Duration::from_secs(busy) };
        assert!((use_of(6, 4).since(use_of(2, 1)).share() - 0.75).abs() < 1e-9);
        assert!(CpuUse::default().share().abs() < 1e-9);
    }

    #[test]
    fn a_cpu_that_is_not_there() {
        assert!(CpuMeter::start(100_000).is_err());
    }
}
