//! Section 6.2: the paper's measurements of connection handoff, beside the same on a real cluster.
//!
//! Nothing is measured here; the caller passes in measurements.

use plimsoll_report::{Align, Claim, Measured, Section, Table};

use super::rule::{MeasuredClaim, PaperReference, Rule};

/// Measurements of connection handoff on one machine.
#[derive(Debug, Clone)]
pub struct HandoffMeasures {
    /// The setting, in words.
    pub setting: String,
    /// Single requests, each on its own connection, alternately direct and by handoff.
    pub rounds: Vec<LatencyRound>,
    /// The highest throughput of small answers, each on its own connection.
    pub throughput: HandoffThroughput,
    /// Large transfers from back-ends to clients.
    pub forwarding: Forwarding,
    /// Seconds that the dispatcher takes for a request, measured apart; `None` if unknown.
    pub dispatch_s: Option<f64>,
}

/// Latencies of requests one after another.
#[derive(Debug, Clone, Copy)]
pub struct LatencyRound {
    /// Median when the client asks a back-end's origin itself, in seconds.
    pub direct_s: f64,
    /// Median when it asks the front-end, which hands the connection off, in seconds.
    pub handed_off_s: f64,
    /// Requests per kind; the smaller of the two numbers.
    pub requests: u64,
}

/// Connections handed off under load.
#[derive(Debug, Clone, Copy)]
pub struct HandoffThroughput {
    /// Length of the measurement in seconds.
    pub elapsed_s: f64,
    /// Connections that agents took.
    pub handoffs: u64,
    /// Busy time of the front-end's own CPU in seconds, the kernel's work included; `None` if it has none.
    pub front_end_cpu_s: Option<f64>,
    /// Share of time that the CPUs of client and back-ends were busy; `None` if unknown.
    pub others_busy: Option<f64>,
    /// Number of CPUs used by unrelated programs during the measurement.
    pub strangers_cpus: f64,
}

/// Packets of clients forwarded to back-ends while these send.
#[derive(Debug, Clone, Copy)]
pub struct Forwarding {
    /// Length of the measurement in seconds.
    pub elapsed_s: f64,
    /// Packets that the front-end forwarded.
    pub packets: u64,
    /// Bytes that clients received, headers included.
    pub bytes: u64,
    /// As for [`HandoffThroughput`].
    pub front_end_cpu_s: Option<f64>,
    /// As for [`HandoffThroughput`].
    pub others_busy: Option<f64>,
    /// As for [`HandoffThroughput`].
    pub strangers_cpus: f64,
}

impl LatencyRound {
    fn added_us(&self) -> f64 {
        1e6 * (self.handed_off_s - self.direct_s)
    }
}

impl HandoffMeasures {
    /// The dispatcher's time as a share of what a handoff takes of the front-end's CPU, in per cent.
    fn dispatch_share_percent(&self) -> Option<f64> {
        Some(100.0 * self.dispatch_s? * self.throughput.per_busy_s()?)
    }
}

impl HandoffThroughput {
    fn per_s(&self) -> f64 {
        self.handoffs as f64 / self.elapsed_s
    }

    /// Packets per second of busy front-end CPU.
    fn per_busy_s(&self) -> Option<f64> {
        Some(self.handoffs as f64 / self.front_end_cpu_s?)
    }
}

impl Forwarding {
    fn cpu_per_packet_us(&self) -> Option<f64> {
        Some(1e6 * self.front_end_cpu_s? / self.packets as f64)
    }

    fn bytes_per_packet(&self) -> f64 {
        self.bytes as f64 / self.packets as f64
    }

    /// The data rate at which forwarding would use a whole CPU, if each packet stands for this many bytes.
    fn gbit_per_busy_s(&self, bytes_per_packet: f64) -> Option<f64> {
        Some(8.0 * bytes_per_packet / 1e3 / self.cpu_per_packet_us()?)
    }
}

/// The bytes that an acknowledgment stands for in the paper: two IP packets of 1,500 bytes.
const PAPER_BYTES_PER_PACKET: f64 = 3000.0;

/// The claims of the section, judged.
pub(super) fn claims(measures: &HandoffMeasures) -> Vec<Claim> {
    let one = |workload: &str, value: Option<f64>| {
        let one =
            |value| Measured { workload: workload.to_owned(), seed: 1, condition: String::new(), value };
        value.filter(|value| value.is_finite()).map(one).into_iter().collect()
    };
    let round = |(round, seed): (&LatencyRound, u64)| Measured {
        workload: "requests one after another, round".to_owned(),
        seed,
        condition: String::new(),
        value: round.added_us(),
    };
    let rounds = measures.rounds.iter().zip(1..).map(round);
    let (throughput, forwarding) = (&measures.throughput, &measures.forwarding);
    let finding = |id, statement, (paper, paper_text, unit), rule, measured| MeasuredClaim {
        id,
        place: PaperReference::Section("6.2", None),
        statement,
        paper: Some(paper),
        paper_text,
        unit,
        rule,
        measured,
        explanation: EXPLAIN_SHARED.to_owned(),
    };
    // Rules are bars, the paper's own figures: this machine is decades younger, so reaching them (equality
    // counts) is all that can be asked.
    let findings = [
        finding(
            "t1",
            "handoff latency: a client waits 194 µs longer for an answer (medians of requests one after another)",
            (194.0, "194 µs", "µs"),
            Rule::AtMost(194.0),
            rounds.filter(|measured| measured.value.is_finite()).collect(),
        ),
        finding(
            "t2",
            "handoff throughput: the front-end hands off about 5,000 connections per second (as many as came)",
            (5000.0, "about 5,000/s", "/s"),
            Rule::AtLeast(5000.0),
            one("small answers", Some(throughput.per_s())),
        ),
        finding(
            "t3",
            "the same for each second in which the front-end's CPU was in use (derived)",
            (5000.0, "about 5,000/s", "/s"),
            Rule::AtLeast(5000.0),
            one("small answers", throughput.per_busy_s()),
        ),
        finding(
            "t4",
            "forwarding an acknowledgment takes 9 µs of the front-end's CPU",
            (9.0, "9 µs", "µs"),
            Rule::AtMost(9.0),
            one("large transfers", forwarding.cpu_per_packet_us()),
        ),
        finding(
            "t5",
            "so transfers of over 2.5 Gbit/s need no more than its CPU (derived, as in the paper)",
            (2.5, "over 2.5 Gbit/s", "Gbit/s"),
            Rule::AtLeast(2.5),
            one("large transfers", forwarding.gbit_per_busy_s(forwarding.bytes_per_packet())),
        ),
        finding(
            "t6",
            "the dispatcher takes 10 to 20 % of what a handoff takes (LARD/R alone in a loop, over 1 / t3)",
            (20.0, "10 to 20 %", "%"),
            // A small fraction; a smaller one is no failure.
            Rule::AtMost(20.0),
            one("decisions in a loop", measures.dispatch_share_percent()),
        ),
    ];
    findings.into_iter().filter_map(MeasuredClaim::claim).collect()
}

/// The section of the report: measurements, conclusions and method.
pub(super) fn section(measures: &HandoffMeasures) -> Section {
    Section::new("Section 6.2: connection handoff")
        .paragraph(format!(
            "The paper measured its prototype, a module of the kernel, on a 300 MHz Pentium II with 100 Mb/s Ethernet; \
             here the kernel is as it comes, and the machine is decades younger. So the paper's figures are a bar that is \
             to be passed, and by how much says little of the two designs. {}. What is derived from the use of the front-end's CPU was not reached: client and back-ends share the other \
             CPUs, and set the pace.",
            measures.setting
        ))
        .table(table(measures))
}

/// Measure, the paper's figure, ours, and the method.
type FigureRow = [String; 4];

fn table(measures: &HandoffMeasures) -> Table {
    let (left, right) = (|t: &'static str| (t, Align::Left), |t: &'static str| (t, Align::Right));
    let mut table = Table::new([left("Measure"), right("Paper"), right("Here"), left("Got by")]);
    let rows = [
        latency_rows(&measures.rounds),
        throughput_rows(&measures.throughput),
        forwarding_rows(&measures.forwarding),
    ];
    rows.into_iter().flatten().for_each(|row| {
        table.row(row);
    });
    table
}

fn row(name: &str, paper: &str, here: String, how: &str) -> FigureRow {
    [name.to_owned(), paper.to_owned(), here, how.to_owned()]
}

fn latency_rows(rounds: &[LatencyRound]) -> Vec<FigureRow> {
    let of = |pick: fn(&LatencyRound) -> f64| spread(&rounds.iter().map(pick).collect::<Vec<_>>());
    vec![
        row("Latency straight from an origin", "-", of(|r| 1e6 * r.direct_s), "medians of rounds"),
        row("Latency by handoff", "-", of(|r| 1e6 * r.handed_off_s), "medians of rounds"),
        row("Added by handoff", "194 µs", of(LatencyRound::added_us), "difference in each round"),
    ]
}

fn throughput_rows(t: &HandoffThroughput) -> Vec<FigureRow> {
    let per_busy = t.per_busy_s();
    let rate = |n: f64| format!("{n:.0}/s");
    let mut rows =
        vec![row("Connections handed off", "about 5,000/s", rate(t.per_s()), "counted by the front-end")];
    rows.extend(use_rows(t.front_end_cpu_s.map(|s| s / t.elapsed_s), t.others_busy, t.strangers_cpus));
    let all = "derived: use over rate; what it forwards of the connection included";
    rows.push(row(
        "Connections per front-end CPU",
        "about 5,000/s",
        or_dash(per_busy.map(rate)),
        "derived: rate over use",
    ));
    let us = per_busy.map(|n| format!("{:.0} µs", 1e6 / n));
    rows.push(row("Front-end's CPU per connection", "-", or_dash(us), all));
    rows
}

fn forwarding_rows(f: &Forwarding) -> Vec<FigureRow> {
    let rate = format!("{:.2} Gbit/s", 8e-9 * f.bytes as f64 / f.elapsed_s);
    let packets = format!("{:.0}/s", f.packets as f64 / f.elapsed_s);
    let bytes = format!("{:.0} B", f.bytes_per_packet());
    let mut rows = vec![
        row(
            "Transfers from back-ends to clients",
            "-",
            rate,
            "counted by the client's interface, headers included",
        ),
        row("Packets forwarded meanwhile", "-", packets, "counted by the front-end"),
        row(
            "Bytes to the client per packet forwarded",
            "3,000 B",
            bytes,
            "of the two above; the paper's by assumption",
        ),
    ];
    rows.extend(use_rows(f.front_end_cpu_s.map(|s| s / f.elapsed_s), f.others_busy, f.strangers_cpus));
    let us = f.cpu_per_packet_us().map(|us| format!("{us:.2} µs"));
    rows.push(row("Front-end's CPU per packet forwarded", "9 µs", or_dash(us), "use over packets"));
    let implied = |name, bytes_per_packet| {
        let rate = f.gbit_per_busy_s(bytes_per_packet).map(|gbit| format!("{gbit:.1} Gbit/s"));
        row(name, "over 2.5 Gbit/s", or_dash(rate), "derived: bytes per packet over CPU per packet")
    };
    rows.push(implied("Transfers per front-end CPU", f.bytes_per_packet()));
    rows.push(implied("The same with the paper's bytes per packet", PAPER_BYTES_PER_PACKET));
    rows
}

/// Rows on the use of the CPUs.
fn use_rows(front_end: Option<f64>, others: Option<f64>, strangers_cpus: f64) -> [FigureRow; 3] {
    let percent = |share: Option<f64>| or_dash(share.map(|share| format!("{:.0} %", 100.0 * share)));
    [
        row("Front-end's CPU meanwhile", "-", percent(front_end), "measured"),
        row("Other CPUs meanwhile", "-", percent(others), "measured"),
        row(
            "CPUs that other programs used",
            "-",
            format!("{strangers_cpus:.2}"),
            "measured; they make it worse",
        ),
    ]
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// Smallest and largest of some microseconds.
fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    or_dash(least.zip(most).map(|(least, most)| format!("{least:.0} … {most:.0} µs")))
}

const EXPLAIN_SHARED: &str = "\
    Client, front-end and back-ends share the CPUs of one machine, and its kernel passes every packet between them. Other \
    programs that run meanwhile count against these figures, too: the report tells how much they used.";

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::Verdict;

    fn measures() -> HandoffMeasures {
        let round = |added_us: f64| LatencyRound {
            direct_s: 200e-6,
            handed_off_s: (200.0 + added_us) * 1e-6,
            requests: 1000,
        };
        HandoffMeasures {
            setting: "A test".to_owned(),
            rounds: vec![round(100.0), round(300.0), round(120.0)],
            throughput: HandoffThroughput {
                elapsed_s: 2.0,
                handoffs: 8_000,
                front_end_cpu_s: Some(0.5),
                others_busy: Some(1.0),
                strangers_cpus: 0.0,
            },
            forwarding: Forwarding {
                elapsed_s: 2.0,
                packets: 100_000,
                bytes: 300_000_000,
                front_end_cpu_s: Some(0.2),
                others_busy: None,
                strangers_cpus: 0.0,
            },
            dispatch_s: Some(1e-6),
        }
    }

    fn values(measures: &HandoffMeasures) -> Vec<(String, f64, Verdict)> {
        let of = |claim: &Claim| (claim.id.clone(), claim.median().unwrap_or(f64::NAN), claim.verdict);
        claims(measures).iter().map(of).collect()
    }

    #[test]
    fn claims_by_hand() {
        let found = values(&measures());
        let expected = [
            ("t1", 120.0, Verdict::Partly),
            ("t2", 4000.0, Verdict::Fails),
            ("t3", 16_000.0, Verdict::Holds),
            // 0.2 s for 100,000 packets; 3,000 bytes each.
            ("t4", 2.0, Verdict::Holds),
            ("t5", 12.0, Verdict::Holds),
            // 1 µs of the 1 / 16,000 s that a handoff takes.
            ("t6", 1.6, Verdict::Holds),
        ];
        assert_eq!(found.len(), expected.len());
        for ((id, value, verdict), (wanted, by_hand, judged)) in found.iter().zip(expected) {
            assert_eq!((id.as_str(), *verdict), (wanted, judged));
            assert!((value - by_hand).abs() < 1e-6 * by_hand, "{id}: {value}");
        }
        assert!(claims(&measures()).iter().all(|c| c.verdict == Verdict::Holds || !c.explanation.is_empty()));
    }

    #[test]
    fn without_a_cpu_of_its_own_nothing_is_derived() {
        let mut measures = measures();
        measures.throughput.front_end_cpu_s = None;
        measures.forwarding.front_end_cpu_s = None;
        let ids: Vec<String> = values(&measures).into_iter().map(|(id, _, _)| id).collect();
        assert_eq!(ids, ["t1", "t2"]);
    }

    #[test]
    fn what_was_not_there_is_not_claimed() {
        let mut measures = measures();
        measures.rounds.clear();
        measures.forwarding.packets = 0;
        let ids: Vec<String> = values(&measures).into_iter().map(|(id, _, _)| id).collect();
        assert_eq!(ids, ["t2", "t3", "t6"]);
        // And the table can be made.
        let _ = table(&measures);
    }
}
