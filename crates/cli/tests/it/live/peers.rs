//! Real peers: three nginx behind the front-end, curl before it.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::{OwnLoopback, eventually};

use super::processes::{FrontEnd, assert_replays};

/// Three servers of one nginx; ended when dropped.
struct Nginx {
    child: Child,
    directory: tempfile::TempDir,
    addresses: Vec<SocketAddr>,
    _own: OwnLoopback,
}

impl Nginx {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let d = directory.path().display().to_string();
        let own = OwnLoopback::new();
        let addresses: Vec<SocketAddr> = (8000..8003).map(|port| own.at(port)).collect();
        std::fs::create_dir(directory.path().join("root")).unwrap();
        for (name, bytes) in [("index.html", 20), ("big", 3_000_000)] {
            let body: Vec<u8> = (0..bytes).map(|i| b'a' + (i % 23) as u8).collect();
            std::fs::write(directory.path().join("root").join(name), body).unwrap();
        }
        let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|k| format!("{k}_temp_path {d}/{k};"))
            .concat();
        let servers: String =
            addresses.iter().map(|a| format!("server {{ listen {a}; root {d}/root; }}\n")).collect();
        let text = format!(
            "daemon off; pid {d}/pid; error_log {d}/error.log; worker_processes 1;\n\
             events {{ worker_connections 512; }}\nhttp {{ access_log {d}/access.log; client_max_body_size 0; {temp}\n{servers} }}\n"
        );
        std::fs::write(directory.path().join("nginx.conf"), text).unwrap();
        let child = Command::new("nginx")
            .args(["-e", &format!("{d}/error.log"), "-c", &format!("{d}/nginx.conf")])
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx is needed; `make setup` installs it");
        eventually("nginx", || addresses.iter().all(|&a| std::net::TcpStream::connect(a).is_ok()));
        Self { child, directory, addresses, _own: own }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master ends its workers; killed outright it would leave them behind.
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

fn curl(args: &[&str]) -> (bool, Vec<u8>) {
    let out = Command::new("curl").args(["--silent", "--show-error", "--max-time", "60"]).args(args).output();
    let out = out.expect("curl is needed; `make setup` installs it");
    (out.status.success(), out.stdout)
}

#[test]
fn nginx_behind_and_curl_before() {
    let nginx = Nginx::start();
    let more = "[policy]\nname = \"lard_r\"\n[decision_log]\ndirectory = \"log\"\n[access_log]\nfile = \"access.log\"\n";
    let mut front_end = FrontEnd::start(&nginx.addresses, more);
    let url = |path: &str| format!("http://{}{path}", front_end.address);
    let big = std::fs::read(nginx.directory.path().join("root/big")).unwrap();

    let (ok, body) = curl(&[&url("/big")]);
    assert!(ok && body == big, "{} bytes", body.len());
    let (ok, body) = curl(&["--http1.0", &url("/big")]);
    assert!(ok && body == big, "{} bytes", body.len());
    let (ok, body) = curl(&["--range", "1000000-1000099", &url("/big")]);
    assert!(ok && body == big[1_000_000..1_000_100]);
    let (ok, head) = curl(&["--head", &url("/")]);
    let head = String::from_utf8(head).unwrap();
    assert!(
        ok && head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Length: 20\r\n"),
        "{head}"
    );
    let etag = head.lines().find_map(|l| l.strip_prefix("ETag: ")).unwrap();
    let code = ["--output", "/dev/null", "--write-out", "%{http_code}"];
    let status = |args: &[&str]| String::from_utf8(curl(&[&code[..], args].concat()).1).unwrap();
    assert_eq!(status(&["--header", &format!("If-None-Match: {etag}"), &url("/")]), "304");
    assert_eq!(status(&[&url("/missing")]), "404");
    // nginx does not take POST for files; with a body of this size curl asks for 100 Continue first.
    let body = front_end.path("body");
    std::fs::write(&body, &big).unwrap();
    assert_eq!(status(&["--data-binary", &format!("@{}", body.display()), &url("/big")]), "405");
    // One connection, many requests.
    let urls: Vec<String> = (0..50).map(|i| url(&format!("/?{i}"))).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let (ok, bodies) = curl(&urls);
    assert!(ok && bodies.len() == 50 * 20, "{} bytes", bodies.len());

    front_end.stop();
    assert_replays(&front_end.path("log"));
    let log = std::fs::read_to_string(front_end.path("access.log")).unwrap();
    assert_eq!(log.lines().count(), 57, "{log}");
    let seen = std::fs::read_to_string(nginx.directory.path().join("access.log")).unwrap();
    let asked = seen.lines().filter(|l| !l.contains("plimsoll-health")).count();
    assert_eq!(asked, 57, "{seen}");
}
