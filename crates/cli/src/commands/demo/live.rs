//! Progress of the demo, a line per second of each run: throughput, miss ratio and delay, and the throughput beside that of the first
//! policy in the same second of its own run.

use std::io::{IsTerminal as _, Write as _, stderr};

use plimsoll_testbed::load::{LoadSummary, Second};

/// See the module's documentation. Lines go to standard error; on a terminal each replaces the last.
pub(super) struct Live {
    names: Vec<String>,
    /// Seconds of each policy so far, the present one last.
    seconds: Vec<Vec<Second>>,
    told: usize,
    warmup_s: f64,
    end_s: f64,
    terminal: bool,
}

impl Live {
    pub(super) fn new(names: Vec<String>) -> Self {
        let terminal = stderr().is_terminal();
        Self { names, seconds: Vec::new(), told: 0, warmup_s: 0.0, end_s: 0.0, terminal }
    }

    /// Begins the next policy.
    pub(super) fn begin(&mut self, warmup_s: f64, end_s: f64) {
        if self.terminal && !self.seconds.is_empty() {
            // The line that was replaced last stays.
            self.print("", false);
        }
        self.print(&self.header(), false);
        self.seconds.push(Vec::new());
        (self.told, self.warmup_s, self.end_s) = (0, warmup_s, end_s);
    }

    /// Prints the complete seconds, or all that count when the run has ended.
    pub(super) fn tell(&mut self, summary: &LoadSummary, ended: bool) {
        let Some(present) = self.seconds.last_mut() else { return };
        present.clone_from(&summary.per_second);
        // After the end requests are only completed.
        let most = self.end_s.floor() as usize;
        let complete = if ended { present.len() } else { present.len().saturating_sub(1) }.min(most);
        while self.told < complete {
            self.print(&self.line(self.told), self.terminal);
            self.told += 1;
        }
    }

    pub(super) fn end(&self) {
        self.print("", self.terminal);
        if self.terminal {
            self.print("", false);
        }
    }

    fn print(&self, line: &str, replace: bool) {
        let mut out = stderr().lock();
        // Progress is a convenience, so ignore errors.
        let _ = if replace { write!(out, "\r{line}\x1b[K") } else { writeln!(out, "{line}") };
        let _ = out.flush();
    }

    /// Above the lines of the policy that begins.
    fn header(&self) -> String {
        let name = self.names.get(self.seconds.len()).map_or("", String::as_str);
        format!("{name}\nsecond    req/s  miss %    delay")
    }

    /// Of the present policy.
    fn line(&self, second: usize) -> String {
        let of = |policy: &Vec<Second>| policy.get(second).copied();
        let s = self.seconds.last().and_then(of).unwrap_or_default();
        let answered = s.succeeded.max(1) as f64;
        let (miss, delay_ms) =
            (100.0 * s.disk_reads as f64 / answered, 1e3 * s.latency_sum.as_secs_f64() / answered);
        let mut line = format!("{:>6}  {:>7}  {miss:>6.1}  {delay_ms:>4.0} ms", second + 1, s.succeeded);
        if let [first, _, ..] = &self.seconds[..]
            && let Some(first) = of(first)
        {
            line += &format!("  × {:.1}", s.succeeded as f64 / first.succeeded.max(1) as f64);
        }
        if (second as f64) < self.warmup_s {
            line += "  warm-up";
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_by_hand() {
        let second = |succeeded, disk_reads, ms| Second {
            succeeded,
            failed: 0,
            disk_reads,
            latency_sum: Duration::from_millis(ms),
        };
        let mut live = Live::new(vec!["round_robin".to_owned(), "lard_r".to_owned()]);
        live.warmup_s = 1.0;
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        assert_eq!(words(&live.header()), "round_robin second req/s miss % delay");
        live.seconds.push(vec![second(100, 50, 10_000), second(200, 50, 10_000)]);
        assert_eq!(words(&live.line(1)), "2 200 25.0 50 ms");
        assert_eq!(words(&live.header()), "lard_r second req/s miss % delay");
        live.seconds.push(vec![second(400, 40, 8_000)]);
        assert_eq!(words(&live.line(0)), "1 400 10.0 20 ms × 4.0 warm-up");
    }
}
