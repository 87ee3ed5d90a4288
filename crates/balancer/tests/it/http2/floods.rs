//! Clients that attack, with a victim beside them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_testkit::PATIENCE;

use crate::admin::rig::Rig;
use crate::common::origin::{Origin, echo};
use crate::common::{FrontEnd, get};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `GET http://a/x` of HPACK.
const GET: &[u8] = b"\x82\x86\x44\x02/x\x41\x01a";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What an attacker hears.
struct Heard {
    /// The reason of the connection's end, if it was told.
    goaway: Option<u32>,
    /// Answers.
    answers: usize,
}

/// Sends the preface and these frames, as long as the front-end takes them, and listens until the connection ends or nothing has come for a while.
fn attack(address: SocketAddr, frames: impl IntoIterator<Item = Vec<u8>>, quiet: Duration) -> Heard {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(quiet)).unwrap();
    let mut reading = stream.try_clone().unwrap();
    let listener = std::thread::spawn(move || {
        let (mut bytes, mut piece) = (Vec::new(), vec![0; 65_536]);
        while let Ok(n @ 1..) = reading.read(&mut piece) {
            bytes.extend_from_slice(&piece[..n]);
        }
        bytes
    });
    let mut taken = stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).is_ok();
    let mut batch = Vec::new();
    for frame in frames {
        batch.extend_from_slice(&frame);
        if batch.len() > 8192 && taken {
            taken = stream.write_all(&batch).is_ok();
            batch.clear();
        }
    }
    drop(stream.write_all(&batch));
    hear(&listener.join().unwrap())
}

fn hear(mut bytes: &[u8]) -> Heard {
    let mut heard = Heard { goaway: None, answers: 0 };
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = bytes {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        match *kind {
            GOAWAY => heard.goaway = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap())),
            HEADERS => heard.answers += 1,
            _ => {}
        }
        bytes = rest;
    }
    heard
}

const PROTOCOL_ERROR: u32 = 1;
const ENHANCE_YOUR_CALM: u32 = 11;

fn request(stream: u32, ends: bool) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | if ends { END_STREAM } else { 0 }, stream, GET)
}

fn streams() -> impl Iterator<Item = u32> {
    (0..).map(|n| 2 * n + 1)
}

#[test]
fn frames_that_ask_for_nothing_end_the_connection() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let address = front_end.address(0);
    let many = |frame: Vec<u8>| std::iter::repeat_n(frame, 30_000);
    let quiet = Duration::from_secs(3);
    let victim = std::thread::spawn(move || {
        let mut client = crate::common::Client::connect(address);
        for _ in 0..200 {
            client.send(get("/victim"));
            assert_eq!(client.response("GET").status(), 200);
        }
    });
    let calm = |frames: Vec<Vec<u8>>, what: &str| {
        let heard = attack(address, frames, quiet);
        assert_eq!(heard.goaway, Some(ENHANCE_YOUR_CALM), "{what}");
    };
    calm(many(frame(PING, 0, 0, &[0; 8])).collect(), "pings");
    calm(many(frame(SETTINGS, 0, 0, &[])).collect(), "settings");
    calm(many(frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 16])).collect(), "priorities");
    calm(many(frame(99, 0, 0, &[])).collect(), "unknown frames");
    calm(many(frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])).collect(), "windows");
    let empty = std::iter::once(request(1, false)).chain(many(frame(DATA, 0, 1, &[])));
    calm(empty.collect(), "empty data");
    let resets =
        streams().take(30_000).flat_map(|n| [request(n, true), frame(RST_STREAM, 0, n, &[0, 0, 0, 8])]);
    calm(resets.collect(), "resets");
    victim.join().unwrap();
}

/// Who leaves a page resets what it has asked for, and keeps what it has begun to send.
#[test]
fn some_requests_that_are_reset_at_once_harm_no_other_one() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let post = [b"\x83", &GET[1..]].concat();
    let begun = frame(HEADERS, END_HEADERS, 1, &post);
    let resets = streams().skip(1).take(500);
    let resets = resets.flat_map(|n| [request(n, true), frame(RST_STREAM, 0, n, &[0, 0, 0, 8])]);
    let frames = std::iter::once(begun).chain(resets).chain([frame(DATA, END_STREAM, 1, b"body")]);
    let heard = attack(front_end.address(0), frames, Duration::from_secs(1));
    assert_eq!(heard.goaway, None);
    assert!(heard.answers > 0);
}

#[test]
fn heads_without_end_are_not_collected() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let first = frame(HEADERS, END_STREAM, 1, GET);
    // A literal without indexing: `a: ` and 100 bytes.
    let field = [&b"\x00\x01a\x64"[..], &[b'x'; 100]].concat();
    let frames = std::iter::once(first).chain(std::iter::repeat_n(frame(CONTINUATION, 0, 1, &field), 30_000));
    let heard = attack(front_end.address(0), frames, Duration::from_secs(3));
    assert!(heard.goaway.is_some_and(|reason| [PROTOCOL_ERROR, ENHANCE_YOUR_CALM].contains(&reason)));
    assert_eq!(heard.answers, 0);
    // One field in the table, and 8,000 references to it: 4 KB in each.
    let mut bomb = GET.to_vec();
    bomb.extend_from_slice(b"\x40\x01b\x7f\xa1\x1e");
    bomb.extend(std::iter::repeat_n(b'y', 4000));
    bomb.extend(std::iter::repeat_n(0xbe, 8000));
    let heard = attack(
        front_end.address(0),
        [frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb)],
        Duration::from_millis(500),
    );
    assert!(origin.take().is_empty(), "{:?}", heard.goaway);
}

#[test]
fn streams_beyond_the_limit_are_refused_and_few_wait_for_a_client() {
    let origin = Origin::answering(|_| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec();
        [head, vec![b'z'; 1_000_000]].concat()
    });
    let tables = "[http2]\nstreams = 10\n[timeouts]\nbody = \"1s\"\n";
    let front_end = FrontEnd::new(&[origin.address], tables);
    // Its streams have no window.
    let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let frames = std::iter::once(settings).chain(streams().take(100).map(|n| request(n, true)));
    let heard = attack(front_end.address(0), frames, Duration::from_secs(5));
    assert!(heard.answers <= 10 && origin.take().len() <= 10, "{}", heard.answers);
    front_end.assert_idle();
    // One byte at a time: what is sent does not earn that many windows.
    let tiny = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]);
    let updates = (0..20_000).map(|n| frame(WINDOW_UPDATE, 0, 2 * (n % 10) + 1, &[0, 0, 0, 1]));
    let frames = std::iter::once(tiny).chain(streams().take(10).map(|n| request(n, true))).chain(updates);
    let heard = attack(front_end.address(0), frames, Duration::from_secs(3));
    assert!(heard.answers <= 10, "{}", heard.answers);
    front_end.assert_idle();
}

/// Two updates for each 256 bytes are no flood.
#[test]
fn a_client_with_small_windows_gets_all() {
    const BYTES: usize = 300_000;
    let origin = Origin::answering(|_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n");
        [head.as_bytes(), &[b'z'; BYTES]].concat()
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut stream = TcpStream::connect(front_end.address(0)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let small = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 1, 0]);
    stream.write_all(&[PREFACE, &small, &request(1, true)].concat()).unwrap();
    let (mut head, mut content) = ([0; 9], Vec::new());
    while content.len() < BYTES {
        stream.read_exact(&mut head).unwrap();
        let [a, b, c, kind, ..] = head;
        let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
        stream.read_exact(&mut payload).unwrap();
        assert_ne!(kind, GOAWAY, "after {} bytes", content.len());
        if kind == DATA && !payload.is_empty() {
            let more = [0, a, b, c];
            let updates = [frame(WINDOW_UPDATE, 0, 0, &more), frame(WINDOW_UPDATE, 0, 1, &more)];
            stream.write_all(&updates.concat()).unwrap();
            content.extend(payload);
        }
    }
    assert!(content == [b'z'; BYTES]);
}

#[test]
fn what_is_no_frame_ends_the_connection() {
    let origin = Origin::answering(echo);
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut seed = 7u64;
    for round in 0..200 {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u8
        };
        let mut bytes = [request(1, true), request(3, false), frame(DATA, END_STREAM, 3, b"abc")].concat();
        for _ in 0..=round % 5 {
            let at = usize::from(next()) % bytes.len();
            bytes[at] = next();
        }
        attack(front_end.address(0), [bytes], Duration::from_millis(20));
    }
    origin.assert_clean();
}

/// "MadeYouReset" (CVE-2025-8671): requests that the server itself is brought to reset, by frames that are wrong for their streams alone.
#[test]
fn streams_that_the_client_has_reset_by_the_front_end_end_the_connection() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let quiet = Duration::from_secs(3);
    let windows = streams()
        .take(30_000)
        .flat_map(|n| [request(n, true), frame(WINDOW_UPDATE, 0, n, &[0x7f, 0xff, 0xff, 0xff])]);
    let heard = attack(front_end.address(0), windows, quiet);
    assert_eq!(heard.goaway, Some(ENHANCE_YOUR_CALM), "windows beyond the largest");
    // A content-length of 0, and a byte of content.
    let told = [GET, b"\x0f\x0d\x010"].concat();
    let longer = streams()
        .take(30_000)
        .flat_map(|n| [frame(HEADERS, END_HEADERS, n, &told), frame(DATA, END_STREAM, n, b"x")]);
    let heard = attack(front_end.address(0), longer, quiet);
    assert_eq!(heard.goaway, Some(ENHANCE_YOUR_CALM), "content beyond its length");
    front_end.assert_idle();
    let mut victim = front_end.client();
    assert_eq!(victim.get("/victim").status(), 200);
}

/// CVE-2019-9516: fields without names and values cost nothing on the wire.
#[test]
fn fields_without_names_are_refused() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let head = [GET, &b"\x00\x00\x00".repeat(4000)].concat();
    let frames = streams().take(200).map(|n| frame(HEADERS, END_STREAM | END_HEADERS, n, &head));
    let heard = attack(front_end.address(0), frames, Duration::from_secs(1));
    assert_eq!(heard.answers, 0);
    assert!(origin.take().is_empty());
}

/// What the library that has the frames refuses of itself counts, too.
#[test]
fn streams_that_are_reset_and_heads_that_are_too_long_count() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "");
    let at = rig.balancer().addresses()[0];
    // A field of a connection: `connection: x`.
    let head = [GET, &b"\x00\x0aconnection\x01x"[..]].concat();
    let frames = streams().take(5).map(|n| frame(HEADERS, END_STREAM | END_HEADERS, n, &head));
    assert_eq!(attack(at, frames, Duration::from_millis(300)).answers, 0);
    rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "reason=\"http2\"") == 5.0);
    let long = [GET, &b"\x00\x01a\x7f\xa1\x9b\x01"[..], &[b'b'; 20_000]].concat();
    let mut pieces = long.chunks(16_000);
    let begun = frame(HEADERS, END_STREAM, 1, pieces.next().unwrap());
    let frames = [begun, frame(CONTINUATION, END_HEADERS, 1, pieces.next().unwrap())];
    assert_eq!(attack(at, frames, Duration::from_millis(300)).answers, 1);
    rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "reason=\"head_limit\"") == 1.0);
    assert!(origin.take().is_empty());
}
