//! Clients whose nodes are killed: each is answered, or sees the end of its connection, and can begin another one.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use plimsoll_policy::Rng;

use super::*;

const CLIENTS: u64 = 12;
const AT_ONCE: usize = 6;

/// Sends requests for these documents, and reads their answers. An error is the end of the connection, or that nothing came for long.
fn ask(vip: SocketAddr, numbers: &[usize]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&vip, END)?;
    // An original whose clone does not end waits for 30 s.
    stream.set_read_timeout(Some(END))?;
    let requests = numbers.iter().map(|number| format!("GET /{number}.bin HTTP/1.1\r\nHost: x\r\n\r\n"));
    stream.write_all(requests.collect::<String>().as_bytes())?;
    let mut come = Vec::new();
    for &number in numbers {
        let expected = content(number, bytes_of(number));
        let whole = loop {
            let head = come.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            match head {
                Some(head) if come.len() >= head + expected.len() => break head + expected.len(),
                _ => {}
            }
            let mut bytes = [0; 65536];
            let count = uninterrupted(|| stream.read(&mut bytes))?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            come.extend_from_slice(&bytes[..count]);
        };
        assert!(come[..whole].ends_with(&expected), "foreign bytes in {number}");
        come.drain(..whole);
    }
    Ok(())
}

fn an_original_is_killed_under_load(mut nodes: Nodes, starts_again: bool) {
    let small: Vec<usize> = (0..DOCUMENTS).filter(|number| bytes_of(*number) < 100_000).collect();
    let (vip, ended) = (nodes.vip(), AtomicBool::new(false));
    let (answered, waited) = (AtomicU64::new(0), AtomicU64::new(0));
    let serve = |client: u64| {
        let mut rng = Rng::new(1, client);
        while !ended.load(Ordering::Relaxed) {
            let numbers = [0; AT_ONCE].map(|_| small[rng.below(small.len() as u64) as usize]);
            match ask(vip, &numbers) {
                Ok(()) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    waited.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => {}
            }
        }
    };
    let at_client = nodes.lab.node(Node::Client).unwrap();
    let killed = nodes.agents[0].take().unwrap();
    let again = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let serve = &serve;
            scope.spawn(move || at_client.run(|| serve(client)).unwrap());
        }
        eventually("answers", || answered.load(Ordering::Relaxed) > 300);
        killed.kill();
        let again = starts_again.then(|| {
            let agent = nodes.spawn(0);
            // The load meets what it has inherited.
            nodes.lead_to(0);
            agent
        });
        ended.store(true, Ordering::Relaxed);
        again
    });
    // One at a time is between freezing and the SC message, of which only the next process of the name hears.
    let most = u64::from(!starts_again);
    assert!(waited.load(Ordering::Relaxed) <= most, "{waited:?} clients got nothing for {END:?}");
    nodes.agents[0] = again;
    for number in 0..NODES {
        if nodes.agents[number].is_some() {
            nodes.stop(number);
        }
    }
}

#[test]
fn an_original_that_is_killed_under_load() {
    an_original_is_killed_under_load(Nodes::new(&["--threads", "1"]), false);
}

/// Its clones hand connections back all the time, with which it may not have gone on.
#[test]
fn an_original_that_is_killed_under_load_while_clones_keep_connections() {
    an_original_is_killed_under_load(Nodes::new(&["--threads", "1", "--clone-keep"]), false);
}

#[test]
fn an_original_that_is_killed_under_load_and_starts_again() {
    an_original_is_killed_under_load(Nodes::new(&["--threads", "1"]), true);
}

#[test]
fn an_original_that_is_killed_under_load_while_clones_keep_connections_and_starts_again() {
    an_original_is_killed_under_load(Nodes::new(&["--threads", "1", "--clone-keep"]), true);
}

#[test]
fn an_original_that_is_killed_under_load_while_servers_behind_the_shim_answer() {
    an_original_is_killed_under_load(Nodes::serving(&["--threads", "1"], true), false);
}

/// The process that it had asked for a clone is killed, too, and has not even read that: no other one knows of the connection.
#[test]
fn a_client_of_whom_only_a_killed_original_knew_is_reset_by_the_next_process() {
    let mut nodes = Nodes::new(&[]);
    let number = nodes.large_at(1);
    let mut stream = nodes.connect().unwrap();
    stream.set_read_timeout(Some(END)).unwrap();
    let of_clone = nodes.agents[1].as_ref().unwrap();
    of_clone.pause().unwrap();
    eventually("the clone's node to stand still", || is_stopped(of_clone.id()));
    write!(stream, "GET /{number}.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // It is frozen by then, and its link does not count as lost yet.
    pace(Duration::from_millis(300), Why::Midst);
    for killed in 0..2 {
        nodes.agents[killed].take().unwrap().kill();
    }
    // A start that fails after the packet program is there leaves them for the next one.
    let vip = nodes.vip();
    let at_original = nodes.lab.node(Node::Backend(0)).unwrap();
    let taken = at_original.run(|| TcpListener::bind(vip)).unwrap().unwrap();
    let status = nodes.spawn(0).wait_within(END);
    assert_eq!(status.and_then(|status| status.code()), Some(1));
    let said = std::fs::read_to_string(nodes.path("0.log")).unwrap();
    assert!(said.contains("taking over the map at") && said.contains(&vip.to_string()), "{said}");
    drop(taken);
    nodes.start(0);
    let end = uninterrupted(|| stream.read(&mut [0])).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    nodes.start(1);
    nodes.lead_to(0);
    nodes.stop_all();
}

/// A connection from this port of the client (0: any), which may have had one.
fn connect_from(nodes: &Nodes, port: u16, receive_bytes: usize) -> std::io::Result<TcpStream> {
    let vip = nodes.vip();
    let from = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(receive_bytes).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::from(([0, 0, 0, 0], port)).into()).unwrap();
        // Less than the 30 s for which an original waits for its client.
        socket.connect_timeout(&vip.into(), Duration::from_secs(15)).map(|()| TcpStream::from(socket))
    };
    nodes.lab.node(Node::Client).unwrap().run(from).unwrap()
}

/// Its clone has told the answer's end, so the original waits for what the client acknowledges; but that was reset by the clone's kernel.
#[test]
fn a_client_whose_clone_was_killed_begins_again_from_the_same_port() {
    let mut nodes = Nodes::new(&[]);
    // All of it fits into the clone's socket, and not into the client's.
    let number = nodes.document_at(1, 40_000);
    let mut stream = connect_from(&nodes, 0, 4096).unwrap();
    write!(stream, "GET /{number}.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(stream.read(&mut [0; 100]).unwrap() > 0);
    pace(Duration::from_millis(500), Why::Midst);
    nodes.agents[1].take().unwrap().kill();
    assert!(uninterrupted(|| stream.read_to_end(&mut Vec::new())).is_err(), "its node is dead");
    let mut again = connect_from(&nodes, stream.local_addr().unwrap().port(), 4096).unwrap();
    write!(again, "GET /{number}.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    assert!(is_whole((again, Vec::new()), number), "another one answers");
    nodes.start(1);
    nodes.lead_to(0);
    nodes.stop_all();
}

/// The table of clones stays, and nobody reads what is held by it.
fn a_client_begins_again_from_the_port_of_a_killed_original(options: &'static [&'static str]) {
    let mut nodes = Nodes::new(options);
    let number = nodes.large_at(1);
    let mut stream = connect_from(&nodes, 0, 65_536).unwrap();
    write!(stream, "GET /{number}.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 100_000]).unwrap();
    let port = stream.local_addr().unwrap().port();
    nodes.agents[0].take().unwrap().kill();
    // Then its end is a reset.
    drop(stream);
    let refused = connect_from(&nodes, port, 65_536).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    nodes.start(0);
    nodes.lead_to(0);
    nodes.stop_all();
}

#[test]
fn a_client_of_a_killed_original_that_begins_again_from_the_same_port_is_refused() {
    a_client_begins_again_from_the_port_of_a_killed_original(&[]);
}

#[test]
fn a_client_of_a_clone_that_kept_the_connection_of_a_killed_original_is_refused() {
    a_client_begins_again_from_the_port_of_a_killed_original(&["--clone-keep"]);
}
