//! The report on classes that were learned.

use plimsoll_classes::ContentClass;
use plimsoll_classes::learn::{DemandMethod, LearnReport, LearnedClass, LearnedClasses, QueueDiscipline};
use plimsoll_report::{Align, Table, format};
use serde_json::{Value, json};

use super::sources::DurationSources;

/// Patterns shown of a class.
const PATTERNS_SHOWN: usize = 3;

/// The report as text.
pub(super) fn text(learned: &LearnedClasses, sources: &DurationSources) -> String {
    let mut table = Table::new([
        ("Class", Align::Right),
        ("Patterns", Align::Left),
        ("Requests", Align::Right),
        ("Mean, ms", Align::Right),
        ("Deviation, ms", Align::Right),
        ("Share of cost", Align::Right),
    ]);
    for ((class, more), number) in learned.table.classes().iter().zip(&learned.report.classes).zip(1..) {
        let number: u32 = number;
        table.row([
            number.to_string(),
            patterns(more),
            format::count(class.requests),
            milliseconds(class.cpu_s),
            milliseconds(class.deviation_s),
            format::percent(more.cost_share),
        ]);
    }
    let report = &learned.report;
    let mut out = table.to_text();
    out += &format!(
        "\nVariance of the demand explained: {} by {} class{}; {} by a class for each of {} URIs, 0 % by a single class.\n",
        format::percent(report.explained_by_classes),
        report.classes.len(),
        if report.classes.len() == 1 { "" } else { "es" },
        format::percent(report.explained_by_uris.max(0.0)),
        format::count(report.uris),
    );
    let fit = &report.size_fit;
    out += &format!(
        "A line by size, {} ms + {} ms for each MiB, explains {}.\n",
        milliseconds(fit.cpu_s),
        milliseconds(fit.cpu_s_per_byte * f64::from(1 << 20)),
        format::percent(fit.explained.max(0.0)),
    );
    for line in notes(report, sources) {
        out += &line;
        out.push('\n');
    }
    out
}

/// Sentences on how demands were estimated, and on what was merged or dropped.
fn notes(report: &LearnReport, sources: &DurationSources) -> Vec<String> {
    let mut out = vec![method(report, sources.live)];
    if !sources.live {
        let all = (sources.of_backend + sources.of_request).max(1);
        out.push(format!(
            "Durations: {} are the back-end's alone, {} those of the whole request, which include sending it to the client.",
            format::percent(sources.of_backend as f64 / all as f64),
            format::percent(sources.of_request as f64 / all as f64),
        ));
    }
    if !report.slowness.is_empty() {
        const SHOWN: usize = 16;
        let shown: Vec<String> =
            report.slowness.iter().take(SHOWN).map(|(name, of)| format!("{name} {of:.2}")).collect();
        let more = if report.slowness.len() > SHOWN { ", …" } else { "" };
        out.push(format!(
            "Back-ends differ in speed. How many times as long as on average requests take: {}{more}. Costs are those of an average one.",
            shown.join(", ")
        ));
    }
    out.push("All demand counts as CPU time: durations do not tell it from disk time.".to_owned());
    out.extend(report.dropped.iter().map(|what| format!("Merged or dropped: {what}.")));
    out
}

fn method(report: &LearnReport, live: bool) -> String {
    match report.method {
        _ if live => {
            "Demand: the time from request to answer at an idle server, one request at a time.".to_owned()
        }
        DemandMethod::Reconstructed { discipline, dependence, dependence_before } => {
            let mut said = format!(
                "Demand: reconstructed from begins and ends, as of {discipline}. Durations of a URI depend on the number of other \
                 requests by {}, demands by {}.",
                format::percent(dependence_before),
                format::percent(dependence)
            );
            if dependence > UNTRUSTED {
                said += " Warning: that is more than chance and rounding leave. Back-ends share their capacity in another way, or the log lacks \
                         requests; do not rely on these costs.";
            }
            said
        }
        DemandMethod::FromMeans { discipline, present, given } => {
            let mut said = format!(
                "Demand: the log's times are too coarse to reconstruct who waited for whom. It is estimated from averages, as of {discipline}, with \
                 {present:.1} requests at a time on average. Deviations include the noise of the estimate."
            );
            if !given {
                said += " Warning: the number of workers or cores is only assumed; give --workers, or log times in milliseconds.";
            }
            said
        }
    }
}

/// A dependence on load above this is a reason for a warning.
const UNTRUSTED: f64 = 0.05;

fn patterns(class: &LearnedClass) -> String {
    let mut shown: Vec<String> = class.patterns.iter().take(PATTERNS_SHOWN).cloned().collect();
    if class.patterns.len() > PATTERNS_SHOWN {
        shown.push(format!("and {} more", class.patterns.len() - PATTERNS_SHOWN));
    }
    shown.join("\n")
}

fn milliseconds(s: f64) -> String {
    let ms = s * 1e3;
    if ms.abs() < 10.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
}

/// The report as JSON.
pub(super) fn json(learned: &LearnedClasses, sources: &DurationSources) -> Value {
    let report = &learned.report;
    let class = |(class, more): (&ContentClass, &LearnedClass)| {
        json!({
            "name": class.name,
            "patterns": more.patterns,
            "requests": class.requests,
            "cpu_s": class.cpu_s,
            "disk_s": class.disk_s,
            "size_bytes": class.size_bytes,
            "deviation_s": class.deviation_s,
            "cost_share": more.cost_share,
        })
    };
    let classes: Vec<Value> = learned.table.classes().iter().zip(&report.classes).map(class).collect();
    json!({
        "requests": report.requests,
        "classes": classes,
        "explained_by_classes": report.explained_by_classes,
        "explained_by_uris": report.explained_by_uris,
        "uris": report.uris,
        "groups": report.groups,
        "size_fit": {
            "cpu_s": report.size_fit.cpu_s,
            "cpu_s_per_byte": report.size_fit.cpu_s_per_byte,
            "explained": report.size_fit.explained,
        },
        "demand": demand(report, sources.live),
        "slowness": report.slowness.iter().map(|(name, of)| json!({"backend": name, "slowness": of})).collect::<Vec<_>>(),
        "durations_of_backend": sources.of_backend,
        "durations_of_request": sources.of_request,
        "not_successful": sources.not_successful,
        "dropped": report.dropped,
    })
}

fn demand(report: &LearnReport, live: bool) -> Value {
    let parts = |discipline| match discipline {
        QueueDiscipline::Independent => ("independent", None),
        QueueDiscipline::InTurn { workers } => ("in_turn", Some(workers)),
        QueueDiscipline::Shared { cores } => ("shared", Some(cores)),
    };
    match report.method {
        _ if live => json!({ "method": "measured" }),
        DemandMethod::Reconstructed { discipline, dependence, dependence_before } => {
            let (discipline, workers) = parts(discipline);
            json!({
                "method": "reconstructed",
                "discipline": discipline,
                "workers": workers,
                "dependence": dependence,
                "dependence_before": dependence_before,
            })
        }
        DemandMethod::FromMeans { discipline, present, given } => {
            let (discipline, workers) = parts(discipline);
            json!({
                "method": "from_means",
                "discipline": discipline,
                "workers": workers,
                "workers_given": given,
                "present": present,
            })
        }
    }
}
