use std::net::{IpAddr, SocketAddr};

use crate::Flow;
use proptest::prelude::*;

use super::*;
use crate::message::AnswerReport;

fn flow() -> impl Strategy<Value = Flow> {
    (any::<IpAddr>(), any::<u16>(), any::<IpAddr>(), any::<u16>())
        .prop_map(|(client, p, vip, q)| Flow::new(SocketAddr::new(client, p), SocketAddr::new(vip, q)))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

/// Has `check` see each kind of message to an agent, made of these values.
fn to_agent(n: (u64, u64, u32), b: bool, long: &[u8], mut check: impl FnMut(&ToAgent<'_>)) {
    let (conn, request) = (Conn(n.0), n.2);
    for message in [
        ToAgent::Handoff { conn, request, lease_until_ns: n.1, ask: b, state: long },
        ToAgent::Confirm { conn },
        ToAgent::Cancel { conn },
        ToAgent::Stay { conn, request },
        ToAgent::Return { conn, request },
        ToAgent::Released { conn },
        ToAgent::Close { conn },
        ToAgent::Adopted { orphan: n.1, conn },
        ToAgent::Ping { token: n.1 },
    ] {
        check(&message);
    }
}

/// The same of messages from an agent.
fn from_agent(n: (u64, u64, u32), b: bool, long: &[u8], flow: Flow, mut check: impl FnMut(&FromAgent<'_>)) {
    let (conn, request) = (Conn(n.0), n.2);
    let ended = AnswerReport {
        request,
        status: n.1 as u16,
        complete: b,
        content_bytes: n.1,
        first_byte_us: n.0 as u32,
        total_us: n.1 as u32,
    };
    let why = Refusal::ALL[(n.0 % 6) as usize];
    for message in [
        FromAgent::Taken { conn },
        FromAgent::Refused { conn, why },
        FromAgent::Ask { conn, request, portable: b, head: long },
        FromAgent::Began { conn, request, head: long },
        FromAgent::Ended { conn, ended },
        FromAgent::Returned { conn, request, state: long },
        FromAgent::Kept { conn, request },
        FromAgent::Closed { conn },
        FromAgent::Adopt { orphan: n.1, flow, request, active: b },
        FromAgent::Stray { flow },
        FromAgent::Pong { token: n.0, clock_ns: n.1 },
    ] {
        check(&message);
    }
}

/// Encodes after something else, decodes to the same, and neither a part nor more of it, nor the other direction.
fn goes_round<'m, M: Message<'m> + PartialEq + std::fmt::Debug>(message: &M, buffer: &'m mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(b"before");
    message.encode(buffer).unwrap();
    let all: &'m [u8] = buffer;
    let encoded = &all[6..];
    assert_eq!(&M::decode(encoded).unwrap(), message);
    for end in 0..encoded.len() {
        assert_eq!(M::decode(&encoded[..end]), Err(DecodeError::Short), "{end} bytes of {message:?}");
    }
}

proptest! {
    #[test]
    fn messages_go_round(n: (u64, u64, u32), b: bool, long in bytes(), flow in flow()) {
        to_agent(n, b, &long, |message| {
            goes_round(message, &mut Vec::new());
            let mut other = Vec::new();
            message.encode(&mut other).unwrap();
            assert_eq!(FromAgent::decode(&other), Err(DecodeError::Kind(other[0])));
            other.push(0);
            assert_eq!(ToAgent::decode(&other), Err(DecodeError::Trailing { bytes: 1 }));
        });
        from_agent(n, b, &long, flow, |message| {
            goes_round(message, &mut Vec::new());
            let mut other = Vec::new();
            message.encode(&mut other).unwrap();
            assert_eq!(ToAgent::decode(&other), Err(DecodeError::Kind(other[0])));
            other.push(0);
            assert_eq!(FromAgent::decode(&other), Err(DecodeError::Trailing { bytes: 1 }));
        });
    }

    #[test]
    fn many_in_one_area(n: (u64, u64, u32), b: bool, long in bytes(), flow in flow()) {
        let (mut area, mut count) = (Vec::new(), 0);
        from_agent(n, b, &long, flow, |message| {
            message.encode(&mut area).unwrap();
            count += 1;
        });
        let all: Vec<FromAgent<'_>> = messages(&area).map(Result::unwrap).collect();
        prop_assert_eq!(all.len(), count);
        // An error is the last item.
        area.extend_from_slice(&[200, 1, 2, 3]);
        let mut all = messages::<FromAgent<'_>>(&area);
        prop_assert_eq!(all.by_ref().filter(Result::is_ok).count(), count);
        prop_assert_eq!(messages::<FromAgent<'_>>(&area).last(), Some(Err(DecodeError::Kind(200))));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(mut bytes in bytes(), kind in 0_u8..80) {
        for first in [None, Some(kind)] {
            if let (Some(first), Some(at)) = (first, bytes.first_mut()) {
                *at = first;
            }
            if let Ok(message) = ToAgent::decode(&bytes) {
                let mut again = Vec::new();
                message.encode(&mut again).unwrap();
                prop_assert_eq!(&again, &bytes, "one message has one form");
            }
            if let Ok(message) = FromAgent::decode(&bytes) {
                let mut again = Vec::new();
                message.encode(&mut again).unwrap();
                if !matches!(message, FromAgent::Adopt { .. } | FromAgent::Stray { .. }) {
                    prop_assert_eq!(&again, &bytes, "one message has one form");
                }
            }
        }
    }
}

#[test]
fn lengths_are_bounded() {
    let head = vec![b'x'; MOST_HEAD_BYTES + 1];
    let mut out = b"before".to_vec();
    let (conn, request) = (Conn(1), 0);
    let error = FromAgent::Ask { conn, request, portable: true, head: &head }.encode(&mut out).unwrap_err();
    assert_eq!(error.to_string(), "the head of a message has 65537 bytes; 65536 is the most");
    assert_eq!(out, b"before");
    FromAgent::Began { conn, request, head: &head[1..] }.encode(&mut out).unwrap();
    let state = vec![0; MOST_STATE_BYTES + 1];
    let lease_until_ns = 0;
    for state in [&state[..], &state[1..]] {
        let fits = state.len() <= MOST_STATE_BYTES;
        let mut out = Vec::new();
        let handoff = ToAgent::Handoff { conn, request, lease_until_ns, ask: true, state };
        assert_eq!(handoff.encode(&mut out).is_ok(), fits);
        assert_eq!(FromAgent::Returned { conn, request, state }.encode(&mut out).is_ok(), fits);
    }
    // A length beyond the bound is refused before its bytes are waited for.
    let mut began = Vec::new();
    FromAgent::Began { conn, request, head: b"" }.encode(&mut began).unwrap();
    let at = began.len() - 4;
    began[at..].copy_from_slice(&65_537_u32.to_le_bytes());
    assert!(matches!(FromAgent::decode(&began), Err(DecodeError::TooLong(TooLong { bytes: 65_537, .. }))));
}

#[test]
fn values_are_checked() {
    let mut refused = Vec::new();
    FromAgent::Refused { conn: Conn(7), why: Refusal::BadState }.encode(&mut refused).unwrap();
    for (code, why) in Refusal::ALL.into_iter().enumerate() {
        refused[9] = code as u8;
        assert_eq!(FromAgent::decode(&refused), Ok(FromAgent::Refused { conn: Conn(7), why }));
    }
    refused[9] = 6;
    assert_eq!(FromAgent::decode(&refused), Err(DecodeError::Value { field: "reason", value: 6 }));
    let mut handoff = Vec::new();
    ToAgent::Handoff { conn: Conn(0), request: 0, lease_until_ns: 0, ask: true, state: b"" }
        .encode(&mut handoff)
        .unwrap();
    handoff[21] = 2;
    assert_eq!(ToAgent::decode(&handoff), Err(DecodeError::Value { field: "ask", value: 2 }));
    assert_eq!(ToAgent::decode(b""), Err(DecodeError::Short));
    assert_eq!(messages::<ToAgent<'_>>(b"").count(), 0);
}
