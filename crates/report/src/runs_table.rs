//! The tables of runs: what `plimsoll simulate` prints, and the summary of its report.

mod columns;
mod notable;

use textwrap::{Options, WordSplitter};

use crate::{
    labelled::labelled,
    run::{LoadTraffic, Run},
    runs_report::groups::{backend_counts, backends_text},
    table::Table,
    table_column::{Align, TableColumn},
};

use self::columns::{COLUMNS, CONNECTIONS, MESSAGE_CPU, MESSAGES, RATIO, RECEIVE_CPU, RunColumn, UNANSWERED};

pub(crate) use self::notable::{Ranking, is_ordinary};

/// How a table of runs is shown in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableView {
    /// Columns of the terminal.
    pub width: u16,
    /// Whether as many requests as the admission limit allows were under way all the time: then throughput matters most,
    /// otherwise the mean delay.
    pub saturated: bool,
    /// All policies, however many there are.
    pub all_rows: bool,
}

/// The runs as text for a terminal, by number of back-ends, with what the titles mean below. Of more than eight policies it has
/// those that matter most, the best first, and names the others; `more` says where these and the columns without room are.
pub fn runs_table(runs: &[Run], view: TableView, more: &str) -> String {
    let runs = &labelled(runs)[..];
    let ranking = Ranking::of(runs, view.saturated);
    let mut table = table_of(runs, &ranking, view.saturated, view.all_rows);
    let dropped = table.drop_columns(view.width);
    let mut text = table.to_text();
    let below = below(runs, &ranking, &table, view, &dropped, more);
    if !below.is_empty() {
        text.push('\n');
    }
    for line in below {
        let options = Options::new(usize::from(view.width)).subsequent_indent("  ");
        text += &textwrap::fill(&line, options.word_splitter(WordSplitter::NoHyphenation));
        text.push('\n');
    }
    text
}

/// The lines below a table: the policies that it leaves out, what its titles mean, and the columns without room.
fn below(
    runs: &[Run],
    ranking: &Ranking<'_>,
    table: &Table,
    view: TableView,
    dropped: &[String],
    more: &str,
) -> Vec<String> {
    let mut lines = Vec::new();
    if runs.is_empty() {
        return lines;
    }
    if ranking.is_folded() && !view.all_rows {
        lines.push(format!("{}. --all-rows prints them; {more}", others_text(ranking)));
    }
    let is_shown = |column: &&RunColumn| table.columns.iter().any(|shown| shown.title == column.title);
    let explained = columns(runs).into_iter().filter(|column| column.is_explained).filter(is_shown);
    let meanings: Vec<String> =
        explained.map(|column| format!("{}: {}", column.title, meaning(column, runs))).collect();
    if !meanings.is_empty() {
        lines.push(format!("{}.", meanings.join("; ")));
    }
    if !dropped.is_empty() {
        lines.push(format!("No room for {}: {more}", dropped.join(", ")));
    }
    lines
}

/// The runs of the report's summary, and those of policies that matter less, if any, with a line that names them.
pub(crate) fn summary_tables(runs: &[Run], saturated: bool) -> (Table, Option<(String, Table)>) {
    let ranking = Ranking::of(runs, saturated);
    let summary = table_of(runs, &ranking, saturated, false);
    let all = ranking
        .is_folded()
        .then(|| (format!("{}; all rows", others_text(&ranking)), table_of(runs, &ranking, saturated, true)));
    (summary, all)
}

/// The policies that are not shown, in words.
fn others_text(ranking: &Ranking<'_>) -> String {
    let plural = if ranking.others.len() == 1 { "policy" } else { "policies" };
    format!("{} more {plural}, from best to worst: {}", ranking.others.len(), ranking.others.join(", "))
}

/// The columns that these runs need.
fn columns(runs: &[Run]) -> Vec<&'static RunColumn> {
    let failures = runs.iter().any(|run| run.unanswered() > 0);
    let costs = |of: fn(&LoadTraffic) -> f64| {
        runs.iter().any(|run| run.load_traffic.as_ref().is_some_and(|traffic| of(traffic) > 0.0))
    };
    let messages = costs(|of| of.messages_rps).then_some(&MESSAGES);
    let message_cpu = costs(|of| of.cpu).then_some(&MESSAGE_CPU);
    let receive_cpu = costs(|of| of.receive_cpu).then_some(&RECEIVE_CPU);
    let failures = failures.then_some(&UNANSWERED);
    let some = messages.into_iter().chain(message_cpu).chain(receive_cpu).chain(failures);
    let has_connections = runs.iter().any(|run| run.connections.is_some());
    let connections = has_connections.then_some(&CONNECTIONS).into_iter().flatten();
    COLUMNS.iter().chain(connections).chain(some).collect()
}

fn meaning(column: &RunColumn, runs: &[Run]) -> String {
    match runs.first() {
        Some(first) if column.title == RATIO => format!("req/s over those of {}", first.policy),
        _ => column.meaning.to_owned(),
    }
}

fn table_of(runs: &[Run], ranking: &Ranking<'_>, saturated: bool, all: bool) -> Table {
    let counts = backend_counts(runs);
    // One number of back-ends stands in the header, several above their rows.
    let first = match counts[..] {
        [only] => format!("on {}", backends_text(only)),
        _ => "policy".to_owned(),
    };
    let columns = columns(runs);
    let headings = columns.iter().map(|column| column.heading(saturated).meaning(meaning(column, runs)));
    let mut table = Table::new(std::iter::once(TableColumn::new(first, Align::Left)).chain(headings));
    for &backends in &counts {
        let start = table.rows.len();
        for run in ranking.rows(runs, backends, saturated, all) {
            let cells = columns.iter().map(|column| (column.value)(run, runs));
            table.row(std::iter::once(run.policy.clone()).chain(cells));
        }
        if let Some(row) = table.rows.get_mut(start).filter(|_| counts.len() > 1) {
            row.heading = Some(format!("on {}", backends_text(backends)));
        }
    }
    table
}
