//! Segments worked by hand.

use super::*;

pub(super) struct Wire {
    pub(super) exchanges: Exchanges,
    pub(super) seen: Vec<SeenExchange>,
    at_ns: u64,
    pub(super) seq: [u32; 2],
}

fn ends() -> Ends {
    Ends { client: "10.0.0.9:4711".parse().unwrap(), server: "10.0.0.1:80".parse().unwrap() }
}

impl Wire {
    /// Sequence numbers that wrap soon.
    pub(super) fn new() -> Self {
        Self { exchanges: Exchanges::new(2), seen: Vec::new(), at_ns: 1_000, seq: [u32::MAX - 50; 2] }
    }

    pub(super) fn segment(&mut self, from_client: bool, seq: u32, data: &[u8], data_bytes: u32, end: bool) {
        self.at_ns += 10;
        // All that the other side has sent so far.
        let ack = self.seq[usize::from(!from_client)];
        let segment = Segment { at_ns: self.at_ns, from_client, syn: false, end, seq, ack, data_bytes, data };
        self.exchanges.take(ends(), &segment, &mut |exchange| self.seen.push(exchange));
    }

    /// The next bytes of one side, of which `cut` are not copied.
    pub(super) fn send(&mut self, from_client: bool, text: &str, cut: u32) {
        let seq = self.seq[usize::from(from_client)];
        let bytes = text.len() as u32 + cut;
        self.segment(from_client, seq, text.as_bytes(), bytes, false);
        self.seq[usize::from(from_client)] = seq.wrapping_add(bytes);
    }

    pub(super) fn told(&self) -> Vec<(String, Option<u16>, Option<u64>)> {
        let of = |e: &SeenExchange| (String::from_utf8_lossy(&e.target).into_owned(), e.status, e.size_bytes);
        self.seen.iter().map(of).collect()
    }
}

#[test]
fn a_persistent_connection() {
    let mut wire = Wire::new();
    wire.send(true, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", 1000);
    assert!(wire.told().is_empty());
    wire.send(false, "the rest", 3992);
    assert_eq!(wire.told(), [("/a".to_owned(), Some(200), Some(5000))]);
    assert_eq!((wire.seen[0].first_byte_ns, wire.seen[0].at_ns), (Some(10), 1_010));
    // A body that looks like a request.
    wire.send(true, "POST /b HTTP/1.1\r\nContent-Length: 20\r\n\r\n", 0);
    wire.send(true, "GET /no HTTP/1.1\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 100 Continue\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0);
    wire.send(true, "HEAD /c HTTP/1.1\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n", 0);
    let rest = [("/b".to_owned(), Some(201), Some(0)), ("/c".to_owned(), Some(200), Some(0))];
    assert_eq!(wire.told()[1..], rest);
    assert_eq!(wire.exchanges.connections(), 1);
}

#[test]
fn segments_that_come_again_tell_nothing_new() {
    let mut wire = Wire::new();
    let seq = wire.seq;
    wire.send(true, "GET /a HTTP/1.1\r\n\r\n", 0);
    wire.segment(true, seq[1], b"GET /a HTTP/1.1\r\n\r\n", 19, false);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    wire.send(false, answer, 0);
    wire.segment(false, seq[0], answer.as_bytes(), answer.len() as u32, false);
    wire.send(true, "GET /b HTTP/1.1\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", 0);
    let wanted = [("/a".to_owned(), Some(200), Some(3)), ("/b".to_owned(), Some(404), Some(1))];
    assert_eq!(wire.told(), wanted);
}

#[test]
fn requests_that_are_sent_ahead() {
    let mut wire = Wire::new();
    wire.send(true, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 304 Not\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 10);
    let seq = wire.seq;
    wire.segment(false, seq[0], b"", 0, true);
    wire.segment(true, seq[1], b"", 0, true);
    let wanted = [
        ("/a".to_owned(), Some(200), Some(2)),
        ("/b".to_owned(), Some(304), Some(0)),
        // Eight bytes and ten.
        ("/c".to_owned(), Some(200), Some(18)),
    ];
    assert_eq!(wire.told(), wanted);
}

#[test]
fn a_first_line_in_pieces() {
    let mut wire = Wire::new();
    for piece in ["GET ", "/a", " HTTP/1.1\r\nHost: x\r\n\r\nGET /b", " HTTP/1.0\r\n\r\n"] {
        wire.send(true, piece, 0);
    }
    wire.send(false, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0);
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    assert_eq!(wire.told(), [("/a".to_owned(), Some(200), Some(0)), ("/b".to_owned(), None, None)]);
    // One of which a piece was not seen.
    let mut wire = Wire::new();
    wire.send(true, "GET /a", 0);
    wire.seq[1] = wire.seq[1].wrapping_add(5);
    wire.send(true, "x HTTP/1.1\r\n\r\n", 0);
    wire.send(true, "GET /b HTTP/1.1\r\n\r\n", 0);
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    assert_eq!(wire.told(), [("/b".to_owned(), None, None)]);
}

#[test]
fn a_length_that_only_the_end_tells() {
    let mut wire = Wire::new();
    wire.send(true, "GET /a HTTP/1.1\r\n\r\n", 0);
    wire.send(false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 30);
    wire.send(false, "0\r\n\r\n", 0);
    assert!(wire.told().is_empty());
    wire.send(true, "GET /b HTTP/1.1\r\n\r\n", 0);
    assert_eq!(wire.told(), [("/a".to_owned(), Some(200), Some(35))]);
    // The client goes in the middle.
    wire.send(false, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 300);
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    assert_eq!(wire.told()[1], ("/b".to_owned(), Some(200), Some(300)));
}

#[test]
fn answers_that_do_not_pass_here() {
    let mut wire = Wire::new();
    for number in 0..70 {
        wire.send(true, &format!("GET /{number} HTTP/1.1\r\n\r\n"), 0);
    }
    assert_eq!(wire.seen.len(), 6, "no more than 64 wait");
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    assert_eq!(wire.seen.len(), 70);
    assert_eq!(wire.told()[69], ("/69".to_owned(), None, None));
}

#[test]
fn connections_are_bounded_and_begin_again() {
    let mut exchanges = Exchanges::new(1);
    let mut seen = 0;
    let other = Ends { client: "10.0.0.8:1".parse().unwrap(), ..ends() };
    let data = b"GET / HTTP/1.1\r\n\r\n";
    let mut segment = Segment {
        at_ns: 1,
        from_client: true,
        syn: false,
        end: false,
        seq: 7,
        ack: 7,
        data_bytes: data.len() as u32,
        data,
    };
    exchanges.take(ends(), &segment, &mut |_| seen += 1);
    exchanges.take(other, &segment, &mut |_| seen += 1);
    assert_eq!((exchanges.refused(), seen), (1, 0));
    // The same addresses again: what waited is passed on.
    exchanges.take(ends(), &Segment { syn: true, ..segment }, &mut |_| seen += 1);
    assert_eq!(seen, 1);
    exchanges.take(other, &segment, &mut |_| seen += 1);
    // Silence ends a connection, too.
    segment.at_ns += 2 * SILENCE_NS;
    exchanges.take(ends(), &segment, &mut |_| seen += 1);
    assert_eq!((exchanges.refused(), seen), (1, 2));
}

proptest::proptest! {
    #[test]
    fn no_segments_do_harm(
        parts in proptest::collection::vec((0usize..5, proptest::prelude::any::<u32>(), proptest::prelude::any::<bool>(), 0u32..100_000), 0..60),
    ) {
        let texts: [&[u8]; 5] = [
            b"GET /a HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 100 C\r\n\r\n",
            b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
            b"",
        ];
        let mut wire = Wire::new();
        for (text, seq, from_client, cut) in parts {
            let data = texts[text];
            wire.segment(from_client, seq, data, data.len() as u32 + cut, cut % 7 == 0);
        }
        wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
        proptest::prop_assert!(wire.exchanges.connections.is_empty());
    }
}
