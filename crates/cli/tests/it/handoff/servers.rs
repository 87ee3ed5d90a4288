//! Servers that know nothing of agents: nginx behind the accept shim, and behind copying.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use plimsoll_lab::{Lab, Node, Process};

use super::bed::{Bed, ORIGIN_PORT, Options};
use super::http::{Client, content};

const FILES: [(&str, usize); 4] = [("a", 1), ("b", 700), ("c", 100_000), ("d", 3_000_000)];

fn files() -> Vec<(&'static str, Vec<u8>)> {
    FILES.iter().map(|&(name, bytes)| (name, content(bytes as u64, bytes))).collect()
}

/// Starts nginx beside back-end `index`, on its Unix socket and at its own address.
fn nginx(lab: &Lab, directory: &Path, index: usize, shim: Option<&Path>) -> Process {
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
           access_log {d}/nginx{index}.log all; add_header X-Backend b{index};
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

/// Gets every file over one connection, over and over, and says who answered.
fn get_all(vip: SocketAddr, rounds: usize) -> Vec<String> {
    let mut client = Client::connect(vip).unwrap();
    let mut backends = Vec::new();
    for _ in 0..rounds {
        for (name, bytes) in FILES {
            let answer = client.get(&format!("/{name}")).unwrap();
            assert_eq!(answer.status, 200);
            assert!(answer.body == content(bytes as u64, bytes), "{name}");
            backends.push(answer.backend());
        }
        assert_eq!(client.get("/none").unwrap().status, 404);
    }
    backends
}

#[test]
fn nginx_behind_the_shim_sees_its_clients() {
    let options = Options { serve: Some("shim:DIRECTORY/bINDEX.sock".to_owned()), ..Options::default() };
    let bed = Bed::new_with(options, &files(), |lab, directory| {
        let shim = directory.join("shim.so");
        let out = crate::common::plimsoll(&["shim", shim.to_str().unwrap()]);
        assert!(out.status.success(), "{}", crate::common::text(&out.stderr));
        (0..2).map(|index| nginx(lab, directory, index, Some(&shim))).collect()
    });
    let vips = [bed.vip(), bed.vip_v6()];
    let seen = bed.client(|| vips.map(|vip| get_all(vip, 4)).concat());
    // Each request is placed anew: round robin, but for the missing file, which has no such header.
    assert!(seen.iter().any(|b| b == "b0") && seen.iter().any(|b| b == "b1"), "{seen:?}");
    let on = bed.metric("plimsoll_handoffs_on_total").unwrap();
    assert!(on >= 30.0, "{on} of 38 were handed on");
    let bodies: usize = 2 * 4 * (FILES.iter().map(|(_, bytes)| bytes).sum::<usize>());
    bed.assert_quiet();
    let client = bed.lab.node(Node::Client).unwrap();
    let (v4, v6) = (client.address().to_string(), client.address_v6().to_string());
    let read =
        |index| std::fs::read_to_string(bed.directory.path().join(format!("nginx{index}.log"))).unwrap();
    let text = read(0) + &read(1);
    let handed: Vec<&str> = text.lines().filter(|l| l.starts_with(&v4) || l.starts_with(&v6)).collect();
    assert_eq!(handed.len(), 2 * 4 * 5, "every request shows its client's address: {text}");
    let log = bed.access_log();
    assert!(log.iter().all(|line| line["mechanism"] == "handoff"), "{log:#?}");
    let told: u64 = log.iter().filter(|l| l["status"] == 200).map(|l| l["bytes"].as_u64().unwrap()).sum();
    assert_eq!(told, bodies as u64, "the shim counted what nginx sent");
    bed.stop();
}

#[test]
fn nginx_behind_copying() {
    let options = Options { serve: Some(format!("copy:ADDRESS:{ORIGIN_PORT}")), ..Options::default() };
    let bed = Bed::new_with(options, &files(), |lab, directory| {
        (0..2).map(|index| nginx(lab, directory, index, None)).collect()
    });
    let vips = [bed.vip(), bed.vip_v6()];
    let seen = bed.client(|| vips.map(|vip| get_all(vip, 4)).concat());
    assert!(seen.iter().any(|b| b == "b0") && seen.iter().any(|b| b == "b1"), "{seen:?}");
    assert!(bed.metric("plimsoll_handoffs_on_total") >= Some(30.0));
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn curl_and_wrk() {
    let bed = Bed::new(Options::default(), &files());
    let node = bed.lab.node(Node::Client).unwrap();
    let out = bed.directory.path().join("out");
    let url = |name: &str| format!("http://{}/{name}", bed.lab.virtual_address());
    let mut curl: Command = node.command("curl");
    curl.args(["--silent", "--show-error", "--fail"]);
    for (name, _) in FILES {
        curl.arg("--output").arg(out.with_extension(name)).arg(url(name));
    }
    assert!(curl.status().unwrap().success());
    for (name, bytes) in FILES {
        assert!(std::fs::read(out.with_extension(name)).unwrap() == content(bytes as u64, bytes), "{name}");
    }
    let wrk = node.command("wrk").args(["-t1", "-c32", "-d3s", &url("c")]).output().unwrap();
    let text = String::from_utf8_lossy(&wrk.stdout).into_owned();
    assert!(wrk.status.success() && text.contains("requests in"), "{text}");
    assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
    bed.assert_quiet();
    bed.stop();
}
