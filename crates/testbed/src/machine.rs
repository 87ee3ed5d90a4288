//! How busy the CPUs of this machine are.

/// CPU time since the machine started, in the system's ticks.
#[derive(Debug, Clone, Copy)]
pub struct CpuTime {
    busy: u64,
    all: u64,
}

impl CpuTime {
    /// Of all CPUs until now; `None` if the system does not provide it (`/proc/stat`).
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?, "cpu")
    }

    /// Of these CPUs, counted from 0; `None` if one does not exist or the system does not provide it.
    #[must_use]
    pub fn of(cpus: &[usize]) -> Option<Self> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        cpus.iter().try_fold(Self { busy: 0, all: 0 }, |sum, cpu| {
            let one = Self::parse(&text, &format!("cpu{cpu}"))?;
            Some(Self { busy: sum.busy + one.busy, all: sum.all + one.all })
        })
    }

    /// The line of this name: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    fn parse(text: &str, name: &str) -> Option<Self> {
        let numbers: Vec<u64> = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?
            .split_whitespace()
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let all = numbers.iter().sum();
        let idle = numbers.get(3)? + numbers.get(4)?;
        Some(Self { busy: all - idle, all })
    }

    /// Share of the time since `earlier` that the CPUs were busy with any program; `None` if no time has
    /// passed.
    #[must_use]
    pub fn busy_since(self, earlier: Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|&all| all > 0)?;
        Some(self.busy.saturating_sub(earlier.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_hand() {
        let earlier = CpuTime::parse("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1\n", "cpu").unwrap();
        let later = CpuTime::parse("cpu1 1\ncpu  40 0 20 120 20 0 0 0 0 0\n", "cpu").unwrap();
        assert_eq!(later.busy_since(earlier), Some(0.4));
        assert_eq!(earlier.busy_since(earlier), None);
        for bad in ["", "cpu  1 2 3\n", "cpu  a b c d e f g h\n", "intr 5\n"] {
            assert!(CpuTime::parse(bad, "cpu").is_none(), "{bad}");
        }
        let one = CpuTime::parse("cpu  9 0 0 9 0 0 0 0\ncpu1 1 0 0 3 0 0 0 0\n", "cpu1").unwrap();
        assert_eq!((one.busy, one.all), (1, 4));
    }
}
