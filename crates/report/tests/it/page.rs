//! The HTML report.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use plimsoll_report::{AxisUnit, Plot, Report, Run, RunsContext, Section, Series, SeriesStyle, runs_report};
use proptest::prelude::*;

use crate::{
    golden::assert_golden,
    sample::{context, run, runs},
};

const EVIL: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'\u{2028}";

/// The page without the embedded library, which is the same in every report.
fn without_library(html: &str) -> String {
    let marker = "id=\"plot-library\">";
    let Some((before, rest)) = html.split_once(marker) else {
        return html.to_owned();
    };
    let (_, after) = rest.split_once("</script>").expect("the page has this part");
    format!("{before}{marker}…</script>{after}")
}

/// What stands between the markers of a script block.
fn block<'a>(html: &'a str, id: &str) -> &'a str {
    let (_, rest) = html.split_once(&format!("id=\"{id}\">")).expect("the page has this part");
    rest.split_once("</script>").expect("the page has this part").0
}

fn conclusion(runs: &[Run]) -> String {
    let html = runs_report("Test", &context(), runs).to_html();
    let (_, rest) = html.split_once("<div class=\"conclusion\">\n<p>").expect("the page has this part");
    rest.split_once("</p>").expect("the page has this part").0.to_owned()
}

#[test]
fn report_is_as_agreed() {
    let mut runs = runs(&[2, 4]);
    for run in &mut runs {
        run.load_series.load.iter_mut().for_each(|load| load.truncate(4));
    }
    let html = runs_report("Two sizes", &context(), &runs).to_html();
    assert_golden("report.html", &without_library(&html));
    assert_eq!(html, runs_report("Two sizes", &context(), &runs).to_html());
}

#[test]
fn the_library_is_whole_and_unmodified() {
    let html = runs_report("Test", &context(), &runs(&[2])).to_html();
    let packed = STANDARD.decode(block(&html, "plot-library")).unwrap();
    let mut library = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut library).unwrap();
    assert!(library.starts_with("/**\n* plotly.js v"));
    assert!(library.contains("window.Plotly = Plotly"));
    assert!(library.len() > 4_000_000, "{}", library.len());
}

#[test]
fn nothing_is_fetched() {
    let html = without_library(&runs_report("Test", &context(), &runs(&[1, 2])).to_html());
    assert!(html.contains("default-src 'none'"), "no content security policy");
    for fetching in [" src=", "url(", "@import", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!html.contains(fetching), "{fetching}");
    }
    // The only links are the empty icon and the name of SVG's vocabulary, which is no address to fetch.
    assert_eq!(html.matches(" href=").count(), html.matches(" href=\"data:,\"").count());
    assert_eq!(html.matches("://").count(), html.matches("\"http://www.w3.org/2000/svg\"").count());
}

#[test]
fn every_plot_has_a_static_drawing() {
    let html = without_library(&runs_report("Test", &context(), &runs(&[1, 2, 20])).to_html());
    let figures: Vec<serde_json::Value> = serde_json::from_str(block(&html, "plot-data")).unwrap();
    // Five ratios, four of delay, one load plot for each of twelve runs.
    assert_eq!(figures.len(), 5 + 4 + 12);
    assert_eq!(html.matches("<svg ").count(), figures.len());
    assert_eq!(html.matches("<figure>").count(), figures.len());
    assert!(html.contains("<noscript>"));
    // More than sixteen back-ends are summed up: two edges of the band, and the mean.
    assert_eq!(figures[5 + 4 + 2]["data"].as_array().unwrap().len(), 3);
    assert_eq!(figures[5 + 4 + 1]["data"].as_array().unwrap().len(), 2);
}

/// The colours, markers and dashes of a report's first plot, by policy.
fn looks(html: &str) -> std::collections::BTreeMap<String, String> {
    let figures: Vec<serde_json::Value> =
        serde_json::from_str(block(html, "plot-data")).expect("the data is JSON");
    let of = |trace: &serde_json::Value| {
        let look =
            format!("{} {} {}", trace["line"]["color"], trace["marker"]["symbol"], trace["line"]["dash"]);
        (trace["name"].as_str().expect("it has a name").to_owned(), look)
    };
    figures[0]["data"].as_array().expect("it is a list").iter().map(of).collect()
}

#[test]
fn a_policy_looks_the_same_in_every_report() {
    let page = |runs: &[Run]| runs_report("Test", &context(), runs).to_html();
    let all = looks(&page(&runs(&[2, 4])));
    let some = looks(&page(&[run(3, 2, 1), run(3, 4, 1), run(1, 2, 1), run(1, 4, 1)]));
    assert_eq!((all.len(), some.len()), (4, 2));
    for (policy, look) in &some {
        assert_eq!(all[policy], *look, "{policy}");
    }
    assert_eq!(all.values().collect::<std::collections::BTreeSet<_>>().len(), 4);
    // And as a bar.
    let one: Vec<serde_json::Value> =
        serde_json::from_str(block(&page(&[run(3, 2, 1), run(1, 2, 1)]), "plot-data")).unwrap();
    let color = one[0]["data"][0]["marker"]["color"][0].to_string();
    assert!(all["lard_r"].starts_with(&color), "{color}");
    assert_eq!(one[0]["data"][0]["orientation"], "h");
}

#[test]
fn lines_are_labelled_where_they_end() {
    let html = runs_report("Test", &context(), &runs(&[2, 4])).to_html();
    let figures: Vec<serde_json::Value> = serde_json::from_str(block(&html, "plot-data")).unwrap();
    let names: Vec<&str> =
        figures[0]["ends"].as_array().unwrap().iter().map(|end| end["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["weighted_round_robin", "uri_hash", "lard", "lard_r"]);
    assert_eq!(figures[0]["ends"][0]["x"], 4.0);
    // Two lines end at one place; their labels do not.
    let line = |name: &str| Series::new(name, SeriesStyle::Line, vec![(1.0, 5.0), (2.0, 9.0)]);
    let svg = Plot::new("", "", "").with(line("first")).with(line("second")).to_svg();
    let place = |name: &str| -> f64 {
        let (before, _) = svg.split_once(&format!("\n{name}\n")).unwrap();
        let (_, rest) = before.rsplit_once(" y=\"").unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    assert!((place("first") - place("second")).abs() >= 14.0, "{svg}");
}

#[test]
fn many_policies_are_folded_and_none_is_hidden() {
    let mut all = Vec::new();
    for index in 0..12 {
        for count in [2, 4] {
            let mut run = run(index % 4, count, 1);
            run.policy = format!("policy_{index}");
            run.throughput_rps = (1000 + index) as f64;
            all.push(run);
        }
    }
    let html = without_library(&runs_report("Test", &context(), &all).to_html());
    let (_, rest) = html.split_once("<h2>Summary</h2>").unwrap();
    let (shown, rest) = rest.split_once("more policies, from best to worst: ").unwrap();
    let (others, rest) = rest.split_once("; all rows</summary>").unwrap();
    let (folded, _) = rest.split_once("</details>").unwrap();
    assert_eq!(shown.matches("<td>policy_").count(), 2 * 4);
    assert_eq!(others, "policy_8, policy_7, policy_6, policy_5, policy_4, policy_3, policy_2, policy_1");
    assert_eq!(folded.matches("<td>policy_").count(), 2 * 12);
    assert!(html.contains("<summary>The same of policy_8"), "load plots");
}

#[test]
fn names_from_outside_are_only_text() {
    let mut runs = vec![run(0, 2, 1), run(1, 2, 1)];
    let params = std::collections::BTreeMap::from([(EVIL.to_owned(), serde_json::json!(EVIL))]);
    for run in &mut runs {
        run.model = EVIL.to_owned();
        run.policy_stats.insert(EVIL.to_owned(), 1.0);
        run.params.clone_from(&params);
        run.trace.path = EVIL.to_owned();
        run.trace.sha256 = Some(EVIL.to_owned());
    }
    runs[0].policy = EVIL.to_owned();
    let context = RunsContext {
        trace: EVIL.to_owned(),
        command: EVIL.to_owned(),
        version: EVIL.to_owned(),
        load_notes: vec![EVIL.to_owned()],
        warnings: vec![EVIL.to_owned()],
        saturated: true,
        policies: vec![EVIL.to_owned()],
    };
    let section = Section::new(EVIL).paragraph(EVIL);
    let evil = runs_report(EVIL, &context, &runs).section(section).fact(EVIL, EVIL).to_html();
    // Only the four blocks of every report.
    assert_eq!(evil.matches("<script").count(), 4);
    assert_eq!(evil.matches("</script").count(), 4);
    assert!(!evil.contains("<img"), "{}", without_library(&evil));
    assert!(!evil.contains("alert(1)</"), "{}", without_library(&evil));
    // In the figures plotly.js would read tags in labels; there they are escaped once more.
    let figures: serde_json::Value = serde_json::from_str(block(&evil, "plot-data")).unwrap();
    let text = figures.to_string();
    assert!(!text.contains('<') && text.contains("&lt;img"), "{text}");
}

#[test]
fn the_conclusion_says_why() {
    let mut runs = vec![run(0, 8, 1), run(3, 8, 1)];
    (runs[0].throughput_rps, runs[0].miss_ratio, runs[0].idle_ratio) = (1000.0, Some(0.48), 0.01);
    (runs[1].throughput_rps, runs[1].miss_ratio, runs[1].idle_ratio) = (3900.0, Some(0.031), 0.02);
    assert_eq!(
        conclusion(&runs),
        "lard_r served 3.9 times as many requests/s as weighted_round_robin on 8 back-ends, because its miss ratio was 3.1 % against \
         48.0 %."
    );
    // The first policy may be the best; a higher miss ratio is no reason.
    runs.reverse();
    assert!(conclusion(&runs).starts_with(
        "lard_r served 3.9 times as many requests/s as weighted_round_robin on 8 back-ends, because"
    ));
    runs[0].miss_ratio = Some(0.6);
    assert_eq!(
        conclusion(&runs),
        "lard_r served 3.9 times as many requests/s as weighted_round_robin on 8 back-ends."
    );
    runs[0].idle_ratio = 0.0;
    runs[1].idle_ratio = 0.3;
    assert!(
        conclusion(&runs).ends_with("because its back-ends were idle 0.0 % of the time against 30.0 %."),
        "{}",
        conclusion(&runs)
    );
    runs[1].throughput_rps = 3880.0;
    assert!(
        conclusion(&runs)
            .starts_with("All policies served the same throughput on 8 back-ends within 2 %, 3,900")
    );
    assert!(conclusion(&[run(2, 1, 1)]).ends_with("requests/s on 1 back-end."));
}

#[test]
fn the_conclusion_compares_with_what_others_offer_and_says_what_is_worse() {
    let mut runs: Vec<Run> = (0..4).map(|policy| run(policy, 8, 1)).collect();
    for (run, (rate, p50)) in
        runs.iter_mut().zip([(1000.0, 0.001), (3000.0, 0.006), (3300.0, 0.03), (3900.0, 0.05)])
    {
        run.throughput_rps = rate;
        run.response_time_s.as_mut().unwrap().p50 = p50;
    }
    let html = runs_report("Test", &context(), &runs).to_html();
    let says = |what: &str| assert!(html.contains(what), "{}", without_library(&html));
    says(
        "lard_r served 1.30 times as many requests/s as uri_hash, the best of the policies here that other balancers have,",
    );
    says("What is worse with lard_r: its median response time was 50 ms against 6 ms");
    says("compare delays under the same load");
    let context = RunsContext { saturated: false, ..context() };
    assert!(!runs_report("Test", &context, &runs).to_html().contains("compare delays"));
}

#[test]
fn several_seeds_become_a_median_with_a_spread() {
    let runs: Vec<Run> = (1..=3).flat_map(|seed| [run(0, 2, seed), run(0, 4, seed)]).collect();
    let html = runs_report("Test", &context(), &runs).to_html();
    let figures: Vec<serde_json::Value> = serde_json::from_str(block(&html, "plot-data")).unwrap();
    let throughput = &figures[0]["data"][0];
    assert_eq!(throughput["x"], serde_json::json!([2.0, 4.0]));
    assert!(throughput["error_y"]["array"][0].as_f64().unwrap() > 0.0, "{throughput}");
}

#[test]
fn no_runs_give_a_page_without_plots() {
    let html = runs_report("Nothing", &RunsContext::default(), &[]).to_html();
    assert!(html.contains("There was no run to report.") && !html.contains("plot-library"));
    assert!(html.len() < 20_000);
}

#[test]
fn a_static_drawing_is_as_agreed() {
    let mut plot = Plot::new("Median delay", "back-ends", "delay");
    plot.y_unit = AxisUnit::Seconds;
    plot.y_log = true;
    let line = Series::new(
        "a <b> & c",
        SeriesStyle::Line,
        vec![(1.0, 0.02), (2.0, 0.3), (4.0, f64::NAN), (8.0, 0.0)],
    );
    plot = plot.with(line.with_errors(vec![(0.01, 0.04), (0.3, 0.3), (0.0, 0.0), (0.0, 0.0)]));
    plot = plot.with(Series::new("steps", SeriesStyle::Step, vec![(1.0, 0.05), (2.0, 0.1), (8.0, 0.2)]));
    assert_golden("plot.svg", &plot.to_svg());
    assert!(Plot::new("", "", "").to_svg().contains("No data."));
}

fn any_plot() -> impl Strategy<Value = Plot> {
    let kinds = prop_oneof![
        Just(SeriesStyle::Line),
        Just(SeriesStyle::Bars),
        Just(SeriesStyle::Step),
        Just(SeriesStyle::Points),
        Just(SeriesStyle::Band)
    ];
    let point = (any::<f64>(), any::<f64>());
    let points = prop::collection::vec((point, point), 0..6);
    let series = (kinds, points, any::<bool>(), ".*").prop_map(|(kind, points, with_errors, name)| {
        let (points, errors): (Vec<_>, Vec<_>) = points.into_iter().unzip();
        let series = Series::new(name, kind, points);
        if with_errors { series.with_errors(errors) } else { series }
    });
    let units = prop_oneof![Just(AxisUnit::Plain), Just(AxisUnit::Percent), Just(AxisUnit::Seconds)];
    let categories = prop::collection::vec(".*", 0..3);
    (prop::collection::vec(series, 0..4), any::<(bool, bool)>(), units, categories).prop_map(
        |(series, (x_log, y_log), y_unit, categories)| Plot {
            series,
            x_log,
            y_log,
            y_unit,
            categories,
            ..Plot::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]
    #[test]
    fn any_plot_can_be_drawn(plot in any_plot()) {
        let html = Report::new("", "").section(Section::new("").plot(plot)).to_html();
        prop_assert_eq!(html.matches("</svg>").count(), 1);
        let figures: Result<serde_json::Value, _> = serde_json::from_str(block(&html, "plot-data"));
        prop_assert!(figures.is_ok());
    }
}
