//! Servers that know nothing of agents go through the same trial, behind the accept shim or behind copying: many clients,
//! requests that are pipelined, bodies, clients that reset, and a stop.

mod programs;
mod running;

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::bed::{Bed, ORIGIN_PORT, Options};
use super::http::{Answer, Client, content};
use programs::Place;
use running::Running;

/// A file that all servers have.
struct File {
    name: &'static str,
    body: Vec<u8>,
}

/// The files. The last one does not fit into the buffers of a socket whose client does not read.
fn files(last: usize) -> [File; 4] {
    let sizes = [("a", 1), ("b", 700), ("c", 100_000), ("d", last)];
    sizes.map(|(name, bytes)| File { name, body: content(bytes as u64, bytes) })
}

static NEAR_FILES: LazyLock<[File; 4]> = LazyLock::new(|| files(3_000_000));
/// For clients to whom less comes in the same time.
static FAR_FILES: LazyLock<[File; 4]> = LazyLock::new(|| files(300_000));

const BODY_BYTES: usize = 50_000;
const CLIENTS: usize = 24;
const RESETS: usize = 32;
/// Descriptors that servers open as they go, for files, pipes and connections behind them.
const POOLS: usize = 20;

/// A server, and what is special about it.
struct Unmodified {
    name: &'static str,
    by: Way,
    /// Commands that start it; the last one is the server itself.
    commands: fn(&Place<'_>) -> Vec<Command>,
    has_ranges: bool,
    /// Status of its answer to a POST.
    post_status: u16,
    /// Whether it tells in `X-Body` how long a request's body was.
    counts_body: bool,
    /// Whether it tells in `X-Client` who asks.
    tells_client: bool,
    /// Whether clients are far away.
    is_far: bool,
}

impl Unmodified {
    fn files(&self) -> &'static [File; 4] {
        if self.is_far { &FAR_FILES } else { &NEAR_FILES }
    }

    /// A part of the last file.
    fn range(&self) -> Range<usize> {
        1_000..self.files()[3].body.len() / 3 * 2 + 1
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Shim,
    Copying,
}

/// Behind the shim, and all the rest that most have.
const USUAL: Unmodified = Unmodified {
    name: "",
    by: Way::Shim,
    commands: |_| Vec::new(),
    has_ranges: true,
    post_status: 200,
    counts_body: true,
    tells_client: true,
    is_far: false,
};

#[test]
fn asyncio() {
    trial(&Unmodified { name: "asyncio", commands: programs::asyncio, ..USUAL });
}

#[test]
fn asyncio_with_far_clients() {
    trial(&Unmodified { name: "asyncio", commands: programs::asyncio, is_far: true, ..USUAL });
}

#[test]
fn uvloop() {
    trial(&Unmodified { name: "uvloop", commands: programs::uvloop, ..USUAL });
}

#[test]
fn lighttpd() {
    let special = Unmodified { counts_body: false, tells_client: false, ..USUAL };
    trial(&Unmodified { name: "lighttpd", commands: programs::lighttpd, ..special });
}

#[test]
fn varnish() {
    trial(&Unmodified { name: "varnish", commands: programs::varnish, ..USUAL });
}

#[test]
fn haproxy() {
    trial(&Unmodified { name: "haproxy", commands: programs::haproxy, ..USUAL });
}

#[test]
fn php_behind_nginx() {
    trial(&Unmodified { name: "php", commands: programs::php, has_ranges: false, ..USUAL });
}

#[test]
fn php_behind_nginx_with_far_clients() {
    trial(&Unmodified { name: "php", commands: programs::php, has_ranges: false, is_far: true, ..USUAL });
}

#[test]
fn go() {
    let special = Unmodified { by: Way::Copying, tells_client: false, ..USUAL };
    trial(&Unmodified { name: "go", commands: programs::go, ..special });
}

#[test]
fn caddy() {
    let special =
        Unmodified { by: Way::Copying, post_status: 201, counts_body: false, tells_client: false, ..USUAL };
    trial(&Unmodified { name: "caddy", commands: programs::caddy, ..special });
}

/// Go makes its system calls itself, so nothing can get in between: it accepts the Unix connection, and drops the client's.
#[test]
fn go_behind_the_shim() {
    let server = Unmodified { name: "go", commands: programs::go_on_unix, ..USUAL };
    let mut running = Running::new(0);
    let serve = Some("shim:DIRECTORY/bINDEX.sock".to_owned());
    let options = Options { backends: 1, serve, is_quiet: true, ..Options::default() };
    let bed = Bed::new_with(options, &[("a", content(1, 1))], |lab, directory| {
        crate::nginx::shim(directory);
        running.start(&server, lab, directory);
        Vec::new()
    });
    let answer = bed.client(|| Client::connect(bed.vip()).unwrap().get("/a"));
    assert!(answer.is_err(), "{answer:?}");
    // Until then it waits for the rest of what the agent has said.
    running.stop();
    bed.assert_quiet();
    bed.stop();
}

fn trial(server: &Unmodified) {
    let serve = match server.by {
        Way::Shim => "shim:DIRECTORY/bINDEX.sock".to_owned(),
        Way::Copying => format!("copy:ADDRESS:{ORIGIN_PORT}"),
    };
    let files: Vec<_> = server.files().iter().map(|file| (file.name, file.body.clone())).collect();
    let mut running = Vec::new();
    let config = "[health]\ninterval = \"250ms\"\ntimeout = \"2s\"\n".to_owned();
    let base = if server.is_far { Options::far() } else { Options::default() };
    let options = Options { serve: Some(serve), config, ..base };
    let bed = Bed::new_with(options, &files, |lab, directory| {
        // Some servers' processes are not root.
        std::fs::set_permissions(directory, PermissionsExt::from_mode(0o755)).unwrap();
        crate::nginx::shim(directory);
        for index in 0..2 {
            running.push(Running::new(index));
            running[index].start(server, lab, directory);
        }
        Vec::new()
    });
    let descriptors = || running.iter().map(Running::descriptors).sum::<usize>();
    let at_rest = descriptors();
    let requests = many_clients(&bed, server) + pipelined_and_bodies(&bed, server);
    assert_logged(&bed, requests);
    resets(&bed);
    eventually("the end of all that was handed in", || running.iter().all(|r| r.handed_in(&bed) == 0));
    eventually("descriptors to be closed", || descriptors() <= at_rest + POOLS);
    stop_and_start(&bed, server, &mut running);
    bed.assert_quiet();
    running.iter_mut().for_each(Running::stop);
    bed.stop();
}

/// Asks for a file, and checks the answer.
fn get(client: &mut Client, file: &File) -> io::Result<Answer> {
    let answer = client.get(&format!("/{}", file.name))?;
    assert!(answer.status == 200 && answer.body == file.body, "{}: {}", file.name, answer.head);
    Ok(answer)
}

/// All kinds of requests over one connection, in the order that `turn` says. How many.
fn visit(vip: SocketAddr, server: &Unmodified, turn: usize) -> usize {
    let files = server.files();
    let mut client = Client::connect(vip).unwrap();
    let own = client.stream.local_addr().unwrap().ip().to_string();
    for step in 0..2 * files.len() {
        let file = &files[(turn + step) % files.len()];
        let answer = get(&mut client, file).unwrap();
        let seen = answer.field("x-client").is_some_and(|client| client.contains(&own));
        assert!(seen || !server.tells_client, "{own}: {}", answer.head);
        let answer = client.ask("HEAD", &format!("/{}", file.name), "").unwrap();
        let length =
            answer.field("content-length").is_none_or(|length| length == file.body.len().to_string());
        assert!(answer.status == 200 && length, "HEAD {}: {}", file.name, answer.head);
    }
    let range = server.range();
    let asked = format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
    let part = client.ask("GET", "/d", if server.has_ranges { &asked } else { "" }).unwrap();
    let all = &files[3].body;
    let (status, body) = if server.has_ranges { (206, &all[range]) } else { (200, &all[..]) };
    assert!(part.status == status && part.body == body, "{}", part.head);
    assert_eq!(client.get("/none").unwrap().status, 404);
    4 * files.len() + 2
}

fn many_clients(bed: &Bed, server: &Unmodified) -> usize {
    let vips = [bed.vip(), bed.vip_v6()];
    let requests = bed.client(|| {
        std::thread::scope(|scope| {
            let visit = |turn| scope.spawn(move || visit(vips[turn % 2], server, turn / 2));
            let visits: Vec<_> = (0..CLIENTS).map(visit).collect();
            visits.into_iter().map(|visit| visit.join().unwrap()).sum::<usize>()
        })
    });
    let on = bed.metric("plimsoll_handoffs_on_total").unwrap();
    assert!(on >= requests as f64 / 4.0, "{on} of {requests} were handed on");
    requests
}

/// Requests that clients send without waiting for answers.
const PIPELINED: [(&str, usize); 6] =
    [("GET", 1), ("HEAD", 3), ("GET", 0), ("GET", 2), ("GET", 3), ("GET", 1)];

/// Requests that are sent without waiting for answers, and behind them others with bodies. How many.
fn pipelined_and_bodies(bed: &Bed, server: &Unmodified) -> usize {
    let files = server.files();
    let exchange = |vip: SocketAddr| {
        let mut client = Client::connect(vip).unwrap();
        let text: String = PIPELINED
            .iter()
            .map(|(method, file)| format!("{method} /{} HTTP/1.1\r\nHost: lab\r\n\r\n", files[*file].name))
            .collect();
        client.stream.write_all(text.as_bytes()).unwrap();
        for (method, file) in PIPELINED {
            let answer = client.answer_to(method).unwrap();
            let body: &[u8] = if method == "HEAD" { &[] } else { &files[file].body };
            assert!(answer.status == 200 && answer.body == body, "{method} {file}: {}", answer.head);
        }
        for _ in 0..2 {
            let head = format!("POST /b HTTP/1.1\r\nHost: lab\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
            client.stream.write_all(head.as_bytes()).unwrap();
            client.stream.write_all(&content(7, BODY_BYTES)).unwrap();
            let answer = client.answer().unwrap();
            assert_eq!(answer.status, server.post_status, "{}", answer.head);
            let counted = answer.field("x-body") == Some(BODY_BYTES.to_string().as_str());
            assert!(counted || !server.counts_body, "{}", answer.head);
            if answer.field("connection") == Some("close") {
                client = Client::connect(vip).unwrap();
            }
            get(&mut client, &files[1]).unwrap();
        }
        PIPELINED.len() + 4
    };
    bed.client(|| exchange(bed.vip()) + exchange(bed.vip_v6()))
}

/// The front-end counted each request: those with bodies were proxied, and both back-ends answered.
fn assert_logged(bed: &Bed, requests: usize) {
    let log = bed.access_log(requests);
    for line in &log {
        let wanted = if line["method"] == "POST" { "proxy" } else { "handoff" };
        assert_eq!(line["mechanism"], wanted, "{line}");
    }
    for backend in ["b0", "b1"] {
        let share = log.iter().filter(|line| line["backend"] == backend).count();
        assert!(share >= requests / 4, "{backend} answered {share} of {requests}");
    }
}

/// A client in the midst of a long answer, most of which it has not taken.
fn halfway(vip: SocketAddr) -> Client {
    let socket = Socket::new(Domain::for_address(vip), Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.connect_timeout(&vip.into(), PATIENCE).unwrap();
    let mut client = Client::over(TcpStream::from(socket)).unwrap();
    client.send("/d").unwrap();
    uninterrupted(|| client.stream.peek(&mut [0])).unwrap();
    client
}

fn resets(bed: &Bed) {
    let vips = [bed.vip(), bed.vip_v6()];
    bed.client(|| {
        let clients: Vec<Client> = (0..RESETS).map(|number| halfway(vips[number % 2])).collect();
        for client in clients {
            SockRef::from(&client.stream).set_linger(Some(Duration::ZERO)).unwrap();
        }
    });
}

/// One server stops, while some of its clients wait and others are answered; then it starts again.
fn stop_and_start(bed: &Bed, server: &Unmodified, running: &mut [Running]) {
    let files = server.files();
    let vips = [bed.vip(), bed.vip_v6()];
    let connect = |number: usize| {
        let mut client = Client::connect(vips[number % 2]).unwrap();
        get(&mut client, &files[1]).unwrap();
        client
    };
    let (idle, halfway) = bed.client(|| {
        let idle: Vec<Client> = (0..8).map(connect).collect();
        (idle, (0..4).map(|number| halfway(vips[number % 2])).collect::<Vec<_>>())
    });
    let takes_requests = || {
        let backends: serde_json::Value = serde_json::from_str(&bed.admin("/backends").unwrap()).unwrap();
        backends[0]["takes_requests"].as_bool().unwrap()
    };
    running[0].stop();
    eventually("the end of requests for it", || !takes_requests());
    // Those of the other back-end go on. The others end, or go there with their next request.
    let went_on = idle.into_iter().filter_map(|mut client| get(&mut client, &files[2]).ok()).count();
    assert!(went_on >= 2, "{went_on}");
    let whole = halfway.into_iter().filter_map(|mut client| client.answer().ok());
    let whole = whole.map(|answer| assert!(answer.body == files[3].body, "{}", answer.head)).count();
    assert!(whole >= 1, "{whole}");
    bed.client(|| (0..8).for_each(|number| drop(connect(number))));
    running[0].start(server, &bed.lab, bed.directory.path());
    eventually("requests for it", takes_requests);
    let answered = || {
        let is_of_first =
            |line: &&serde_json::Value| line["backend"] == "b0" && line["mechanism"] == "handoff";
        bed.log_now().iter().filter(is_of_first).filter(|line| line["status"] == 200).count()
    };
    let before = answered();
    bed.client(|| (0..8).for_each(|number| drop(connect(number))));
    eventually("answers of it", || answered() > before);
}
