//! Rewritten heads of requests whose chunked bodies turned out to be short: they say a length instead, which every back-end understands.

use super::Framing;
use super::request::{CHUNKED_LINE, RequestHead, write_framing};

/// Makes a rewritten head, which announces a chunked body, that of a request with so many bytes of content; false, and nothing done, where
/// it announces none.
pub(crate) fn announce_length(head: &mut RequestHead, bytes: &mut Vec<u8>, length: usize) -> bool {
    // No value of a field has a line end, so the line that is the last of these is ours.
    let is_line = |&start: &usize| head.framing == Framing::Chunked && bytes[..start].ends_with(b"\r\n");
    let Some(start) = memchr::memmem::rfind(bytes, CHUNKED_LINE).filter(is_line) else { return false };
    head.framing = if length == 0 { Framing::None } else { Framing::Length(length as u64) };
    let method = bytes.split(|&b| b == b' ').next().unwrap_or_default();
    let mut line = Vec::new();
    write_framing(head, method, &mut line);
    bytes.splice(start..start + CHUNKED_LINE.len(), line);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::{RequestContext, rewrite};

    fn run(framing: &str, method: &str, length: usize) -> (RequestHead, Vec<u8>, bool) {
        let text = format!("{method} /a HTTP/1.1\r\nHost: a\r\n{framing}Referer: r\r\nUser-Agent: u\r\n\r\n");
        let mut bytes = Vec::new();
        let mut head = rewrite(text.as_bytes(), &RequestContext::plain(), &mut bytes).unwrap();
        let is_done = framing.contains("chunked") && announce_length(&mut head, &mut bytes, length);
        (head, bytes, is_done)
    }

    #[test]
    fn the_head_is_that_of_a_request_that_says_its_length() {
        for (method, length) in [("POST", 0), ("POST", 1), ("PUT", 12_345), ("GET", 0), ("DELETE", 7)] {
            let (head, bytes, is_done) = run("Transfer-Encoding: chunked\r\n", method, length);
            let told = run(&format!("Content-Length: {length}\r\n"), method, 0);
            assert_eq!((head, bytes, is_done), (told.0, told.1, true), "{method} {length}");
        }
    }

    #[test]
    fn what_is_not_chunked_stays() {
        let (mut head, mut bytes, _) = run("Content-Length: 5\r\n", "POST", 0);
        let before = bytes.clone();
        assert!(!announce_length(&mut head, &mut bytes, 7));
        assert_eq!((head.framing, bytes), (Framing::Length(5), before));
    }

    #[test]
    fn a_value_that_looks_like_the_line_is_none_of_ours() {
        let text = b"POST /Transfer-Encoding: HTTP/1.1\r\n";
        assert!(rewrite(text, &RequestContext::plain(), &mut Vec::new()).is_err());
        let like = "X: Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
        let (_, bytes, is_done) = run(like, "POST", 3);
        let text = String::from_utf8(bytes).unwrap();
        assert!(is_done && text.contains("\r\nX: Transfer-Encoding: chunked\r\n"), "{text}");
        assert!(text.ends_with("\r\nContent-Length: 3\r\n\r\n"), "{text}");
    }
}
