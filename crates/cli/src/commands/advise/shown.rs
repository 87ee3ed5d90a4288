//! An advice as text for a terminal.

use plimsoll_report::Table;
use plimsoll_report::format::{bytes, count, duration, number};
use plimsoll_studies::Workload;
use plimsoll_studies::advise::{
    Advice, AdviceTable, advice_tables, advice_words, haproxy_lines, nginx_lines, plimsoll_toml,
};

use crate::{input, output};

/// Configurations of more back-ends are not printed.
const PRINTED_BACKENDS: usize = 8;

/// The text; `report` is the line that tells where the report is.
pub(super) fn shown(workload: &Workload, advice: &Advice, report: Option<String>) -> String {
    let words = advice_words(advice);
    let width = usize::from(output::width());
    let mut text = String::new();
    let mut say = |line: &str| text += &output::wrapped(line, width, 2);
    input::notes(&workload.trace.report).iter().for_each(|note| say(note));
    say(&log(advice));
    let costs =
        if advice.costs.is_empty() { String::new() } else { format!("; given: {}", advice.costs.join(", ")) };
    say(&format!("Hardware: {}, {}{costs}.", advice.hardware.name, advice.hardware.summary));
    text += "\nADVICE\n";
    paragraphs(&mut text, &words.answer, width);
    for AdviceTable { heading, table, sentences } in advice_tables(advice, &words) {
        text += &format!("\n{}\n", heading.to_uppercase());
        text += &fitting(table);
        paragraphs(&mut text, &sentences, width);
    }
    text += "\nHOW THIS WAS FOUND\n";
    paragraphs(&mut text, &words.notes, width);
    text += &configurations(advice, report.is_some(), width);
    if let Some(report) = report {
        text += &format!("\n{report}\n");
    }
    text
}

/// The log in a sentence.
fn log(advice: &Advice) -> String {
    let facts = &advice.facts;
    let rates = match (facts.mean_rps, facts.peak_rps) {
        (Some(mean), Some(peak)) => format!(
            " in {}; {} requests/s in the mean, {} in the busiest minute",
            duration(facts.duration_s),
            number(mean),
            number(peak)
        ),
        _ if facts.has_one_time => {
            "; all its times are within one second, so no rate can be told from them".to_owned()
        }
        _ => "; it has no times".to_owned(),
    };
    format!(
        "The log: {} requests for {} documents of {} in all{rates}.",
        count(facts.requests),
        count(facts.targets),
        bytes(facts.documents_bytes as f64)
    )
}

fn paragraphs(text: &mut String, sentences: &[String], width: usize) {
    for sentence in sentences {
        *text += &output::wrapped(&format!("- {sentence}"), width, 2);
    }
}

fn fitting(mut table: Table) -> String {
    let dropped = table.drop_columns(output::width());
    let mut text = table.to_text_within(output::width());
    if !dropped.is_empty() {
        text += &format!("No room for {}.\n", dropped.join(", "));
    }
    text
}

fn configurations(advice: &Advice, has_report: bool, width: usize) -> String {
    if has_report {
        return output::wrapped("\nThe configuration is in plimsoll.toml beside the report.", width, 0);
    }
    if advice.backends > PRINTED_BACKENDS {
        return output::wrapped("\n--out DIR writes the configuration, and a report for others.", width, 0);
    }
    let mut text = "\nREADY TO USE\n".to_owned();
    let mut add = |title: &str, lines: &str| text += &format!("{title}\n\n{lines}\n");
    if let Some(lines) = haproxy_lines(advice) {
        add("With HAProxy:", &lines);
    }
    if let Some(lines) = nginx_lines(advice) {
        add("With nginx:", &lines);
    }
    add("With plimsoll balance:", &plimsoll_toml(advice, &output::command_line()));
    text
}
