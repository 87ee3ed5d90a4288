//! What the tests share.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use plimsoll_lab::{Lab, LabConfig, LabError, Node};
pub(crate) use plimsoll_testkit::{PATIENCE, eventually};

/// A lab with so many back-ends.
pub(crate) fn lab(backends: usize) -> Lab {
    Lab::build(&LabConfig { backends, ..LabConfig::default() }).unwrap()
}

/// Set in a process that has a machine of its own.
const ALONE: &str = "PLIMSOLL_TEST_ALONE";

/// Makes the namespaces that hold what a machine has, and starts the test in them.
const OWN_MACHINE: &str =
    r#"mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf && mount -t tmpfs tmpfs /run && exec "$@""#;

/// True in a process that runs the test of this name and nothing else, in namespaces of its own for the network and for
/// mounts, where nobody else changes anything. Anywhere else, starts such a process and waits for its success.
pub(crate) fn on_a_machine_of_its_own(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--propagation", "private", "--", "sh", "-c", OWN_MACHINE, "sh"]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let run = command.output().unwrap();
    let text = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(run.status.success() && text.contains("1 passed"), "{text}");
    false
}

/// Opens a connection from one node to this address, where another one listens, and sends `ping` there and back. The
/// address of the peer as the other one sees it.
pub(crate) fn exchange(lab: &Lab, from: Node, to: Node, address: IpAddr) -> std::io::Result<IpAddr> {
    exchange_within(PATIENCE, lab, from, to, address)
}

/// Whether a connection from one node to this address of another one cannot be opened. The time is that in which TCP sends
/// its first packet three times.
pub(crate) fn is_cut_off(lab: &Lab, from: Node, to: Node, address: IpAddr) -> bool {
    exchange_within(Duration::from_secs(4), lab, from, to, address).is_err()
}

fn exchange_within(
    time: Duration,
    lab: &Lab,
    from: Node,
    to: Node,
    address: IpAddr,
) -> std::io::Result<IpAddr> {
    let listener = lab.node(to).unwrap().run(|| TcpListener::bind((address, 0))).unwrap()?;
    let port = listener.local_addr()?.port();
    let connect = || TcpStream::connect_timeout(&SocketAddr::new(address, port), time);
    let mut client = lab.node(from).unwrap().run(connect).unwrap()?;
    client.set_read_timeout(Some(PATIENCE))?;
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
