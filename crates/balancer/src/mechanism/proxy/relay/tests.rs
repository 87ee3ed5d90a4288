use super::*;
use crate::net::buffer::BufferPool;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

/// What counts as passed on when so many bytes of all that is there have gone out: of a body of this size, read whole.
fn passed(body_bytes: usize, chunked_out: bool, written: usize) -> u64 {
    let mut response = BufferPool::new(16 * 1024).take();
    assert!(response.put(&vec![b'x'; body_bytes]));
    let mut out = HEAD.to_vec();
    let head = ResponseHead {
        status: 200,
        framing: Framing::Length(body_bytes as u64),
        chunked_out,
        coding: None,
        hit: None,
        keep_backend: true,
        keep_client: true,
    };
    let text =
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n";
    let limits = Config::parse(text, "test.toml").unwrap().limits;
    let mut relay =
        Relay::new(head, HttpVersion::Http11, &mut response, &mut out, &limits, None).ok().unwrap();
    relay.join_small();
    relay.count_written(written);
    relay.passed().client_bytes
}

#[test]
fn of_a_piece_that_went_out_in_part_the_content_counts() {
    for body_bytes in [700, 10_000] {
        assert_eq!(passed(body_bytes, false, 0), 0);
        assert_eq!(passed(body_bytes, false, HEAD.len()), 0);
        assert_eq!(passed(body_bytes, false, HEAD.len() + 30), 30);
        assert_eq!(passed(body_bytes, false, usize::MAX), body_bytes as u64);
        // The length of the chunk stands before the content.
        let line = format!("{body_bytes:x}\r\n").len();
        assert_eq!(passed(body_bytes, true, HEAD.len() + line + 1), 1, "{body_bytes}");
        assert_eq!(passed(body_bytes, true, HEAD.len() + line + body_bytes + 3), body_bytes as u64);
    }
}
