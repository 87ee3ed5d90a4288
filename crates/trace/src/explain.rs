//! What is read from the first line of an input.

use crate::first_line::{FirstLine, shown, time_text};
use crate::format::Format;
use crate::format_spec::Decode;
use crate::options::ReadOptions;
use crate::prefix::Prefix;
use crate::raw_request::LogRequest;

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

/// What a request says, as pairs of name and value.
fn told(request: &LogRequest<'_>, strip_query: bool) -> Vec<(&'static str, String)> {
    let text = |bytes: &[u8]| shown(bytes);
    let logged = |value: Option<String>| value.unwrap_or_else(|| "not logged".to_owned());
    let target = match (request.named(strip_query), &request.target) {
        (Some(target), _) => text(&target),
        (None, Ok(target)) => text(target),
        (None, Err(reason)) => format!("none ({reason})"),
    };
    let service = request.service_ns.map(|service_ns| format!("{} s", service_ns as f64 / 1e9));
    let size = match request.size_bytes {
        Ok(size_bytes) => format!("{size_bytes} bytes"),
        Err(reason) => format!("none ({reason})"),
    };
    vec![
        ("time", time_text(request.time_ns)),
        ("client", logged(request.client.as_deref().map(text))),
        ("method", logged(request.method.as_deref().map(text))),
        ("target", target),
        ("status", logged(request.status.map(|status| status.to_string()))),
        ("size", size),
        ("service time", logged(service)),
    ]
}
