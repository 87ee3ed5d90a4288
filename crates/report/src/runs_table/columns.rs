//! The columns of the tables of runs, each declared once.

use crate::{
    format::{NOT_APPLICABLE, count, duration, number, or_dash, percent_number, whole_percent},
    run::{ConnectionFigures, Run, Summary},
    table_column::{Align, TableColumn},
};

/// A column of a table of runs.
#[derive(Clone, Copy)]
pub(crate) struct RunColumn {
    pub(crate) title: &'static str,
    /// What it means and its unit.
    pub(crate) meaning: &'static str,
    /// Whether a table in a terminal says so below.
    pub(crate) is_explained: bool,
    /// The order in which columns are left out where there is no room, the highest first: of saturated runs, and of others.
    pub(crate) ranks: (u8, u8),
    pub(crate) value: fn(&Run, &[Run]) -> String,
}

const fn column(
    title: &'static str,
    ranks: (u8, u8),
    value: fn(&Run, &[Run]) -> String,
    meaning: &'static str,
) -> RunColumn {
    RunColumn { title, meaning, is_explained: false, ranks, value }
}

const fn explained(column: RunColumn) -> RunColumn {
    RunColumn { is_explained: true, ..column }
}

/// The title of the ratio of throughputs.
pub(crate) const RATIO: &str = "×";

/// The columns beside that of the policy. With a saturated cluster the mean delay says nothing that the throughput does not.
pub(crate) const COLUMNS: &[RunColumn] = &[
    column("req/s", (0, 2), |run, _| number(run.throughput_rps), "answered requests per second"),
    explained(column(RATIO, (1, 6), ratio, "req/s over those of the first policy")),
    explained(column(
        "miss%",
        (1, 1),
        |run, _| or_dash(run.miss_ratio, percent_number),
        "disk reads per 100 requests",
    )),
    explained(column(
        "joined%",
        (9, 9),
        |run, _| or_dash(run.joined_ratio, percent_number),
        "requests of 100 that waited for a disk read already under way",
    )),
    explained(column(
        "idle%",
        (6, 8),
        |run, _| percent_number(run.idle_ratio),
        "time with a load below 40 % of t_low, mean over back-ends",
    )),
    explained(column(
        "mean",
        (7, 0),
        |run, _| delay(run, |summary| summary.mean),
        "mean response time, from arrival to the end of the answer",
    )),
    explained(column(
        "p50",
        (5, 5),
        |run, _| delay(run, |summary| summary.p50),
        "median response time: half of the requests took longer",
    )),
    explained(column(
        "p99",
        (2, 1),
        |run, _| delay(run, |summary| summary.p99),
        "response time that one request of 100 exceeded",
    )),
    column("CPU%", (4, 4), |run, _| whole_percent(run.utilization.cpu), "time that CPUs were busy"),
    column(
        "disk%",
        (3, 3),
        |run, _| or_dash(run.utilization.disk, whole_percent),
        "time that disks were busy",
    ),
];

/// Only where load information costs messages.
pub(crate) const MESSAGES: RunColumn = explained(column(
    "load msg/s",
    (1, 2),
    |run, _| or_dash(run.load_traffic.as_ref().map(|of| of.messages_rps), number),
    "messages per second that load information costs",
));

/// Only where they take CPU time of back-ends.
pub(crate) const MESSAGE_CPU: RunColumn = explained(column(
    "load CPU%",
    (2, 3),
    |run, _| or_dash(run.load_traffic.as_ref().map(|of| of.cpu), percent_number),
    "time of back-ends' CPUs that load information takes",
));

/// Only where they take CPU time of front-ends.
pub(crate) const RECEIVE_CPU: RunColumn = explained(column(
    "receive CPU%",
    (2, 3),
    |run, _| or_dash(run.load_traffic.as_ref().map(|of| of.receive_cpu), percent_number),
    "time of front-ends' CPUs that announcements of loads take",
));

/// Only in models of connections.
pub(crate) const CONNECTIONS: [RunColumn; 3] = [
    explained(column(
        "server",
        (8, 0),
        |run, _| latency(run, |of| of.server_latency_s),
        "mean time from a request's arrival at the front-end to the first segment of its answer",
    )),
    explained(column(
        "user",
        (8, 1),
        |run, _| latency(run, |of| of.user_latency_s),
        "mean time from a client's first SYN until it has the last byte",
    )),
    explained(column(
        "refused",
        (8, 3),
        |run, _| {
            run.connections
                .as_ref()
                .map_or_else(|| NOT_APPLICABLE.to_owned(), |of| count(of.refusals.iter().sum()))
        },
        "connections that back-ends refused, at any attempt",
    )),
];

/// Only where some requests were not answered: figures over answered requests mislead then.
pub(crate) const UNANSWERED: RunColumn = explained(column(
    "unanswered",
    (0, 0),
    |run, _| count(run.unanswered()),
    "requests that were not answered: rejected, or lost with a back-end",
));

impl RunColumn {
    /// As a column of a table.
    pub(crate) fn heading(&self, saturated: bool) -> TableColumn {
        let rank = if saturated { self.ranks.0 } else { self.ranks.1 };
        TableColumn::new(self.title, Align::Right).meaning(self.meaning).rank(rank)
    }
}

fn delay(run: &Run, pick: fn(&Summary) -> f64) -> String {
    or_dash(run.response_time_s.as_ref().map(pick), duration)
}

fn latency(run: &Run, pick: fn(&ConnectionFigures) -> Option<Summary>) -> String {
    or_dash(run.connections.as_ref().and_then(pick).map(|summary| summary.mean), duration)
}

/// Throughput of a run over that of the first run's policy with the same back-ends and the same seed.
fn ratio(run: &Run, runs: &[Run]) -> String {
    let ratio = || {
        let first = runs.first()?;
        let peers =
            || runs.iter().filter(|other| other.policy == first.policy && other.backends == run.backends);
        let base = peers().find(|other| other.seed == run.seed).or_else(|| peers().next())?;
        let ratio = run.throughput_rps / base.throughput_rps;
        ratio.is_finite().then_some(ratio)
    };
    ratio().map_or_else(|| NOT_APPLICABLE.to_owned(), |ratio| format!("{ratio:.2}"))
}
