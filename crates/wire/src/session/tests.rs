mod frames;
mod handshakes;

use super::*;
use crate::codec::messages;
use crate::key::Key;
use crate::message::{Conn, FromAgent, ToAgent};

fn id() -> FrontEndId {
    FrontEndId { name: "fe1".to_owned(), instance: 77 }
}

fn terms() -> AgentTerms {
    AgentTerms { name: "b1".to_owned(), window: 256, most_state_bytes: 1 << 20 }
}

/// The two ends of a link.
fn link() -> (Established<AgentTerms>, Established<FrontEndId>) {
    let key = Key::new([3; 32]);
    let (mut front_end, hello) = FrontEndHandshake::new(&key, &id(), [1; 32]).unwrap();
    let mut agent = AgentHandshake::new(&key, terms(), [2; 32]).unwrap();
    let welcome = agent.feed(&hello, 5_000).unwrap();
    let proof = front_end.feed(&welcome.send).unwrap();
    let done = agent.feed(&proof.send, 6_000).unwrap();
    (proof.done.unwrap(), done.done.unwrap())
}

/// Numbers of the connections that are confirmed by what has come.
fn confirmed(reader: &mut FrameReader) -> Result<Vec<u64>, FrameError> {
    let mut all = Vec::new();
    while let Some(area) = reader.next_frame()? {
        for message in messages::<ToAgent<'_>>(area) {
            let ToAgent::Confirm { conn } = message.unwrap() else { panic!("another message") };
            all.push(conn.0);
        }
    }
    Ok(all)
}

#[test]
fn both_directions() {
    let (mut front_end, mut agent) = link();
    assert_eq!(front_end.peer, terms());
    assert_eq!(agent.peer, id());
    assert_eq!((front_end.clock_ns, agent.clock_ns), (5_000, 5_000));
    front_end.keys.writer.push(&ToAgent::Confirm { conn: Conn(1) }).unwrap();
    agent.keys.reader.feed(front_end.keys.writer.finish());
    assert_eq!(confirmed(&mut agent.keys.reader), Ok(vec![1]));
    agent.keys.writer.push(&FromAgent::Closed { conn: Conn(1) }).unwrap();
    front_end.keys.reader.feed(agent.keys.writer.finish());
    let area = front_end.keys.reader.next_frame().unwrap().unwrap();
    let all: Vec<_> = messages::<FromAgent<'_>>(area).collect();
    assert_eq!(all, [Ok(FromAgent::Closed { conn: Conn(1) })]);
}
