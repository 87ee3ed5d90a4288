//! Reading a request's head.

use crate::http::RequestRefusal;
use crate::http::head_end::{HeadEnd, HeadScan, RequestLineScan};
use crate::net::buffer::Buffer;
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::ClientIo;
use crate::refusal_reason::RefusalReason;

/// Empty lines that are skipped before a request line (RFC 9112, section 2.2, asks for at least one).
const MOST_EMPTY_LINES: usize = 4;

/// Why there is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHead {
    /// The client has closed, or stopped in the middle of it, or was waited for too long between requests.
    Gone,
    /// Another client needs the connection's place.
    MadeRoom,
    /// The client gets this answer.
    Refused(RequestRefusal),
}

/// Reads until `input` starts with a complete head and returns its length in bytes. The caller has set the
/// deadline.
pub(crate) async fn read_head(
    stream: &mut impl ClientIo,
    input: &mut Buffer,
    most_bytes: usize,
    deadline: &Deadline,
) -> Result<usize, NoHead> {
    let (mut scan, mut line) = (HeadScan::default(), RequestLineScan::default());
    let mut empty_lines = 0;
    loop {
        while input.data().starts_with(b"\r\n") && empty_lines < MOST_EMPTY_LINES {
            input.consume(2);
            empty_lines += 1;
        }
        // A lone carriage return may become an empty line.
        if input.data() != b"\r" {
            match scan.scan(input.data()) {
                HeadEnd::At(length) if length > most_bytes => {
                    return Err(NoHead::Refused(too_long(input.data(), most_bytes)));
                }
                HeadEnd::At(length) => return Ok(length),
                HeadEnd::BareLineFeed => {
                    return Err(NoHead::Refused(RequestRefusal::bad_request(
                        "a line feed without a carriage return",
                    )));
                }
                HeadEnd::Open if input.len() >= most_bytes => {
                    return Err(NoHead::Refused(too_long(input.data(), most_bytes)));
                }
                HeadEnd::Open if !line.may_become_request(input.data()) => {
                    return Err(NoHead::Refused(RequestRefusal::bad_request(
                        "what came is no HTTP/1 request",
                    )));
                }
                HeadEnd::Open => {}
            }
        }
        if !input.is_empty() {
            stream.acknowledge();
        }
        if fill(stream, input, deadline).await? == 0 {
            return Err(NoHead::Gone);
        }
    }
}

async fn fill(stream: &mut impl ClientIo, input: &mut Buffer, deadline: &Deadline) -> Result<usize, NoHead> {
    match deadline.guard(|cx| input.poll_fill(cx, stream)).await {
        Ok(Ok(n)) => Ok(n),
        Ok(Err(_)) => Err(NoHead::Gone),
        Err(Fired::TimedOut) if !input.is_empty() => {
            let late = RequestRefusal::of(408, "the request head took too long");
            Err(NoHead::Refused(late.because(RefusalReason::HeadTimeout)))
        }
        Err(Fired::MadeRoom) => Err(NoHead::MadeRoom),
        Err(_) => Err(NoHead::Gone),
    }
}

/// 414 when not even the request line fits, else 431.
fn too_long(bytes: &[u8], most_bytes: usize) -> RequestRefusal {
    match memchr::memchr(b'\n', &bytes[..bytes.len().min(most_bytes)]) {
        None => RequestRefusal::of(414, "the request line is too long"),
        Some(_) => RequestRefusal::of(431, "the request head is too long"),
    }
}
