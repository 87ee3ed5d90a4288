//! The fields of a logged request as text, and what they mean.

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::field_role::FieldRole;
use crate::ingest::parse_size;
use crate::line_error::LineError;
use crate::log_request::{LogRequest, LoggedSpans};
use crate::log_time;
use crate::span::{span_ns, wrong_span};
use crate::time::NS_PER_S;
use crate::url;

type Text<'a> = Option<Cow<'a, [u8]>>;

/// The fields of one line.
#[derive(Debug, Default)]
pub(crate) struct RawRequest<'a> {
    time: Text<'a>,
    end: Text<'a>,
    date: Text<'a>,
    client: Text<'a>,
    method: Text<'a>,
    host: Text<'a>,
    site: Text<'a>,
    target: Text<'a>,
    query: Text<'a>,
    served_path: Text<'a>,
    served_query: Text<'a>,
    request: Text<'a>,
    status: Text<'a>,
    size: Text<'a>,
    service_ns: Option<u64>,
    total_ns: Option<u64>,
    backend: Text<'a>,
    wrong_span: Option<LineError>,
}

impl<'a> RawRequest<'a> {
    /// Notes a field, and returns whether it says anything. Empty fields and `-` do not; `-` for a size is 0.
    pub(crate) fn set(&mut self, role: FieldRole, value: Cow<'a, [u8]>) -> bool {
        let nothing = value.is_empty() || *value == *b"-";
        let matters = match role {
            FieldRole::Size => *value == *b"-",
            FieldRole::Status => true,
            _ => false,
        };
        if nothing && !matters {
            return false;
        }
        let place = match role {
            FieldRole::Time => &mut self.time,
            FieldRole::End => &mut self.end,
            FieldRole::Date => &mut self.date,
            FieldRole::Client => &mut self.client,
            FieldRole::Method => &mut self.method,
            FieldRole::Host => &mut self.host,
            FieldRole::Site => &mut self.site,
            FieldRole::Target => &mut self.target,
            FieldRole::Query => &mut self.query,
            FieldRole::ServedPath => &mut self.served_path,
            FieldRole::ServedQuery => &mut self.served_query,
            FieldRole::Request => &mut self.request,
            FieldRole::Status => &mut self.status,
            FieldRole::Size => &mut self.size,
            FieldRole::Url => {
                self.host = url::authority(&value).map(|host| Cow::Owned(host.to_owned()));
                &mut self.target
            }
            FieldRole::Service(unit) => {
                self.service_ns = span_ns(&value, unit);
                // Balancers write so that there was no back-end.
                self.wrong_span = self.wrong_span.or(wrong_span(&value, unit).filter(|_| *value != *b"-1"));
                return self.service_ns.is_some();
            }
            FieldRole::Total(unit) => {
                self.total_ns = span_ns(&value, unit);
                self.wrong_span = self.wrong_span.or(wrong_span(&value, unit));
                return self.total_ns.is_some();
            }
            FieldRole::Backend => &mut self.backend,
        };
        *place = Some(value);
        !nothing
    }

    /// Whether the line says nothing of a request, as those of a log that holds other events too.
    pub(crate) fn is_no_request(&self) -> bool {
        let said = [&self.target, &self.request, &self.served_path, &self.size, &self.status];
        said.iter().all(|field| field.is_none())
    }

    /// What the fields mean.
    pub(crate) fn read(self) -> Result<LogRequest<'a>, LineError> {
        let total_ns = self.total_ns.or(self.service_ns).unwrap_or(0);
        let time_ns = arrival_ns(self.time, self.end, self.date, total_ns)?;
        let http11 = self.request.as_deref().is_some_and(url::is_http11);
        let (line_method, line_target) = match self.request.map(split_line) {
            Some(Ok((method, target))) => (Some(method), Some(Ok(target))),
            Some(Err(reason)) => (None, Some(Err(reason))),
            None => (None, None),
        };
        let target = match (self.target, line_target, self.served_path) {
            (Some(target), ..) => Ok(with_query(target, self.query)),
            (None, Some(target), _) => target,
            (None, None, Some(path)) => Ok(with_query(path, self.served_query)),
            (None, None, None) => Err(LineError::NoField { field: "target" }),
        };
        let method = line_method.or(self.method);
        let size_bytes = match self.size.as_deref() {
            None => Err(LineError::NoField { field: "size" }),
            Some(b"-") => Ok(0),
            Some(digits) => parse_size(digits),
        };
        Ok(LogRequest {
            time_ns,
            client: self.client.map(client_address),
            method,
            target,
            host: self.host,
            site: self.site,
            status: self.status.map(|text| status_number(&text)),
            size_bytes,
            service_ns: self.service_ns.or(self.total_ns),
            http11,
            spans: LoggedSpans {
                backend_ns: self.service_ns,
                total_ns: self.total_ns,
                wrong: self.wrong_span,
                backend: self.backend.map(last_backend),
                stamped_at_end: false,
            },
        })
    }
}

/// Of several back-ends that were tried, as nginx writes them, the last.
fn last_backend(logged: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match memchr::memrchr(b' ', &logged) {
        Some(at) => Cow::Owned(logged[at + 1..].to_owned()),
        None => logged,
    }
}

/// The number of a status, as `200` or `200 OK`; 0 for what is none.
fn status_number(text: &[u8]) -> u16 {
    let digits = text.split(|&b| b == b' ').next().unwrap_or_default();
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u16>().ok());
    number.filter(|number| *number < 1000).unwrap_or(0)
}

/// The client's address without its port, which differs from connection to connection; of several (`X-Forwarded-For`), the first.
fn client_address(logged: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let first = logged.split(|&b| b == b',').next().unwrap_or_default().trim_ascii();
    let first = first.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(first);
    let with_port = std::str::from_utf8(first).ok().and_then(|text| text.parse::<SocketAddr>().ok());
    match with_port {
        Some(address) => Cow::Owned(address.ip().to_string().into_bytes()),
        None if first.len() == logged.len() => logged,
        None => Cow::Owned(first.to_owned()),
    }
}

/// When the request arrived: as logged, or the end of its answer less what it took, in whole seconds if the log
/// writes those.
fn arrival_ns(time: Text<'_>, end: Text<'_>, date: Text<'_>, total_ns: u64) -> Result<u64, LineError> {
    let ended = time.is_none();
    let stamp = time.or(end).ok_or(LineError::NoField { field: "time" })?;
    let stamp = match date {
        Some(date) => log_time::parse(&[&date, &b" "[..], &stamp].concat())?,
        None => log_time::parse(&stamp)?,
    };
    if !ended {
        return Ok(stamp.ns);
    }
    Ok(stamp.ns.saturating_sub(if stamp.whole { total_ns / NS_PER_S * NS_PER_S } else { total_ns }))
}

fn with_query<'a>(target: Cow<'a, [u8]>, query: Text<'a>) -> Cow<'a, [u8]> {
    match query {
        Some(query) if !target.contains(&b'?') => {
            let mark: &[u8] = if query.starts_with(b"?") { b"" } else { b"?" };
            Cow::Owned([&target, mark, &query].concat())
        }
        _ => target,
    }
}

/// Method and target.
type MethodTarget<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Splits a request line.
fn split_line(request: Cow<'_, [u8]>) -> Result<MethodTarget<'_>, LineError> {
    match request {
        Cow::Borrowed(line) => {
            let (method, target) = url::split_request_line(line)?;
            Ok((Cow::Borrowed(method), Cow::Borrowed(target)))
        }
        Cow::Owned(line) => {
            let (method, target) = url::split_request_line(&line)?;
            Ok((Cow::Owned(method.to_owned()), Cow::Owned(target.to_owned())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_role::SpanUnit;

    fn raw(fields: &[(FieldRole, &'static str)]) -> RawRequest<'static> {
        let mut raw = RawRequest::default();
        for (role, text) in fields {
            raw.set(*role, Cow::Borrowed(text.as_bytes()));
        }
        raw
    }

    #[test]
    fn the_end_of_an_answer_gives_its_arrival() {
        let read = |time| {
            raw(&[
                (FieldRole::End, time),
                (FieldRole::Total(SpanUnit::Ms), "1500"),
                (FieldRole::Service(SpanUnit::S), "0.5"),
            ])
            .read()
            .unwrap()
        };
        assert_eq!(read("100.25").time_ns, 98_750_000_000);
        // Whole seconds stay whole.
        assert_eq!(read("100").time_ns, 99_000_000_000);
        assert_eq!(read("100").service_ns, Some(500_000_000));
        let arrived =
            raw(&[(FieldRole::Time, "7"), (FieldRole::End, "9"), (FieldRole::Total(SpanUnit::S), "1")]);
        assert_eq!(arrived.read().unwrap().time_ns, 7_000_000_000);
    }

    #[test]
    fn clients_are_addresses_without_ports() {
        for (logged, kept) in [
            ("192.0.2.7:51234", "192.0.2.7"),
            ("[2001:db8::1]:80", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("192.0.2.7, 10.0.0.1", "192.0.2.7"),
            ("name", "name"),
        ] {
            assert_eq!(*client_address(Cow::Borrowed(logged.as_bytes())), *kept.as_bytes(), "{logged}");
        }
    }

    #[test]
    fn a_query_in_a_field_of_its_own_joins_the_target() {
        let target = |query| {
            let request =
                raw(&[(FieldRole::Time, "1"), (FieldRole::Target, "/a"), (FieldRole::Query, query)])
                    .read()
                    .unwrap();
            String::from_utf8(request.target.unwrap().into_owned()).unwrap()
        };
        assert_eq!((target("-"), target("b=1"), target("?b")), ("/a".into(), "/a?b=1".into(), "/a?b".into()));
    }

    #[test]
    fn what_was_asked_for_wins_over_what_the_server_made_of_it() {
        let served = [(FieldRole::ServedPath, "/index.php"), (FieldRole::ServedQuery, "q=1")];
        let read = |more: &[(FieldRole, &'static str)]| {
            let time = [(FieldRole::Time, "1")];
            let request = raw(&[&time[..], &served, more].concat()).read().unwrap();
            let text = |text: Cow<'_, [u8]>| String::from_utf8(text.into_owned()).unwrap();
            (request.method.map(text), text(request.target.unwrap()))
        };
        assert_eq!(read(&[]), (None, "/index.php?q=1".into()));
        let line = (FieldRole::Request, "POST /asked HTTP/1.1");
        assert_eq!(read(&[line]), (Some("POST".into()), "/asked".into()));
        // The method of the request line counts even if the target stands in a field of its own.
        assert_eq!(read(&[line, (FieldRole::Target, "/t")]), (Some("POST".into()), "/t".into()));
    }

    #[test]
    fn a_status_is_a_number_or_begins_with_one() {
        for (text, number) in [("200", 200), ("200 OK", 200), ("-", 0), ("", 0), ("ok", 0), ("2000", 0)] {
            assert_eq!(status_number(text.as_bytes()), number, "{text}");
        }
        // A status that is there and says nothing is not taken for 200.
        let request = raw(&[(FieldRole::Time, "1"), (FieldRole::Status, "-")]).read().unwrap();
        assert_eq!(request.status, Some(0));
    }

    #[test]
    fn an_empty_size_is_missing() {
        let size = |text| raw(&[(FieldRole::Time, "1"), (FieldRole::Size, text)]).read().unwrap().size_bytes;
        assert_eq!((size("-"), size("7")), (Ok(0), Ok(7)));
        assert_eq!(size(""), Err(LineError::NoField { field: "size" }));
    }

    #[test]
    fn what_counts_needs_a_size_and_all_else_a_target() {
        let read = |fields: &[(FieldRole, &'static str)]| {
            let request = raw(&[&[(FieldRole::Time, "1")], fields].concat()).read().unwrap();
            (request.is_sensible(), request.asks())
        };
        let (target, size) = ((FieldRole::Target, "/a"), (FieldRole::Size, "7"));
        assert_eq!(read(&[target, size]), (true, true));
        assert_eq!(read(&[target]), (false, true));
        assert_eq!(read(&[target, (FieldRole::Status, "404")]), (true, true));
        assert_eq!(read(&[(FieldRole::Request, "?"), (FieldRole::Status, "400")]), (true, true));
        assert_eq!(read(&[(FieldRole::Status, "started")]), (true, false));
    }

    #[test]
    fn a_site_is_named_without_its_port() {
        let site = |url: &'static str| {
            let fields = [(FieldRole::Time, "1"), (FieldRole::Target, url)];
            raw(&fields).read().unwrap().left_out_site()
        };
        assert_eq!(site("http://A.example.org:80/").as_deref(), Some("a.example.org"));
        assert_eq!(site("http://[2001:db8::1]/").as_deref(), Some("[2001:db8::1]"));
        assert_eq!(site("/"), None);
    }
}
