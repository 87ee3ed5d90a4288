//! nginx beside agents, and the shim that it is started with.

use std::path::{Path, PathBuf};

use plimsoll_lab::{Lab, Node, Process};

/// Where servers listen at their node's address.
pub(crate) const ORIGIN_PORT: u16 = 8080;

/// Writes the shim.
pub(crate) fn shim(directory: &Path) -> PathBuf {
    let shim = directory.join("shim.so");
    let out = crate::common::plimsoll(&["shim", shim.to_str().unwrap()]);
    assert!(out.status.success(), "{}", crate::common::text(&out.stderr));
    shim
}

/// Starts nginx beside back-end `index`, on its Unix socket `bINDEX.sock` behind the shim if there is one, and at its own address. Each
/// response tells `name`.
pub(crate) fn start(
    lab: &Lab,
    directory: &Path,
    (index, name): (usize, &str),
    shim: Option<&Path>,
) -> Process {
    let node = lab.node(Node::Backend(index)).unwrap();
    let d = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("{what}_temp_path {d}/{what}{index};"))
        .collect();
    let unix = shim.map(|_| format!("listen unix:{d}/b{index}.sock;")).unwrap_or_default();
    let config = format!(
        "daemon off; user root; worker_processes 2; pid {d}/nginx{index}.pid; error_log {d}/nginx{index}.err;
         events {{ worker_connections 1024; }}
         http {{ {temporary} sendfile on; log_format all '$remote_addr $status $body_bytes_sent $request_uri';
           access_log {d}/nginx{index}.log all; add_header X-Backend {name};
           server {{ {unix} listen {}:{ORIGIN_PORT}; root {d}/www; }} }}",
        node.address()
    );
    let file = directory.join(format!("nginx{index}.conf"));
    std::fs::write(&file, config).unwrap();
    let mut command = node.command("nginx");
    command.arg("-e").arg(directory.join(format!("nginx{index}.err"))).arg("-c").arg(file);
    if let Some(shim) = shim {
        command.env("LD_PRELOAD", shim);
    }
    node.spawn(&mut command).unwrap()
}
