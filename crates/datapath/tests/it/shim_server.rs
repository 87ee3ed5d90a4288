//! A real server with the shim preloaded, and what an agent and a client do.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use plimsoll_datapath::shim::{self, Header, Notice, ShimAnswer};
use plimsoll_testkit::{PATIENCE, eventually};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// nginx, Apache or Node.
pub(crate) struct Server {
    directory: TempDir,
    master: Child,
}

const NGINX: &str = r#"
daemon off;
user root;
worker_processes 2;
error_log error.log info;
pid nginx.pid;
events { worker_connections 256; }
http {
    log_format ends '$remote_addr:$remote_port $status $body_bytes_sent "$request"';
    access_log access.log ends;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 60s;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    server {
        listen unix:DIRECTORY/socket;
        root content;
        location /list/ { autoindex on; }
    }
}
"#;

const APACHE: &str = r#"
ServerRoot DIRECTORY
ServerName a
PidFile apache.pid
DefaultRuntimeDir DIRECTORY
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule autoindex_module /usr/lib/apache2/modules/mod_autoindex.so
Listen 8080
ErrorLog error.log
LogFormat "%h:%{remote}p %>s %B \"%r\"" ends
CustomLog access.log ends
DocumentRoot DIRECTORY/content
<Directory DIRECTORY/content>
    Options +Indexes
</Directory>
EnableSendfile On
StartServers 2
ThreadsPerChild 25
MinSpareThreads 25
KeepAliveTimeout 60
"#;

/// What Node runs.
const FILES_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/files.js");

impl Server {
    pub(crate) fn nginx() -> Self {
        Self::start("nginx", NGINX, |nginx, directory| {
            nginx.args(["-p", directory, "-c", "configuration", "-e", "error.log"]);
        })
    }

    pub(crate) fn apache() -> Self {
        let server = Self::start("apache2", APACHE, |apache, directory| {
            apache.args(["-D", "FOREGROUND", "-f", &format!("{directory}/configuration")]);
            apache.env(shim::LISTEN_VARIABLE, format!("8080={directory}/socket"));
        });
        // A process of which no thread waits for work closes connections between two requests.
        let threads = |worker: Pid| {
            fs::read_dir(format!("/proc/{}/task", worker.as_raw_nonzero())).map_or(0, Iterator::count)
        };
        eventually("all threads of Apache", || {
            server.workers().into_iter().map(threads).sum::<usize>() >= 2 * 25
        });
        server
    }

    /// Bound to a port in its own eyes: of a Unix socket's clients Node knows no address.
    pub(crate) fn node() -> Self {
        Self::start("node", "", |node, directory| {
            node.arg(FILES_SCRIPT).args(["content", "access.log"].map(|name| format!("{directory}/{name}")));
            node.arg("127.0.0.1:8080").env(shim::LISTEN_VARIABLE, format!("8080={directory}/socket"));
        })
    }

    fn start(program: &str, configuration: &str, arguments: impl FnOnce(&mut Command, &str)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Apache's workers are not root.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("content/list")).unwrap();
        fs::write(path("content/small.txt"), "small").unwrap();
        fs::write(path("content/kept"), "kept").unwrap();
        fs::write(path("content/large.bin"), large()).unwrap();
        for number in 0..400 {
            // Enough for a list that no server buffers.
            fs::write(path(&format!("content/list/a-file-{number}")), "1").unwrap();
        }
        let root = directory.path().to_str().unwrap();
        fs::write(path("configuration"), configuration.replace("DIRECTORY", root)).unwrap();
        shim::write_to(&path("shim.so")).unwrap();
        let mut command = Command::new(program);
        arguments(&mut command, root);
        command.env("LD_PRELOAD", path("shim.so")).stdin(Stdio::null()).stderr(Stdio::null());
        let master = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        let server = Self { directory, master };
        eventually(program, || UnixStream::connect(server.socket()).is_ok());
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("access.log")).unwrap()
    }

    pub(crate) fn workers(&self) -> Vec<Pid> {
        let master = self.master.id();
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap();
        let pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
        pids.filter_map(Pid::from_raw).collect()
    }

    /// Sockets that the workers have open, or the only process.
    pub(crate) fn open_sockets(&self) -> usize {
        let mut pids = self.workers();
        if pids.is_empty() {
            pids.push(Pid::from_child(&self.master));
        }
        let links = |pid: Pid| fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).unwrap();
        let target = |entry: std::io::Result<fs::DirEntry>| fs::read_link(entry.unwrap().path());
        let sockets = pids.into_iter().flat_map(links).map(target);
        sockets.flatten().filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    }

    /// Passes a socket to the server as an agent does.
    pub(crate) fn hand(&self, socket: impl Into<OwnedFd>, header: Header) -> UnixStream {
        let unix = shim::connect(&self.socket()).unwrap();
        shim::send_connection(&unix, socket.into(), header).unwrap();
        unix.set_nonblocking(false).unwrap();
        unix.set_read_timeout(Some(PATIENCE)).unwrap();
        unix
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let master = Pid::from_child(&self.master);
        // TERM, so that the workers end with it.
        let _ = kill_process(master, Signal::TERM);
        let _ = self.master.wait();
    }
}

/// Content of `/large.bin`: more than the buffers of sockets hold.
pub(crate) fn large() -> Vec<u8> {
    (0..16_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A client and the socket of its connection.
pub(crate) fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    (client, listener.accept().unwrap().0)
}

/// An answer's head and content. Ends where the head says, or with the connection.
pub(crate) fn answer(client: &mut impl Read, head_request: bool) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let mut content = Vec::new();
    let status = &head[9..12];
    if head_request || status == "304" || status == "204" {
        return (head, content);
    }
    if let Some(length) = head.split("content-length: ").nth(1) {
        content.resize(length.split("\r\n").next().unwrap().parse().unwrap(), 0);
        client.read_exact(&mut content).unwrap();
    } else if head.contains("transfer-encoding: chunked") {
        while !content.ends_with(b"0\r\n\r\n") {
            client.read_exact(&mut byte).unwrap();
            content.push(byte[0]);
        }
    } else {
        client.read_to_end(&mut content).unwrap();
    }
    (head, content)
}

pub(crate) fn answered(unix: &UnixStream) -> ShimAnswer {
    match shim::receive(unix).unwrap() {
        Some(Notice::Answered(answered)) => answered,
        other => panic!("{other:?} instead of an answer's end"),
    }
}

pub(crate) fn given_back(unix: &UnixStream) -> TcpStream {
    match shim::receive(unix).unwrap() {
        Some(Notice::GivenBack(socket)) => socket.into(),
        other => panic!("{other:?} instead of the socket"),
    }
}

pub(crate) fn let_go(unix: &UnixStream) {
    let notice = shim::receive(unix);
    assert!(matches!(notice, Ok(None)), "{notice:?}");
}

pub(crate) fn get(client: &mut TcpStream, path: &str) {
    client.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
}

/// Nothing has been said.
pub(crate) fn silent(unix: &UnixStream) {
    unix.set_nonblocking(true).unwrap();
    assert_eq!(shim::receive(unix).unwrap_err().kind(), ErrorKind::WouldBlock);
    unix.set_nonblocking(false).unwrap();
}
