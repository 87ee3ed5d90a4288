//! Servers behind the agent: one to which requests are copied, and one that gets the connections themselves.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use plimsoll_agent::daemon::ServeConfig;
use plimsoll_datapath::shim;
use plimsoll_datapath::tcp::TcpState;
use plimsoll_testkit::{Why, pace, uninterrupted};
use plimsoll_wire::message::{Conn, Refusal, ToAgent};
use tempfile::TempDir;

use super::front_end::{Link, Said};
use super::{GET, World};

/// What the small server answers to a path.
fn small_answer(path: &str) -> Vec<u8> {
    let text = |text: &str| text.as_bytes().to_vec();
    match path {
        "/chunked" => text(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
        ),
        "/early" => text(
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate",
        ),
        "/until-close" => text("HTTP/1.1 200 OK\r\n\r\nto the end"),
        "/cut" => text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot all"),
        "/upgrade" => {
            text("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        }
        _ => text("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nplain\n"),
    }
}

/// A server of few words, on the loopback interface of a back-end.
fn small_server(listener: &TcpListener) {
    for stream in listener.incoming() {
        std::thread::spawn(move || small_connection(stream.unwrap()));
    }
}

fn small_connection(mut stream: TcpStream) {
    let mut input = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let Some(end) = input.windows(4).position(|end| end == b"\r\n\r\n") else {
            match uninterrupted(|| stream.read(&mut buffer)) {
                Ok(0) | Err(_) => return,
                Ok(count) => input.extend_from_slice(&buffer[..count]),
            }
            continue;
        };
        let head = String::from_utf8(input.drain(..end + 4).collect()).unwrap();
        let path = head.split(' ').nth(1).unwrap();
        let answer = small_answer(path);
        let answer = if head.starts_with("HEAD") {
            answer[..answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4].to_vec()
        } else {
            answer
        };
        stream.write_all(&answer).unwrap();
        match path {
            "/until-close" | "/cut" => return,
            "/upgrade" => {
                // Says everything again.
                let mut reader = stream.try_clone().unwrap();
                std::io::copy(&mut reader, &mut stream).unwrap();
                return;
            }
            _ => {}
        }
    }
}

fn copying() -> World {
    let mut world = World::new(0);
    let listener = world.segment.back_ends[0].run(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let address: SocketAddr = listener.local_addr().unwrap();
    std::thread::spawn(move || small_server(&listener));
    let change =
        move |config: &mut plimsoll_agent::daemon::AgentConfig| config.serve = ServeConfig::Copy(address);
    let agent = super::start(&world.segment, 0, &change);
    world.agents.push(agent);
    world
}

pub(super) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

#[test]
fn responses_are_copied_and_their_ends_found() {
    let world = copying();
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, &get("/"));
    assert_eq!(client.response().1, b"plain\n");
    let ended = link.ended(1, 0);
    assert_eq!((ended.status, ended.complete, ended.content_bytes), (200, true, 6));
    client.send(&get("/chunked"));
    link.stay(1, 1);
    let chunked = small_answer("/chunked");
    assert_eq!(client.exactly(chunked.len()), chunked);
    assert_eq!(link.ended(1, 1).content_bytes, 11);
    client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    link.stay(1, 2);
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n";
    assert_eq!(client.exactly(head.len()), head.as_bytes());
    assert_eq!(link.ended(1, 2).content_bytes, 0);
    client.send(&get("/early"));
    link.stay(1, 3);
    let early = small_answer("/early");
    assert_eq!(client.exactly(early.len()), early);
    let ended = link.ended(1, 3);
    assert_eq!((ended.status, ended.content_bytes), (200, 4));
    // And it can still be given back.
    client.send(GET);
    assert!(matches!(link.hear(), Some(Said::Ask { conn: 1, request: 4, .. })));
    link.say(&ToAgent::Return { conn: Conn(1), request: 4 });
    let Some(Said::Returned { state, .. }) = link.hear() else { panic!() };
    assert_eq!(TcpState::decode(&state).unwrap().receive_queue, GET.as_bytes());
}

#[test]
fn responses_without_an_end_and_with_too_early_a_one() {
    let world = copying();
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, &get("/until-close"));
    assert_eq!(client.rest().unwrap(), small_answer("/until-close"));
    let ended = link.ended(1, 0);
    assert_eq!((ended.complete, ended.content_bytes), (true, 10));
    drop(client);
    assert_eq!(link.hear(), Some(Said::Closed(1)));
    let mut client = world.handed_off(&mut link, 0, 2, &get("/cut"));
    assert!(client.rest().is_err(), "reset, so that nobody takes it for whole");
    assert!(!link.ended(2, 0).complete);
    assert_eq!(link.hear(), Some(Said::Closed(2)));
}

#[test]
fn other_protocols_and_bodies_are_passed() {
    let world = copying();
    let mut link = world.link(0);
    let upgrade = "GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    let mut client = world.handed_off(&mut link, 0, 1, upgrade);
    let head = small_answer("/upgrade");
    assert_eq!(client.exactly(head.len()), head);
    client.send("hello");
    assert_eq!(client.exactly(5), b"hello");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest().unwrap(), b"");
    assert_eq!(link.ended(1, 0).status, 101);
    drop(client);
    assert_eq!(link.hear(), Some(Said::Closed(1)));
    // A body that the front-end lets stay.
    let mut client = world.handed_off(&mut link, 0, 2, &get("/"));
    client.response();
    link.ended(2, 0);
    client.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /");
    link.stay(2, 1);
    assert_eq!(client.response().1, b"plain\n");
}

#[test]
fn a_server_that_is_not_there() {
    let world = World::with(1, |config| config.serve = ServeConfig::Copy("127.0.0.1:1".parse().unwrap()));
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, GET);
    assert!(client.response().0.starts_with("http/1.1 502 "));
    assert_eq!(link.ended(1, 0).status, 502);
    let world = World::with(1, |config| config.serve = ServeConfig::Shim("/nonexistent/socket".into()));
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, GET);
    assert!(client.response().0.starts_with("http/1.1 502 "));
    assert_eq!(link.ended(1, 0).status, 502);
    // Known to be gone, it is given nothing more for a moment.
    let (_client, state) = world.request(0, GET);
    link.offer(2, 0, std::time::Duration::from_secs(1), &state);
    let refused = |said: &Option<Said>| matches!(said, Some(Said::Refused(2, Refusal::NoServer)));
    let said = link.hear();
    assert!(refused(&said) || (said == Some(Said::Closed(1)) && refused(&link.hear())), "{said:?}");
}

/// nginx with the shim.
pub(super) struct Nginx {
    directory: TempDir,
    master: Child,
}

impl Nginx {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("content")).unwrap();
        fs::write(path("content/small"), "small").unwrap();
        fs::write(path("content/large"), large()).unwrap();
        let socket = path("socket");
        let configuration = format!(
            "daemon off; user root; worker_processes 1; error_log error.log; pid nginx.pid; events {{}}\n\
             http {{ access_log access.log; sendfile on; client_body_temp_path t1; proxy_temp_path t2;\n\
             fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
             server {{ listen unix:{}; root content; }} }}\n",
            socket.display()
        );
        fs::write(path("configuration"), configuration).unwrap();
        shim::write_to(&path("shim.so")).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(directory.path()).args(["-c", "configuration", "-e", "error.log"]);
        command.env("LD_PRELOAD", path("shim.so")).stdin(Stdio::null()).stderr(Stdio::null());
        let master = command.spawn().expect("nginx is installed");
        World::eventually("nginx", || UnixStream::connect(&socket).is_ok());
        Self { directory, master }
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("access.log")).unwrap()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.master.id().to_string()).status();
        let _ = self.master.wait();
    }
}

pub(super) fn large() -> Vec<u8> {
    (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

pub(super) fn behind_shim() -> (Nginx, World) {
    let nginx = Nginx::new();
    let socket = nginx.directory.path().join("socket");
    (nginx, World::with(2, move |config| config.serve = ServeConfig::Shim(socket.clone())))
}

/// Gives a connection back at its next request, and leads it to another back-end.
pub(super) fn give_back(world: &World, link: &mut Link, conn: u64, request: u32, to: usize) -> Vec<u8> {
    let said = link.hear();
    assert!(
        matches!(said, Some(Said::Ask { conn: of, request: number, .. }) if of == conn && number == request),
        "{said:?}"
    );
    link.say(&ToAgent::Return { conn: Conn(conn), request });
    let said = link.hear();
    let Some(Said::Returned { state, .. }) = said else { panic!("{said:?}") };
    world.front_end.lead(&world.segment, &TcpState::decode(&state).unwrap().flow, super::address(to));
    link.say(&ToAgent::Released { conn: Conn(conn) });
    state
}

#[test]
fn nginx_answers_on_the_connection_itself() {
    let (nginx, world) = behind_shim();
    let (mut one, mut two) = (world.link(0), world.link(1));
    let mut client = world.handed_off(&mut one, 0, 1, &get("/large"));
    assert!(client.response().1 == large());
    let ended = one.ended(1, 0);
    assert_eq!((ended.status, ended.complete, ended.content_bytes), (200, true, 3_000_000));
    assert!(ended.first_byte_us <= ended.total_us);
    for request in 1..5 {
        client.send(&get("/small"));
        one.stay(1, request);
        assert_eq!(client.response().1, b"small");
        assert_eq!(one.ended(1, request).content_bytes, 5);
    }
    client.send("HEAD /large HTTP/1.1\r\nHost: x\r\n\r\n");
    one.stay(1, 5);
    let (head, _) = client.head();
    assert!(head.contains("content-length: 3000000"), "{head}");
    let ended = one.ended(1, 5);
    assert_eq!((ended.complete, ended.content_bytes), (true, 0));
    // To the other back-end and back.
    client.send(&get("/large"));
    let state = give_back(&world, &mut one, 1, 6, 1);
    two.hand_off(8, 6, &state);
    assert!(client.response().1 == large());
    assert_eq!(two.ended(8, 6).content_bytes, 3_000_000);
    client.send(&get("/missing"));
    let state = give_back(&world, &mut two, 8, 7, 0);
    one.hand_off(2, 7, &state);
    assert!(client.response().0.starts_with("http/1.1 404"));
    assert_eq!(one.ended(2, 7).status, 404);
    drop(client);
    assert_eq!(one.hear(), Some(Said::Closed(2)));
    // The server knows who its client is.
    World::eventually("the access log", || nginx.log().lines().count() == 8);
    let client = format!("{} ", super::network::CLIENT);
    assert!(nginx.log().lines().all(|line| line.starts_with(&client)), "{}", nginx.log());
}

#[test]
fn nginx_ends_connections() {
    let (_nginx, world) = behind_shim();
    let mut link = world.link(0);
    let close = "GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut client = world.handed_off(&mut link, 0, 1, close);
    assert_eq!(client.response().1, b"small");
    assert_eq!(client.rest().unwrap(), b"");
    assert_eq!(link.ended(1, 0).status, 200);
    assert_eq!(link.hear(), Some(Said::Closed(1)));
    // A head in parts, after one that was whole.
    let mut client = world.handed_off(&mut link, 0, 2, &get("/small"));
    client.response();
    link.ended(2, 0);
    let next = get("/small");
    let (start, rest) = next.split_at(10);
    client.send(start);
    pace(std::time::Duration::from_millis(50), Why::Pieces);
    client.send(rest);
    link.stay(2, 1);
    assert_eq!(client.response().1, b"small");
    link.ended(2, 1);
    client.send("GET /half");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest().unwrap(), b"");
    assert_eq!(link.hear(), Some(Said::Closed(2)));
}
