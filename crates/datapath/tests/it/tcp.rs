//! One connection, small things: what travels, what does not, what the client sees.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{
    Frozen, NotPortable, QueueLimits, RestoreError, SocketError, TcpState, acknowledge_late, ask_numbers,
    await_data, reset, restore,
};
use plimsoll_testkit::{PATIENCE, eventually, uninterrupted, wait_for};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockRef, Socket, Type};

use crate::tcp_world::{Plan, V4, V6, World};

pub(crate) fn blocking(fd: OwnedFd) -> TcpStream {
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Through the encoding, as between machines.
pub(crate) fn sent(state: &TcpState) -> TcpState {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    TcpState::decode(&bytes).unwrap()
}

/// The two ends of a connection that has been stopped.
pub(crate) fn flow_of(frozen: &Frozen) -> Flow {
    let socket = SockRef::from(frozen);
    let ends = [socket.peer_addr(), socket.local_addr()].map(|end| end.unwrap().as_socket().unwrap());
    Flow::new(ends[0], ends[1])
}

/// Moves the machine's end to another machine, while the client may be sending.
pub(crate) fn carry(world: &World, stream: TcpStream, to: usize) -> (TcpStream, TcpState) {
    let frozen = Frozen::freeze(stream.into()).unwrap();
    let limits = QueueLimits { send_bytes: 64 << 20, ..QueueLimits::default() };
    let state = sent(&frozen.snapshot(&flow_of(&frozen), &[], limits).unwrap());
    let restored = world.machines[to].run(|| restore(&state).unwrap());
    world.route_to(to);
    frozen.close();
    (blocking(restored.activate().unwrap()), state)
}

fn read_exactly(stream: &mut TcpStream, bytes: usize) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = vec![0; bytes];
    stream.read_exact(&mut buffer).unwrap();
    String::from_utf8(buffer).unwrap()
}

pub(crate) fn wait_for_bytes(stream: &TcpStream, bytes: usize) {
    let mut buffer = vec![0; bytes];
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    eventually("the client's bytes", || uninterrupted(|| stream.peek(&mut buffer)).unwrap() == bytes);
}

/// Returns when what clients have sent to the same machine before has arrived: something sent later has, on a connection
/// that was made for this.
fn until_delivered((mut client, mut machine): (TcpStream, TcpStream)) {
    client.write_all(b".").unwrap();
    assert_eq!(read_exactly(&mut machine, 1), ".");
}

fn travels(plan: Plan, sysctls: &[(&str, &str)]) -> TcpState {
    let world = World::new(plan);
    for (name, value) in sysctls {
        world.client.sysctl(name, value);
    }
    let (mut client, mut machine) = world.connection();
    client.write_all(b"first").unwrap();
    assert_eq!(read_exactly(&mut machine, 5), "first");
    machine.write_all(b"answer").unwrap();
    client.write_all(b"unread").unwrap();
    wait_for_bytes(&machine, 6);
    let (mut machine, state) = carry(&world, machine, 1);
    assert_eq!(state.flow, Flow::new(client.local_addr().unwrap(), client.peer_addr().unwrap()));
    assert_eq!(state.receive_queue, b"unread");
    assert_eq!(machine.peer_addr().unwrap(), state.flow.client);
    assert_eq!(machine.local_addr().unwrap(), state.flow.vip);
    assert_eq!(read_exactly(&mut client, 6), "answer");
    assert_eq!(read_exactly(&mut machine, 6), "unread");
    client.write_all(b"more").unwrap();
    assert_eq!(read_exactly(&mut machine, 4), "more");
    machine.write_all(b"the end").unwrap();
    let (machine, _) = carry(&world, machine, 0);
    drop(machine);
    let mut rest = String::new();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "the end");
    state
}

#[test]
fn ipv4_there_and_back() {
    let state = travels(V4, &[]);
    assert!(state.sack && state.timestamp.is_some() && state.window_scales.is_some());
    assert_eq!(state.mss, 1460);
}

#[test]
fn ipv6_there_and_back() {
    assert_eq!(travels(V6, &[]).mss, 1440);
}

#[test]
fn client_without_options() {
    let off = ["net/ipv4/tcp_timestamps", "net/ipv4/tcp_sack", "net/ipv4/tcp_window_scaling"];
    let state = travels(V4, &off.map(|name| (name, "0")));
    assert!(!state.sack && state.timestamp.is_none() && state.window_scales.is_none());
    let state = travels(V4, &[(off[0], "0")]);
    assert!(state.sack && state.timestamp.is_none() && state.window_scales.is_some());
    let state = travels(V6, &[(off[2], "0")]);
    assert!(state.timestamp.is_some() && state.window_scales.is_none());
}

#[test]
fn bytes_read_before_come_first() {
    let world = World::new(V4);
    let (mut client, mut machine) = world.connection();
    client.write_all(b"GET / HTTP/1.1\r\n\r\nrest").unwrap();
    assert_eq!(read_exactly(&mut machine, 18), "GET / HTTP/1.1\r\n\r\n");
    wait_for_bytes(&machine, 4);
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let mut state =
        frozen.snapshot(&flow_of(&frozen), b"GET / HTTP/1.1\r\n\r\n", QueueLimits::default()).unwrap();
    assert_eq!(state.receive_queue, b"GET / HTTP/1.1\r\n\r\nrest");
    // Any other bytes do as well, more than the client ever sent included.
    let other: Vec<u8> = (0..900_000u32).map(|at| b'a' + (at % 26) as u8).collect();
    state.set_receive_queue(other.clone());
    frozen.close();
    let mut machine = blocking(world.machines[0].run(|| restore(&state).unwrap().activate().unwrap()));
    client.write_all(b"after").unwrap();
    assert_eq!(read_exactly(&mut machine, other.len()).as_bytes(), other);
    assert_eq!(read_exactly(&mut machine, 5), "after");
}

#[test]
fn client_that_has_ended_does_not_travel() {
    let world = World::new(V4);
    let (mut client, machine) = world.connection();
    client.write_all(b"last").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    eventually("the client's end", || polls(&machine, PollFlags::RDHUP));
    let failed = Frozen::freeze(machine.into()).unwrap_err();
    assert!(matches!(failed.error, SocketError::NotPortable(NotPortable::ClientEnded)), "{:?}", failed.error);
    let mut machine = blocking(failed.fd);
    assert_eq!(read_exactly(&mut machine, 4), "last");
    machine.write_all(b"served").unwrap();
    assert_eq!(read_exactly(&mut client, 6), "served");
}

/// Whether poll reports this now.
fn polls(stream: &TcpStream, what: PollFlags) -> bool {
    let mut fds = [PollFd::new(stream, what)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    fds[0].revents().contains(what)
}

#[test]
fn what_is_no_connection_does_not_travel() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let failed = Frozen::freeze(listener.into()).unwrap_err();
    assert!(
        matches!(failed.error, SocketError::NotPortable(NotPortable::NotConnected)),
        "{:?}",
        failed.error
    );
    assert!(TcpListener::from(failed.fd).local_addr().is_ok());
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(matches!(Frozen::freeze(udp.into()).unwrap_err().error, SocketError::Kernel { .. }));
    let (unix, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(matches!(Frozen::freeze(unix.into()).unwrap_err().error, SocketError::Kernel { .. }));
}

#[test]
fn urgent_data_does_not_travel() {
    let world = World::new(V4);
    let (client, machine) = world.connection();
    SockRef::from(&client).send_out_of_band(b"!").unwrap();
    eventually("urgent data", || polls(&machine, PollFlags::PRI));
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let error = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap_err();
    assert!(matches!(error, SocketError::NotPortable(NotPortable::Urgent)), "{error:?}");
    let machine = frozen.thaw().unwrap();
    let mut byte = [std::mem::MaybeUninit::uninit()];
    assert_eq!(SockRef::from(&machine).recv_out_of_band(&mut byte).unwrap(), 1);
}

#[test]
fn limits_of_both_queues() {
    let world = World::new(V4);
    let (mut client, machine) = world.connection();
    client.write_all(&[b'x'; 100]).unwrap();
    wait_for_bytes(&machine, 100);
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let tight = QueueLimits { receive_bytes: 101, ..QueueLimits::default() };
    assert!(frozen.snapshot(&flow_of(&frozen), b"1", tight).is_ok());
    let error = frozen.snapshot(&flow_of(&frozen), b"22", tight).unwrap_err();
    assert!(
        matches!(error, SocketError::NotPortable(NotPortable::TooMuchQueued { bytes: 102, limit: 101 })),
        "{error:?}"
    );
}

#[test]
fn thawed_as_if_nothing_had_happened() {
    let world = World::new(V6);
    let (mut client, machine) = world.connection();
    client.write_all(b"before").unwrap();
    wait_for_bytes(&machine, 6);
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
    let mark = world.connection();
    client.write_all(b"while").unwrap();
    until_delivered(mark);
    let again = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
    assert_eq!((&again.receive_queue, again.receive_next), (&state.receive_queue, state.receive_next));
    // A socket elsewhere that is dropped before it lives says nothing either.
    drop(world.machines[1].run(|| restore(&state).unwrap()));
    let mut machine = blocking(frozen.thaw().unwrap());
    assert!(SockRef::from(&machine).reuse_address().unwrap());
    client.write_all(b"after").unwrap();
    assert_eq!(read_exactly(&mut machine, 16), "beforewhileafter");
    machine.write_all(b"answer").unwrap();
    assert_eq!(read_exactly(&mut client, 6), "answer");
}

#[test]
fn nothing_is_taken_before_activation() {
    let world = World::new(V4);
    let (mut client, machine) = world.connection();
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
    frozen.close();
    let restored = world.machines[0].run(|| restore(&state).unwrap());
    let mark = world.connection();
    client.write_all(b"early").unwrap();
    until_delivered(mark);
    // Had the first one acknowledged the bytes, they would be lost now.
    drop(restored);
    // A process that another test is starting has the socket, too, until its own program begins.
    let restored = wait_for("the socket to be closed", || match world.machines[0].run(|| restore(&state)) {
        Err(RestoreError::InUse { .. }) => None,
        restored => Some(restored.unwrap()),
    });
    let mut machine = blocking(restored.activate().unwrap());
    assert_eq!(read_exactly(&mut machine, 5), "early");
}

#[test]
fn reset_reaches_the_client() {
    for plan in [V4, V6] {
        let world = World::new(plan);
        let (mut client, mut machine) = world.connection();
        client.write_all(b"request").unwrap();
        assert_eq!(read_exactly(&mut machine, 7), "request");
        let frozen = Frozen::freeze(machine.into()).unwrap();
        let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
        frozen.close();
        world.machines[0].run(|| reset(&state.flow, state.send_next, state.receive_next).unwrap());
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let error = uninterrupted(|| client.read(&mut [0; 8])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

#[test]
fn a_client_tells_its_numbers() {
    for plan in [V4, V6] {
        let world = World::new(plan);
        let (mut client, mut machine) = world.connection();
        client.write_all(b"request").unwrap();
        assert_eq!(read_exactly(&mut machine, 7), "request");
        let frozen = Frozen::freeze(machine.into()).unwrap();
        let flow = flow_of(&frozen);
        frozen.close();
        // The answer goes to a machine that has no such connection, whose kernel resets it by the numbers in it.
        world.route_to(1);
        world.machines[0].run(|| ask_numbers(&flow, 7).unwrap());
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let error = uninterrupted(|| client.read(&mut [0; 8])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

#[test]
fn address_elsewhere_and_connection_in_use() {
    let world = World::new(V4);
    let (mut client, machine) = world.connection();
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
    let error = world.machines[0].run(|| restore(&state).unwrap_err());
    assert!(
        matches!(error, RestoreError::InUse { client, vip } if Flow { client, vip } == state.flow),
        "{error}"
    );
    let mut elsewhere = state;
    elsewhere.flow.vip.set_ip("192.0.2.1".parse().unwrap());
    let error = world.machines[0].run(|| restore(&elsewhere).unwrap_err());
    assert!(matches!(error, RestoreError::NotLocal(vip) if vip == elsewhere.flow.vip), "{error}");
    let mut machine = blocking(frozen.thaw().unwrap());
    client.write_all(b"unharmed").unwrap();
    assert_eq!(read_exactly(&mut machine, 8), "unharmed");
}

#[test]
fn beside_listeners_of_the_same_port() {
    let world = World::new(V4);
    let (mut client, machine) = world.connection();
    let vip = machine.local_addr().unwrap();
    let listener = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&vip.into()).unwrap();
        socket.listen(8).unwrap();
        socket
    };
    let listeners = world.machines[1].run(|| [listener(), listener()]);
    let (mut machine, _) = carry(&world, machine, 1);
    client.write_all(b"hello").unwrap();
    assert_eq!(read_exactly(&mut machine, 5), "hello");
    // A program that starts anew finds the port free as long as it sets SO_REUSEADDR, as all do. A child process that another
    // test starts in this moment has copies of the descriptors, so that it takes more than to close them.
    listeners.iter().for_each(|listener| listener.shutdown(Shutdown::Both).unwrap());
    drop(listeners);
    let again = world.machines[1].run(listener);
    machine.write_all(b"world").unwrap();
    assert_eq!(read_exactly(&mut client, 5), "world");
    let other = world.client.run(|| TcpStream::connect(vip).unwrap());
    assert_eq!(again.accept().unwrap().1.as_socket(), Some(other.local_addr().unwrap()));
}

#[test]
fn closed_at_once_in_spite_of_copies() {
    let world = World::new(V4);
    let (mut client, machine) = world.connection();
    let copy = machine.try_clone().unwrap();
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
    frozen.close();
    let restored = world.machines[0].run(|| restore(&state).unwrap());
    let mut machine = blocking(restored.activate().unwrap());
    drop(copy);
    client.write_all(b"unharmed").unwrap();
    assert_eq!(read_exactly(&mut machine, 8), "unharmed");
}

#[test]
fn connections_are_accepted_with_their_data() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    acknowledge_late(listener.as_fd()).unwrap();
    await_data(listener.as_fd(), true).unwrap();
    listener.set_nonblocking(true).unwrap();
    let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let accept = || wait_for("a connection", || listener.accept().ok());
    let is_of = |peer: SocketAddr, client: &TcpStream| peer == client.local_addr().unwrap();
    let (mut speaks, silent) = (connect(), connect());
    speaks.write_all(b"first").unwrap();
    let (mut stream, peer) = accept();
    assert!(is_of(peer, &speaks), "the other one has said nothing");
    stream.set_nonblocking(true).unwrap();
    let mut bytes = [0; 9];
    assert_eq!(uninterrupted(|| stream.read(&mut bytes)).unwrap(), 5, "the data is there at once");
    assert!(is_of(accept().1, &silent), "a client that says nothing is accepted later");
    await_data(listener.as_fd(), false).unwrap();
    let (silent, mut speaks) = (connect(), connect());
    speaks.write_all(b"first").unwrap();
    assert!(is_of(accept().1, &silent), "at once again, before one that came later");
    assert!(is_of(accept().1, &speaks));
    await_data(listener.as_fd(), true).unwrap();
    let closed = connect();
    drop(closed);
    assert_eq!(uninterrupted(|| accept().0.read(&mut bytes)).unwrap(), 0, "so is one that has gone");
}
