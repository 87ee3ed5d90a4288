//! Clients that are far away: 50 ms there and back, and of a hundred frames one is lost and one overtakes others, each way.

mod failures;
mod once_more;

use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use plimsoll_testkit::{PATIENCE, Why, pace};
use socket2::{Domain, Protocol, Socket, Type};

use super::bed::{Bed, Options};
use super::http::{Client, content};

const LARGE: usize = 1 << 20;
const SIZES: [usize; 5] = [1, 700, 8192, 100_000, 30_000];

/// The content of the file `f0`, `f1` and so on, or of `large`.
fn body(name: &str) -> Vec<u8> {
    match name.strip_prefix('f').map(|number| number.parse::<usize>().unwrap()) {
        Some(number) => content(number as u64 + 1, SIZES[number]),
        None => content(99, LARGE),
    }
}

fn far_bed(options: Options) -> Bed {
    let names = ["f0", "f1", "f2", "f3", "f4", "large"];
    let files: Vec<(&str, Vec<u8>)> = names.into_iter().map(|name| (name, body(name))).collect();
    Bed::new(Options { is_quiet: true, is_far: true, ..options }, &files)
}

/// The link did what it should, and everything comes to its end.
fn stop(bed: Bed) {
    bed.assert_far();
    bed.assert_quiet();
    bed.stop();
}

/// Gets this file, and checks every byte.
fn get(client: &mut Client, name: &str) -> io::Result<String> {
    client.send(&format!("/{name}"))?;
    let answer = client.answer()?;
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(answer.body == body(name), "{name} was spoiled: {}", answer.head);
    Ok(answer.backend())
}

fn with_small_window(vip: SocketAddr) -> Client {
    let socket = Socket::new(Domain::for_address(vip), Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.connect_timeout(&vip.into(), PATIENCE).unwrap();
    Client::over(socket.into()).unwrap()
}

#[test]
fn requests_on_one_connection_move_from_back_end_to_back_end() {
    let bed = far_bed(Options { backends: 3, ..Options::default() });
    let vips = [bed.vip(), bed.vip_v6()];
    bed.client(|| {
        std::thread::scope(|scope| {
            for number in 0..12 {
                scope.spawn(move || {
                    let mut client = Client::connect(vips[number % 2]).unwrap();
                    let files = ["f0", "f3", "f1", "f4", "f2"];
                    let mut seen = Vec::new();
                    for step in 0..25 {
                        seen.push(get(&mut client, files[(number + step) % files.len()]).unwrap());
                    }
                    assert!(seen.iter().any(|backend| *backend != seen[0]), "{seen:?}");
                    get(&mut client, "large").unwrap();
                });
            }
        });
    });
    assert!(bed.metric("plimsoll_handoffs_on_total") >= Some(100.0));
    assert_eq!(bed.metric("plimsoll_connections_lost_total"), Some(0.0));
    stop(bed);
}

#[test]
fn connections_are_opened_again_and_again() {
    let bed = far_bed(Options { handoff: "min_size = 0".to_owned(), ..Options::default() });
    let vip = bed.vip();
    bed.client(|| {
        std::thread::scope(|scope| {
            for number in 0..16 {
                scope.spawn(move || {
                    for round in 0..10 {
                        let mut client = Client::connect(vip).unwrap();
                        let name = format!("f{}", (number + round) % 5);
                        let request =
                            format!("GET /{name} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n");
                        client.stream.write_all(request.as_bytes()).unwrap();
                        let answer = client.answer().unwrap();
                        assert!(answer.status == 200 && answer.body == body(&name), "{}", answer.head);
                        assert!(client.is_closed());
                    }
                });
            }
        });
    });
    stop(bed);
}

#[test]
fn pipelined_requests_posts_and_half_closed_connections() {
    let bed = far_bed(Options::default());
    let vip = bed.vip();
    let pipelined = || {
        let mut client = Client::connect(vip).unwrap();
        for _ in 0..4 {
            let names = ["f0", "f3", "f1", "f4", "f2"];
            names.iter().for_each(|name| client.send(&format!("/{name}")).unwrap());
            for name in names {
                assert!(client.answer().unwrap().body == body(name), "{name}");
            }
        }
    };
    let posts = || {
        let mut client = Client::connect(vip).unwrap();
        for _ in 0..4 {
            get(&mut client, "f4").unwrap();
            let content = vec![b'x'; 50_000];
            let head = format!("POST /f1 HTTP/1.1\r\nHost: lab\r\nContent-Length: {}\r\n\r\n", content.len());
            client.stream.write_all(head.as_bytes()).unwrap();
            client.stream.write_all(&content).unwrap();
            // The files of the origin are only read.
            assert_eq!(client.answer().unwrap().status, 405);
            if client.stream.take_error().unwrap().is_some() || client.send("/f2").is_err() {
                client = Client::connect(vip).unwrap();
            } else {
                match client.answer() {
                    Ok(answer) => assert!(answer.body == body("f2"), "{}", answer.head),
                    // Who answers before it has read a body may close.
                    Err(_) => client = Client::connect(vip).unwrap(),
                }
            }
        }
    };
    let half_closed = |before: usize| {
        let mut client = Client::connect(vip).unwrap();
        for _ in 0..before {
            get(&mut client, "f1").unwrap();
        }
        client.send("/f3").unwrap();
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert!(client.answer().unwrap().body == body("f3"));
        assert!(client.is_closed());
    };
    bed.client(|| {
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(pipelined);
                scope.spawn(posts);
                scope.spawn(move || (0..3).for_each(|_| half_closed(number)));
            }
        });
    });
    stop(bed);
}

#[test]
fn readers_that_are_slow() {
    let bed = far_bed(Options::default());
    let vips = [bed.vip(), bed.vip_v6()];
    let read_slowly = |vip: SocketAddr| {
        let mut client = with_small_window(vip);
        for _ in 0..3 {
            client.send("/f3").unwrap();
            pace(Duration::from_millis(500), Why::SlowPeer);
            assert!(client.answer().unwrap().body == body("f3"));
        }
        get(&mut client, "f0").unwrap();
    };
    bed.client(|| {
        std::thread::scope(|scope| {
            for number in 0..8 {
                scope.spawn(move || read_slowly(vips[number % 2]));
            }
        });
    });
    assert_eq!(bed.metric("plimsoll_connections_lost_total"), Some(0.0));
    stop(bed);
}
