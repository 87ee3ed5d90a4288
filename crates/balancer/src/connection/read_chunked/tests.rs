use std::pin::pin;
use std::task::{Context, Poll, Waker};

use plimsoll_testkit::{Why, pace};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;
use crate::connection::tests::Memory;
use crate::net::deadline::SWEEP;
use crate::shared::FrontEndShared;
use crate::worker::Worker;

const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";

/// What became of a body that comes in these pieces, of which the first is there already: how much content it has, and all that the next
/// reader gets. The client then closes.
async fn read(tables: &str, pieces: &[&[u8]]) -> (Result<Option<usize>, NoBody>, Vec<u8>) {
    let worker = Worker::new(FrontEndShared::before_three(tables), 0);
    let (config, held) = (worker.config(), &worker.shared.held);
    let (deadline, limits) = (worker.deadlines.add(), &config.limits);
    let may_hold = MayHold { memory: held, most_bytes: limits.held_bytes };
    let (mut stream, mut client) = Memory::pair();
    let (first, others) = pieces.split_first().unwrap();
    let mut scratch = worker.scratch();
    let input = &mut scratch.input;
    assert!(input.put(first));
    let reading = async {
        let read = read_chunked(&mut stream, input, limits, may_hold, &deadline, config.timeouts.body);
        let read = read.await;
        if let Ok(Some(body)) = read {
            decode_whole(input, body, limits);
        }
        let mut all = input.data().to_vec();
        stream.read_to_end(&mut all).await.unwrap();
        (read.map(|body| body.map(|body| body.content)), all)
    };
    let sending = async {
        for piece in others {
            client.write_all(piece).await.unwrap();
        }
        drop(client);
    };
    let (read, ()) = tokio::join!(reading, sending);
    drop(scratch);
    assert_eq!(held.bytes(), 0);
    read
}

/// A body in chunks of this size, which ends like this.
fn chunks(content: &[u8], size: usize, end: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    for chunk in content.chunks(size) {
        wire.extend_from_slice(format!("{:x};a=b\r\n", chunk.len()).as_bytes());
        wire.extend_from_slice(chunk);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(end.as_bytes());
    wire
}

#[tokio::test]
async fn a_body_is_whole_wherever_it_is_cut_and_the_next_request_stays() {
    for content in [&b""[..], b"x", b"hello, world"] {
        for behind in [&b""[..], NEXT] {
            let wire = [&chunks(content, 5, "0\r\n\r\n"), behind].concat();
            let whole = (Ok(Some(content.len())), [content, behind].concat());
            for cut in 0..=wire.len() {
                let (first, second) = wire.split_at(cut);
                assert_eq!(read("", &[first, second]).await, whole, "cut at {cut}");
            }
            let bytes: Vec<&[u8]> = wire.chunks(1).collect();
            assert_eq!(read("", &bytes).await, whole);
        }
    }
}

#[tokio::test]
async fn a_body_with_trailers_stays_as_it_came() {
    let wire = [&chunks(b"hello, world", 5, "0\r\nX-Sum: 1\r\n\r\n"), NEXT].concat();
    for cut in 0..=wire.len() {
        let (first, second) = wire.split_at(cut);
        assert_eq!(read("", &[first, second]).await, (Ok(None), wire.clone()), "cut at {cut}");
    }
    // Nothing is passed on of these.
    let dropped = chunks(b"hello", 5, "0\r\nConnection: x\r\nDate: now\r\n\r\n");
    assert_eq!(read("", &[&dropped, NEXT]).await, (Ok(Some(5)), [b"hello", NEXT].concat()));
}

#[tokio::test]
async fn no_more_is_held_than_may_be() {
    // For one request 64 KiB.
    let tables = "[limits]\nheld = \"2MiB\"\n";
    let around = chunks(&[b'x'; 65_000], 65_536, "0\r\n\r\n").len() - 65_000;
    let content = vec![b'x'; 65_536 - around];
    let fits = chunks(&content, 65_536, "0\r\n\r\n");
    let (result, all) = read(tables, &[&fits[..100], &fits[100..], NEXT]).await;
    assert!(result == Ok(Some(content.len())) && all == [&content, NEXT].concat());
    let large = chunks(&[b'x'; 65_536], 60_000, "0\r\n\r\n");
    let (result, all) = read(tables, &[&large[..100], &large[100..], NEXT]).await;
    assert!(result == Ok(None) && all == [&large, NEXT].concat());
    // The usual room is there even so.
    let small = chunks(&[b'x'; 16_000], 16_000, "0\r\n\r\n");
    let (result, _) = read("[limits]\nheld = 0\n", &[&small[..100], &small[100..]]).await;
    assert_eq!(result, Ok(Some(16_000)));
    let large = chunks(&[b'x'; 17_000], 16_000, "0\r\n\r\n");
    let (result, all) = read("[limits]\nheld = 0\n", &[&large[..100], &large[100..]]).await;
    assert!(result == Ok(None) && all == large);
}

#[tokio::test]
async fn what_is_no_body_is_refused() {
    let bad = |why| Err(NoBody::Refused(RequestRefusal::bad_request(why)));
    for (wire, why) in [
        ("5\r\nhelloX", "a chunk is longer than its size says"),
        ("zz\r\n", "a chunk size that is not 1 to 16 hexadecimal digits"),
        ("5\n", "a line feed without a carriage return"),
        ("0\r\nContent-Length: 3\r\n\r\n", "a trailer field that changes framing or routing"),
        ("0\r\nGET / HTTP/1.1\r\n\r\n", "the trailer section is not a list of fields"),
    ] {
        for cut in 0..wire.len() {
            let (first, second) = wire.as_bytes().split_at(cut);
            assert_eq!(read("", &[first, second, NEXT]).await.0, bad(why), "{wire:?} cut at {cut}");
        }
    }
    assert_eq!(read("", &[b"5\r\nhel"]).await.0, Err(NoBody::Gone));
    let limit = "[limits]\nbody = 1000\n";
    let wire = chunks(&[b'x'; 1000], 100, "0\r\n\r\n");
    assert_eq!(read(limit, &[&wire[..50], &wire[50..]]).await.0, Ok(Some(1000)));
    let wire = chunks(&[b'x'; 1001], 100, "100\r\n");
    let too_large = Err(NoBody::Refused(RequestRefusal::TOO_LARGE));
    assert_eq!(read(limit, &[&wire[..50], &wire[50..]]).await.0, too_large);
}

/// What a body is read to of which this has come, with a time-out of [`TIMEOUT`], after the first look at it and `meanwhile`: which gets
/// the worker, the client, and what looks again. And what is left for the next reader.
fn read_meanwhile(
    come: &[u8],
    meanwhile: impl FnOnce(&Worker, &mut DuplexStream, &mut dyn FnMut() -> Polled),
) -> (Polled, Vec<u8>) {
    let worker = Worker::new(FrontEndShared::before_three(""), 0);
    let (config, deadline) = (worker.config(), worker.deadlines.add());
    let may_hold = MayHold { memory: &worker.shared.held, most_bytes: config.limits.held_bytes };
    let mut scratch = worker.scratch();
    let (mut stream, mut client) = Memory::pair();
    assert!(come.is_empty() || scratch.input.put(come));
    let last = {
        let (input, limits) = (&mut scratch.input, &config.limits);
        let mut reading = pin!(read_chunked(&mut stream, input, limits, may_hold, &deadline, TIMEOUT));
        let mut look = || reading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        worker.deadlines.sweep();
        assert!(look().is_pending());
        meanwhile(&worker, &mut client, &mut look);
        worker.deadlines.sweep();
        look()
    };
    (last, scratch.input.data().to_vec())
}

const TIMEOUT: Duration = Duration::from_millis(20);
type Polled = Poll<Result<Option<WholeBody>, NoBody>>;

/// A client that says nothing is waited for for half of the time-out, or a second.
#[test]
fn who_is_silent_may_wait_for_a_word_of_the_back_end() {
    let (read, left) = read_meanwhile(b"5\r\nhel", |_, _, _| pace(2 * SWEEP + TIMEOUT, Why::TimeIsUp));
    assert_eq!(read, Poll::Ready(Ok(None)));
    assert_eq!(left, b"5\r\nhel");
}

/// Each byte begins the wait anew; what one who sends too slowly has sent goes on all the same, as it may be a stream without end.
#[test]
fn what_comes_too_slowly_goes_on_in_the_end() {
    let (read, _) = read_meanwhile(b"", |worker, client, look| {
        // It has used up its time, but for the wait that is on.
        pace(2 * TIMEOUT, Why::SlowPeer);
        worker.deadlines.sweep();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(client.write_all(b"5")).poll(&mut cx).is_ready());
        assert!(look().is_pending());
        pace(2 * SWEEP, Why::TimeIsUp);
    });
    assert_eq!(read, Poll::Ready(Ok(None)));
}
