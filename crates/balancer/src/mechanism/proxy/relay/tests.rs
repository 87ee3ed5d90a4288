use std::pin::Pin;
use std::task::Context;

use super::*;
use crate::net::buffer::BufferPool;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

/// What counts as passed on when so many bytes of all that is there have gone out: of a body of this size, read whole.
fn passed(body_bytes: usize, chunked_out: bool, shared: bool, written: usize) -> u64 {
    let mut response = BufferPool::sharing(16 * 1024).take();
    assert!(response.put(&vec![b'x'; body_bytes]));
    let mut out = HEAD.to_vec();
    let head = ResponseHead {
        status: 200,
        framing: Framing::Length(body_bytes as u64),
        chunked_out,
        coding: None,
        hit: None,
        keep_backend: true,
        says_kept: false,
        keep_client: true,
    };
    let text =
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n";
    let limits = Config::parse(text, "test.toml").unwrap().limits;
    let mut relay =
        Relay::new(head, HttpVersion::Http11, &mut response, &mut out, (&limits, &[]), None).ok().unwrap();
    relay.join_small();
    if shared {
        relay.share(&TakesShared);
        assert_eq!(relay.shared.as_ref().map(|b| b.len()), (body_bytes > 8 * 1024).then_some(body_bytes));
    }
    relay.count_written(written);
    relay.passed().client_bytes
}

/// A client to which nothing is copied.
struct TakesShared;

impl AsyncWrite for TakesShared {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl OutputHalf for TakesShared {
    fn takes_shared(&self) -> bool {
        true
    }
}

#[test]
fn of_a_piece_that_went_out_in_part_the_content_counts() {
    for (body_bytes, shared) in [(700, false), (10_000, false), (700, true), (10_000, true)] {
        assert_eq!(passed(body_bytes, false, shared, 0), 0);
        assert_eq!(passed(body_bytes, false, shared, HEAD.len()), 0);
        assert_eq!(passed(body_bytes, false, shared, HEAD.len() + 30), 30);
        assert_eq!(passed(body_bytes, false, shared, usize::MAX), body_bytes as u64);
        // The length of the chunk stands before the content.
        let line = format!("{body_bytes:x}\r\n").len();
        assert_eq!(passed(body_bytes, true, shared, HEAD.len() + line + 1), 1, "{body_bytes}");
        assert_eq!(passed(body_bytes, true, shared, HEAD.len() + line + body_bytes + 3), body_bytes as u64);
    }
}
