//! Bodies that come piece by piece, or break off.

use std::io::Read as _;
use std::sync::{Mutex, mpsc};

use super::{ON, prose};
use crate::common::origin::Origin;
use crate::common::strict;
use crate::common::{Client, End, FrontEnd};

#[test]
fn each_piece_goes_out_when_it_comes() {
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let origin = Origin::scripted(move |conn| {
        while conn.request().is_some() {
            conn.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            for _ in 0..3 {
                conn.write(b"8\r\ndata: x\n\r\n");
                if gone.lock().unwrap().recv().is_err() {
                    return;
                }
            }
            conn.write(b"0\r\n\r\n");
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "[compression]\ntypes = [\"text/event-stream\"]\n");
    for coding in ["gzip", "zstd"] {
        let mut client = front_end.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n"));
        let mut wire = Vec::new();
        for count in 1..=3 {
            let expected = b"data: x\n".repeat(count);
            while so_far(&wire, coding) != expected {
                read_more(&mut client, &mut wire);
            }
            go.send(()).unwrap();
        }
        while !wire.ends_with(b"\r\n0\r\n\r\n") {
            read_more(&mut client, &mut wire);
        }
    }
}

fn read_more(client: &mut Client, wire: &mut Vec<u8>) {
    let mut bytes = [0; 4096];
    let n = client.stream.read(&mut bytes).unwrap();
    assert!(n > 0, "{}", wire.escape_ascii());
    wire.extend_from_slice(&bytes[..n]);
}

/// The content of the chunks that have come so far.
fn so_far(wire: &[u8], coding: &str) -> Vec<u8> {
    let Some(head) = wire.windows(4).position(|w| w == b"\r\n\r\n") else { return Vec::new() };
    let (mut rest, mut coded) = (&wire[head + 4..], Vec::new());
    while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        let Some(chunk) = rest.get(line + 2..line + 2 + size) else { break };
        coded.extend_from_slice(chunk);
        rest = rest.get(line + 4 + size..).unwrap_or_default();
    }
    let mut out = Vec::new();
    // The end is missing, which is an error behind all that has come.
    let _ = match coding {
        "gzip" => flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut out),
        _ => zstd::stream::read::Decoder::new(&coded[..]).unwrap().read_to_end(&mut out),
    };
    out
}

#[test]
fn what_breaks_off_is_never_whole() {
    let origin = Origin::scripted(|conn| {
        let Some(request) = conn.request() else { return };
        let framing = if request.target() == "/length" {
            "Content-Length: 9000\r\n\r\n"
        } else {
            "Transfer-Encoding: chunked\r\n\r\n1f40\r\n"
        };
        conn.write(format!("HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n{framing}").as_bytes());
        conn.write(&prose(8000));
    });
    let front_end = FrontEnd::new(&[origin.address], ON);
    for path in ["/length", "/chunked"] {
        for coding in ["gzip", "zstd"] {
            let mut client = front_end.client();
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n"));
            let (bytes, end) = client.rest();
            assert_eq!(end, End::Reset, "{path} {coding}");
            assert!(!matches!(strict::response(&bytes, false, true), Ok(Some(_))), "{path} {coding}");
        }
    }
}
