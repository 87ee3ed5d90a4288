//! Good requests spoiled at random: whatever comes of it, the back-end gets nothing but requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use plimsoll_testkit::eventually;

use super::common::origin::{Origin, echo};
use super::common::strict::responses;
use super::common::{End, FrontEnd};

/// Good requests, to be spoiled.
const SEEDS: &[&str] = &[
    "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-T: 1\r\n\r\n",
    "GET http://a/d HTTP/1.1\r\nHost: a\r\nConnection: x-one\r\nX-One: 1\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
    "HEAD /e HTTP/1.1\r\nHost: a\r\nVia: 1.1 other\r\nTE: trailers\r\n\r\n",
    "GET /f HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "PUT /g HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
];

/// What is put in or over something.
const SPOILERS: &[&str] = &[
    "\r",
    "\n",
    "\r\n",
    "\0",
    " ",
    "\t",
    ":",
    ",",
    "0",
    "1",
    "5",
    "f",
    "-",
    "+",
    ";",
    "\"",
    "\u{e9}",
    "\x7f",
    "#",
    "/",
    "\r\n\r\n",
    "\r\n ",
    "Content-Length: 3\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: x\r\n",
    "Host: b\r\n",
    "Connection: close\r\n",
    "0\r\n\r\n",
    "GET /z HTTP/1.1\r\n",
    "HTTP/1.0",
    "X-Forwarded-For: 7.7.7.7\r\n",
    "Connection: host, content-length, transfer-encoding\r\n",
    "Expect: 100-continue\r\n",
];

#[test]
fn spoiled_requests_never_confuse_the_back_end() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let spoil = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8, 1..30usize);
    let plan = (
        proptest::collection::vec(any::<prop::sample::Index>(), 1..5),
        proptest::collection::vec(spoil, 0..4),
        any::<prop::sample::Index>(),
    );
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) };
    let result = TestRunner::new(config).run(&plan, |(seeds, spoils, cut)| {
        let mut bytes: Vec<u8> = seeds.iter().flat_map(|s| s.get(SEEDS).bytes()).collect();
        for spoil in &spoils {
            apply(&mut bytes, spoil);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let mut client = front_end.client();
        let cut = cut.index(bytes.len());
        client.send(&bytes[..cut]);
        client.send(&bytes[cut..]);
        client.finish();
        let (answer, end) = client.rest();
        let shown = || format!("{:?}", String::from_utf8_lossy(&bytes));
        prop_assert_ne!(end, End::Open, "{}", shown());
        front_end.assert_idle();
        let got = origin.take();
        let methods: Vec<&str> = got.iter().map(|m| m.method()).collect();
        for message in &got {
            let is_ours = message.all("x-forwarded-for") == ["127.0.0.1"];
            prop_assert!(
                is_ours && message.all("x-one").is_empty() | spoils.is_empty().eq(&false),
                "{}",
                shown()
            );
        }
        if end == End::Closed {
            // The last answer may be a refusal to a HEAD that the back-end never had whole.
            let with_head = [&methods[..], &["HEAD"]].concat();
            let answers = responses(&answer, &methods).or_else(|_| responses(&answer, &with_head));
            let answers = answers.map_err(|e| TestCaseError::fail(format!("{e} to {}", shown())))?;
            let good = answers.iter().filter(|m| m.status() == 200).count();
            prop_assert_eq!(good, got.len(), "{}", shown());
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    origin.assert_clean();
}

/// Good responses, to be spoiled.
const ANSWERS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-T: 1\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 304 Not Modified\r\nConnection: x-one\r\nX-One: 1\r\n\r\n",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
];

#[test]
fn spoiled_responses_never_confuse_the_client() {
    let spoiled = Arc::new(Mutex::new((Vec::new(), 0, false)));
    let script = Arc::clone(&spoiled);
    let under_way = Arc::new(AtomicUsize::new(0));
    let writing = Arc::clone(&under_way);
    let origin = Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            if request.target() != "/spoiled" {
                conn.write(&echo(&request));
                continue;
            }
            writing.fetch_add(1, Ordering::Relaxed);
            let (bytes, cut, closes): (Vec<u8>, usize, bool) = script.lock().unwrap().clone();
            conn.write(&bytes[..cut]);
            conn.write(&bytes[cut..]);
            writing.fetch_sub(1, Ordering::Relaxed);
            if closes {
                return;
            }
        }
    });
    let front_end = FrontEnd::new(
        &[origin.address],
        "[timeouts]\nfirst_byte = \"20ms\"\nbody = \"20ms\"\n[limits]\nretries = 0\n",
    );
    let spoil = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8, 1..30usize);
    let plan = (
        any::<prop::sample::Index>(),
        proptest::collection::vec(spoil, 0..4),
        any::<prop::sample::Index>(),
        proptest::bool::weighted(0.8),
    );
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) };
    let result = TestRunner::new(config).run(&plan, |(seed, spoils, cut, closes)| {
        let seed = seed.get(ANSWERS);
        let mut bytes = seed.as_bytes().to_vec();
        for spoil in &spoils {
            apply(&mut bytes, spoil);
        }
        let shown = format!("{:?}", String::from_utf8_lossy(&bytes));
        // What ends with the connection does so.
        let closes = closes || seed.contains("until");
        *spoiled.lock().unwrap() = (bytes.clone(), cut.index(bytes.len() + 1), closes);
        let mut client = front_end.client();
        client.send("POST /spoiled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        client.finish();
        let (answer, end) = client.rest();
        prop_assert_ne!(end, End::Open, "{}", shown);
        if end == End::Closed {
            let answers = responses(&answer, &["POST"])
                .map_err(|e| TestCaseError::fail(format!("{e} from {shown}")))?;
            let finals: Vec<u16> = answers.iter().map(|m| m.status()).filter(|&s| s >= 200).collect();
            prop_assert_eq!(finals.len(), 1, "{}", shown);
            let hop = answers.iter().any(|m| !m.all("x-one").is_empty());
            prop_assert!(!hop || !spoils.is_empty(), "{}", shown);
            if spoils.is_empty() && closes {
                prop_assert!(finals[0] < 400 || finals[0] == 504, "{}", shown);
            }
        }
        // What was wrong with one answer is not passed to the next, once all of it is there.
        eventually("the rest of the answer", || under_way.load(Ordering::Relaxed) == 0);
        let mut next = front_end.client();
        // The short time-out may hit this one, too, where the machine is busy; or its connection may just be closing, and
        // nothing is tried again.
        let own = (0..50).map(|_| next.get("/next")).find(|m| ![502, 504].contains(&m.status()));
        let own = own.unwrap_or_default();
        prop_assert_eq!(own.body, b"GET /next\n", "{}", shown);
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

/// Where, with what, how, and how much of it.
type Spoil = (prop::sample::Index, prop::sample::Index, u8, usize);

fn apply(bytes: &mut Vec<u8>, (at, with, how, len): &Spoil) {
    if bytes.is_empty() {
        return;
    }
    let at = at.index(bytes.len());
    let end = (at + len).min(bytes.len());
    let with = with.get(SPOILERS).bytes();
    match how {
        0 => drop(bytes.splice(at..at, with)),
        1 => drop(bytes.splice(at..=at, with)),
        2 => drop(bytes.drain(at..end)),
        _ => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
    }
}
