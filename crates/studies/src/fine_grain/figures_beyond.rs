//! What goes beyond the paper's figures: slow answers, how messages scale, intervals and distributions.

use plimsoll_report::{Align, Plot, Section, Table};

use super::claims_beyond::fixed_words;
use super::figure_parts::{cell, line, right};
use super::figures_sweeps::sweeps;
use super::plan::{
    DISCARD_MS, FineGrainRun, Grain, INTERVALS_US, READINGS, SCALED_WITH_LOAD, SCALING, SCALING_CPU_US,
    ScalingCase, scaled_broadcast, scaled_polls,
};
use super::results::{FineGrainResults, mean};

/// All of it.
pub(super) fn sections(seeds: &[FineGrainResults]) -> [Section; 5] {
    [slow_answers(seeds), scaling(seeds), sweeps(seeds), jitter(seeds), distributions(seeds)]
}

fn slow_answers(seeds: &[FineGrainResults]) -> Section {
    let mut table = Table::new([
        ("workload", Align::Left),
        right("poll size"),
        right("all answers, ms"),
        right("polling, ms"),
        right("slow discarded, ms"),
        right("polling, ms"),
        right("polls cut, %"),
        right("answers cut, %"),
        right("gain, %"),
    ]);
    for grain in Grain::PAPER {
        for size in [2, 3, 8] {
            let [all, kept] = [0, DISCARD_MS].map(|discard_ms| FineGrainRun::late(grain, size, discard_ms));
            let discarded = |r: &FineGrainResults| {
                let traffic = r.runs.get(&kept)?.load_traffic.as_ref()?;
                Some(traffic.discarded as f64 / traffic.inquiries as f64)
            };
            let cut_short = |r: &FineGrainResults| {
                let traffic = r.runs.get(&kept)?.load_traffic.as_ref()?;
                Some(traffic.polls_cut_short as f64 / traffic.polls as f64)
            };
            let better = |r: &FineGrainResults| Some(1.0 - r.ratio(kept, all)?);
            table.row([
                grain.title().to_owned(),
                size.to_string(),
                cell(mean(seeds, |r| r.response_s(all)), 1e3, 1),
                cell(mean(seeds, |r| r.poll_time_s(all)), 1e3, 2),
                cell(mean(seeds, |r| r.response_s(kept)), 1e3, 1),
                cell(mean(seeds, |r| r.poll_time_s(kept)), 1e3, 2),
                cell(mean(seeds, cut_short), 1e2, 1),
                cell(mean(seeds, discarded), 1e2, 1),
                cell(mean(seeds, better), 1e2, 1),
            ]);
        }
    }
    Section::new("Slow answers, simulated: sections 3.2 and 4.2")
        .paragraph(
            "Calibration, not finding: a busy back-end reads 4.5 % of its inquiries late, by an exponential time of 26.4 ms in the mean. \
             At 90 % this gives the paper's profile: 8.1 % of the polls of three not completed within 10 ms, 5.6 % not within 20 ms. \
             Slow answers are discarded after 10 ms, which cuts their polls short. The gain is that of the mean response time.",
        )
        .table(table)
}

fn scaling(seeds: &[FineGrainResults]) -> Section {
    let mut table = Table::new([
        ("broadcast or poll", Align::Left),
        right("clients"),
        right("servers"),
        right("busy, %"),
        right("messages/s"),
        right("at each client"),
        right("server CPU, %"),
        right("client CPU, %"),
        right("over ideal"),
    ]);
    let mut add = |words: String, case: ScalingCase, run: FineGrainRun| {
        let at_client = mean(seeds, |r| r.client_messages_rps(run));
        // Ideal was run on sixteen servers.
        let over_ideal = mean(seeds, |r| r.over_ideal(run)).filter(|_| case.servers == SCALING[0].servers);
        table.row([
            words,
            case.clients.to_string(),
            case.servers.to_string(),
            case.load_percent.to_string(),
            cell(mean(seeds, |r| r.messages_rps(run)), 1.0, 0),
            cell(at_client, 1.0, 0),
            cell(mean(seeds, |r| r.server_cpu(run)), 1e2, 2),
            cell(at_client, 1e2 * f64::from(SCALING_CPU_US) / 1e6, 2),
            cell(over_ideal, 1.0, 2),
        ]);
    };
    for case in SCALING.into_iter().chain([SCALED_WITH_LOAD]) {
        let words = format!("every {} ms", f64::from(case.interval_us) / 1e3);
        add(words, case, scaled_broadcast(case));
    }
    for case in SCALING {
        add("polls of 2".to_owned(), case, scaled_polls(case));
    }
    Section::new("How messages and their cost scale: section 2.4")
        .paragraph(format!(
            "The Fine-Grain trace. A message takes {SCALING_CPU_US} µs of CPU at a server, which delays requests, and as much at a client, \
             which is counted only: each announcement at each client, inquiries and answers at the client that asks. The last column is the response time over ideal."
        ))
        .table(table)
}

fn jitter(seeds: &[FineGrainResults]) -> Section {
    let mut plot = Plot::new(
        "Poisson/Exp, servers 90 % busy, 6 clients that do not count what they send",
        "mean interval, ms",
        "response over ideal",
    );
    let drawn = |us| FineGrainRun::broadcast(Grain::PoissonExp, 90, us, READINGS[0]);
    let fixed = |us| FineGrainRun::fixed_broadcast(Grain::PoissonExp, us);
    let runs: [(&str, &dyn Fn(u32) -> FineGrainRun); 2] =
        [("drawn, 0.5 to 1.5 times", &drawn), ("equal, all servers at once", &fixed)];
    for (name, run) in runs {
        let value = |r: &FineGrainResults, ms: f64| r.over_ideal(run((ms * 1000.0) as u32));
        plot = plot.with(line(seeds, name, INTERVALS_US.map(|us| f64::from(us) / 1000.0), value));
    }
    (plot.x_log, plot.y_log) = (true, true);
    Section::new("Equal against drawn intervals of broadcasts: section 2.2")
        .paragraph(format!("{} Claim f39 judges the largest of them.", fixed_words(seeds)))
        .plot(plot)
}

fn distributions(seeds: &[FineGrainResults]) -> Section {
    let mut table = Table::new([
        ("Fine-Grain, response in ms", Align::Left),
        right("random"),
        right("poll of 2"),
        right("poll of 8"),
        right("broadcast, 1 s"),
        right("ideal"),
    ]);
    let runs = |grain| {
        [
            FineGrainRun::random(grain, 90),
            FineGrainRun::polled(grain, 90, 2),
            FineGrainRun::polled(grain, 90, 8),
            FineGrainRun::broadcast(grain, 90, INTERVALS_US[5], READINGS[0]),
            FineGrainRun::ideal(grain, 90),
        ]
    };
    for (words, grain) in
        [("gamma distributions", Grain::Fine), ("Weibull distributions", Grain::FineWeibull)]
    {
        let cells = runs(grain).map(|run| cell(mean(seeds, |r| r.response_s(run)), 1e3, 1));
        table.row(std::iter::once(words.to_owned()).chain(cells));
    }
    let pairs = runs(Grain::FineWeibull).into_iter().zip(runs(Grain::Fine));
    let ratios = pairs.map(|(weibull, gamma)| cell(mean(seeds, |r| r.ratio(weibull, gamma)), 1.0, 2));
    table.row(std::iter::once("Weibull over gamma".to_owned()).chain(ratios));
    Section::new("Other distributions with the same means and deviations: section 1.1")
        .paragraph("Arrivals and service times, servers 90 % busy. Claim f68 judges what a poll of two gains over random with both.")
        .table(table)
}
