//! A real etcd, on addresses that nobody else has.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::loopback::OwnLoopback;
use crate::names::unique_name;
use crate::wait::eventually;

/// A server with one member, from Debian's `etcd-server`. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct EtcdServer {
    addresses: OwnLoopback,
    directory: PathBuf,
    child: Option<Child>,
}

impl EtcdServer {
    /// Starts one that is empty, and waits until it answers.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start() -> Self {
        let directory = std::env::temp_dir().join(unique_name("plimsoll-etcd-"));
        fs::create_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let mut server = Self { addresses: OwnLoopback::new(), directory, child: None };
        server.restart();
        server
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses.at(2379)
    }

    /// The same as a URL.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Starts it again, with what it had stored, and waits until it answers.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn restart(&mut self) {
        self.kill();
        let (client, peer) = (self.endpoint(), format!("http://{}", self.addresses.at(2380)));
        let log =
            File::create(self.directory.join("log")).unwrap_or_else(|error| panic!("etcd's log: {error}"));
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(self.directory.join("data"))
            .args(["--name", "test", "--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap_or_else(|error| panic!("etcd (Debian: etcd-server): {error}")));
        eventually("etcd's port", || TcpStream::connect(self.address()).is_ok());
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Removes what it has stored; it has to be killed before.
    ///
    /// # Panics
    /// When that cannot be removed.
    pub fn forget(&self) {
        let data = self.directory.join("data");
        fs::remove_dir_all(&data).unwrap_or_else(|error| panic!("{}: {error}", data.display()));
    }

    /// Stops it, as `kill -STOP` does: it is there, and answers nothing.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().unwrap_or_else(|| panic!("etcd does not run"));
        let sent = kill_process(Pid::from_child(child), signal);
        sent.unwrap_or_else(|error| panic!("a signal to etcd: {error}"));
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
        // What is left in a directory for temporary files does no harm.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
