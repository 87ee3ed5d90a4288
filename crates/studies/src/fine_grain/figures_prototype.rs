//! Figure 6 and table 2, as measured.

use plimsoll_report::{Align, AxisUnit, Plot, Section, Series, SeriesStyle, Table};

use super::claims_prototype::{BUSY, DISCARDING, improvement_words, polled};
use super::plan::{Grain, POLL_SIZES};
use super::prototype::{ServiceChoice, ServicePoint, ServicePrototype, ServiceRuns};

/// The figure and the table, or why there are none.
pub(super) fn sections(prototype: &ServicePrototype) -> Vec<Section> {
    if let Some(why) = &prototype.left_out {
        let text = format!("The prototype was not measured: {why}.");
        return vec![Section::new(FIGURE_TITLE).paragraph(text)];
    }
    if prototype.seeds.is_empty() {
        return Vec::new();
    }
    let means = prototype.means();
    vec![figure(prototype, &means), table(prototype, &means)]
}

const FIGURE_TITLE: &str = "Figure 6: poll size on a real cluster of 16 servers and 6 clients";

fn figure(prototype: &ServicePrototype, means: &ServiceRuns) -> Section {
    let mut section = Section::new(FIGURE_TITLE)
        .paragraph(format!("In real time: {}.", prototype.setting))
        .paragraph(format!(
            "An inquiry takes {:.0} µs between idle nodes, where the paper's took 290 µs. 100 % load is the rate at which one server \
             completes 98 % of its accesses within 2 s: {}. Nothing is discarded where it is not said. Figures are means over the seeds, with standard errors.",
            prototype.round_trip_us,
            full_loads(means)
        ))
        .two_columns();
    // Lines need a second load.
    if means.loads().len() < 2 {
        return section.table(every_run(means));
    }
    for grain in Grain::PAPER {
        let mut plot = Plot::new(grain.title(), "load, % of full load", "mean response time");
        let mut choices = vec![ServiceChoice::Random];
        choices.extend(POLL_SIZES.map(polled));
        choices.push(ServiceChoice::Manager);
        for choice in choices {
            let line = line(means, grain, choice);
            plot.series.extend(line);
        }
        if plot.series.is_empty() {
            continue;
        }
        (plot.y_unit, plot.y_log) = (AxisUnit::Seconds, true);
        section = section.plot(plot);
    }
    section.folded_table("Every run, means over the seeds", every_run(means))
}

fn full_loads(means: &ServiceRuns) -> String {
    let of = |full: &super::prototype::FullLoad| {
        format!(
            "{} at {:.1} % of a server's time ({:.1} % completed when measured)",
            full.grain.title(),
            100.0 * full.utilization,
            100.0 * full.completed
        )
    };
    means.full_loads.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn line(means: &ServiceRuns, grain: Grain, choice: ServiceChoice) -> Option<Series> {
    let found = means.loads().into_iter().filter_map(|load| means.point(grain, load, choice));
    let points: Vec<&ServicePoint> = found.collect();
    let values = points.iter().map(|point| (f64::from(point.load_percent), point.response_s)).collect();
    let errors = points.iter().map(|point| {
        let error_s = if point.response_error_s.is_finite() { point.response_error_s } else { 0.0 };
        (point.response_s - error_s, point.response_s + error_s)
    });
    let series = Series::new(choice.words(), SeriesStyle::Line, values);
    (!points.is_empty()).then(|| series.with_errors(errors.collect()))
}

fn right(text: &'static str) -> (&'static str, Align) {
    (text, Align::Right)
}

fn every_run(means: &ServiceRuns) -> Table {
    let mut table = Table::new([
        ("workload", Align::Left),
        right("load, %"),
        ("choice", Align::Left),
        right("accesses"),
        right("unanswered"),
        right("response, ms"),
        right("± ms"),
        right("choice, ms"),
        right("> 10 ms, %"),
        right("cut, %"),
        right("CPUs busy, %"),
    ]);
    for point in &means.points {
        table.row([
            point.grain.title().to_owned(),
            point.load_percent.to_string(),
            point.choice.words(),
            point.accesses.to_string(),
            point.unanswered.to_string(),
            format!("{:.1}", 1e3 * point.response_s),
            format!("{:.1}", 1e3 * point.response_error_s),
            format!("{:.2}", 1e3 * point.asking_s),
            format!("{:.1}", 100.0 * point.over_10_ms),
            format!("{:.1}", 100.0 * point.discarded),
            point.machine_busy.map_or_else(|| "–".to_owned(), |busy| format!("{:.0}", 100.0 * busy)),
        ]);
    }
    table
}

/// What table 2 of the paper has: workload, response and polling time in ms of both forms, improvement in per cent with and without
/// the polling time.
const PAPER: [(Grain, [&str; 4]); 3] = [
    (Grain::Medium, ["282.1 (2.6)", "283.1 (1.0)", "−0.4", "−0.9"]),
    (Grain::PoissonExp, ["81.8 (2.7)", "79.2 (1.1)", "3.2", "1.2"]),
    (Grain::Fine, ["51.6 (2.7)", "47.3 (1.1)", "8.3", "5.2"]),
];

fn table(prototype: &ServicePrototype, means: &ServiceRuns) -> Section {
    let mut table = Table::new([
        ("workload", Align::Left),
        ("", Align::Left),
        right("all answers, ms (polling)"),
        right("discarding, ms (polling)"),
        right("gain, %"),
        right("without polling, %"),
        right("polls cut, %"),
    ]);
    for (grain, paper) in PAPER {
        let cells = |first: String, second: &str, four: [String; 4], last: String| {
            [first, second.to_owned()].into_iter().chain(four).chain([last])
        };
        let points = [polled(3), DISCARDING].map(|choice| means.point(grain, BUSY, choice));
        let [Some(all), Some(kept)] = points else { continue };
        table.row(cells(grain.title().to_owned(), "paper", paper.map(str::to_owned), "8.1".to_owned()));
        let ours = [
            format!("{:.1} ({:.2})", 1e3 * all.response_s, 1e3 * all.asking_s),
            format!("{:.1} ({:.2})", 1e3 * kept.response_s, 1e3 * kept.asking_s),
            improvement_words(prototype, grain, true),
            improvement_words(prototype, grain, false),
        ];
        let cut_short = format!("{:.1}", 100.0 * kept.over_10_ms);
        table.row(cells(String::new(), "measured", ours, cut_short));
    }
    Section::new("Table 2: discarding slow answers, polls of 3, 90 %")
        .paragraph(
            "Answers that have not come after 10 ms are discarded. How many come late is calibrated to the paper's profile; what follows \
             from it is measured. A poll is cut short when one of its answers is discarded; the paper has 8.1 % for a typical run, without its \
             workload (section 3.2). Errors are standard errors over the seeds, of which each has the same accesses for both ways.",
        )
        .table(table)
}

#[cfg(test)]
mod tests {
    use super::super::calibration_prototype::calibration;
    use super::super::claims_prototype::{claims, ids};
    use super::super::prototype::FullLoad;
    use super::*;
    use plimsoll_report::Verdict;

    fn point(grain: Grain, choice: ServiceChoice, response_s: f64, asking_s: f64) -> ServicePoint {
        ServicePoint {
            grain,
            load_percent: BUSY,
            choice,
            accesses: 1000,
            unanswered: 0,
            response_s,
            response_error_s: 0.01 * response_s,
            asking_s,
            over_10_ms: 0.081,
            over_20_ms: 0.056,
            discarded: 0.03,
            machine_busy: None,
        }
    }

    /// What the paper has in table 2, and for the words of section 4.1 what they say at least.
    fn as_published() -> ServicePrototype {
        let mut runs = ServiceRuns { seed: 1, ..ServiceRuns::default() };
        for (grain, three, kept, asking_s) in [
            (Grain::Medium, 0.2821, 0.2831, [0.0026, 0.0010]),
            (Grain::PoissonExp, 0.0818, 0.0792, [0.0027, 0.0011]),
            (Grain::Fine, 0.0516, 0.0473, [0.0027, 0.0011]),
        ] {
            let eight = if grain == Grain::Fine { 2.1 } else { 1.0 };
            runs.points.extend([
                point(grain, ServiceChoice::Random, 2.0 * three, 0.0),
                point(grain, polled(2), 1.02 * three, 0.0018),
                point(grain, polled(3), three, asking_s[0]),
                point(grain, polled(8), eight * three, 0.007),
                point(grain, DISCARDING, kept, asking_s[1]),
                point(grain, ServiceChoice::Manager, 0.8 * three, 0.0003),
            ]);
            let full = FullLoad { grain, utilization: 0.9, completed: 0.98, completed_by_theory: 0.98 };
            runs.full_loads.push(full);
        }
        let again = ServiceRuns { seed: 2, ..runs.clone() };
        ServicePrototype { round_trip_us: 290.0, seeds: vec![runs, again], ..ServicePrototype::default() }
    }

    #[test]
    fn what_the_paper_says_holds() {
        let prototype = as_published();
        let (claims, calibration) = (claims(&prototype), calibration(&prototype));
        assert_eq!(claims.len() + calibration.len(), ids().len());
        for claim in claims.iter().chain(&calibration) {
            assert_eq!(claim.verdict, Verdict::Holds, "{} {:?}", claim.id, claim.measured);
        }
        let value = |id: &str| claims.iter().find(|claim| claim.id == id).unwrap().measured[0].value;
        assert!((value("f50") - 8.333).abs() < 1e-3);
        for (id, printed) in [("f51", 5.2), ("f52", 3.2), ("f53", 1.2), ("f54", -0.4), ("f55", -0.9)] {
            assert!((value(id) - printed).abs() < 0.05, "{id} {}", value(id));
        }
        assert_eq!(sections(&prototype).len(), 2);
    }

    #[test]
    fn what_it_does_not_say_fails_and_is_explained() {
        let mut prototype = as_published();
        for point in prototype.seeds.iter_mut().flat_map(|runs| &mut runs.points) {
            (point.response_s, point.asking_s, point.over_10_ms, point.over_20_ms) = (0.1, 0.02, 0.5, 0.5);
        }
        prototype
            .seeds
            .iter_mut()
            .flat_map(|runs| &mut runs.full_loads)
            .for_each(|full| full.completed = 0.5);
        for claim in claims(&prototype).into_iter().chain(calibration(&prototype)) {
            let equal = ["f44", "f55", "f54"].contains(&claim.id.as_str());
            assert_eq!(claim.verdict == Verdict::Fails, !equal, "{}", claim.id);
            assert!(equal || claim.explanation.contains("ms") || claim.explanation.contains('%'));
        }
    }

    #[test]
    fn without_a_lab_it_says_so() {
        let left_out = ServicePrototype { left_out: Some("no root".to_owned()), ..Default::default() };
        assert!(claims(&left_out).is_empty() && calibration(&left_out).is_empty());
        assert_eq!(sections(&left_out).len(), 1);
        assert!(sections(&ServicePrototype::default()).is_empty());
    }
}
