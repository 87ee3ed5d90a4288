//! Answers of the front-end itself.

use crate::http::RequestRefusal;
use crate::http::fields::push;
use plimsoll_observe::line::push_number;

/// Writes an answer to `out`, which is cleared before: a short text that says why, or nothing to HEAD and in 204.
pub(crate) fn answer(
    refusal: RequestRefusal,
    keep: bool,
    retry_after_s: Option<u32>,
    to_head: bool,
    date: &[u8],
    out: &mut Vec<u8>,
) {
    out.clear();
    out.extend_from_slice(b"HTTP/1.1 ");
    push_number(out, u64::from(refusal.status));
    out.push(b' ');
    let reason = http::StatusCode::from_u16(refusal.status).ok().and_then(|s| s.canonical_reason());
    out.extend_from_slice(reason.unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    push(out, b"Date", date);
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
    push_number(out, refusal.why.len() as u64 + 1);
    out.extend_from_slice(b"\r\n\r\n");
    if !to_head {
        out.extend_from_slice(refusal.why.as_bytes());
        out.push(b'\n');
    }
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
}
