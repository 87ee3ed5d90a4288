//! The shim in a server that lets go of connections in unusual ways.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Command;

use plimsoll_datapath::shim::{self, Header};
use plimsoll_testkit::{PATIENCE, eventually};

use crate::shim_server::{connection, let_go};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/closes.c");

#[test]
fn every_way_to_let_go_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    shim::write_to(&path("shim.so")).unwrap();
    let compiled =
        Command::new("cc").args(["-D_GNU_SOURCE", "-Wall", "-o"]).arg(path("server")).arg(PROGRAM).status();
    assert!(compiled.unwrap().success());
    for way in ["dup2", "dup3", "close_range", "all", "unseen"] {
        let socket = path(way);
        let mut server = Command::new(path("server"));
        let mut server =
            server.arg(&socket).arg(way).env("LD_PRELOAD", path("shim.so")).spawn().expect("the server");
        eventually(way, || shim::connect(&socket).is_ok_and(|unix| hand_first(&unix, way)));
        for turn in 0..2 {
            let mut client = UnixStream::connect(&socket).unwrap();
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut served = [0; 6];
            client.read_exact(&mut served).unwrap();
            assert_eq!(&served, b"served", "{way}, {turn}");
        }
        assert!(server.wait().unwrap().success(), "{way}");
    }
}

/// Hands the first connection, and waits until the server has let go of it, except where only its next one shows that.
fn hand_first(unix: &UnixStream, way: &str) -> bool {
    let (mut client, socket) = connection();
    shim::send_connection(unix, socket, Header::default()).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "{way}");
    unix.set_nonblocking(false).unwrap();
    unix.set_read_timeout(Some(PATIENCE)).unwrap();
    if way == "unseen" {
        let path = unix.peer_addr().unwrap();
        let mut next = UnixStream::connect(path.as_pathname().unwrap()).unwrap();
        next.set_read_timeout(Some(PATIENCE)).unwrap();
        next.read_exact(&mut [0; 6]).unwrap();
    }
    let_go(unix);
    true
}
