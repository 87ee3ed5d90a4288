//! Requests that are sent ahead, with answers of which not every head is copied.

use super::tests::Wire;

/// An answer on the wire.
struct ServedAnswer {
    target: String,
    method: &'static str,
    status: u16,
    bytes: Vec<u8>,
    /// What belongs to its body.
    size: u64,
}

impl ServedAnswer {
    /// Kinds: with a length, in chunks, to HEAD, 304, 404, and after an interim one.
    fn new(number: usize, kind: usize, size: usize) -> Self {
        let (method, status) =
            [("GET", 200), ("GET", 200), ("HEAD", 200), ("GET", 304), ("GET", 404), ("GET", 206)][kind];
        let interim = if kind == 5 { "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" } else { "" };
        let length = match kind {
            1 => "Transfer-Encoding: chunked".to_owned(),
            _ => format!("Content-Length: {size}"),
        };
        let head = format!("{interim}HTTP/1.1 {status} Text\r\n{length}\r\n\r\n");
        let body = match kind {
            1 if size == 0 => b"0\r\n\r\n".to_vec(),
            1 => [format!("{size:x}\r\n").into_bytes(), vec![b'x'; size], b"\r\n0\r\n\r\n".to_vec()].concat(),
            2 | 3 => Vec::new(),
            _ => vec![b'x'; size],
        };
        let size = body.len() as u64;
        Self { target: format!("/{number}"), method, status, bytes: [head.into_bytes(), body].concat(), size }
    }

    fn request(&self) -> String {
        format!("{} {} HTTP/1.1\r\nHost: x\r\n\r\n", self.method, self.target)
    }
}

/// A place in what the server sends, with its length.
type StreamCut = (usize, usize);

/// Pieces of a stream, each of at most one of `lengths`.
fn cuts(bytes: usize, lengths: &[usize]) -> Vec<StreamCut> {
    let (mut at, mut cuts) = (0, Vec::new());
    for length in lengths.iter().cycle() {
        if at >= bytes {
            break;
        }
        cuts.push((at, (*length).clamp(1, bytes - at)));
        at += cuts[cuts.len() - 1].1;
    }
    cuts
}

/// Sends these pieces, of each of which at most `copied` bytes are copied.
fn send(wire: &mut Wire, stream: &[u8], cuts: &[StreamCut], copied: usize) {
    let first = wire.seq[0];
    for &(at, length) in cuts {
        let data = &stream[at..at + length.min(copied)];
        wire.segment(false, first.wrapping_add(at as u32), data, length as u32, false);
    }
    wire.seq[0] = first.wrapping_add(stream.len() as u32);
}

fn answers(served: &[ServedAnswer]) -> Vec<u8> {
    served.iter().flat_map(|served| served.bytes.clone()).collect()
}

/// What is told of an answer is right; how many are not told.
fn unknown(wire: &mut Wire, served: &[ServedAnswer]) -> usize {
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    let mut told = wire.told();
    assert_eq!(told.len(), served.len());
    told.sort_by_key(|(target, ..)| target[1..].parse::<usize>().unwrap());
    for ((target, status, size), served) in told.iter().zip(served) {
        assert_eq!(*target, served.target);
        assert!(status.is_none_or(|status| status == served.status), "{target} {status:?}");
        assert!(size.is_none_or(|size| size == served.size), "{target} {size:?}, not {}", served.size);
    }
    told.iter().filter(|(_, status, size)| status.is_none() || size.is_none()).count()
}

#[test]
fn a_head_that_is_not_copied_makes_no_size_slip() {
    // As a tester saw it: 20 requests in one write, alternately for 1,282,302 and 1,300 bytes.
    let served: Vec<_> =
        (0..20).map(|n| ServedAnswer::new(n, 0, if n % 2 == 0 { 1_282_302 } else { 1300 })).collect();
    let stream = answers(&served);
    let requests: String = served.iter().map(ServedAnswer::request).collect();
    for (lengths, copied, wanted) in [
        (&[65_160][..], 1996, 19),
        (&[65_160, 2896, 14_480], 1996, 19),
        // The second head is hidden and the third one is seen: it must not be taken for the second.
        (&[served[0].bytes.len() + served[1].bytes.len()], 1996, 19),
        (&[65_160], 65_160, 0),
        (&[1448], 1448, 0),
        // Segments in which every head begins a piece, or nearly so.
        (&[served[0].bytes.len(), served[1].bytes.len()], 1996, 0),
        (&[served[0].bytes.len() - 5, served[1].bytes.len() + 5], 1996, 0),
    ] {
        let mut wire = Wire::new();
        wire.send(true, &requests, 0);
        send(&mut wire, &stream, &cuts(stream.len(), lengths), copied);
        assert_eq!(unknown(&mut wire, &served), wanted, "{lengths:?}");
        let unread = wire.seen.iter().filter(|exchange| exchange.unread).count();
        assert_eq!(unread, wanted);
    }
}

#[test]
fn a_client_that_waits_costs_one_answer_for_each_head() {
    let served: Vec<_> = (0..6).map(|n| ServedAnswer::new(n, n % 2, 30_000)).collect();
    let mut wire = Wire::new();
    for (n, answer) in served.iter().enumerate() {
        wire.send(true, &answer.request(), 0);
        let copied = if matches!(n, 2 | 3) { 0 } else { 100 };
        send(&mut wire, &answer.bytes, &cuts(answer.bytes.len(), &[20_000]), copied);
    }
    assert_eq!(unknown(&mut wire, &served), 2);
    assert_eq!(wire.seen.iter().filter(|exchange| exchange.unread).count(), 2);
}

#[test]
fn where_one_request_alone_can_be_answered_it_is() {
    // The first answer comes in chunks, which are not copied.
    let served: Vec<_> = (0..2).map(|n| ServedAnswer::new(n, 1 - n, 9000)).collect();
    let mut wire = Wire::new();
    wire.send(true, &(served[0].request() + &served[1].request()), 0);
    send(&mut wire, &served[0].bytes, &[(0, served[0].bytes.len())], 60);
    send(&mut wire, &served[1].bytes, &[(0, served[1].bytes.len())], 100);
    assert_eq!(unknown(&mut wire, &served), 1);
    assert_eq!(wire.told()[0], ("/0".to_owned(), Some(200), None));
}

#[test]
fn a_head_that_was_not_copied_may_be_that_of_an_interim_answer() {
    let served = [(0, 1494), (5, 0), (0, 0)];
    let served: Vec<_> =
        served.into_iter().enumerate().map(|(n, (kind, size))| ServedAnswer::new(n, kind, size)).collect();
    let mut wire = Wire::new();
    wire.send(true, &served.iter().map(ServedAnswer::request).collect::<String>(), 0);
    let stream = answers(&served);
    // The first segment ends with the interim answer to the second request; the other one begins with the final one.
    let first = served[0].bytes.len() + "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n".len();
    send(&mut wire, &stream, &cuts(stream.len(), &[first]), 43);
    assert_eq!(unknown(&mut wire, &served), 2);
}

#[test]
fn a_head_that_comes_late_or_again_is_read() {
    let served: Vec<_> = (0..4).map(|n| ServedAnswer::new(n, 0, 1000)).collect();
    let stream = answers(&served);
    let requests: String = served.iter().map(ServedAnswer::request).collect();
    let length = served[0].bytes.len();
    let at = |n: usize| (n * length, length);
    // Late: the segment after it has passed before. Again: first it was not copied.
    let mut wire = Wire::new();
    wire.send(true, &requests, 0);
    send(&mut wire, &stream, &[at(0), at(2), at(1), at(2), at(3)], 2000);
    assert_eq!(unknown(&mut wire, &served), 0);
    let mut wire = Wire::new();
    wire.send(true, &requests, 0);
    let both = (0, 2 * length);
    send(&mut wire, &stream, &[both, at(1), at(2), at(3)], 500);
    assert_eq!(unknown(&mut wire, &served), 0);
}

#[test]
fn requests_that_are_not_copied_make_no_answer_slip() {
    let served: Vec<_> = (0..4).map(|n| ServedAnswer::new(n, 0, 1000 + n)).collect();
    let mut wire = Wire::new();
    // The third one stands in what is not copied.
    let third = served[2].request().len() as u32;
    wire.send(true, &(served[0].request() + &served[1].request()), third);
    wire.send(true, &served[3].request(), 0);
    let stream = answers(&served);
    send(&mut wire, &stream, &cuts(stream.len(), &[1448]), 1448);
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    let told = |n: usize, size| (format!("/{n}"), Some(200), Some(size));
    assert_eq!(wire.told(), [told(0, 1000), told(1, 1001), ("/3".to_owned(), None, None)]);
    assert!(wire.seen[2].unread);
}

/// Sends all of an answer, but as if nothing of it had been seen.
fn miss(wire: &mut Wire, answer: &ServedAnswer) {
    wire.seq[0] = wire.seq[0].wrapping_add(answer.bytes.len() as u32);
}

#[test]
fn segments_that_are_lost_cost_no_more_than_their_own_exchanges() {
    let served: Vec<_> = (0..8).map(|n| ServedAnswer::new(n, n % 2, 1000 + n)).collect();
    let mut wire = Wire::new();
    for (n, answer) in served.iter().enumerate() {
        let request = answer.request();
        match n {
            // The request is lost, too.
            3 => wire.seq[1] = wire.seq[1].wrapping_add(request.len() as u32),
            _ => wire.send(true, &request, 0),
        }
        match n {
            0 | 3 | 4 => miss(&mut wire, answer),
            // All but its head, and all but its end.
            6 => {
                send(&mut wire, &answer.bytes, &[(0, 100)], 100);
            }
            _ => send(&mut wire, &answer.bytes, &cuts(answer.bytes.len(), &[500]), 500),
        }
    }
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    let told = wire.told();
    let right = |n: usize| (format!("/{n}"), Some(200), Some(served[n].size));
    let nothing = |n: usize| (format!("/{n}"), None, None);
    let wanted = [nothing(0), right(1), right(2), nothing(4), right(5), right(6), right(7)];
    assert_eq!(told, wanted);
}

#[test]
fn a_request_behind_another_one_that_was_not_copied_is_known_to_be_there() {
    let served: Vec<_> = (0..4).map(|n| ServedAnswer::new(n, 0, 1000 + n)).collect();
    let mut wire = Wire::new();
    wire.send(true, &served[0].request(), served[1].request().len() as u32);
    send(&mut wire, &served[0].bytes, &cuts(served[0].bytes.len(), &[500]), 500);
    wire.send(true, &served[2].request(), 0);
    send(&mut wire, &served[1].bytes, &cuts(served[1].bytes.len(), &[500]), 500);
    wire.send(true, &served[3].request(), 0);
    send(&mut wire, &served[2].bytes, &cuts(served[2].bytes.len(), &[500]), 500);
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    let told = wire.told();
    assert_eq!(told[0], ("/0".to_owned(), Some(200), Some(1000)));
    assert!(told[1..].iter().all(|(_, status, _)| status.is_none()), "{told:?}");
}

#[test]
fn a_request_while_an_answer_of_unknown_length_flows_is_ahead() {
    let served: Vec<_> = (0..3).map(|n| ServedAnswer::new(n, n % 2, 3000 + n)).collect();
    let mut wire = Wire::new();
    wire.send(true, &served[1].request(), 0);
    // Its frames are not copied.
    let bytes = &served[1].bytes;
    send(&mut wire, &bytes[..1000], &[(0, 1000)], 60);
    wire.send(true, &served[0].request(), 0);
    send(&mut wire, &bytes[1000..], &[(0, bytes.len() - 1000)], 60);
    wire.send(true, &served[2].request(), 0);
    for answer in [&served[0], &served[2]] {
        send(&mut wire, &answer.bytes, &[(0, answer.bytes.len())], 100);
    }
    wire.exchanges.close(&mut |exchange| wire.seen.push(exchange));
    let told = wire.told();
    assert!(told.iter().all(|(target, _, size)| target == "/1" || size.is_none()), "{told:?}");
}

#[test]
fn an_answer_in_chunks_does_not_get_that_of_a_request_that_was_lost() {
    let served: Vec<_> = (0..3).map(|n| ServedAnswer::new(n, n, 3000 + n)).collect();
    for number in [u32::MAX, 0] {
        let mut wire = Wire::new();
        wire.send(true, &served[1].request(), 0);
        // Its frames are not copied.
        send(&mut wire, &served[1].bytes, &[(0, served[1].bytes.len())], 60);
        let lost = served[0].request().len() as u32;
        wire.seq[1] = wire.seq[1].wrapping_add(lost & number);
        send(&mut wire, &served[0].bytes, &[(0, served[0].bytes.len())], 60);
        // Without a request that was lost, it is a number that nobody has sent.
        wire.seq[0] = wire.seq[0].wrapping_add(!number >> 1);
        wire.send(true, &served[2].request(), 0);
        assert_eq!(wire.told(), [("/1".to_owned(), Some(200), None)]);
    }
}

#[test]
fn heads_of_requests_in_pieces() {
    let served: Vec<_> = (0..9).map(|n| ServedAnswer::new(n, 0, 10 * n)).collect();
    let requests: String = served.iter().map(ServedAnswer::request).collect();
    let mut wire = Wire::new();
    for (at, length) in cuts(requests.len(), &[7, 50, 31]) {
        wire.send(true, &requests[at..at + length], 0);
    }
    let stream = answers(&served);
    send(&mut wire, &stream, &cuts(stream.len(), &[3, 77]), 100);
    assert_eq!(unknown(&mut wire, &served), 0);
}

#[test]
fn more_requests_than_are_kept() {
    let served: Vec<_> = (0..100).map(|n| ServedAnswer::new(n, 0, n)).collect();
    let requests: String = served.iter().map(ServedAnswer::request).collect();
    let mut wire = Wire::new();
    wire.send(true, &requests, 0);
    let stream = answers(&served);
    send(&mut wire, &stream, &cuts(stream.len(), &[1448]), 1448);
    assert_eq!(unknown(&mut wire, &served), 36);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]
    #[test]
    fn what_is_told_is_right(
        kinds in proptest::collection::vec((0usize..6, 0usize..3000), 1..12),
        bursts in proptest::collection::vec(1usize..6, 1..4),
        lengths in proptest::collection::vec(1usize..4000, 1..6),
        moved in proptest::collection::vec((1usize..50, 0usize..3), 0..4),
        lost in proptest::collection::vec(0usize..50, 0..3),
        copied in 0usize..3000,
    ) {
        let served: Vec<_> = kinds.iter().enumerate().map(|(n, (kind, size))| ServedAnswer::new(n, *kind, *size)).collect();
        let mut wire = Wire::new();
        let (mut rest, mut burst) = (&served[..], bursts.iter().cycle());
        while !rest.is_empty() {
            let (now, later) = rest.split_at((*burst.next().unwrap()).min(rest.len()));
            wire.send(true, &now.iter().map(ServedAnswer::request).collect::<String>(), 0);
            let stream = answers(now);
            let mut order = cuts(stream.len(), &lengths);
            // Pieces change places, come again, or come again later.
            for (at, what) in &moved {
                if let (Some(&piece), true) = (order.get(*at), at + 1 < order.len()) {
                    match what {
                        0 => order.swap(*at, at + 1),
                        1 => order.insert(*at, piece),
                        _ => order.insert(at + 1, piece),
                    }
                }
            }
            // At the very end nobody would know.
            for at in lost.iter().filter(|_| !later.is_empty()) {
                if *at < order.len() {
                    order.remove(*at);
                }
            }
            send(&mut wire, &stream, &order, copied);
            rest = later;
        }
        let missing = unknown(&mut wire, &served);
        let all_copied = copied >= *lengths.iter().max().unwrap();
        proptest::prop_assert!(missing == 0 || !all_copied || !moved.is_empty() || !lost.is_empty());
    }
}
