//! Network namespaces on one Ethernet segment, and names that no other test has. Needs root.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use plimsoll_datapath::DatapathError;
use plimsoll_testkit::{PATIENCE, uninterrupted, unique_name};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A name of an instance, whose pins go with this value.
pub(crate) struct Instance(pub(crate) String);

impl Instance {
    pub(crate) fn new() -> Self {
        Self(unique_name("t"))
    }

    pub(crate) fn pins(&self) -> String {
        format!("/sys/fs/bpf/plimsoll/{}", self.0)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.pins());
    }
}

/// A machine: a network namespace that is deleted with this value.
pub(crate) struct Machine {
    pub(crate) name: String,
    file: fs::File,
}

impl Machine {
    /// One with nothing but `lo`.
    pub(crate) fn new() -> Self {
        let name = unique_name("pln");
        ip(&["netns", "add", &name]);
        let file = fs::File::open(format!("/run/netns/{name}")).unwrap();
        let machine = Self { name, file };
        // An address whose uniqueness is still being checked cannot be used.
        machine.sysctl("net/ipv6/conf/default/accept_dad", "0");
        machine.ip("link set lo up");
        machine
    }

    /// Runs `work` on this machine; sockets that it makes stay here.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    pub(crate) fn ip(&self, arguments: &str) {
        let mut all = vec!["-n", &self.name];
        all.extend(arguments.split_whitespace());
        ip(&all);
    }

    /// What `ip` says.
    pub(crate) fn ask(&self, arguments: &str) -> String {
        let mut command = Command::new("ip");
        let output = command.args(["-n", &self.name]).args(arguments.split_whitespace()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What `tc` says about filters.
    pub(crate) fn filters(&self, interface: &str, point: &str) -> String {
        let mut command = Command::new("tc");
        command.args(["-n", &self.name, "filter", "show", "dev", interface, point]);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// Whether an interface has a clsact qdisc.
    pub(crate) fn has_qdisc(&self, interface: &str) -> bool {
        let mut command = Command::new("tc");
        command.args(["-n", &self.name, "qdisc", "show", "dev", interface]);
        String::from_utf8_lossy(&command.output().unwrap().stdout).contains("clsact")
    }

    pub(crate) fn sysctl(&self, path: &str, value: &str) {
        self.run(|| fs::write(format!("/proc/sys/{path}"), value).unwrap());
    }

    pub(crate) fn read_sysctl(&self, path: &str) -> String {
        self.run(|| fs::read_to_string(format!("/proc/sys/{path}")).unwrap().trim().to_owned())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("`ip` is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {said}(these tests need root)", arguments.join(" "));
}

/// Machines on one segment. The interface of each is `eth0`, and machine N has 10.50.0.N and fd50::N, from 1.
pub(crate) struct Segment {
    pub(crate) machines: Vec<Machine>,
    /// The switch.
    hub: Machine,
}

impl Segment {
    pub(crate) fn new(count: usize) -> Self {
        let hub = Machine::new();
        hub.ip("link add hub type bridge");
        hub.ip("link set hub up");
        let segment = Self { machines: (0..count).map(|_| Machine::new()).collect(), hub };
        for (machine, number) in segment.machines.iter().zip(1..) {
            segment.hub.ip(&format!("link add port{number} type veth peer name eth0 netns {}", machine.name));
            segment.hub.ip(&format!("link set port{number} master hub up"));
            machine.ip(&format!("addr add 10.50.0.{number}/24 dev eth0"));
            machine.ip(&format!("addr add fd50::{number}/64 dev eth0 nodad"));
            machine.ip("link set eth0 up");
        }
        segment
    }

    /// Pulls the plug of a machine, which keeps its addresses, or puts it back.
    pub(crate) fn plug(&self, number: usize, state: &str) {
        self.hub.ip(&format!("link set port{number} {state}"));
    }
}

/// Reads `count` bytes, or fewer when the connection ends before.
pub(crate) fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut found = vec![0; count];
    let mut length = 0;
    while length < count {
        match uninterrupted(|| stream.read(&mut found[length..])) {
            Ok(0) | Err(_) => break,
            Ok(more) => length += more,
        }
    }
    found.truncate(length);
    found
}

/// Whether nothing has come that is not read, the end included.
pub(crate) fn has_nothing_to_read(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    uninterrupted(|| stream.peek(&mut [0])).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Opens what this process may have closed a moment ago. A child that another test is just starting has our files, and with
/// them the lock of the instance, until it becomes another program.
pub(crate) fn opened<T>(open: impl Fn() -> Result<T, DatapathError>) -> Result<T, DatapathError> {
    plimsoll_testkit::wait_for("the lock of the instance", || match open() {
        Err(DatapathError::Busy { .. }) => None,
        other => Some(other),
    })
}
