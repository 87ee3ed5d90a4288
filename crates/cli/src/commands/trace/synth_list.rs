//! The synthetic workloads as tables.

use plimsoll_report::format::{count, number};
use plimsoll_report::{Align, Table};
use plimsoll_synth::{FigureBound, Parameter, ParameterKind, PublishedFigure, SPECS, WorkloadSpec};

use super::text::with_unit;
use crate::error::CliError;

/// All workloads, or the one called `only`, with generators, published figures and parameters.
pub(super) fn text(only: Option<&str>, width: usize) -> Result<String, CliError> {
    let specs: Vec<&WorkloadSpec> = match only {
        Some(name) => vec![plimsoll_synth::spec(name)?],
        None => SPECS.iter().collect(),
    };
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let published = specs.iter().any(|spec| !spec.published.is_empty());
    let figures = published.then(|| figures(&specs));
    let first = [workloads(&specs), generators(&specs)];
    let tables = first.into_iter().chain(figures).chain([parameters(&specs), defaults(&specs)]);
    Ok(tables.map(|table| table.to_text_within(width)).collect::<Vec<_>>().join("\n"))
}

fn workloads(specs: &[&WorkloadSpec]) -> Table {
    let mut table =
        Table::new([("Workload", Align::Left), ("What it stands for", Align::Left), ("Source", Align::Left)]);
    for spec in specs {
        table.row([spec.name, spec.help, spec.source]);
    }
    table
}

fn generators(specs: &[&WorkloadSpec]) -> Table {
    let mut table = Table::new([
        ("Workload", Align::Left),
        ("Generator", Align::Left),
        ("What sets it apart", Align::Left),
    ])
    .captioned(
        "Generators, equally well calibrated; the first of each workload is the default (--set generator=…)",
    );
    for spec in specs {
        for (at, generator) in spec.generators.iter().enumerate() {
            let name = if at == 0 { spec.name } else { "" };
            table.row([name, generator.name, generator.help]);
        }
    }
    table
}

fn figures(specs: &[&WorkloadSpec]) -> Table {
    let mut table = Table::new([
        ("Workload", Align::Left),
        ("Figure", Align::Left),
        ("Published", Align::Right),
        ("Met within", Align::Right),
        ("Meaning", Align::Left),
    ])
    .captioned("Published figures");
    for spec in specs {
        // A workload that no trace stands behind has none.
        for (at, figure) in spec.published.iter().enumerate() {
            let within = match figure.bound {
                FigureBound::AtMost => String::new(),
                FigureBound::Equal if figure.tolerance == 0.0 => "exact".to_owned(),
                FigureBound::Equal => format!("{} %", number(100.0 * figure.tolerance)),
            };
            let name = if at == 0 { spec.name } else { "" };
            table.row([name, figure.name, &published(figure), &within, figure.help]);
        }
    }
    table
}

fn parameters(specs: &[&WorkloadSpec]) -> Table {
    let mut table =
        Table::new([("Parameter", Align::Left), ("Range", Align::Left), ("Meaning", Align::Left)])
            .captioned("Parameters (--set KEY=VALUE)");
    for parameter in all_parameters(specs) {
        table.row([parameter.name, &range(parameter), parameter.help]);
    }
    table
}

/// One row per parameter, one column per workload.
fn defaults(specs: &[&WorkloadSpec]) -> Table {
    let mut columns = vec![("Parameter", Align::Left)];
    columns.extend(specs.iter().map(|spec| (spec.name, Align::Right)));
    let mut table = Table::new(columns)
        .captioned("Defaults of the parameters; a generator other than the default sets some of them itself");
    for parameter in all_parameters(specs) {
        let mut row = vec![parameter.name.to_owned()];
        row.extend(specs.iter().map(|spec| {
            spec.parameter(parameter.name).map_or_else(|| "-".to_owned(), |own| own.written(own.default))
        }));
        table.row(row);
    }
    table
}

/// Every parameter that one of the workloads has, in the order of their declarations.
fn all_parameters(specs: &[&WorkloadSpec]) -> Vec<&'static Parameter> {
    let mut all: Vec<&'static Parameter> = Vec::new();
    for parameter in specs.iter().flat_map(|spec| spec.parameters) {
        if all.iter().all(|known| known.name != parameter.name) {
            all.push(parameter);
        }
    }
    all
}

fn range(parameter: &Parameter) -> String {
    match parameter.kind {
        // The table of generators names them by workload.
        ParameterKind::Choice(_) => "a generator".to_owned(),
        _ => with_unit(format!("{} to {}", short(parameter.min), short(parameter.max)), parameter.unit),
    }
}

/// A bound of a range: large powers of ten as such.
fn short(value: f64) -> String {
    if value.abs() >= 1e6 { format!("{value:e}") } else { value.to_string() }
}

/// A published figure as the source gives it.
pub(super) fn published(figure: &PublishedFigure) -> String {
    let value = value_of(figure, figure.value);
    match figure.bound {
        FigureBound::Equal => value,
        FigureBound::AtMost => format!("at most {value}"),
    }
}

/// A value of a figure with its unit, precise enough to be compared with the published one.
pub(super) fn value_of(figure: &PublishedFigure, value: f64) -> String {
    if figure.name.ends_with("_share") {
        return format!("{:.2} %", 100.0 * value);
    }
    let hundredths = (value.abs() * 100.0).round() as u64;
    let mut digits = count(hundredths / 100);
    if !hundredths.is_multiple_of(100) {
        digits += format!(".{:02}", hundredths % 100).trim_end_matches('0');
    }
    with_unit(digits, figure.unit)
}
