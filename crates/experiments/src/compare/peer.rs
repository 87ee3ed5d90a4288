//! Another balancer as a process of its own, before the same origins.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::systems::PeerProgram;
use crate::ExperimentError;

/// How long a peer has to begin to listen.
const START: Duration = Duration::from_secs(10);
/// How often it is tried to reach it meanwhile.
const PAUSE: Duration = Duration::from_millis(20);
/// Times that another port is tried: somebody else may take one before the peer does.
const TRIES: usize = 3;
/// Directories that are not in everybody's path.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Where the program is.
///
/// # Errors
/// When it is not installed; the text says how to install it.
pub fn find_peer(program: PeerProgram) -> Result<PathBuf, ExperimentError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(SYSTEM_DIRECTORIES.map(PathBuf::from));
    let found = directories.map(|directory| directory.join(program.name())).find(|file| file.is_file());
    found.ok_or_else(|| {
        let name = program.name();
        ExperimentError::Failed(format!(
            "{name} is not installed, and --compare {name} starts it; install the package {name} (`apt-get install {name}`), or leave it out"
        ))
    })
}

/// A running peer. Dropping it kills the process.
pub(super) struct RunningPeer {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Drop for RunningPeer {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RunningPeer {
    /// Starts the program with these lines of its own before these servers, with files in this directory alone.
    pub(super) fn start(
        program: PeerProgram,
        lines: &str,
        servers: &[SocketAddr],
        directory: &Path,
    ) -> Result<Self, ExperimentError> {
        let binary = find_peer(program)?;
        let mut last = None;
        for _ in 0..TRIES {
            match Self::start_at(program, &binary, lines, servers, directory) {
                Ok(peer) => return Ok(peer),
                Err(error) => last = Some(error),
            }
        }
        let name = program.name();
        let said = std::fs::read_to_string(directory.join("messages")).unwrap_or_default();
        let error = last.map_or_else(String::new, |error| error.to_string());
        let said: String = said.chars().take(600).collect();
        Err(ExperimentError::Failed(format!("{name} does not start: {error}; it says: {}", said.trim())))
    }

    fn start_at(
        program: PeerProgram,
        binary: &Path,
        lines: &str,
        servers: &[SocketAddr],
        directory: &Path,
    ) -> io::Result<Self> {
        // Neither program can tell a port that the system has chosen for it.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let config = directory.join("config");
        let messages = directory.join("messages");
        let mut command = Command::new(binary);
        match program {
            PeerProgram::HaProxy => {
                std::fs::write(&config, haproxy(address, lines, servers))?;
                command.arg("-db").arg("-f").arg(&config);
            }
            PeerProgram::Nginx => {
                std::fs::write(&config, nginx(address, lines, servers, directory))?;
                command.arg("-e").arg(&messages).arg("-p").arg(directory).arg("-c").arg(&config);
            }
        }
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&messages)?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let mut peer = Self { child, address };
        let began = Instant::now();
        while TcpStream::connect_timeout(&address, PAUSE).is_err() {
            if let Some(status) = peer.child.try_wait()? {
                return Err(io::Error::other(format!("it ended with {status}")));
            }
            if began.elapsed() > START {
                return Err(io::Error::other(format!("it does not listen within {} s", START.as_secs())));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(peer)
    }
}

/// HAProxy as one process with one thread, without health checks, which the other front-ends' figures do not have either.
fn haproxy(address: SocketAddr, lines: &str, servers: &[SocketAddr]) -> String {
    let servers: String =
        servers.iter().enumerate().map(|(n, server)| format!("  server b{n} {server}\n")).collect();
    format!(
        "global\n  nbthread 1\n  maxconn 8192\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 5s\n  \
         http-reuse always\nfrontend f\n  bind {address} backlog 4096\n  default_backend b\nbackend b\n  {lines}\n{servers}"
    )
}

/// nginx as one process.
fn nginx(address: SocketAddr, lines: &str, servers: &[SocketAddr], directory: &Path) -> String {
    let servers: String =
        servers.iter().map(|server| format!("    server {server} max_fails=0;\n")).collect();
    let d = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {d}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid {d}/pid;\nworker_rlimit_nofile 20000;\nevents {{ worker_connections 8192; }}\nhttp {{\n  access_log off;\n  \
         keepalive_requests 100000000;\n{temporary}  upstream b {{\n    {lines}\n{servers}    keepalive 1024;\n    keepalive_requests 100000000;\n  }}\n  \
         server {{\n    listen {address} backlog=4096;\n    location / {{\n      proxy_pass http://b;\n      proxy_http_version 1.1;\n      \
         proxy_set_header Connection \"\";\n      proxy_buffering on;\n    }}\n  }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_listens_as_long_as_it_exists() {
        for program in PeerProgram::ALL {
            if let Err(error) = find_peer(program) {
                assert!(std::env::var_os("CI").is_none(), "{error}");
                eprintln!("skipped: {error}");
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            let lines = if program == PeerProgram::Nginx { "least_conn;" } else { "balance leastconn" };
            let servers = ["127.0.0.1:9".parse().unwrap()];
            let peer = RunningPeer::start(program, lines, &servers, directory.path()).unwrap();
            let address = peer.address;
            assert!(TcpStream::connect(address).is_ok());
            drop(peer);
            assert!(TcpStream::connect(address).is_err(), "{}", program.name());
            let error = RunningPeer::start(program, "no such line", &servers, directory.path());
            let error = error.err().unwrap().to_string();
            assert!(error.contains("does not start") && error.contains("no"), "{error}");
        }
    }

    #[test]
    fn configurations_name_every_server() {
        let servers: Vec<SocketAddr> =
            ["127.0.0.1:81", "127.0.0.1:82"].map(|text| text.parse().unwrap()).into();
        let address = "127.0.0.1:80".parse().unwrap();
        let of_haproxy = haproxy(address, "balance leastconn", &servers);
        assert!(of_haproxy.contains("bind 127.0.0.1:80") && of_haproxy.contains("server b1 127.0.0.1:82\n"));
        let of_nginx = nginx(address, "least_conn;", &servers, Path::new("/d"));
        assert!(
            of_nginx.contains("least_conn;\n    server 127.0.0.1:81") && of_nginx.contains("pid /d/pid;")
        );
    }
}
