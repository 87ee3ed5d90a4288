//! Progress of the demo, a line per second: throughput, miss ratio and delay of each policy at the same
//! second of its own run.

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
        if self.seconds.is_empty() {
            self.print(&self.header(), false);
        }
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

    fn header(&self) -> String {
        let columns =
            self.names.iter().map(|name| format!("  {:>16}  miss %   delay", format!("{name} req/s")));
        format!("second{}", columns.collect::<String>())
    }

    fn line(&self, second: usize) -> String {
        let mut line = format!("{:>6}", second + 1);
        let mut rates = Vec::new();
        for policy in &self.seconds {
            let s = policy.get(second).copied().unwrap_or_default();
            rates.push(s.succeeded as f64);
            let answered = s.succeeded.max(1) as f64;
            let (miss, delay_ms) =
                (100.0 * s.disk_reads as f64 / answered, 1e3 * s.latency_sum.as_secs_f64() / answered);
            line += &format!("  {:>16}  {miss:>6.1}  {delay_ms:>4.0} ms", s.succeeded);
        }
        if let [first, .., last] = rates[..] {
            line += &format!("  × {:.1}", last / first.max(1.0));
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
        let mut live = Live::new(vec!["WRR".to_owned(), "LARD/R".to_owned()]);
        live.seconds =
            vec![vec![second(100, 50, 10_000), second(200, 50, 10_000)], vec![second(400, 40, 8_000)]];
        live.warmup_s = 1.0;
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        assert_eq!(words(&live.header()), "second WRR req/s miss % delay LARD/R req/s miss % delay");
        assert_eq!(words(&live.line(0)), "1 100 50.0 100 ms 400 10.0 20 ms × 4.0 warm-up");
        live.seconds.pop();
        assert_eq!(words(&live.line(1)), "2 200 25.0 50 ms");
    }
}
