//! Section 6.2: what the paper's prototype measured of its connection handoff, beside the same of a real cluster.
//!
//! Nothing is measured here: whoever has a cluster does, and hands the numbers over.

use plimsoll_report::{Align, Claim, Measured, Section, Table};

use super::rule::{Finding, Place, Rule};

/// Measurements of connection handoff on one machine.
#[derive(Debug, Clone)]
pub struct HandoffMeasures {
    /// What the setting is, in words.
    pub setting: String,
    /// Each request alone, on a connection of its own: by turns straight and by handoff.
    pub rounds: Vec<LatencyRound>,
    /// As many small answers as can be had, each on a connection of its own.
    pub throughput: HandoffThroughput,
    /// Large transfers from back-ends to clients.
    pub forwarding: Forwarding,
}

/// Latencies of requests one after another.
#[derive(Debug, Clone, Copy)]
pub struct LatencyRound {
    /// Median when the client asks a back-end's origin itself, in seconds.
    pub direct_s: f64,
    /// Median when it asks the front-end, which hands the connection off, in seconds.
    pub handed_off_s: f64,
    /// Requests of the kind of which there were fewer.
    pub requests: u64,
}

/// Connections handed off under load.
#[derive(Debug, Clone, Copy)]
pub struct HandoffThroughput {
    /// Length of the measurement in seconds.
    pub elapsed_s: f64,
    /// Connections that agents took.
    pub handoffs: u64,
    /// Time in which the front-end's CPU did something, the kernel's work included, in seconds; `None` if it has none to
    /// itself.
    pub front_end_cpu_s: Option<f64>,
    /// Share of the time for which the CPUs of client and back-ends were busy; `None` if not known.
    pub others_busy: Option<f64>,
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
}

impl LatencyRound {
    fn added_us(&self) -> f64 {
        1e6 * (self.handed_off_s - self.direct_s)
    }
}

impl HandoffThroughput {
    fn per_s(&self) -> f64 {
        self.handoffs as f64 / self.elapsed_s
    }

    /// Of the front-end's CPU.
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

    /// The rate at which a whole CPU would be busy with forwarding, when each packet stands for so many bytes.
    fn gbit_per_busy_s(&self, bytes_per_packet: f64) -> Option<f64> {
        Some(8.0 * bytes_per_packet / 1e3 / self.cpu_per_packet_us()?)
    }
}

/// What an acknowledgment stands for in the paper: two IP packets of 1,500 bytes.
const PAPER_BYTES_PER_PACKET: f64 = 3000.0;

/// The claims of the section, judged.
pub(super) fn claims(measures: &HandoffMeasures) -> Vec<Claim> {
    let one = |workload: &str, value: Option<f64>| {
        let one = |value| Measured { workload: workload.to_owned(), seed: 1, value };
        value.filter(|value| value.is_finite()).map(one).into_iter().collect()
    };
    let round = |(round, seed): (&LatencyRound, u64)| Measured {
        workload: "requests one after another, round".to_owned(),
        seed,
        value: round.added_us(),
    };
    let rounds = measures.rounds.iter().zip(1..).map(round);
    let (throughput, forwarding) = (&measures.throughput, &measures.forwarding);
    let finding = |id, statement, (paper, paper_text, unit), rule, measured| Finding {
        id,
        place: Place::Section("6.2", None),
        statement,
        paper: Some(paper),
        paper_text,
        unit,
        rule,
        measured,
        explanation: EXPLAIN_SHARED,
    };
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
    ];
    findings.into_iter().filter_map(Finding::claim).collect()
}

/// What was measured, what follows from it, and how.
pub(super) fn section(measures: &HandoffMeasures) -> Section {
    Section::new("Section 6.2: connection handoff")
        .paragraph(format!(
            "The paper measured its prototype on a 300 MHz Pentium II with 100 Mb/s Ethernet. That the figures here are \
             better says little of the two designs: the machine is a generation of machines faster. They show that this \
             handoff, which needs no change of the kernel, does not stand in the way of what the paper built on its own. \
             {}. What is derived from the use of the front-end's CPU was not reached: client and back-ends share the other \
             CPUs, and set the pace.",
            measures.setting
        ))
        .table(table(measures))
}

fn table(measures: &HandoffMeasures) -> Table {
    let left = |t: &'static str| (t, Align::Left);
    let mut table =
        Table::new([left("Measure"), ("Paper", Align::Right), ("Here", Align::Right), left("Got by")]);
    let (throughput, forwarding) = (&measures.throughput, &measures.forwarding);
    let mut row = |name: &str, paper: &str, here: String, how: &str| {
        table.row([name.to_owned(), paper.to_owned(), here, how.to_owned()]);
    };
    let rounds = |of: fn(&LatencyRound) -> f64| {
        let values: Vec<f64> = measures.rounds.iter().map(of).collect();
        spread(&values)
    };
    row("Latency straight from an origin", "-", rounds(|r| 1e6 * r.direct_s), "medians of rounds");
    row("Latency by handoff", "-", rounds(|r| 1e6 * r.handed_off_s), "medians of rounds");
    row("Added by handoff", "194 µs", rounds(LatencyRound::added_us), "difference in each round");
    let (gbit_s, share) = (
        |bytes: f64| format!("{:.2} Gbit/s", 8e-9 * bytes),
        |s: Option<f64>, of_s: f64| s.map(|s| format!("{:.0} %", 100.0 * s / of_s)),
    );
    let percent = |busy: Option<f64>| or_dash(share(busy, 1.0));
    row(
        "Connections handed off",
        "about 5,000/s",
        format!("{:.0}/s", throughput.per_s()),
        "counted by the front-end",
    );
    let of_cpu = or_dash(share(throughput.front_end_cpu_s, throughput.elapsed_s));
    row("Front-end's CPU meanwhile", "-", of_cpu, "measured");
    row("Other CPUs meanwhile", "-", percent(throughput.others_busy), "measured");
    let per_busy = or_dash(throughput.per_busy_s().map(|n| format!("{n:.0}/s")));
    row("Connections per front-end CPU", "about 5,000/s", per_busy, "derived: rate over use");
    let of_one = or_dash(throughput.per_busy_s().map(|n| format!("{:.0} µs", 1e6 / n)));
    row(
        "Front-end's CPU per connection",
        "-",
        of_one,
        "derived: use over rate; what it forwards of the connection included",
    );
    let rate = gbit_s(forwarding.bytes as f64 / forwarding.elapsed_s);
    row(
        "Transfers from back-ends to clients",
        "-",
        rate,
        "counted at the client's interface, headers included",
    );
    let packets = format!("{:.0}/s", forwarding.packets as f64 / forwarding.elapsed_s);
    row("Packets forwarded meanwhile", "-", packets, "counted by the front-end");
    let bytes = format!("{:.0} B", forwarding.bytes_per_packet());
    row(
        "Bytes to the client per packet forwarded",
        "3,000 B",
        bytes,
        "of the two above; the paper's by its own assumption",
    );
    let of_cpu = or_dash(share(forwarding.front_end_cpu_s, forwarding.elapsed_s));
    row("Front-end's CPU meanwhile", "-", of_cpu, "measured");
    row("Other CPUs meanwhile", "-", percent(forwarding.others_busy), "measured");
    let per_packet = or_dash(forwarding.cpu_per_packet_us().map(|us| format!("{us:.2} µs")));
    row("Front-end's CPU per packet forwarded", "9 µs", per_packet, "use over packets");
    let mut implied = |name, bytes_per_packet| {
        let rate = forwarding.gbit_per_busy_s(bytes_per_packet);
        let rate = or_dash(rate.map(|gbit| format!("{gbit:.1} Gbit/s")));
        row(name, "over 2.5 Gbit/s", rate, "derived: bytes per packet over CPU per packet");
    };
    implied("Transfers per front-end CPU", forwarding.bytes_per_packet());
    implied("The same with the paper's bytes per packet", PAPER_BYTES_PER_PACKET);
    table
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
    Client, front-end and back-ends share the CPUs of one machine, and its kernel passes every packet between them. The \
    table shows how busy the CPUs were; other programs that run meanwhile count against these figures, too.";

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
            },
            forwarding: Forwarding {
                elapsed_s: 2.0,
                packets: 100_000,
                bytes: 300_000_000,
                front_end_cpu_s: Some(0.2),
                others_busy: None,
            },
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
        assert_eq!(ids, ["t2", "t3"]);
        // And the table can be made.
        let _ = table(&measures);
    }
}
