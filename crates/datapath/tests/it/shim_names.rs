//! The shim in a server that takes its sockets for TCP sockets: a Unix socket stands in for one of its ports.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};

use plimsoll_datapath::shim::{self, Header};
use plimsoll_testkit::{PATIENCE, wait_for};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/names.c");
/// Nobody listens on it: the server does not either.
const PORT: &str = "8080";

/// The server, which is killed if it does not end.
struct Names(Child);

impl Drop for Names {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(directory: &Path, family: &str) -> Names {
    let path = |name: &str| directory.join(name);
    shim::write_to(&path("shim.so")).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-D_GNU_SOURCE", "-Wall", "-o"]).arg(path("server")).arg(PROGRAM);
    assert!(compile.status().unwrap().success());
    let mut command = Command::new(path("server"));
    command.args([family, PORT]).env("LD_PRELOAD", path("shim.so"));
    command.env(shim::LISTEN_VARIABLE, format!("{PORT}={}", path("socket").display()));
    Names(command.spawn().unwrap())
}

#[test]
fn a_port_that_is_a_unix_socket_looks_like_a_port() {
    for (family, loopback) in [("4", "127.0.0.1:0"), ("6", "[::1]:0")] {
        let directory = tempfile::tempdir().unwrap();
        let mut server = server(directory.path(), family);
        let socket = directory.path().join("socket");
        let mut first = wait_for("the server", || UnixStream::connect(&socket).ok());
        let mut second = UnixStream::connect(&socket).unwrap();
        // One that an agent hands in, whose names are true.
        let listener = TcpListener::bind(loopback).unwrap();
        let mut third = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let unix = shim::connect(&socket).unwrap();
        shim::send_connection(&unix, listener.accept().unwrap().0, Header::default()).unwrap();
        first.set_read_timeout(Some(PATIENCE)).unwrap();
        second.set_read_timeout(Some(PATIENCE)).unwrap();
        third.set_read_timeout(Some(PATIENCE)).unwrap();
        for client in [&mut first as &mut dyn Read, &mut second, &mut third] {
            let mut served = [0; 6];
            client.read_exact(&mut served).unwrap();
            assert_eq!(&served, b"served", "{family}");
        }
        assert!(server.0.wait().unwrap().success(), "{family}");
    }
}
