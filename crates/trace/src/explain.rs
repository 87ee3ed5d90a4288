//! What is read from the first line of an input.

use std::collections::BTreeMap;

use crate::first_line::{FirstLine, shown, time_text};
use crate::format::Format;
use crate::format_spec::Decode;
use crate::log_request::LogRequest;
use crate::options::ReadOptions;
use crate::prefix::Prefix;

/// The first request of the prefix and what its line says.
pub(crate) fn explain(
    format: Format,
    prefix: &Prefix<'_>,
    path: &str,
    options: &ReadOptions,
) -> Option<FirstLine> {
    let (at, request) = match &format.spec().decode {
        Decode::Lines(log) => log.first_of(prefix.lines(), options).ok()?,
        Decode::Own { explain, .. } => {
            let explain = (*explain)?;
            let read = prefix.lines().enumerate().find_map(|(at, line)| Some((at, explain(line).ok()?)));
            read?
        }
    };
    let read = told(&request, options.strip_query);
    Some(FirstLine::of_line(path, format, prefix.numbered().nth(at)?, read))
}

/// A site counts if at least one in so many requests asks it: a scanner may ask any.
const RARE_SITE: usize = 20;

/// The sites that the first lines ask, where targets leave them out, so that equal paths on several count as one.
pub(crate) fn left_out_sites(format: Format, prefix: &Prefix<'_>, options: &ReadOptions) -> Vec<String> {
    let asked: Vec<String> = match &format.spec().decode {
        Decode::Lines(log) => log.sites(prefix.lines(), options),
        Decode::Own { explain: Some(explain), .. } => {
            prefix.lines().filter_map(|line| explain(line).ok()?.left_out_site()).collect()
        }
        Decode::Own { .. } => Vec::new(),
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for site in &asked {
        *counts.entry(site).or_default() += 1;
    }
    let often = counts.into_iter().filter(|(_, count)| count * RARE_SITE >= asked.len());
    often.map(|(site, _)| site.to_owned()).collect()
}

/// What a request says, as pairs of name and value.
fn told(request: &LogRequest<'_>, strip_query: bool) -> Vec<(&'static str, String)> {
    let text = |bytes: &[u8]| shown(bytes);
    let target = match (request.named(strip_query), &request.target) {
        (Some(target), _) => text(&target),
        (None, Ok(target)) => text(target),
        (None, Err(reason)) => format!("none ({reason})"),
    };
    let size = match request.size_bytes {
        Ok(size_bytes) => format!("{size_bytes} bytes"),
        Err(reason) => format!("none ({reason})"),
    };
    let LogRequest { client, method, status, service_ns, .. } = request;
    let mut told = vec![("time", time_text(request.time_ns))];
    // A trace of times, targets and sizes has no place for these.
    if client.is_some() || method.is_some() || status.is_some() {
        told.push(("client", client.as_deref().map_or_else(|| "none".to_owned(), text)));
        told.push(("method", method.as_deref().map_or_else(|| "none (taken for GET)".to_owned(), text)));
    }
    told.push(("target", target));
    if told.len() > 2 {
        told.push(("status", status.map_or_else(|| "none (taken for 200)".to_owned(), |s| s.to_string())));
    }
    told.push(("size", size));
    told.push((
        "service time",
        service_ns.map_or_else(|| "none".to_owned(), |ns| format!("{} s", ns as f64 / 1e9)),
    ));
    told
}
