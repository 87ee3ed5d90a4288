//! Prints what frames of handoffs cost: `cargo run --release -p plimsoll-wire --example frame_cost`.
#![allow(clippy::unwrap_used, reason = "a measurement, not a service")]

use std::time::{Duration, Instant};

use plimsoll_wire::Key;
use plimsoll_wire::codec::messages;
use plimsoll_wire::message::{Conn, ToAgent};
use plimsoll_wire::session::{AgentHandshake, AgentTerms, FrontEndHandshake, FrontEndId, Keys};

const ROUNDS: u32 = 100_000;

fn link() -> (Keys, Keys) {
    let key = Key::generate().unwrap();
    let id = FrontEndId { name: "fe".to_owned(), instance: 1 };
    let terms = AgentTerms { name: "b1".to_owned(), window: 256, most_state_bytes: 1 << 20 };
    let (mut front_end, hello) = FrontEndHandshake::new(&key, &id, [1; 32]).unwrap();
    let mut agent = AgentHandshake::new(&key, terms, [2; 32]).unwrap();
    let welcome = agent.feed(&hello, 0).unwrap().send;
    let proof = front_end.feed(&welcome).unwrap();
    let done = agent.feed(&proof.send, 0).unwrap();
    (proof.done.unwrap().keys, done.done.unwrap().keys)
}

fn main() {
    let state = [5; 600];
    for count in [1, 20] {
        let (mut front_end, mut agent) = link();
        let (mut made, mut read) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let writer = &mut front_end.writer;
            for conn in 0..count {
                let (conn, state) = (Conn(conn), &state);
                let handoff = ToAgent::Handoff { conn, request: 0, lease_until_ns: 0, ask: true, state };
                writer.push(&handoff).unwrap();
            }
            let bytes = writer.finish();
            made += began.elapsed();
            let began = Instant::now();
            agent.reader.feed(bytes);
            let length = bytes.len();
            let area = agent.reader.next_frame().unwrap().unwrap();
            assert_eq!(messages::<ToAgent<'_>>(area).map(Result::unwrap).count() as u64, count);
            read += began.elapsed();
            writer.consume(length);
        }
        let (made, read) = (made / ROUNDS, read / ROUNDS);
        println!("{count} handoffs of {} bytes: made in {made:?}, read in {read:?}", state.len());
    }
}
