//! Fuzz targets: what others send, and what must hold whatever it is.

use crate::caching::{FromHolder, ToHolder};
use crate::cloning::{FromClone, ToClone};
use crate::codec::{Message as _, messages};
use crate::message::{Conn, FromAgent, ToAgent};
use crate::session::{AgentHandshake, AgentTerms, FrameReader, FrontEndHandshake, FrontEndId, Keys};
use crate::{Key, TcpState, load};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("wire_messages", wire_messages),
    ("wire_frames", wire_frames),
    ("wire_handshake", wire_handshake),
    ("wire_tcp_state", wire_tcp_state),
    ("wire_load_datagrams", wire_load_datagrams),
];

/// The messages of a frame: each can be sent on and is the same then; an error is the last.
macro_rules! check_messages {
    ($message:ty, $bytes:expr) => {{
        let mut failed = false;
        for message in messages::<$message>($bytes) {
            assert!(!failed, "nothing follows an error");
            failed = message.is_err();
            let Ok(message) = message else { continue };
            let mut encoded = Vec::new();
            message.encode(&mut encoded).expect("what was received can be sent");
            assert!(encoded.len() <= $bytes.len(), "the encoding is the shortest");
            let again = <$message>::decode(&encoded).expect("what was encoded can be decoded");
            assert_eq!(again, message);
        }
    }};
}

fn wire_messages(bytes: &[u8]) {
    check_messages!(ToAgent<'_>, bytes);
    check_messages!(FromAgent<'_>, bytes);
    check_messages!(ToClone<'_>, bytes);
    check_messages!(FromClone, bytes);
    check_messages!(ToHolder<'_>, bytes);
    check_messages!(FromHolder<'_>, bytes);
}

const KEY: [u8; 32] = [3; 32];

fn handshakes() -> (FrontEndHandshake, Vec<u8>, AgentHandshake) {
    let key = Key::new(KEY);
    let id = FrontEndId { name: "fe1".to_owned(), instance: 77 };
    let terms = AgentTerms { name: "b1".to_owned(), window: 256, most_state_bytes: 1 << 20 };
    let (front_end, hello) = FrontEndHandshake::new(&key, &id, [1; 32]).expect("the name is good");
    (front_end, hello, AgentHandshake::new(&key, terms, [2; 32]).expect("the name is good"))
}

/// The frames of both ends of a link: of the front-end, and of the agent.
fn link() -> (Keys, Keys) {
    let (mut front_end, hello, mut agent) = handshakes();
    let welcome = agent.feed(&hello, 5).expect("the hello is good").send;
    let proof = front_end.feed(&welcome).expect("the welcome is good");
    let done = agent.feed(&proof.send, 6).expect("the proof is good").done;
    (proof.done.expect("it is complete").keys, done.expect("it is complete").keys)
}

/// The areas of messages that come of these pieces, until there is an error.
fn areas<'a>(reader: &mut FrameReader, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    let mut found = Vec::new();
    for piece in pieces {
        reader.feed(piece);
        loop {
            match reader.next_frame() {
                Ok(Some(area)) => found.push(area.to_vec()),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}

/// What a stranger sends is never a frame; of an authentic stream that was changed in one place only the frames before it come out.
fn wire_frames(bytes: &[u8]) {
    let [first, at, ..] = *bytes else { return };
    let (_, mut agent) = link();
    let (found, _) = areas(&mut agent.reader, std::iter::once(bytes));
    assert!(found.is_empty(), "nobody without the key makes a frame");
    let (mut front_end, mut agent) = link();
    for message in bytes.chunks(40).take(20) {
        front_end.writer.push(&ToAgent::Confirm { conn: Conn(message.len() as u64) }).expect("it is short");
        if message[0] & 1 == 0 {
            front_end.writer.finish();
        }
    }
    let whole = front_end.writer.finish().to_vec();
    let piece = usize::from(first) + 1;
    let (good, failed) = areas(&mut agent.reader, whole.chunks(piece));
    assert!(!failed && !agent.reader.is_within_frame() && !good.is_empty());
    let mut changed = whole;
    let place = (usize::from(at) * 7) % changed.len();
    changed[place] ^= 1 << (first & 7);
    let (_, mut agent) = link();
    let (found, failed) = areas(&mut agent.reader, changed.chunks(piece));
    assert!(found.len() < good.len() && found[..] == good[..found.len()], "only what came before the change");
    // A length that has grown may wait for more.
    assert!(failed || agent.reader.is_within_frame());
}

/// No bytes but those of somebody with the key lead to a link, in whichever pieces they come.
fn wire_handshake(bytes: &[u8]) {
    let (mut front_end, hello, mut agent) = handshakes();
    assert!(front_end.feed(bytes).is_ok_and(|p| p.done.is_none()) || front_end.feed(b"").is_err());
    if let Ok(first) = agent.feed(bytes, 5) {
        assert!(first.done.is_none() && first.consumed <= bytes.len());
        let proved = agent.feed(&bytes[first.consumed..], 6);
        assert!(proved.is_err() || proved.is_ok_and(|p| p.done.is_none()), "a proof needs the key");
    }
    let [at, bit, ..] = *bytes else { return };
    let (mut front_end, _, mut agent) = handshakes();
    let mut welcome = agent.feed(&hello, 5).expect("the hello is good").send;
    let place = usize::from(at) % welcome.len();
    welcome[place] ^= 1 << (bit & 7);
    let mut done = false;
    for piece in welcome.chunks(usize::from(bit >> 3) + 1) {
        match front_end.feed(piece) {
            Ok(progress) => done |= progress.done.is_some(),
            Err(_) => break,
        }
    }
    assert!(!done, "a welcome that was changed proves nothing");
}

fn wire_tcp_state(bytes: &[u8]) {
    let Ok(state) = TcpState::decode(bytes) else { return };
    let mut encoded = Vec::new();
    state.encode(&mut encoded);
    assert_eq!(encoded, bytes, "there is one encoding");
    assert_eq!(state.encoded_bytes(), bytes.len());
    assert!(state.unsent_bytes <= state.send_queue.len());
}

fn wire_load_datagrams(bytes: &[u8]) {
    load::datagrams(bytes);
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
