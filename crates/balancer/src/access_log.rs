//! What the access log tells of a request at the front-end.

use plimsoll_config::{AccessLogFormat, ClassesConfig};
use plimsoll_observe::line::{AccessLine, CodedLine, Moment, RequestLine, RoutedLine, write_line};

use crate::http::HttpVersion;
use crate::http::request::Span;
use crate::observe::RequestRecord;

/// What lines tell beside their request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineContext<'a> {
    /// The policy.
    pub(crate) policy: &'a str,
    /// Classes of requests; without them lines have none.
    pub(crate) classes: Option<&'a ClassesConfig>,
    /// The pool of the request, where there are routes.
    pub(crate) pool: Option<&'a str>,
}

/// Appends the line of a request that ended at this moment.
pub(crate) fn line(
    format: AccessLogFormat,
    record: &RequestRecord<'_>,
    context: LineContext<'_>,
    end: Moment<'_>,
    out: &mut Vec<u8>,
) {
    let head = record.head;
    let mechanism = if record.handed_off { "handoff" } else { "proxy" };
    let line = AccessLine {
        routed: context.pool.map(|pool| RoutedLine { pool: head.map(|_| pool), route: record.route }),
        client: record.peer,
        request: request_line(record),
        referer: value(record, head.map(|head| head.referer)),
        user_agent: value(record, head.map(|head| head.user_agent)),
        status: record.status,
        content_bytes: record.content_bytes,
        coded: record
            .coded
            .map(|(coding, original_bytes)| CodedLine { coding: coding.name(), original_bytes }),
        hit: record.hit,
        policy: context.policy,
        backend: record.backend.map(|backend| &*backend.name),
        reason: record.reason.map(|reason| reason.name()),
        refused: record.refused.map(|refused| refused.name()),
        mechanism: record.backend.map(|_| mechanism),
        attempts: record.attempts,
        waited: record.waited,
        times: record.times,
        class: context.classes.map(|classes| {
            let class = head.and_then(|head| classes.file.table.class(head.class.number));
            class.map(|class| &*class.name)
        }),
    };
    write_line(format, &line, end, out);
}

/// Method, target and version; `None` for a request that was not understood.
fn request_line<'a>(record: &RequestRecord<'a>) -> Option<RequestLine<'a>> {
    let Some(head) = record.head else { return record.raw_line };
    let line = head.line.of(record.head_bytes);
    let (method, target) = line.split_at(memchr::memchr(b' ', line).unwrap_or(line.len()));
    let version = match head.version {
        HttpVersion::Http2 => "HTTP/2.0",
        HttpVersion::Http11 => "HTTP/1.1",
        HttpVersion::Http10 => "HTTP/1.0",
    };
    Some(RequestLine { method, target: target.get(1..).unwrap_or_default(), version })
}

/// The value of a field that is there and not empty.
fn value<'a>(record: &RequestRecord<'a>, span: Option<Span>) -> Option<&'a [u8]> {
    span.filter(|&span| span != Span::default())
        .map(|span| span.of(record.head_bytes))
        .filter(|v| !v.is_empty())
}

#[cfg(test)]
mod tests;
