//! Prints published figures beside those of the synthetic workloads, per generator and seed.
//!
//! Run with `cargo run --release -p plimsoll-synth --example calibrate`, optionally followed by the
//! name of a workload and by `key=value` parameters, to see what these do to the calibration.
//! The last column gives the factors by which the last step of the calibration multiplied the
//! drawn sizes; a generator is well chosen when they are near 1.

use plimsoll_synth::{FigureBound, SPECS, SynthError, SyntheticWorkload, WorkloadSpec, build};

const SEEDS: [u64; 3] = [1, 2, 3];

fn main() -> Result<(), SynthError> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (pairs, names): (Vec<_>, Vec<_>) =
        given.iter().map(String::as_str).partition(|word| word.contains('='));
    let overrides: Vec<(&str, &str)> = pairs.into_iter().filter_map(|pair| pair.split_once('=')).collect();
    for spec in SPECS.iter().filter(|spec| names.is_empty() || names.contains(&spec.name)) {
        print_spec(spec, &overrides)?;
    }
    Ok(())
}

fn print_spec(spec: &WorkloadSpec, overrides: &[(&str, &str)]) -> Result<(), SynthError> {
    println!("\n{}: {}\n", spec.name, spec.help);
    let figures: Vec<&str> = spec.published.iter().map(|figure| figure.name).collect();
    println!("| generator | seed | {} | size factors |", figures.join(" | "));
    println!("| --- | --- |{} --- |", " --- |".repeat(figures.len()));
    let published: Vec<String> = spec
        .published
        .iter()
        .map(|figure| match figure.bound {
            FigureBound::Equal => figure.value.to_string(),
            FigureBound::AtMost => format!("≤ {}", figure.value),
        })
        .collect();
    println!("| *published* | | {} | |", published.join(" | "));
    for generator in spec.generators {
        for seed in SEEDS {
            let mut all = vec![("generator", generator.name)];
            all.extend(overrides);
            print_row(&build(spec.name, &all, seed)?);
        }
    }
    Ok(())
}

fn print_row(workload: &SyntheticWorkload) {
    let measured: Vec<String> = workload
        .published()
        .iter()
        .map(|figure| workload.measured(figure.name).map_or_else(|| "-".to_owned(), written))
        .collect();
    let factors: Vec<String> =
        workload.size_corrections().iter().map(|factor| format!("{factor:.2}")).collect();
    println!(
        "| {} | {} | {} | {} |",
        workload.generator(),
        workload.seed(),
        measured.join(" | "),
        factors.join(" ")
    );
}

/// Whole numbers in full, others with as many digits as a figure of the papers has.
fn written(value: f64) -> String {
    if value.fract() == 0.0 {
        value.to_string()
    } else if value < 1.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}
