//! nginx behind the shim at each node, which answers on connections of clients, and on clones.

use std::os::unix::net::UnixStream;

use super::*;
use crate::nginx;

impl Nodes {
    pub(super) fn start_servers(&mut self) {
        let directory = self.directory.path();
        let (shim, named) = (nginx::shim(directory), self.names.iter().map(String::as_str).enumerate());
        self.servers = named.map(|named| nginx::start(&self.lab, directory, named, Some(&shim))).collect();
        eventually("the servers", || {
            (0..NODES).all(|number| UnixStream::connect(self.socket(number)).is_ok())
        });
    }

    fn socket(&self, number: usize) -> PathBuf {
        self.path(&format!("b{number}.sock"))
    }

    /// Who answers at this node.
    pub(super) fn serve(&self, number: usize) -> String {
        let (socket, www) = (self.socket(number), self.path("www"));
        if self.servers.is_empty() {
            format!("origin:{}", www.display())
        } else {
            format!("shim:{}", socket.display())
        }
    }
}
