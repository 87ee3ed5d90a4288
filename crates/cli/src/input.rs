//! Where requests come from: files, standard input, or a synthetic workload.

use plimsoll_report::format;
use plimsoll_studies::Workload;
use plimsoll_trace::{
    FieldMap, Format, Include, QueryStrings, ReadOptions, ReadReport, Trace, TraceInput, load,
};

use crate::error::CliError;
use crate::values;

/// How to read traces; shared by every command that does.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ReadArgs {
    /// Format of the traces (see `plimsoll trace formats`); told from their content unless given
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    /// Which fields of a log of JSON lines, or of one with a line `#Fields:`, say what, such as
    /// time=ts,target=request.uri,size=bytes; also end, date, query, request, status, method, client, host,
    /// service_s|ms|us|ns, total_s|ms|us|ns and backend. A number for size is that of every request
    #[arg(long, value_name = "WHAT=FIELD,…")]
    pub(crate) fields: Option<FieldMap>,

    /// Share of lines that may be unusable before reading is an error
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = values::share)]
    pub(crate) max_bad_ratio: f64,

    /// Count every request, not only GET and HEAD answered with 200, 206 or 304
    #[arg(long)]
    pub(crate) include_all: bool,

    /// Leave the query string out of the target
    #[arg(long)]
    pub(crate) strip_query: bool,

    /// Use only the first N requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}

impl ReadArgs {
    pub(crate) fn options(&self, seed: u64) -> ReadOptions {
        ReadOptions {
            format: self.format,
            fields: self.fields.clone(),
            seed,
            max_bad_ratio: self.max_bad_ratio,
            include: if self.include_all { Include::All } else { Include::Counted },
            limit: self.limit,
            strip_query: self.strip_query,
            ..ReadOptions::default()
        }
    }
}

/// Prefix of synthetic workloads in place of a trace.
const SYNTH: &str = "synth:";

/// Reads one or several traces, or makes the synthetic workload `synth:NAME,key=value,…`.
pub(crate) fn workload(traces: &[String], options: &ReadOptions) -> Result<Workload, CliError> {
    if let [only] = traces
        && let Some(rest) = only.strip_prefix(SYNTH)
    {
        return synthetic(rest, options);
    }
    if traces.iter().any(|t| t.starts_with(SYNTH)) {
        return Err(CliError::Usage(
            "a synthetic workload cannot be joined with other traces; give it alone".into(),
        ));
    }
    let inputs: Vec<TraceInput> = traces.iter().map(TraceInput::from_arg).collect();
    Ok(Workload::from_trace(read(&inputs, options)?))
}

/// Reads inputs as one trace, and shows the first line and what was made of it, so that a misreading is seen.
pub(crate) fn read(inputs: &[TraceInput], options: &ReadOptions) -> Result<Trace, CliError> {
    let trace = load(inputs, options)?;
    if let Some(first) = &trace.report.first_line {
        eprintln!("{first}");
    }
    Ok(trace)
}

fn synthetic(rest: &str, options: &ReadOptions) -> Result<Workload, CliError> {
    let mut parts = rest.split(',');
    let name = parts.next().unwrap_or_default();
    let mut settings = Vec::new();
    for part in parts {
        settings.push(values::setting(part).map_err(CliError::Usage)?);
    }
    let overrides: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut workload = Workload::synthesize_first(name, &overrides, options.seed, options.limit)?;
    workload.info.path = format!("{SYNTH}{rest}");
    Ok(workload)
}

/// Notes on how the trace was read, in sentences, but for what becomes of its times.
pub(crate) fn notes(report: &ReadReport) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(format) = report.format {
        notes.push(format!(
            "Read as {}: {} lines, {} requests counted.",
            format.name(),
            format::count(report.lines),
            format::count(report.records)
        ));
    }
    if report.out_of_order > 0 {
        notes.push(format!(
            "{} requests were out of order and have been sorted in.",
            format::count(report.out_of_order)
        ));
    }
    if !report.not_counted.is_empty() {
        let parts: Vec<String> =
            report.not_counted.iter().map(|(why, n)| format!("{why}: {}", format::count(*n))).collect();
        notes.push(format!("Not counted: {}.", parts.join(", ")));
    }
    notes
}

/// What a user may want to read otherwise, in sentences.
pub(crate) fn hints(trace: &Trace) -> Vec<String> {
    let mut hints = Vec::new();
    if let (Some(format), Some(other)) = (trace.report.format, trace.report.resembles) {
        hints.push(format!("Read as {format} because --format says so; its content looks like {other}."));
    }
    let unseen = &trace.report.unseen_fields;
    if !unseen.is_empty() {
        hints.push(format!("None of the first lines has what --fields names: {}.", unseen.join(", ")));
    }
    if let [one, other, ..] = &trace.report.left_out_sites[..] {
        let remedy = if trace.report.format.is_some_and(Format::has_named_fields) {
            "tell them apart with --fields host=FIELD, the field that names the site"
        } else {
            "read the lines of each alone"
        };
        hints.push(format!(
            "The first lines ask {} sites, such as {one} and {other}, which targets leave out: equal paths count as one target. \
             If the sites hold different documents, {remedy}.",
            format::count(trace.report.left_out_sites.len() as u64)
        ));
    }
    let queries = QueryStrings::of(&trace.targets);
    if queries.matter() {
        hints.push(format!(
            "{} of {} targets ({} of the requests) differ only by the query string from others and are asked for once, so \
             no cache ever has them. If the query does not change the document, give --strip-query.",
            format::count(queries.targets_once),
            format::count(trace.targets.len() as u64),
            format::percent(queries.share())
        ));
    }
    hints
}

/// Problems of the trace, in sentences.
pub(crate) fn warnings(trace: &Trace) -> Vec<String> {
    let mut warnings = hints(trace);
    let report = &trace.report;
    if report.lines_rejected > 0 {
        warnings.push(format!(
            "{} of {} lines could not be used.",
            format::count(report.lines_rejected),
            format::count(report.lines)
        ));
        warnings.extend(report.rejections.iter().map(ToString::to_string));
    }
    warnings
}
