//! Connections that travel in the middle of a long answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use plimsoll_datapath::tcp::{Frozen, QueueLimits};
use plimsoll_testkit::{PATIENCE, Why, pace, uninterrupted};
use socket2::{Domain, SockRef, Socket, Type};

use crate::tcp::{carry, flow_of};
use crate::tcp_world::{Plan, V4, V6, World};

/// The byte at an offset of the answer: no period that a segment or a buffer has.
fn byte_at(offset: usize) -> u8 {
    (offset.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Reads to the end, slowly at first, and returns how many bytes came. Each of them is checked.
fn read_all(mut client: TcpStream) -> usize {
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = vec![0; 60_000];
    let mut offset = 0;
    loop {
        let count = uninterrupted(|| client.read(&mut buffer)).unwrap();
        if count == 0 {
            return offset;
        }
        for (at, byte) in buffer[..count].iter().enumerate() {
            assert_eq!(*byte, byte_at(offset + at), "byte {} of the answer", offset + at);
        }
        offset += count;
        if offset < 3_000_000 {
            // Slow on purpose: so the writer has more to send than the client has taken.
            pace(Duration::from_millis(1), Why::SlowPeer);
        }
    }
}

/// Writes `total` bytes, moving to the other machine `moves` times on the way. How many bytes travelled (acknowledged not
/// yet, never sent).
fn answer(world: &World, mut machine: TcpStream, total: usize, moves: usize) -> (usize, usize) {
    let content: Vec<u8> = (0..total).map(byte_at).collect();
    let (mut offset, mut at) = (0, 0);
    let (mut travelled, mut unsent) = (0, 0);
    for part in 0..=moves {
        let end = total * (part + 1) / (moves + 1);
        machine.write_all(&content[offset..end]).unwrap();
        offset = end;
        if part < moves {
            at = 1 - at;
            let (moved, state) = carry(world, machine, at);
            machine = moved;
            travelled += state.send_queue.len();
            unsent += state.unsent_bytes;
        }
    }
    (travelled, unsent)
}

/// (client's end, machine's end). A small receive buffer makes the client announce a small window.
fn connection(world: &World, receive_buffer: Option<usize>) -> (TcpStream, TcpStream) {
    world.connection_by(|address| {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        socket.connect(&address.into()).unwrap();
        socket.into()
    })
}

fn transfer(plan: Plan, sysctls: &[(&str, &str)], receive_buffer: Option<usize>, total: usize, moves: usize) {
    let world = World::new(plan);
    for (name, value) in sysctls {
        world.client.sysctl(name, value);
    }
    let (client, machine) = connection(&world, receive_buffer);
    let reader = thread::spawn(move || read_all(client));
    let (travelled, unsent) = answer(&world, machine, total, moves);
    assert_eq!(reader.join().unwrap(), total);
    println!("{travelled} bytes travelled in send queues, {unsent} of them never sent before");
    // How much of it was on its way at a move depends on the machine.
    assert!(travelled > 0, "nothing was under way");
}

#[test]
fn long_answer_travels_many_times() {
    transfer(V4, &[], None, 40_000_000, 12);
}

#[test]
fn long_answer_thawed_many_times() {
    let world = World::new(V4);
    let (client, mut machine) = world.connection();
    let reader = thread::spawn(move || read_all(client));
    let content: Vec<u8> = (0..8_000_000).map(byte_at).collect();
    for part in content.chunks(1_000_000) {
        machine.write_all(part).unwrap();
        let frozen = Frozen::freeze(machine.into()).unwrap();
        let limits = QueueLimits { send_bytes: 64 << 20, ..QueueLimits::default() };
        frozen.snapshot(&flow_of(&frozen), &[], limits).unwrap();
        frozen.snapshot(&flow_of(&frozen), &[], limits).unwrap();
        machine = frozen.thaw().unwrap().into();
    }
    drop(machine);
    assert_eq!(reader.join().unwrap(), content.len());
}

#[test]
fn long_answer_over_ipv6() {
    transfer(V6, &[], None, 10_000_000, 4);
}

#[test]
fn long_answer_to_a_client_without_options() {
    let off = ["net/ipv4/tcp_timestamps", "net/ipv4/tcp_sack", "net/ipv4/tcp_window_scaling"];
    transfer(V4, &off.map(|name| (name, "0")), None, 6_000_000, 4);
}

#[test]
fn long_answer_to_a_client_with_a_small_window() {
    transfer(V4, &[], Some(4_000), 1_000_000, 4);
}

/// A kernel sends nothing of a segment that is larger than the window, until a timer runs out.
#[test]
fn segments_fit_the_window_after_a_move() {
    let segment_bytes = |machine: &TcpStream| SockRef::from(machine).tcp_mss().unwrap();
    for plan in [V4, V6] {
        let world = World::new(plan);
        let mut sizes = Vec::new();
        for receive_buffer in [Some(0), Some(3_000), Some(4_000), Some(20_000), None] {
            let (_client, machine) = connection(&world, receive_buffer);
            let before = segment_bytes(&machine);
            let (machine, state) = carry(&world, machine, 1);
            assert_eq!(segment_bytes(&machine), before, "{state:?}");
            world.route_to(0);
            sizes.push(before);
        }
        assert!(sizes[0] < sizes[4] / 2, "no window was small: {sizes:?}");
    }
}
