use std::net::{IpAddr, SocketAddr};

use crate::Flow;
use proptest::prelude::*;

use super::*;
use crate::message::{
    AgentCounts, AnswerReport, Conn, FromAgent, MOST_HEAD_BYTES, MOST_STATE_BYTES, Refusal, ToAgent,
};

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
        ToAgent::Activate { term: n.1 },
        ToAgent::Deactivate,
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
    let counts = AgentCounts::default();
    let why = [
        Refusal::Full,
        Refusal::Stopping,
        Refusal::Late,
        Refusal::Kernel,
        Refusal::NoServer,
        Refusal::BadState,
        Refusal::NotActive,
    ];
    let why = why[(n.0 % 7) as usize];
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
        FromAgent::Counted { counts: AgentCounts { taken: n.0, strays: n.1, fenced: n.2.into(), ..counts } },
        FromAgent::Active { term: n.0, instance: n.1 },
        FromAgent::Stopping,
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
            assert_eq!(FromAgent::decode(&other), Err(DecodeError::Exchange { found: other[0], expected: 3 - other[0] }));
            other.push(0);
            assert_eq!(ToAgent::decode(&other), Err(DecodeError::Trailing { bytes: 1 }));
        });
        from_agent(n, b, &long, flow, |message| {
            goes_round(message, &mut Vec::new());
            let mut other = Vec::new();
            message.encode(&mut other).unwrap();
            assert_eq!(ToAgent::decode(&other), Err(DecodeError::Exchange { found: other[0], expected: 3 - other[0] }));
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
        prop_assert_eq!(messages::<FromAgent<'_>>(&area).last(), Some(Err(DecodeError::Exchange { found: 200, expected: 2 })));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in bytes(), variant in 0_u8..12) {
        for exchange in 1..=2 {
            for start in [&[exchange][..], &[exchange, variant]] {
                let bytes = [start, &bytes].concat();
                if let Ok((message, rest)) = ToAgent::decode_first(&bytes) {
                    goes_round(&message, &mut Vec::new());
                    prop_assert!(bytes.ends_with(rest) && rest.len() < bytes.len());
                }
                if let Ok((message, rest)) = FromAgent::decode_first(&bytes) {
                    goes_round(&message, &mut Vec::new());
                    prop_assert!(bytes.ends_with(rest) && rest.len() < bytes.len());
                }
            }
        }
    }
}

#[test]
fn the_encoding_stays_as_it_is() {
    let encoded = |message: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        message(&mut out);
        out
    };
    let (conn, request) = (Conn(300), 1);
    let handoff = ToAgent::Handoff { conn, request, lease_until_ns: 128, ask: true, state: b"state" };
    assert_eq!(encoded(&|out| handoff.encode(out).unwrap()), b"\x01\x00\xac\x02\x01\x80\x01\x01\x05state");
    let refused = FromAgent::Refused { conn, why: Refusal::Late };
    assert_eq!(encoded(&|out| refused.encode(out).unwrap()), b"\x02\x01\xac\x02\x02");
    let flow = Flow::new("10.0.0.9:4711".parse().unwrap(), "[fd00::1]:80".parse().unwrap());
    let stray = b"\x02\x09\x00\x0a\x00\x00\x09\xe7\x24\x01\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x50";
    assert_eq!(encoded(&|out| FromAgent::Stray { flow }.encode(out).unwrap()), stray);
    let counted =
        FromAgent::Counted { counts: AgentCounts { connections: 300, fenced: 1, ..AgentCounts::default() } };
    let all = [&b"\x02\x0b\xac\x02"[..], &[0; 14], b"\x01"].concat();
    assert_eq!(encoded(&|out| counted.encode(out).unwrap()), all);
}

#[test]
fn lengths_are_bounded() {
    let head = vec![b'x'; MOST_HEAD_BYTES + 1];
    let mut out = b"before".to_vec();
    let (conn, request) = (Conn(1), 0);
    let error = FromAgent::Ask { conn, request, portable: true, head: &head }.encode(&mut out).unwrap_err();
    assert_eq!(error.to_string(), "the head of a message has a length of 65537; 65536 is the most");
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
    // The receiver has the same bounds: exchange, variant, connection, request, then the length as a varint.
    let mut began = vec![2, 3, 1, 0, 0x81, 0x80, 0x04];
    began.extend_from_slice(&head);
    let error = FieldError::TooLong { field: "head", length: 65_537, most: 65_536 };
    assert_eq!(FromAgent::decode(&began), Err(DecodeError::Field(error)));
}

#[test]
fn values_are_checked() {
    let mut refused = Vec::new();
    FromAgent::Refused { conn: Conn(7), why: Refusal::BadState }.encode(&mut refused).unwrap();
    refused[3] = 7;
    let error = FromAgent::decode(&refused).unwrap_err().to_string();
    assert_eq!(error, "a message is malformed: a number stands for no message, reason or kind of address");
    let mut handoff = Vec::new();
    ToAgent::Handoff { conn: Conn(0), request: 0, lease_until_ns: 0, ask: true, state: b"" }
        .encode(&mut handoff)
        .unwrap();
    handoff[5] = 2;
    let error = ToAgent::decode(&handoff).unwrap_err().to_string();
    assert_eq!(error, "a message is malformed: a truth value is neither 0 nor 1");
    assert!(matches!(ToAgent::decode(&[&[1, 1][..], &[0xff; 11]].concat()), Err(DecodeError::Malformed(_))));
    assert_eq!(ToAgent::decode(b""), Err(DecodeError::Short));
    assert_eq!(messages::<ToAgent<'_>>(b"").count(), 0);
}
