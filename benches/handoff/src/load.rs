//! Load by wrk in the client's node, and what it costs the node that is measured.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use plimsoll_lab::{CpuMeter, Node, cpu_time_of_others};

use crate::bed::Bed;
use crate::configs::{AUTO_PORT, PLIMSOLL_PORT, PROXY_PORT};
use crate::http::sum;

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Connections are kept; each asks for the same document over and over.
    Stay,
    /// Connections are kept; each asks by turns for two documents that belong to different back-ends.
    Alternate,
    /// A connection for each request.
    New,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Stay => "stay",
            Self::Alternate => "alternate",
            Self::New => "new",
        }
    }
}

/// A load.
pub struct Load<'a> {
    /// What is loaded.
    pub bed: &'a Bed,
    /// At which port.
    pub port: u16,
    pub mode: Mode,
    pub size_bytes: usize,
    /// By turns, see [`Mode`].
    pub paths: &'a [String; 2],
    pub connections: usize,
    pub seconds: u64,
}

/// What one load came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    pub requests_per_s: f64,
    /// CPU time of the measured node per request, the kernel's work included.
    pub cpu_us: f64,
    /// Share of its CPU in use.
    pub share: f64,
    /// Packets that arrived at the front-end and left it, per request; several segments may be one packet.
    pub packets_in: f64,
    pub packets_out: f64,
    /// Those of the packets that left that the front-end's kernel led on to a back-end, per request.
    pub forwarded: f64,
    /// Handoffs, those of them from one back-end to another, and further requests that stayed, per request.
    pub handoffs: f64,
    pub handed_on: f64,
    pub stayed: f64,
    /// CPUs that programs used which have nothing to do with this.
    pub other_cpus: f64,
}

impl Load<'_> {
    /// Runs it. Any wrong answer is an error.
    pub fn run(&self, meter: &CpuMeter) -> Result<Sample> {
        // On a machine with much else to do, not one large response may have come in a second.
        for seconds in [self.seconds, 5 * self.seconds] {
            if let Some(sample) = self.run_for(seconds, meter)? {
                return Ok(sample);
            }
        }
        bail!("no answer within {} s\n{}", 5 * self.seconds, self.bed.last_words());
    }

    /// `None` if nothing was answered.
    fn run_for(&self, seconds: u64, meter: &CpuMeter) -> Result<Option<Sample>> {
        let ours =
            self.bed.kind().has_metrics() && [PLIMSOLL_PORT, PROXY_PORT, AUTO_PORT].contains(&self.port);
        let metrics = || if ours { self.bed.metrics(self.port) } else { Ok(String::new()) };
        let front_end = self.bed.lab().node(Node::FrontEnd)?;
        let page_before = metrics()?;
        let (others, counters, cpu) = (cpu_time_of_others()?, front_end.counters()?, meter.read());
        let (requests, duration) = self.wrk(seconds)?;
        let cpu = meter.read().since(cpu);
        let counters = front_end.counters()?.since(counters);
        let others = cpu_time_of_others()?.saturating_sub(others);
        let page = metrics()?;
        if requests < 1.0 {
            return Ok(None);
        }
        let per = |count: f64| count / requests;
        let counted_of = |name, label| per(sum(&page, name, label) - sum(&page_before, name, label));
        let counted = |name| counted_of(name, "");
        Ok(Some(Sample {
            requests_per_s: requests / duration.as_secs_f64(),
            cpu_us: per(cpu.busy.as_secs_f64() * 1e6),
            share: cpu.share(),
            packets_in: per(counters.received_packets as f64),
            packets_out: per(counters.sent_packets as f64),
            forwarded: counted_of("plimsoll_packets_total", "action=\"forwarded\""),
            handoffs: counted("plimsoll_handoffs_total"),
            handed_on: counted("plimsoll_handoffs_on_total"),
            stayed: counted("plimsoll_requests_stayed_total"),
            other_cpus: others.as_secs_f64() / cpu.elapsed.as_secs_f64(),
        }))
    }

    /// Requests, and in which time.
    fn wrk(&self, seconds: u64) -> Result<(f64, Duration)> {
        let client = self.bed.lab().node(Node::Client)?;
        fs::write(client.root().join("run/load.lua"), include_str!("load.lua"))?;
        // Each thread has its own turn of documents: one connection in each where they are to alternate on connections.
        let threads = if self.mode == Mode::Alternate { self.connections } else { self.connections.min(2) };
        let mut command = self.bed.command(Node::Client, "wrk")?;
        command.args([format!("-t{threads}"), format!("-c{}", self.connections), format!("-d{seconds}")]);
        command
            .args(["--timeout", "5", "-s", "/run/load.lua"])
            .arg(format!("http://{}", self.bed.target(self.port)));
        command.args(["--", self.mode.name(), &self.paths[0], &self.paths[1]]);
        let output = command.output().context("run wrk")?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let result = printed.lines().find_map(|line| line.strip_prefix("result "));
        let numbers: Vec<f64> = result.unwrap_or("").split(' ').filter_map(|n| n.parse().ok()).collect();
        let [requests, bytes, duration_us, errors, not_good] = numbers[..] else {
            bail!("wrk said: {printed}{}", String::from_utf8_lossy(&output.stderr));
        };
        if errors + not_good > 0.0 || bytes < requests * self.size_bytes as f64 {
            bail!("wrong answers: {printed}\n{}", self.bed.last_words());
        }
        Ok((requests, Duration::from_secs_f64(duration_us / 1e6)))
    }
}
