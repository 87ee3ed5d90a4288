//! Clients that do not wait for answers, and servers behind the shim.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

use plimsoll_agent::daemon::ServeConfig;
use plimsoll_datapath::shim;
use plimsoll_datapath::tcp::TcpState;
use tempfile::TempDir;

use super::World;
use super::front_end::{Client, Link, Said};
use super::servers::{behind_shim, get, give_back, large};

/// The small server that reads in the way of `mode`, with the shim, beside two agents.
struct Small {
    world: World,
    server: Child,
    _directory: TempDir,
}

impl Small {
    fn new(mode: &str) -> Self {
        const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../datapath/tests/it/requests.c");
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        shim::write_to(&path("shim.so")).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-D_GNU_SOURCE", "-pthread", "-o"]).arg(path("server")).arg(PROGRAM);
        assert!(compile.status().unwrap().success());
        let socket = path("socket");
        let mut command = Command::new(path("server"));
        command.arg(&socket).arg(mode).env("LD_PRELOAD", path("shim.so"));
        let server = command.spawn().unwrap();
        World::eventually(mode, || UnixStream::connect(&socket).is_ok());
        let world = World::with(2, move |config| config.serve = ServeConfig::Shim(socket.clone()));
        Self { world, server, _directory: directory }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Requests that a client sends at once: those in between stay or go to the other agent, all are asked about and answered
/// in their order. What the heads of the answers are.
fn pipelined(world: &World, paths: [&str; 2], content: [&[u8]; 2]) -> Vec<String> {
    let (mut one, mut two) = (world.link(0), world.link(1));
    let head = format!("HEAD {} HTTP/1.1\r\nHost: x\r\n\r\n", paths[0]);
    let requests = [get(paths[0]), head, get(paths[1]), get(paths[0]), get(paths[1])];
    let mut client = world.handed_off(&mut one, 0, 1, &requests.concat());
    let mut heads = Vec::new();
    let mut answered = |client: &mut Client, link: &mut Link, conn, number: u32| {
        let which = usize::from([2, 4].contains(&number));
        let (head, length) = client.head();
        assert_eq!(length, content[which].len(), "{head}");
        let body = if number == 1 { &[] } else { content[which] };
        assert!(client.exactly(body.len()) == body);
        let ended = link.ended(conn, number);
        assert_eq!((ended.status, ended.complete, ended.content_bytes), (200, true, body.len() as u64));
        heads.push(head);
    };
    answered(&mut client, &mut one, 1, 0);
    for number in 1..3 {
        one.stay(1, number);
        answered(&mut client, &mut one, 1, number);
    }
    let state = give_back(world, &mut one, 1, 3, 1);
    assert_eq!(TcpState::decode(&state).unwrap().receive_queue, requests[3..].concat().as_bytes());
    two.hand_off(7, 3, &state);
    answered(&mut client, &mut two, 7, 3);
    two.stay(7, 4);
    answered(&mut client, &mut two, 7, 4);
    drop(client);
    assert_eq!(two.hear(), Some(Said::Closed(7)));
    heads
}

#[test]
fn pipelined_requests_are_asked_about_one_by_one() {
    for mode in ["blocking", "level", "edge"] {
        let small = Small::new(mode);
        for head in pipelined(&small.world, ["/a", "/another"], [b"/a", b"/another"]) {
            assert!(head.contains("x-behind: 0\r\n"), "{mode} has read too much: {head}");
        }
    }
    let (nginx, world) = behind_shim();
    pipelined(&world, ["/small", "/large"], [b"small", &large()]);
    let log = nginx.log();
    let seen: Vec<&str> = log.lines().map(|line| line.split('"').nth(1).unwrap()).collect();
    let (small, large) = ("GET /small HTTP/1.1", "GET /large HTTP/1.1");
    assert_eq!(seen, [small, "HEAD /small HTTP/1.1", large, small, large]);
}

#[test]
fn the_client_ends_its_side_behind_its_requests() {
    for mode in ["blocking", "level", "edge"] {
        let small = Small::new(mode);
        let mut link = small.world.link(0);
        let requests = [get("/a"), get("/b"), get("/c")].concat();
        let mut client = small.world.handed_off(&mut link, 0, 1, &requests);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        for (number, path) in [(0, "/a"), (1, "/b"), (2, "/c")] {
            if number > 0 {
                link.stay(1, number);
            }
            assert_eq!(client.response().1, path.as_bytes(), "{mode}");
            assert!(link.ended(1, number).complete);
        }
        assert_eq!(client.rest().unwrap(), b"", "{mode}");
        assert_eq!(link.hear(), Some(Said::Closed(1)));
    }
}

/// A process for each connection, which the shim does not follow: it answers everything, and the front-end hears of nothing
/// but the end.
#[test]
fn a_server_that_forks_for_each_connection() {
    let small = Small::new("fork");
    let mut link = small.world.link(0);
    let mut client = small.world.handed_off(&mut link, 0, 1, &[get("/a"), get("/b")].concat());
    assert_eq!(client.response().1, b"/a");
    assert_eq!(client.response().1, b"/b");
    client.send(&get("/c"));
    assert_eq!(client.response().1, b"/c");
    drop(client);
    let ended = link.ended(1, 0);
    assert_eq!((ended.status, ended.complete), (0, false));
    assert_eq!(link.hear(), Some(Said::Closed(1)));
}
