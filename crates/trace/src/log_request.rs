//! A request as a log line tells it, and whether it counts.

use std::borrow::Cow;

use crate::error::TraceError;
use crate::ingest::{DecodedRequest, Ingest, answer_of};
use crate::line_error::LineError;
use crate::options::Include;
use crate::url;
use plimsoll_synth::RecordKind;

/// A request as a log line tells it. What matters only for requests that count may be missing.
#[derive(Debug)]
pub(crate) struct LogRequest<'a> {
    pub(crate) time_ns: u64,
    pub(crate) client: Option<Cow<'a, [u8]>>,
    /// `None` where the log names no method: GET.
    pub(crate) method: Option<Cow<'a, [u8]>>,
    /// As logged; path or URL.
    pub(crate) target: Result<Cow<'a, [u8]>, LineError>,
    pub(crate) host: Option<Cow<'a, [u8]>>,
    /// The site that the client asked, where it is no part of the target.
    pub(crate) site: Option<Cow<'a, [u8]>>,
    /// `None` where the log has no status: 200.
    pub(crate) status: Option<u16>,
    pub(crate) size_bytes: Result<u64, LineError>,
    /// `None` where the log has no service time.
    pub(crate) service_ns: Option<u64>,
    /// Whether the log names HTTP/1.1.
    pub(crate) http11: bool,
    /// What only learning classes asks for.
    pub(crate) spans: LoggedSpans<'a>,
}

/// How long a request took, by parts, and who answered it.
#[derive(Debug, Default)]
pub(crate) struct LoggedSpans<'a> {
    /// How long the back-end worked.
    pub(crate) backend_ns: Option<u64>,
    /// How long the request took as a whole.
    pub(crate) total_ns: Option<u64>,
    /// What is wrong with one of them.
    pub(crate) wrong: Option<LineError>,
    /// The back-end that answered.
    pub(crate) backend: Option<Cow<'a, [u8]>>,
    /// Whether the form of the durations is nginx's, whose log has the time of the end.
    pub(crate) stamped_at_end: bool,
}

impl LogRequest<'_> {
    /// Whether the status is that of a document.
    pub(crate) fn has_counted_status(&self) -> bool {
        self.status.is_none_or(|status| matches!(status, 200 | 206 | 304))
    }

    /// Whether everything is there that a request that counts needs.
    pub(crate) fn is_sensible(&self) -> bool {
        !self.has_counted_status() || (self.target.is_ok() && self.size_bytes.is_ok())
    }

    /// Whether the line says what was asked for, however odd that is.
    pub(crate) fn asks(&self) -> bool {
        !matches!(self.target, Err(LineError::NoField { .. }))
    }

    /// The site of a request that counts, where its target leaves it out.
    pub(crate) fn left_out_site(&self) -> Option<String> {
        let site = self.site.as_deref().or_else(|| url::authority(self.target.as_deref().ok()?));
        let counts = self.has_counted_status() && self.host.is_none();
        let site = String::from_utf8_lossy(site.filter(|_| counts)?).to_lowercase();
        // Ports tell ways to a site, not sites.
        let host = site.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        Some(host.map_or(site.as_str(), |(host, _)| host).to_owned())
    }

    /// The target as a trace names it: the site, if the log names it, and the path; `None` for one that names no document.
    pub(crate) fn named(&self, strip_query: bool) -> Option<Cow<'_, [u8]>> {
        let path = url::target(self.target.as_deref().ok()?, strip_query)?;
        Some(match &self.host {
            Some(host) => Cow::Owned([&host.to_ascii_lowercase(), &*path].concat()),
            None => path,
        })
    }
}

/// Counts a request, or notes why it does not count.
pub(crate) fn take(out: &mut Ingest, number: u64, request: &LogRequest<'_>) -> Result<(), TraceError> {
    let counted_status = request.has_counted_status();
    let only_counted = out.include == Include::Counted;
    if !counted_status && only_counted {
        out.tally.not_counted_status(request.status.unwrap_or(0));
        return Ok(());
    }
    let method = request.method.as_deref().unwrap_or(b"GET");
    if let Err(reason) = request.target {
        if counted_status {
            out.reject(number, reason);
        } else {
            out.tally.not_counted_target();
        }
        return Ok(());
    }
    if only_counted && !matches!(method, b"GET" | b"HEAD") {
        out.tally.not_counted_method(method);
        return Ok(());
    }
    let Some(target) = request.named(out.strip_query) else {
        if counted_status && only_counted {
            out.reject(number, LineError::Text("target is neither a path nor a URL"));
        } else {
            out.tally.not_counted_target();
        }
        return Ok(());
    };
    let head = method == b"HEAD";
    let size_bytes = if head || request.status == Some(304) { Ok(0) } else { request.size_bytes };
    let size_bytes = match size_bytes {
        Ok(size_bytes) => size_bytes,
        Err(reason) => {
            out.reject(number, reason);
            return Ok(());
        }
    };
    let entry = DecodedRequest {
        time_ns: request.time_ns,
        target: &target,
        client: request.client.as_deref(),
        size_bytes,
        whole: request.status.is_none_or(|status| status == 200) && !head,
        service_ns: request.service_ns.unwrap_or(0),
        class: 0,
        kind: RecordKind::Static,
        answer: answer_of(request.status.unwrap_or(200)),
        http11: request.http11,
    };
    out.accept(number, &entry)
}
