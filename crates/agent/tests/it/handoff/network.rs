//! Network namespaces on one Ethernet segment. Needs root.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A name that nothing else on this machine has.
pub(crate) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A machine: a network namespace that is deleted with this value.
pub(crate) struct Machine {
    name: String,
    file: File,
}

impl Machine {
    fn new() -> Self {
        let name = unique("pla");
        ip(&["netns", "add", &name]);
        let file = File::open(format!("/run/netns/{name}")).unwrap();
        let machine = Self { name, file };
        machine.ip("link set lo up");
        machine
    }

    /// Runs `work` on this machine; sockets and threads that it makes stay here.
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

/// A client, a front-end and two back-ends on one segment. Each has `eth0`: 10.60.0.1, .2, .3 and .4; clients connect to
/// 10.60.0.100, which the front-end answers for.
pub(crate) struct Segment {
    pub(crate) client: Machine,
    pub(crate) front_end: Machine,
    pub(crate) back_ends: [Machine; 2],
    _hub: Machine,
}

pub(crate) const VIP: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 60, 0, 100)), 80);

impl Segment {
    pub(crate) fn new() -> Self {
        let hub = Machine::new();
        hub.ip("link add hub type bridge");
        hub.ip("link set hub up");
        let machine = |number: u8| {
            let machine = Machine::new();
            hub.ip(&format!("link add port{number} type veth peer name eth0 netns {}", machine.name));
            hub.ip(&format!("link set port{number} master hub up"));
            machine.ip(&format!("addr add 10.60.0.{number}/24 dev eth0"));
            machine.ip("link set eth0 up");
            machine
        };
        let (client, front_end, back_ends) = (machine(1), machine(2), [machine(3), machine(4)]);
        front_end.ip(&format!("addr add {}/24 dev eth0", VIP.ip()));
        Self { client, front_end, back_ends, _hub: hub }
    }
}
