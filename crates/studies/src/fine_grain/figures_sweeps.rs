//! Section 5's open question: what a faster network and cheaper messages change.

use plimsoll_report::{Align, Section, Table};

use super::claims_beyond::broadcast_costs;
use super::figure_parts::cell;
use super::plan::{
    FineGrainRun, Grain, POLL_LATENCY_US, SWEEP_CPU_US, SWEEP_INTERVALS_US, SWEEP_US, swept, swept_broadcast,
};
use super::results::{FineGrainResults, mean};

/// Tables, and what follows from them.
pub(super) fn sweeps(seeds: &[FineGrainResults]) -> Section {
    let ideal_ms = cell(mean(seeds, |r| r.response_s(FineGrainRun::ideal(Grain::Fine, 90))), 1e3, 1);
    let mut section = Section::new("Faster networks, cheaper messages: section 5")
        .paragraph(format!(
            "Mean response times in ms of the Fine-Grain trace, servers 90 % busy with requests; ideal takes {ideal_ms} ms. Latencies are \
             one way. The CPU time of a message is taken from its server, where requests wait for it; where both are more than a server's \
             time, it is overloaded. 6 clients count what they send between two announcements."
        ))
        .table(by_latency(seeds))
        .table(by_cpu(seeds))
        .table(at_clients(seeds));
    for text in conclusions(seeds) {
        section = section.paragraph(text);
    }
    section
}

/// A response time, or why there is none.
fn response(seeds: &[FineGrainResults], run: FineGrainRun) -> String {
    let busy = mean(seeds, |r| r.server_cpu(run)).map(|cpu| cpu + f64::from(run.load_percent) / 100.0);
    if busy.is_some_and(|busy| busy >= 1.0) {
        return "overloaded".to_owned();
    }
    cell(mean(seeds, |r| r.response_s(run)), 1e3, 2)
}

/// Rows for polls and for each interval of broadcasts, over latencies or CPU times.
fn table(
    seeds: &[FineGrainResults],
    caption: &str,
    heads: [String; 4],
    polls: impl Fn(u32, usize) -> FineGrainRun,
    broadcast: impl Fn(u32, usize) -> FineGrainRun,
) -> Table {
    let columns = std::iter::once(("load information".to_owned(), Align::Left));
    let mut table = Table::new(columns.chain(heads.map(|head| (head, Align::Right)))).captioned(caption);
    let mut add = |words: String, run: &dyn Fn(usize) -> FineGrainRun| {
        let cells = [0, 1, 2, 3].map(|place| response(seeds, run(place)));
        table.row(std::iter::once(words).chain(cells));
    };
    for size in [2, 8] {
        add(format!("poll of {size}"), &|place| polls(size, place));
    }
    for interval_us in SWEEP_INTERVALS_US {
        add(every(interval_us), &|place| broadcast(interval_us, place));
    }
    table
}

fn every(interval_us: u32) -> String {
    format!("broadcast every {} ms", f64::from(interval_us) / 1e3)
}

fn by_latency(seeds: &[FineGrainResults]) -> Table {
    table(
        seeds,
        "By network latency; messages take no CPU time",
        SWEEP_US.map(|us| format!("{us} µs")),
        |size, place| swept(size, SWEEP_US[place], 0),
        |interval_us, place| swept_broadcast(interval_us, SWEEP_US[place], 0),
    )
}

fn by_cpu(seeds: &[FineGrainResults]) -> Table {
    table(
        seeds,
        "By CPU time of an inquiry or announcement at its server; latency 145 µs",
        SWEEP_CPU_US.map(|us| format!("{us} µs")),
        |size, place| swept(size, POLL_LATENCY_US, SWEEP_CPU_US[place]),
        |interval_us, place| swept_broadcast(interval_us, POLL_LATENCY_US, SWEEP_CPU_US[place]),
    )
}

/// CPU times of a message at a client, in microseconds.
const CLIENT_US: [f64; 3] = [1.0, 10.0, 100.0];

/// What clients have to send and take.
fn at_clients(seeds: &[FineGrainResults]) -> Table {
    let heads = CLIENT_US.map(|us| (format!("CPU at {us} µs, %"), Align::Right));
    let columns = [("load information".to_owned(), Align::Left), ("messages/s".to_owned(), Align::Right)];
    let mut table = Table::new(columns.into_iter().chain(heads))
        .captioned("At a client: messages that it sends and takes, and their CPU time (messages times cost)");
    let polls = [2, 8].map(|size| (format!("poll of {size}"), swept(size, POLL_LATENCY_US, 0)));
    let broadcasts = SWEEP_INTERVALS_US.map(|us| (every(us), swept_broadcast(us, POLL_LATENCY_US, 0)));
    for (words, run) in polls.into_iter().chain(broadcasts) {
        let rate = mean(seeds, |r| r.client_messages_rps(run));
        let shares = CLIENT_US.map(|us| cell(rate, 1e2 * us / 1e6, 2));
        table.row([words, cell(rate, 1.0, 0)].into_iter().chain(shares));
    }
    table
}

fn conclusions(seeds: &[FineGrainResults]) -> [String; 3] {
    let response_s = |run| mean(seeds, |r| r.response_s(run)).unwrap_or(f64::NAN);
    let fastest = response_s(swept_broadcast(SWEEP_INTERVALS_US[0], SWEEP_US[0], 0));
    let slowest = response_s(swept_broadcast(SWEEP_INTERVALS_US[0], SWEEP_US[3], 0));
    let better_at = |cpu_us: u32| {
        let two_s = response_s(swept(2, POLL_LATENCY_US, cpu_us));
        let better = |us: &u32| response_s(swept_broadcast(*us, POLL_LATENCY_US, cpu_us)) < two_s;
        let better =
            SWEEP_INTERVALS_US.into_iter().filter(better).map(|us| format!("{}", f64::from(us) / 1e3));
        let better: Vec<String> = better.collect();
        let words = if better.is_empty() { "none".to_owned() } else { format!("{} ms", better.join(", ")) };
        format!("{words} where they take {cpu_us} µs")
    };
    [
        format!(
            "A faster network alone changes little: broadcast every 2 ms takes {:.2} ms with latencies of 5 µs and {:.2} ms with 516 µs.",
            1e3 * fastest,
            1e3 * slowest
        ),
        format!("Cheaper messages decide. {}", broadcast_costs(seeds)),
        format!(
            "Intervals at which broadcast is faster than a poll of two, by the CPU time of either's messages: {}. Clients pay for it: \
             what one has to take grows with the number of servers and the frequency, and that of polls with its own requests only.",
            SWEEP_CPU_US.map(better_at).join("; ")
        ),
    ]
}
