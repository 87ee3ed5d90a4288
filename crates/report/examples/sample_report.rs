//! Writes reports with made-up but realistic numbers, to look at: `cargo run --example sample_report -- DIRECTORY`.

use std::{fs, io, path::PathBuf};

use plimsoll_report::{
    Plot, Report, Section, Series, SeriesStyle, claims_conclusion, claims_table, measurements_table,
    runs_report,
};

#[path = "../tests/it/sample.rs"]
mod sample;
#[path = "../tests/it/sample_claims.rs"]
mod sample_claims;

fn main() -> io::Result<()> {
    let directory = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    fs::create_dir_all(&directory)?;
    let title = "Request distribution compared";
    let save = |name: &str, report: &Report| {
        let path = directory.join(name);
        fs::write(&path, report.to_html())?;
        println!("{}", path.display());
        Ok::<(), io::Error>(())
    };
    save("many.html", &runs_report(title, &sample::context(), &sample::runs(&[1, 2, 4, 8, 16, 32])))?;
    save("one_count.html", &runs_report(title, &sample::context(), &sample::runs(&[8])))?;
    let long: Vec<_> = (0..8).map(|policy| sample::run(policy % 4, 8, 1)).collect();
    let long: Vec<_> = (1..)
        .zip(long)
        .map(|(number, mut run)| {
            run.policy.push_str(&format!("_{number}"));
            run
        })
        .collect();
    save("long_names.html", &runs_report(title, &sample::context(), &long))?;
    save("study.html", &study())
}

fn study() -> Report {
    let claims = sample_claims::claims();
    let points = |values: &[f64]| values.iter().enumerate().map(|(x, &y)| (x as f64, y)).collect();
    let mut bars = Plot::new("LARD/R over WRR by workload", "workload", "times as many requests");
    bars.categories = ["rice", "ibm", "chess"].map(str::to_owned).to_vec();
    bars = bars.with(Series::new("paper", SeriesStyle::Bars, points(&[3.9, 3.4, 1.0])));
    let ours = Series::new("ours", SeriesStyle::Bars, points(&[3.8, 3.1, 1.02]));
    bars = bars.with(ours.with_errors(vec![(3.6, 4.4), (2.8, 3.3), (1.0, 1.05)]));
    let mut steps = Plot::new("Arrivals per minute", "minute", "requests");
    let rate = |minute: usize| (minute as f64, 900.0 + 400.0 * sample::wobble(minute));
    steps = steps.with(Series::new("arrivals", SeriesStyle::Step, (0..120).map(rate).collect()));
    let mut sizes = Plot::new("Popularity of targets", "rank", "requests");
    (sizes.x_log, sizes.y_log) = (true, true);
    let zipf = |rank: usize| (rank as f64, 1e5 / (rank as f64 + 10.4).powf(1.175));
    sizes = sizes.with(Series::new(
        "trace",
        SeriesStyle::Points,
        (0..16).map(|power| zipf(1 << power)).collect(),
    ));
    sizes =
        sizes.with(Series::new("fit", SeriesStyle::Line, (0..16).map(|power| zipf(1 << power)).collect()));
    Report::new("LARD: published claims beside ours", "Pai et al., ASPLOS 1998")
        .fact("Workloads", "rice-like, ibm-like, chess")
        .conclusion(claims_conclusion(&claims))
        .section(
            Section::new("Claims")
                .table(claims_table(&claims))
                .folded_table("Measurements by workload", measurements_table(&claims)),
        )
        .section(Section::new("Plots").two_columns().plot(bars).plot(steps).plot(sizes))
        .footer("Seed", "1")
}
