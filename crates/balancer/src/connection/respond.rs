//! Answers of the front-end itself.

use crate::http::RequestRefusal;
use crate::http::fields::push;
use crate::http::host::without_port;
use crate::http::request::Span;
use plimsoll_observe::line::push_number;

/// Begins an answer in `out`, which is cleared before, with the status and the time.
pub(super) fn begin(status: u16, date: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(b"HTTP/1.1 ");
    push_number(out, u64::from(status));
    out.push(b' ');
    let reason = http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
    out.extend_from_slice(reason.unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    push(out, b"Date", date);
}

/// Ends the head of an answer without content.
pub(super) fn end_without_content(keep: bool, out: &mut Vec<u8>) {
    if !keep {
        push(out, b"Connection", b"close");
    }
    out.extend_from_slice(b"Content-Length: 0\r\n\r\n");
}

/// Writes an answer to `out`, which is cleared before: a short text that says why, or nothing to HEAD and in 204.
pub(crate) fn answer(
    refusal: RequestRefusal,
    keep: bool,
    retry_after_s: Option<u32>,
    to_head: bool,
    date: &[u8],
    out: &mut Vec<u8>,
) {
    begin(refusal.status, date, out);
    if let Some(seconds) = retry_after_s {
        out.extend_from_slice(b"Retry-After: ");
        push_number(out, u64::from(seconds));
        out.extend_from_slice(b"\r\n");
    }
    if !keep {
        push(out, b"Connection", b"close");
    }
    if refusal.status == 204 {
        out.extend_from_slice(b"\r\n");
        return;
    }
    push(out, b"Content-Type", b"text/plain; charset=utf-8");
    out.extend_from_slice(b"Content-Length: ");
    push_number(out, refusal.content_bytes(false));
    out.extend_from_slice(b"\r\n\r\n");
    if !to_head {
        out.extend_from_slice(refusal.why.as_bytes());
        out.push(b'\n');
    }
}

/// The target and the host without port, if there is one, of a request as it was rewritten.
pub(super) fn asked_for(head: &[u8], line: Span) -> (&[u8], Option<&[u8]>) {
    let target = line.of(head).splitn(2, |&b| b == b' ').nth(1).unwrap_or(b"/");
    // It stands first, right behind the line.
    let fields = head.get(line.end as usize..).unwrap_or_default();
    let host =
        fields.strip_prefix(b" HTTP/1.1\r\nHost: ").and_then(|rest| rest.split(|&b| b == b'\r').next());
    (target, host.map(without_port).filter(|host| !host.is_empty()))
}

/// Writes an answer (308, RFC 9110, section 15.4.9) to `out` that sends a client to the same target by HTTPS at this port. `head`
/// is the request as it was rewritten, `line` its method and target. False, and nothing useful written, where it names no host.
pub(crate) fn to_https(
    head: &[u8],
    line: Span,
    port: u16,
    keep: bool,
    date: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let (target, host) = asked_for(head, line);
    let Some(host) = host else { return false };
    if !target.starts_with(b"/") {
        return false;
    }
    begin(308, date, out);
    out.extend_from_slice(b"Location: https://");
    out.extend_from_slice(host);
    if port != 443 {
        out.push(b':');
        push_number(out, u64::from(port));
    }
    out.extend_from_slice(target);
    out.extend_from_slice(b"\r\n");
    end_without_content(keep, out);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_why() {
        let mut out = Vec::new();
        answer(RequestRefusal::of(503, "no room"), true, Some(1), false, b"now", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 503 Service Unavailable\r\nDate: now\r\nRetry-After: 1\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: 8\r\n\r\nno room\n"
        );
    }

    #[test]
    fn the_same_target_by_https() {
        let of = |head: &[u8], port| {
            let end = head.windows(9).position(|w| w == b" HTTP/1.1").unwrap() as u32;
            let mut out = Vec::new();
            let is_sent = to_https(head, Span { start: 0, end }, port, true, b"now", &mut out);
            is_sent.then(|| String::from_utf8(out).unwrap())
        };
        let sent = of(b"GET /a?b=c HTTP/1.1\r\nHost: a.example:8080\r\nVia: x\r\n\r\n", 443).unwrap();
        assert_eq!(
            sent,
            "HTTP/1.1 308 Permanent Redirect\r\nDate: now\r\nLocation: https://a.example/a?b=c\r\nContent-Length: 0\r\n\r\n"
        );
        let sent = of(b"POST / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 8443).unwrap();
        assert!(sent.contains("Location: https://[::1]:8443/\r\n"), "{sent}");
        assert_eq!(of(b"GET / HTTP/1.1\r\nHost: \r\n\r\n", 443), None);
        assert_eq!(of(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 443), None);
    }
}
