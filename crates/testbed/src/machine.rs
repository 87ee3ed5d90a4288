//! How busy the CPUs of this machine are.

/// CPU time since the machine started, over all CPUs, in the system's ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    busy: u64,
    all: u64,
}

impl CpuTime {
    /// Until now; `None` where the system does not tell (`/proc/stat`).
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let all = numbers.iter().sum();
        let idle = numbers.get(3)? + numbers.get(4)?;
        Some(Self { busy: all - idle, all })
    }

    /// Share of the time since `earlier` that the CPUs were busy, with whatever program; `None` of no time.
    pub(crate) fn busy_since(self, earlier: Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|&all| all > 0)?;
        Some(self.busy.saturating_sub(earlier.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_hand() {
        let earlier = CpuTime::parse("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1\n").unwrap();
        let later = CpuTime::parse("cpu  40 0 20 120 20 0 0 0 0 0\n").unwrap();
        assert_eq!(later.busy_since(earlier), Some(0.4));
        assert_eq!(earlier.busy_since(earlier), None);
        for bad in ["", "cpu  1 2 3\n", "cpu  a b c d e f g h\n", "intr 5\n"] {
            assert!(CpuTime::parse(bad).is_none(), "{bad}");
        }
    }
}
