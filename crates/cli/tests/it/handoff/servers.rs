//! Servers that know nothing of agents: nginx behind the accept shim, and behind copying.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_lab::{Lab, Node, Process};
use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};

use super::bed::{Bed, ORIGIN_PORT, Options};
use super::http::{Client, content};
use crate::nginx::shim;

const FILES: [(&str, usize); 4] = [("a", 1), ("b", 700), ("c", 100_000), ("d", 3_000_000)];

fn files() -> Vec<(&'static str, Vec<u8>)> {
    FILES.iter().map(|&(name, bytes)| (name, content(bytes as u64, bytes))).collect()
}

fn nginx(lab: &Lab, directory: &Path, index: usize, shim: Option<&Path>) -> Process {
    crate::nginx::start(lab, directory, (index, &format!("b{index}")), shim)
}

/// Starts Apache beside back-end `index`, a process for each connection, on a Unix socket and at its own address.
fn apache(lab: &Lab, directory: &Path, index: usize, shim: &Path) -> Process {
    let node = lab.node(Node::Backend(index)).unwrap();
    let d = directory.display();
    let modules: String = ["mpm_prefork", "authz_core"]
        .iter()
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .collect();
    let config = format!(
        "ServerRoot {d}\nServerName b{index}\nPidFile {d}/apache{index}.pid\nDefaultRuntimeDir {d}\nUser www-data\n\
         Group www-data\n{modules}Listen 8081\nListen {}:{ORIGIN_PORT}\nErrorLog {d}/apache{index}.err\n\
         LogFormat \"%h %>s %B %U\" all\nCustomLog {d}/apache{index}.log all\nDocumentRoot {d}/www\nStartServers 2\n",
        node.address()
    );
    let file = directory.join(format!("apache{index}.conf"));
    std::fs::write(&file, config).unwrap();
    // Its workers are not root.
    std::fs::set_permissions(directory, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = node.command("apache2");
    command.args(["-D", "FOREGROUND", "-f"]).arg(file).env("LD_PRELOAD", shim);
    command.env("PLIMSOLL_SHIM_LISTEN", format!("8081={d}/b{index}.sock"));
    // At its end it ends the processes of its group.
    command.process_group(0).stderr(Stdio::null());
    node.spawn(&mut command).unwrap()
}

/// Starts Node beside back-end `index`, on its Unix socket and at its own address.
fn node(lab: &Lab, directory: &Path, index: usize, shim: &Path) -> Process {
    const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../datapath/tests/it/files.js");
    let node = lab.node(Node::Backend(index)).unwrap();
    let mut command = node.command("node");
    command.arg(SCRIPT).arg(directory.join("www")).arg(directory.join(format!("node{index}.log")));
    let socket = directory.join(format!("b{index}.sock"));
    command.arg(&socket).arg(format!("{}:{ORIGIN_PORT}", node.address())).env("LD_PRELOAD", shim);
    let process = node.spawn(&mut command).unwrap();
    eventually("node to listen", || UnixStream::connect(&socket).is_ok());
    process
}

/// Starts a small server with a thread for each connection, which does nothing but read and write, on the Unix socket
/// beside back-end `index`.
fn blocking(lab: &Lab, directory: &Path, index: usize, shim: &Path) -> Process {
    const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../datapath/tests/it/requests.c");
    let program = directory.join(format!("blocking{index}"));
    let mut compile = Command::new("cc");
    compile.args(["-D_GNU_SOURCE", "-pthread", "-o"]).arg(&program).arg(PROGRAM);
    assert!(compile.status().unwrap().success());
    let node = lab.node(Node::Backend(index)).unwrap();
    let mut command = node.command(program.to_str().unwrap());
    command.arg(directory.join(format!("b{index}.sock"))).arg("blocking").env("LD_PRELOAD", shim);
    node.spawn(&mut command).unwrap()
}

/// Sends all requests at once, and gets heads and contents of all answers; there is nothing behind them.
fn pipelined(vip: SocketAddr, requests: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(vip).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let text: String = requests
        .iter()
        .map(|(method, path)| format!("{method} {path} HTTP/1.1\r\nHost: lab\r\n\r\n"))
        .collect();
    stream.write_all(text.as_bytes()).unwrap();
    let answers = requests.iter().map(|&(method, _)| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.unwrap_or_else(|| panic!("no length: {head}")).parse().unwrap();
        let mut content = vec![0; if method == "HEAD" { 0 } else { length }];
        stream.read_exact(&mut content).unwrap();
        (head, content)
    });
    let answers: Vec<_> = answers.collect();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(uninterrupted(|| stream.read(&mut [0])).unwrap_err().kind(), ErrorKind::WouldBlock);
    answers
}

/// Requests that clients send without waiting for answers, in this order, over both addresses.
const PIPELINED: [(&str, &str); 7] = [
    ("GET", "/b"),
    ("HEAD", "/d"),
    ("GET", "/d"),
    ("GET", "/a"),
    ("GET", "/c"),
    ("HEAD", "/a"),
    ("GET", "/b"),
];

/// Has clients send them, and checks that the front-end placed and counted each one. `content_of` says what the content of
/// a path is.
fn pipelined_through(bed: &Bed, content_of: impl Fn(&str) -> Vec<u8>) -> Vec<String> {
    let vips = [bed.vip(), bed.vip_v6()];
    let answers = bed.client(|| vips.map(|vip| pipelined(vip, &PIPELINED))).concat();
    let requests = [PIPELINED, PIPELINED].concat();
    for ((method, path), (head, content)) in requests.iter().zip(&answers) {
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let expected = content_of(path);
        assert!(head.contains(&format!("Content-Length: {}\r\n", expected.len())), "{path}: {head}");
        assert!(*content == if *method == "HEAD" { Vec::new() } else { expected }, "{method} {path}");
    }
    bed.assert_quiet();
    let mut seen = bed.access_log(requests.len());
    seen.sort_by_key(|line| line["client"].as_str().unwrap().contains("::"));
    let seen: Vec<(&str, &str, u64)> = seen
        .iter()
        .map(|line| {
            assert!(line["status"] == 200 && line["mechanism"] == "handoff", "{line}");
            let text = |field: &str| line[field].as_str().unwrap();
            (text("method"), text("target"), line["bytes"].as_u64().unwrap())
        })
        .collect();
    let bytes = |method: &str, path: &str| if method == "HEAD" { 0 } else { content_of(path).len() as u64 };
    let expected: Vec<_> = requests.iter().map(|&(m, path)| (m, path, bytes(m, path))).collect();
    assert_eq!(seen, expected, "the front-end counted each request");
    let on = bed.metric("plimsoll_handoffs_on_total").unwrap();
    assert!(on >= 10.0, "{on} of 12 were handed on");
    answers.into_iter().map(|(head, _)| head).collect()
}

fn file_at(path: &str) -> Vec<u8> {
    let (_, bytes) = FILES.iter().find(|(name, _)| *name == &path[1..]).unwrap();
    content(*bytes as u64, *bytes)
}

/// What two servers have written to their logs.
fn logged(bed: &Bed, server: &str) -> Vec<String> {
    let read =
        |index| std::fs::read_to_string(bed.directory.path().join(format!("{server}{index}.log"))).unwrap();
    let clients = bed.lab.node(Node::Client).unwrap();
    let (v4, v6) = (clients.address().to_string(), clients.address_v6().to_string());
    let both = read(0) + &read(1);
    both.lines().filter(|l| l.starts_with(&v4) || l.starts_with(&v6)).map(str::to_owned).collect()
}

#[test]
fn pipelined_requests_and_nginx() {
    let options = Options { serve: Some("shim:DIRECTORY/bINDEX.sock".to_owned()), ..Options::default() };
    let bed = Bed::new_with(options, &files(), |lab, directory| {
        let shim = shim(directory);
        (0..2).map(|index| nginx(lab, directory, index, Some(&shim))).collect()
    });
    pipelined_through(&bed, file_at);
    let log = logged(&bed, "nginx");
    assert_eq!(log.len(), 2 * PIPELINED.len(), "{log:#?}");
    for (name, _) in FILES {
        let wanted = 2 * PIPELINED.iter().filter(|(_, path)| path.ends_with(name)).count();
        assert_eq!(log.iter().filter(|l| l.ends_with(&format!("/{name}"))).count(), wanted, "{log:#?}");
    }
    bed.stop();
}

#[test]
fn pipelined_requests_and_a_process_for_each_connection() {
    let options = Options { serve: Some("shim:DIRECTORY/bINDEX.sock".to_owned()), ..Options::default() };
    let bed = Bed::new_with(options, &files(), |lab, directory| {
        let shim = shim(directory);
        (0..2).map(|index| apache(lab, directory, index, &shim)).collect()
    });
    pipelined_through(&bed, file_at);
    let log = logged(&bed, "apache");
    assert_eq!(log.len(), 2 * PIPELINED.len(), "{log:#?}");
    bed.stop();
}

#[test]
fn pipelined_requests_and_a_blocking_server() {
    let options = Options { serve: Some("shim:DIRECTORY/bINDEX.sock".to_owned()), ..Options::default() };
    let bed = Bed::new_with(options, &files(), |lab, directory| {
        let shim = shim(directory);
        let both = |index| [blocking(lab, directory, index, &shim), nginx(lab, directory, index, None)];
        (0..2).flat_map(both).collect()
    });
    for head in pipelined_through(&bed, |path| path.as_bytes().to_vec()) {
        assert!(head.contains("X-Behind: 0\r\n"), "the server has read too much: {head}");
    }
    bed.stop();
}

/// Gets every file over one connection, over and over, and says who answered.
fn get_all(vip: SocketAddr, rounds: usize) -> Vec<String> {
    let mut client = Client::connect(vip).unwrap();
    let mut backends = Vec::new();
    for _ in 0..rounds {
        for (name, bytes) in FILES {
            let answer = client.get(&format!("/{name}")).unwrap();
            assert_eq!(answer.status, 200);
            assert!(answer.body == content(bytes as u64, bytes), "{name}");
            backends.push(answer.backend());
        }
        assert_eq!(client.get("/none").unwrap().status, 404);
    }
    backends
}

#[test]
fn nginx_behind_the_shim_sees_its_clients() {
    let options = Options { serve: Some("shim:DIRECTORY/bINDEX.sock".to_owned()), ..Options::default() };
    let bed = Bed::new_with(options, &files(), |lab, directory| {
        let shim = shim(directory);
        (0..2).map(|index| nginx(lab, directory, index, Some(&shim))).collect()
    });
    let vips = [bed.vip(), bed.vip_v6()];
    let seen = bed.client(|| vips.map(|vip| get_all(vip, 4)).concat());
    // Each request is placed anew: round robin, but for the missing file, which has no such header.
    assert!(seen.iter().any(|b| b == "b0") && seen.iter().any(|b| b == "b1"), "{seen:?}");
    let on = bed.metric("plimsoll_handoffs_on_total").unwrap();
    assert!(on >= 30.0, "{on} of 38 were handed on");
    let bodies: usize = 2 * 4 * (FILES.iter().map(|(_, bytes)| bytes).sum::<usize>());
    bed.assert_quiet();
    let client = bed.lab.node(Node::Client).unwrap();
    let (v4, v6) = (client.address().to_string(), client.address_v6().to_string());
    let read =
        |index| std::fs::read_to_string(bed.directory.path().join(format!("nginx{index}.log"))).unwrap();
    let text = read(0) + &read(1);
    let handed: Vec<&str> = text.lines().filter(|l| l.starts_with(&v4) || l.starts_with(&v6)).collect();
    assert_eq!(handed.len(), 2 * 4 * 5, "every request shows its client's address: {text}");
    let log = bed.access_log(2 * 4 * 5);
    assert!(log.iter().all(|line| line["mechanism"] == "handoff"), "{log:#?}");
    let told: u64 = log.iter().filter(|l| l["status"] == 200).map(|l| l["bytes"].as_u64().unwrap()).sum();
    assert_eq!(told, bodies as u64, "the shim counted what nginx sent");
    bed.stop();
}

/// Node closes the connection that was given back by `syscall`, and opens the file of the POST under its number.
#[test]
fn requests_with_bodies_and_node() {
    const BODY: usize = 50_000;
    let serve = Some("shim:DIRECTORY/bINDEX.sock".to_owned());
    let options = Options { backends: 1, serve, ..Options::default() };
    let bed =
        Bed::new_with(options, &files(), |lab, directory| vec![node(lab, directory, 0, &shim(directory))]);
    let exchange = |vip| {
        let mut client = Client::connect(vip).unwrap();
        for (name, bytes) in FILES {
            let wanted = content(bytes as u64, bytes);
            let answer = client.get(&format!("/{name}")).unwrap();
            assert!(answer.status == 200 && answer.body == wanted, "GET {name}: {}", answer.head);
            let head = format!("POST /{name} HTTP/1.1\r\nHost: lab\r\nContent-Length: {BODY}\r\n\r\n");
            client.stream.write_all(head.as_bytes()).unwrap();
            client.stream.write_all(&content(1, BODY)).unwrap();
            let answer = client.answer().unwrap();
            assert!(answer.status == 200 && answer.body == wanted, "POST {name}: {}", answer.head);
            assert_eq!(answer.field("x-body"), Some(BODY.to_string().as_str()));
        }
    };
    let vips = [bed.vip(), bed.vip_v6()];
    bed.client(|| vips.iter().cycle().take(6).for_each(|&vip| exchange(vip)));
    bed.assert_quiet();
    let log = bed.access_log(2 * 6 * FILES.len());
    let by = |mechanism| log.iter().filter(|line| line["mechanism"] == mechanism).count();
    assert_eq!((by("handoff"), by("proxy")), (6 * FILES.len(), 6 * FILES.len()), "{log:#?}");
    bed.stop();
}

#[test]
fn nginx_behind_copying() {
    let options = Options { serve: Some(format!("copy:ADDRESS:{ORIGIN_PORT}")), ..Options::default() };
    let bed = Bed::new_with(options, &files(), |lab, directory| {
        (0..2).map(|index| nginx(lab, directory, index, None)).collect()
    });
    let vips = [bed.vip(), bed.vip_v6()];
    let seen = bed.client(|| vips.map(|vip| get_all(vip, 4)).concat());
    assert!(seen.iter().any(|b| b == "b0") && seen.iter().any(|b| b == "b1"), "{seen:?}");
    assert!(bed.metric("plimsoll_handoffs_on_total") >= Some(30.0));
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn curl_and_wrk() {
    let bed = Bed::new(Options::default(), &files());
    let node = bed.lab.node(Node::Client).unwrap();
    let out = bed.directory.path().join("out");
    let url = |name: &str| format!("http://{}/{name}", bed.lab.virtual_address());
    let mut curl: Command = node.command("curl");
    curl.args(["--silent", "--show-error", "--fail"]);
    for (name, _) in FILES {
        curl.arg("--output").arg(out.with_extension(name)).arg(url(name));
    }
    assert!(curl.status().unwrap().success());
    for (name, bytes) in FILES {
        assert!(std::fs::read(out.with_extension(name)).unwrap() == content(bytes as u64, bytes), "{name}");
    }
    let wrk = node.command("wrk").args(["-t1", "-c32", "-d3s", &url("c")]).output().unwrap();
    let text = String::from_utf8_lossy(&wrk.stdout).into_owned();
    assert!(wrk.status.success() && text.contains("requests in"), "{text}");
    assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
    bed.assert_quiet();
    bed.stop();
}
