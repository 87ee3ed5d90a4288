//! Nodes with unmodified servers behind the shim: nginx answers on connections of clients, and on clones.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_agent::daemon::ServeConfig;
use plimsoll_datapath::shim;
use plimsoll_testkit::{Why, eventually, pace};
use tempfile::TempDir;

use super::client::{Client, get};
use super::{NODES, World};

const FILES: [(&str, usize); 5] =
    [("none", 0), ("tiny", 5), ("some", 20_000), ("much", 300_000), ("most", 3_000_000)];
const NAMES: usize = 12;

fn content(path: &str, bytes: usize) -> Vec<u8> {
    let salt = path.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    (0..bytes as u32).map(|at| (at.wrapping_add(salt).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn bytes_of(path: &str) -> usize {
    let found = FILES.iter().find(|(name, _)| path.starts_with(&format!("/{name}")));
    found.unwrap_or_else(|| panic!("{path}")).1
}

/// The documents, the same for all servers.
fn documents(directory: &Path) {
    fs::create_dir(directory.join("www")).unwrap();
    for (name, bytes) in FILES {
        for number in 0..NAMES {
            let path = format!("/{name}{number}");
            fs::write(directory.join(format!("www{path}")), content(&path, bytes)).unwrap();
        }
    }
}

/// An nginx for each node, which tells the node's name.
struct Servers {
    directory: TempDir,
    running: RefCell<BTreeMap<String, Child>>,
}

impl Servers {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        documents(directory.path());
        shim::write_to(&directory.path().join("shim.so")).unwrap();
        Self { directory, running: RefCell::default() }
    }

    /// Starts the one of this node.
    fn start(&self, name: &str) -> ServeConfig {
        let d = self.directory.path().display();
        let socket = self.directory.path().join(format!("{name}.sock"));
        let configuration = format!(
            "daemon off; user root; worker_processes 1; error_log {d}/{name}.err; pid {d}/{name}.pid; events {{}}\n\
             http {{ log_format all '$remote_addr $status $body_bytes_sent $request_uri'; access_log {d}/{name}.log all;\n\
             sendfile on; client_body_temp_path {d}/{name}1; proxy_temp_path {d}/{name}2; add_header X-Backend {name} always;\n\
             fastcgi_temp_path {d}/{name}3; uwsgi_temp_path {d}/{name}4; scgi_temp_path {d}/{name}5;\n\
             server {{ listen unix:{}; root {d}/www; }} }}\n",
            socket.display()
        );
        let file = self.directory.path().join(format!("{name}.conf"));
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).arg("-e").arg(self.directory.path().join(format!("{name}.err")));
        command.env("LD_PRELOAD", self.directory.path().join("shim.so"));
        self.run(name, &mut command, &socket)
    }

    /// Starts Apache for this node, which listens at ports only, and is told this one.
    fn start_apache(&self, name: &str, port: u16) -> ServeConfig {
        let d = self.directory.path().display();
        let socket = self.directory.path().join(format!("{name}.sock"));
        let modules: String = ["mpm_event", "authz_core"]
            .iter()
            .map(|module| format!("LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n"))
            .collect();
        fs::create_dir(self.directory.path().join(format!("{name}.run"))).unwrap();
        let configuration = format!(
            "ServerRoot {d}\nServerName {name}\nPidFile {d}/{name}.pid\nDefaultRuntimeDir {d}/{name}.run\nUser www-data\n\
             Group www-data\n{modules}Listen 127.0.0.1:{port}\nErrorLog {d}/{name}.err\nDocumentRoot {d}/www\n\
             StartServers 1\nThreadsPerChild 25\n"
        );
        let file = self.directory.path().join(format!("{name}.conf"));
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new("apache2");
        command
            .args(["-D", "FOREGROUND", "-f"])
            .arg(&file)
            .env("LD_PRELOAD", self.directory.path().join("shim.so"));
        command.env("PLIMSOLL_SHIM_LISTEN", format!("{port}={}", socket.display()));
        // At its end it ends the processes of its group.
        self.run(name, command.process_group(0), &socket)
    }

    /// Starts Node for this node.
    fn start_node(&self, name: &str) -> ServeConfig {
        const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../datapath/tests/it/files.js");
        let socket = self.directory.path().join(format!("{name}.sock"));
        let mut command = Command::new("node");
        command.arg(SCRIPT).arg(self.directory.path().join("www"));
        command.arg(self.directory.path().join(format!("{name}.log"))).arg(&socket).arg("127.0.0.1:0");
        self.run(name, command.env("LD_PRELOAD", self.directory.path().join("shim.so")), &socket)
    }

    fn run(&self, name: &str, command: &mut Command, socket: &Path) -> ServeConfig {
        let child =
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server is installed");
        eventually("the server", || UnixStream::connect(socket).is_ok());
        self.running.borrow_mut().insert(name.to_owned(), child);
        ServeConfig::Shim(socket.to_owned())
    }

    fn log(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.directory.path().join(format!("{name}.log"))).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn stop(&self, name: &str) {
        if let Some(mut child) = self.running.borrow_mut().remove(name) {
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let names: Vec<_> = self.running.borrow().keys().cloned().collect();
        names.iter().for_each(|name| self.stop(name));
    }
}

fn world(servers: &Servers) -> World {
    World::with(|config| config.serve = servers.start(&config.name))
}

/// Who answers this document, after a check of every byte.
fn fetched(client: &mut Client, path: &str) -> String {
    client.send(&get(path));
    let answer = client.answer(false);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    assert!(answer.body == content(path, bytes_of(path)), "{path} by {}", answer.backend);
    answer.backend
}

fn paths() -> Vec<String> {
    (0..NAMES).flat_map(|n| FILES.iter().map(move |(name, _)| format!("/{name}{n}"))).collect()
}

#[test]
fn nginx_answers_on_clones() {
    let servers = Servers::new();
    let world = world(&servers);
    let paths = paths();
    let mut answered: BTreeMap<&str, String> = BTreeMap::new();
    let mut by_clones = 0;
    for original in 0..NODES {
        world.lead_to(original);
        let mut client = world.connect();
        for path in &paths {
            let backend = fetched(&mut client, path);
            let before = answered.entry(path).or_insert_with(|| backend.clone());
            assert_eq!(*before, backend, "{path}: the nodes do not agree");
            by_clones += u64::from(backend != world.name(original));
        }
    }
    world.nothing_is_left();
    let requests = (NODES * paths.len()) as u64;
    assert_eq!(by_clones, requests / 3 * 2);
    let stats: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    let sum = |of: fn(&plimsoll_agent::daemon::CloneStats) -> u64| stats.iter().map(of).sum::<u64>();
    assert_eq!((sum(|stats| stats.requests), sum(|stats| stats.own)), (requests, requests / 3));
    assert_eq!((sum(|stats| stats.clone_answers), sum(|stats| stats.fast_forwarded)), (by_clones, by_clones));
    assert_eq!((sum(|stats| stats.made), sum(|stats| stats.declined)), (by_clones, 0));
    assert_eq!((sum(|stats| stats.lost), sum(|stats| stats.refused)), (0, 0));
    // Each server logs what it has answered, with the client's own address.
    let client = world.lab.node(plimsoll_lab::Node::Client).unwrap().address().to_string();
    let lines: Vec<_> = (0..NODES).flat_map(|number| servers.log(world.name(number))).collect();
    assert_eq!(lines.len() as u64, requests);
    assert!(lines.iter().all(|line| line.starts_with(&format!("{client} 200 "))), "{lines:?}");
    for number in 0..NODES {
        let errors = fs::read_to_string(servers.directory.path().join(format!("{}.err", world.name(number))));
        assert_eq!(errors.unwrap(), "");
    }
}

#[test]
fn pipelined_and_other_requests_of_nginx() {
    let servers = Servers::new();
    let world = world(&servers);
    world.lead_to(0);
    let paths = paths();
    // All at once, while clones and the original answer in turn.
    let mut client = world.connect();
    let all: String = paths.iter().map(|path| get(path)).collect();
    let mut writer = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || std::io::Write::write_all(&mut writer, all.as_bytes()).unwrap());
    let mut who = Vec::new();
    for path in &paths {
        let answer = client.answer(false);
        assert!(answer.status == 200 && answer.body == content(path, bytes_of(path)), "{path}");
        who.push(answer.backend);
    }
    sending.join().unwrap();
    let elsewhere = |path: &&String| {
        paths.iter().zip(&who).any(|(other, backend)| other == *path && *backend != world.name(0))
    };
    let path = paths.iter().filter(|path| path.starts_with("/some")).find(elsewhere).unwrap();
    client.send(&format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let head = client.answer(true);
    assert_eq!((head.status, head.field("content-length")), (200, Some("20000")));
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes=100-1099\r\n\r\n"));
    let part = client.answer(false);
    assert!(part.status == 206 && part.body == content(path, 20_000)[100..1100], "{}", part.status);
    client.send(&get("/nothing"));
    assert_eq!(client.answer(false).status, 404);
    // In two packets, and larger than one.
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n", "y".repeat(900)));
    pace(std::time::Duration::from_millis(20), Why::Pieces);
    client.send("\r\n");
    assert!(client.answer(false).body == content(path, 20_000));
    // The last one: its server ends the clone's side, and the client sees just one end.
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    let last = client.answer(false);
    assert!(last.body == content(path, 20_000) && last.backend != world.name(0));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    // HTTP/1.0: nginx closes, here too.
    let mut client = world.connect();
    client.send(&format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n"));
    assert!(client.answer(false).body == content(path, 20_000));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    // The server says that this is its last answer, and not the client: without a host.
    let mut client = world.connect();
    client.send(&format!("GET {path} HTTP/1.1\r\n\r\n"));
    let refused = client.answer(false);
    assert_eq!((refused.status, refused.field("connection")), (400, Some("close")));
    assert_ne!(refused.backend, world.name(0));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    // With a body: answered where it is.
    let mut client = world.connect();
    client.send(&format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
    let answer = client.answer(false);
    assert_eq!((answer.status, &*answer.backend), (405, world.name(0)));
    assert_eq!(fetched(&mut client, path), who[paths.iter().position(|other| other == path).unwrap()]);
    drop(client);
    world.nothing_is_left();
    assert_eq!((0..NODES).map(|number| world.node(number).stats().lost).sum::<u64>(), 0);
}

#[test]
fn without_its_server_a_node_says_so() {
    let servers = Servers::new();
    let world = world(&servers);
    world.lead_to(0);
    let mut client = world.connect();
    let paths = paths();
    let who: Vec<_> = paths.iter().map(|path| fetched(&mut client, path)).collect();
    servers.stop(world.name(1));
    let (mut refused, mut answered) = (0, 0);
    for (path, backend) in paths.iter().zip(&who).filter(|(_, backend)| *backend != world.name(0)) {
        let mut client = world.connect();
        if backend == world.name(1) {
            client.send(&get(path));
            assert_eq!(client.answer(false).status, 502, "{path}");
            refused += 1;
        } else {
            assert_eq!(fetched(&mut client, path), *backend);
            answered += 1;
        }
    }
    assert!(refused > 5 && answered > 5, "{refused}, {answered}");
    drop(client);
    world.nothing_is_left();
}

/// Every byte is right, and clones have answered, whichever server closes how.
fn answers_on_clones(world: &World) {
    let paths = paths();
    for original in 0..NODES {
        world.lead_to(original);
        let mut client = world.connect();
        for path in &paths {
            client.send(&get(path));
            let answer = client.answer(false);
            assert!(answer.status == 200 && answer.body == content(path, bytes_of(path)), "{path}");
        }
        for path in paths.iter().filter(|path| path.starts_with("/some")) {
            let mut client = world.connect();
            client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
            assert!(client.answer(false).body == content(path, 20_000), "{path}");
            let (rest, end) = client.rest();
            assert!(rest.is_empty() && end.is_ok(), "{end:?}");
        }
    }
    world.nothing_is_left();
    let stats: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    let sum = |of: fn(&plimsoll_agent::daemon::CloneStats) -> u64| stats.iter().map(of).sum::<u64>();
    let requests = (NODES * (paths.len() + NAMES)) as u64;
    assert_eq!((sum(|stats| stats.requests), sum(|stats| stats.own)), (requests, requests / 3));
    assert_eq!((sum(|stats| stats.clone_answers), sum(|stats| stats.lost)), (requests / 3 * 2, 0));
}

#[test]
fn apache_answers_on_clones() {
    let servers = Servers::new();
    let ports = RefCell::new(9000..);
    let world = World::with(|config| {
        let port = ports.borrow_mut().next().unwrap();
        config.serve = servers.start_apache(&config.name, port);
    });
    answers_on_clones(&world);
}

#[test]
fn node_answers_on_clones() {
    let servers = Servers::new();
    let world = World::with(|config| config.serve = servers.start_node(&config.name));
    answers_on_clones(&world);
}
