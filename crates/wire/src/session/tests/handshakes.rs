use super::*;
use proptest::prelude::*;

fn front_end(key: &Key) -> (FrontEndHandshake, Vec<u8>) {
    FrontEndHandshake::new(key, &id(), [1; 32]).unwrap()
}

fn agent(key: &Key, nonce: u8) -> AgentHandshake {
    AgentHandshake::new(key, terms(), [nonce; 32]).unwrap()
}

fn key() -> Key {
    Key::new([3; 32])
}

/// What the front-end says to the welcome of an agent that got this.
fn welcome_of(hello: &[u8]) -> Vec<u8> {
    agent(&key(), 2).feed(hello, 5).unwrap().send
}

#[test]
fn byte_by_byte_and_with_frames_behind() {
    let (mut front_end, hello) = front_end(&key());
    let mut agent = agent(&key(), 2);
    let mut feed = |bytes: &[u8]| {
        let mut sent = Vec::new();
        for byte in bytes {
            let progress = agent.feed(std::slice::from_ref(byte), 5).unwrap();
            assert_eq!(progress.consumed, 1);
            assert!(progress.done.is_none());
            sent.extend(progress.send);
        }
        sent
    };
    let welcome = feed(&hello);
    let mut proof = None;
    for byte in &welcome {
        assert!(proof.is_none());
        proof = Some(front_end.feed(std::slice::from_ref(byte)).unwrap()).filter(|p| p.done.is_some());
    }
    let proof = proof.unwrap();
    // The first frame comes with the proof.
    let mut keys = proof.done.unwrap().keys;
    keys.writer.push(&ToAgent::Confirm { conn: Conn(9) }).unwrap();
    let both = [&proof.send[..], keys.writer.finish()].concat();
    let progress = agent.feed(&both, 5).unwrap();
    assert_eq!(progress.consumed, proof.send.len());
    let mut reader = progress.done.unwrap().keys.reader;
    reader.feed(&both[progress.consumed..]);
    assert_eq!(confirmed(&mut reader), Ok(vec![9]));
    assert_eq!(agent.feed(b"", 5).unwrap_err(), HandshakeError::Over);
    assert_eq!(front_end.feed(b"").unwrap_err(), HandshakeError::Over);
}

#[test]
fn another_key() {
    let (mut front_end, hello) = front_end(&key());
    let welcome = agent(&Key::new([4; 32]), 2).feed(&hello, 5).unwrap().send;
    let error = front_end.feed(&welcome).unwrap_err();
    assert_eq!(error, HandshakeError::Key);
    assert!(error.to_string().contains("same key"));
    assert_eq!(front_end.feed(&welcome).unwrap_err(), HandshakeError::Over);
    // A front-end that does not care sends a proof by its own key.
    let (mut thief, hello) = super::handshakes::front_end(&Key::new([4; 32]));
    let mut honest = agent(&key(), 2);
    honest.feed(&hello, 5).unwrap();
    let welcome = agent(&Key::new([4; 32]), 2).feed(&hello, 5).unwrap().send;
    let proof = thief.feed(&welcome).unwrap().send;
    assert_eq!(honest.feed(&proof, 5).unwrap_err(), HandshakeError::Key);
    assert_eq!(honest.feed(&proof, 5).unwrap_err(), HandshakeError::Over);
}

#[test]
fn a_replayed_front_end() {
    let (mut front_end, hello) = front_end(&key());
    let mut first = agent(&key(), 2);
    let welcome = first.feed(&hello, 5).unwrap().send;
    let proof = front_end.feed(&welcome).unwrap().send;
    assert!(first.feed(&proof, 5).unwrap().done.is_some());
    // The same bytes at a later link, at which the agent's nonce is another one.
    let mut second = agent(&key(), 8);
    assert_ne!(second.feed(&hello, 5).unwrap().send, welcome);
    assert_eq!(second.feed(&proof, 5).unwrap_err(), HandshakeError::Key);
}

#[test]
fn a_replayed_agent() {
    let welcome = welcome_of(&front_end(&key()).1);
    let (mut later, _) = FrontEndHandshake::new(&key(), &id(), [9; 32]).unwrap();
    assert_eq!(later.feed(&welcome).unwrap_err(), HandshakeError::Key);
}

#[test]
fn own_messages_sent_back() {
    let (mut front_end, hello) = front_end(&key());
    let error = front_end.feed(&hello).unwrap_err();
    assert_eq!(error, HandshakeError::Kind { kind: 1, expected: 2 });
    let mut agent = agent(&key(), 2);
    let welcome = agent.feed(&hello, 5).unwrap().send;
    assert_eq!(agent.feed(&welcome, 5).unwrap_err(), HandshakeError::Kind { kind: 2, expected: 3 });
}

#[test]
fn other_versions_and_protocols() {
    let (mut one, hello) = front_end(&key());
    let mut newer = hello;
    newer[8] = 9;
    let mut agent = agent(&key(), 2);
    let error = agent.feed(&newer, 5).unwrap_err();
    assert_eq!(error, HandshakeError::Version { theirs: 9 });
    assert!(
        error.to_string().contains("version 9") && error.to_string().contains(&format!("version {VERSION}")),
        "{error}"
    );
    // The answer names the agent's version to a front-end of another one.
    let mut parting = AgentHandshake::parting(&error);
    assert_eq!(parting.len(), 13);
    parting[8] = 7;
    assert_eq!(one.feed(&parting).unwrap_err(), HandshakeError::Version { theirs: 7 });
    assert!(AgentHandshake::parting(&HandshakeError::Key).is_empty());
    let (mut two, _) = front_end(&key());
    let error = two.feed(b"HTTP/1.1 400 Bad Request").unwrap_err();
    assert_eq!(error, HandshakeError::Magic);
    let mut agent = super::handshakes::agent(&key(), 2);
    assert_eq!(agent.feed(b"G", 5).unwrap_err(), HandshakeError::Magic, "known by the first byte");
}

#[test]
fn names() {
    for bad in ["", "a b", "ä", "a\n", &"x".repeat(65), &"x".repeat(300)] {
        let id = FrontEndId { name: bad.to_owned(), instance: 0 };
        let error = FrontEndHandshake::new(&key(), &id, [0; 32]).unwrap_err();
        assert!(matches!(error, HandshakeError::Name(_)));
        let terms = AgentTerms { name: bad.to_owned(), ..terms() };
        assert!(AgentHandshake::new(&key(), terms, [0; 32]).is_err());
    }
    let id = FrontEndId { name: "x".repeat(64), instance: 0 };
    let (_, hello) = FrontEndHandshake::new(&key(), &id, [0; 32]).unwrap();
    assert!(!welcome_of(&hello).is_empty());
}

#[test]
fn a_long_message_is_refused_by_its_header() {
    let (_, mut hello) = front_end(&key());
    hello[11..13].copy_from_slice(&257_u16.to_le_bytes());
    let mut agent = agent(&key(), 2);
    assert_eq!(agent.feed(&hello, 5).unwrap_err(), HandshakeError::Malformed("too long"));
}

#[test]
fn keys_are_not_shown() {
    let (front_end, agent) = link();
    let shown = format!("{front_end:?} {agent:?} {:?}", super::handshakes::front_end(&key()).0);
    assert!(!shown.contains("key:") && shown.len() < 800, "{shown}");
}

proptest! {
    /// A change of any bit of any message is noticed, by the side that reads it or by the other one.
    #[test]
    fn a_flipped_bit(message in 0..3_usize, at: prop::sample::Index, bit in 0..8) {
        let flip = |bytes: &mut Vec<u8>| {
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
        };
        let (mut front_end, mut hello) = front_end(&key());
        let mut agent = agent(&key(), 2);
        if message == 0 {
            flip(&mut hello);
        }
        let Ok(progress) = agent.feed(&hello, 5) else { return Ok(()) };
        let mut welcome = progress.send;
        if message == 1 {
            flip(&mut welcome);
        }
        // A shorter length leaves bytes over, a longer one waits for more.
        let Ok(HandshakeProgress { send: mut proof, done: Some(_), .. }) = front_end.feed(&welcome) else { return Ok(()) };
        prop_assert_eq!(message, 2);
        flip(&mut proof);
        let done = agent.feed(&proof, 5).map(|progress| progress.done.is_some());
        prop_assert!(!matches!(done, Ok(true)));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0..14_usize) {
        let (mut front_end, hello) = front_end(&key());
        let mut agent = agent(&key(), 2);
        // Bytes that begin like a message get further.
        let begun = [&hello[..cut], &bytes].concat();
        let _ = front_end.feed(&bytes);
        if let Ok(progress) = agent.feed(&begun, 5) {
            prop_assert!(progress.consumed <= begun.len());
            prop_assert!(progress.done.is_none());
            let _ = agent.feed(&bytes, 5);
        }
        let welcome = welcome_of(&hello);
        let (mut front_end, _) = super::handshakes::front_end(&key());
        prop_assert!(front_end.feed(&[&welcome[..cut], &bytes].concat()).map_or(true, |p| p.done.is_none()));
    }
}
