//! What the tests share.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_lab::{Lab, LabConfig, LabError, Node};

/// A lab with so many back-ends.
pub(crate) fn lab(backends: usize) -> Lab {
    Lab::build(&LabConfig { backends, ..LabConfig::default() }).unwrap()
}

/// Waits until this is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Opens a connection from one node to this address, where another one listens, and sends `ping` there and back. The
/// address of the peer as the other one sees it.
pub(crate) fn exchange(lab: &Lab, from: Node, to: Node, address: IpAddr) -> std::io::Result<IpAddr> {
    let listener = lab.node(to).unwrap().run(|| TcpListener::bind((address, 0))).unwrap()?;
    let port = listener.local_addr()?.port();
    let connect = || TcpStream::connect_timeout(&SocketAddr::new(address, port), Duration::from_secs(3));
    let mut client = lab.node(from).unwrap().run(connect).unwrap()?;
    client.set_read_timeout(Some(Duration::from_secs(3)))?;
    let (mut accepted, peer) = listener.accept()?;
    client.write_all(b"ping")?;
    let mut bytes = [0; 4];
    accepted.read_exact(&mut bytes)?;
    accepted.write_all(&bytes)?;
    client.read_exact(&mut bytes)?;
    assert_eq!(&bytes, b"ping");
    Ok(peer.ip())
}

/// Whether this is the error of a kernel that lacks something, which is then said.
pub(crate) fn lacking<T>(result: &Result<T, LabError>) -> bool {
    let lacks = matches!(result, Err(LabError::Unsupported { .. }));
    if let (true, Err(error)) = (lacks, result) {
        eprintln!("skipped: {error}");
    }
    lacks
}
