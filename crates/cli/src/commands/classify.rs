//! `plimsoll classify`: learns content classes and their costs from access logs, or from an idle server.

mod live;
mod root;
mod show;
mod sources;

use std::fs;
use std::path::PathBuf;

use plimsoll_classes::learn::{ClassLearner, LearnOptions, LearnedClasses, ObservedRequest};
use plimsoll_report::format;
use plimsoll_trace::{
    FieldMap, FieldsAfterSize, Format, ReadOptions, ReadReport, TraceInput, read_timed_requests,
};

use self::live::LivePlan;
use self::sources::DurationSources;
use crate::error::CliError;
use crate::{output, values};

/// Arguments of `classify`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The class file goes to standard output and the report to standard error; with --out, the report goes to standard output. A log has to \
tell how long requests took: nginx's $upstream_response_time or $request_time, Apache's %D, our own access log with format = \"json\", \
or a column service_s in CSV. The demand of a request, without waiting for others, is estimated from all requests of the log, so give \
whole logs of all front-ends.

Examples:
  plimsoll classify access.log -o classes.toml
  plimsoll classify access.log.1 access.log --after-size total_us --workers 4 --json
  plimsoll classify --live http://127.0.0.1:8080 --uris uris.txt -o classes.toml
  plimsoll classify --root /srv/www -o files.list --watch")]
pub(crate) struct Args {
    /// Access logs in the order of their times, of any format that has durations (see `plimsoll trace formats`); `-` is standard input
    #[arg(value_name = "LOG", required_unless_present_any = ["live", "root"], conflicts_with_all = ["live", "root"])]
    logs: Vec<String>,

    /// Write the class file here
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The most classes
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    most_classes: u16,

    /// Merge classes whose mean costs differ by less than this share of the lesser one
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = values::share)]
    similar: f64,

    /// Workers or cores of each back-end; inferred from the log unless given, where its times are fine enough
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    workers: Option<u32>,

    /// What follows the usual fields of a common or combined log, such as total_s,service_s,backend: total_s|ms|us is the time of the
    /// whole request, service_s|ms|us that of the back-end, `-` is passed over; told from their form unless given
    #[arg(long, value_name = "FIELD,…")]
    after_size: Option<FieldsAfterSize>,

    /// Format of the logs (see `plimsoll trace formats`); told from their content unless given
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Which fields of a log of JSON lines, or of one with a line `#Fields:`, say what, as for `plimsoll simulate`; also backend
    #[arg(long, value_name = "WHAT=FIELD,…")]
    fields: Option<FieldMap>,

    /// Share of lines that may be unusable before reading is an error
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = values::share)]
    max_bad_ratio: f64,

    /// Use only the first N requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Measure these URLs of an idle server instead, one request at a time
    #[arg(long, value_name = "URL", num_args = 1..)]
    live: Vec<String>,

    /// Measure the URIs of this file, one path and query a line, at the server of the only URL of --live
    #[arg(long, value_name = "FILE", requires = "live")]
    uris: Option<PathBuf>,

    /// List the files below this directory instead, with their sizes, for `direct.file_list` of a layer-4 front-end
    #[arg(long, value_name = "DIR", conflicts_with = "live")]
    root: Option<PathBuf>,

    /// Write the list of --root again after each change, until it is stopped
    #[arg(long, requires = "root", requires = "out")]
    watch: bool,

    /// Requests for each URL of --live
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(10..=1000))]
    requests: u32,

    /// Give up measuring after this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = values::positive)]
    limit_s: f64,

    /// Print one JSON object instead of text; the class file is written only with --out
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if let Some(root) = &args.root {
        return root::run(root, args.out.as_deref(), args.watch);
    }
    let options = LearnOptions {
        most_classes: usize::from(args.most_classes),
        similar: args.similar,
        workers: args.workers,
    };
    let mut learner = ClassLearner::new(&options);
    let mut sources = DurationSources { live: !args.live.is_empty(), ..DurationSources::default() };
    if sources.live {
        LivePlan::read(&args.live, args.uris.as_deref(), args.requests, args.limit_s)?
            .measure(&mut learner)?;
    } else {
        let report = read_logs(args, &mut learner, &mut sources)?;
        eprint!("{}", said_of_reading(&report, &sources));
        if learner.requests() == 0 {
            return Err(CliError::Failed(format!(
                "{} has no request with a path that was answered with a status from 200 to 299; only such requests show what their \
                 class costs",
                args.logs.join(", ")
            )));
        }
    }
    let learned =
        learner.learn().map_err(|error| CliError::Failed(format!("{}: {error}", args.logs.join(", "))))?;
    write(args, &learned, &sources)
}

fn read_logs(
    args: &Args,
    learner: &mut ClassLearner,
    sources: &mut DurationSources,
) -> Result<ReadReport, CliError> {
    let inputs: Vec<TraceInput> = args.logs.iter().map(TraceInput::from_arg).collect();
    let options = ReadOptions {
        format: args.format,
        fields: args.fields.clone(),
        max_bad_ratio: args.max_bad_ratio,
        limit: args.limit,
        ..ReadOptions::default()
    };
    let mut take = |request: &plimsoll_trace::TimedRequest<'_>| {
        let with_client = request.backend_ns.is_none();
        if with_client {
            sources.of_request += 1;
        } else {
            sources.of_backend += 1;
        }
        let counts = (200..300).contains(&request.status);
        sources.not_successful += u64::from(!counts);
        learner.observe(&ObservedRequest {
            begins_ns: request.begins_ns,
            takes_ns: request.backend_ns.or(request.total_ns).unwrap_or(0),
            method: request.method,
            path_and_query: request.target,
            size_bytes: request.size_bytes,
            backend: request.backend,
            with_client,
            counts,
        });
    };
    Ok(read_timed_requests(&inputs, &options, args.after_size.as_ref(), &mut take)?)
}

/// How the log was read, as lines for standard error.
fn said_of_reading(report: &ReadReport, sources: &DurationSources) -> String {
    let mut out = String::new();
    if let Some(first) = &report.first_line {
        out += &format!("{first}\n");
    }
    if let Some(format) = report.format {
        out += &format!(
            "Read as {}: {} lines, {} requests with a duration.\n",
            format.name(),
            format::count(report.lines),
            format::count(report.records)
        );
    }
    if !report.not_counted.is_empty() {
        let parts: Vec<String> =
            report.not_counted.iter().map(|(why, n)| format!("{why}: {}", format::count(*n))).collect();
        out += &format!("Left out: {}.\n", parts.join(", "));
    }
    if sources.not_successful > 0 {
        out += &format!(
            "{} requests have another status than 200 to 299: they count as load, and belong to no class.\n",
            format::count(sources.not_successful)
        );
    }
    if !report.unseen_fields.is_empty() {
        out += &format!(
            "Warning: none of the first lines has what --fields names: {}.\n",
            report.unseen_fields.join(", ")
        );
    }
    if report.lines_rejected > 0 {
        out += &format!("Warning: {} lines could not be used.\n", format::count(report.lines_rejected));
        for rejected in &report.rejections {
            out += &format!("Warning: {rejected}\n");
        }
    }
    out
}

fn write(args: &Args, learned: &LearnedClasses, sources: &DurationSources) -> Result<(), CliError> {
    let file = format!(
        "# Content classes, learned by plimsoll classify. The form is in docs/classify.md.\n\n{}",
        learned.table.write()
    );
    if let Some(path) = &args.out {
        fs::write(path, &file).map_err(|error| CliError::writing(path, &error))?;
    }
    if args.json {
        return output::print(&show::json(learned, sources).to_string());
    }
    let text = show::text(learned, sources);
    if args.out.is_some() {
        return output::print(&text);
    }
    eprint!("{text}");
    output::print(&file)
}
