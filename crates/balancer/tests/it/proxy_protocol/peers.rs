//! With HAProxy and curl before the front-end, and nginx and HAProxy behind it.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::{TestAuthority, eventually};

use super::*;

/// A server from a package, which ends with the test.
pub(crate) struct Peer {
    child: Child,
    _folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
}

impl Peer {
    /// `command` gets a folder with this text as the file `configuration`, in which `ADDRESS` stands for where it is to listen.
    fn start(text: &str, command: impl Fn(&Path) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.4:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        fs::write(folder.path().join("configuration"), text.replace("ADDRESS", &address.to_string()))
            .unwrap();
        let mut command = command(folder.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|e| panic!("{command:?}: {e}"));
        eventually("the server", || TcpStream::connect(address).is_ok());
        Self { child, _folder: folder, address }
    }

    fn haproxy(text: &str) -> Self {
        let defaults =
            "defaults\n mode tcp\n timeout connect 10s\n timeout client 10s\n timeout server 10s\n";
        Self::start(&format!("{defaults}{text}"), |folder| {
            let mut command = Command::new("haproxy");
            command.arg("-db").arg("-f").arg(folder.join("configuration"));
            command
        })
    }

    /// With this server in its configuration.
    pub(crate) fn nginx(server: &str) -> Self {
        let text = format!(
            "daemon off; user root; worker_processes 1; error_log error.log; pid nginx.pid; events {{}}\n\
             http {{ access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; \
             uwsgi_temp_path t4; scgi_temp_path t5; server {{ {server} }} }}\n"
        );
        Self::start(&text, |folder| {
            let mut command = Command::new("nginx");
            command.arg("-p").arg(folder).args(["-c", "configuration", "-e", "error.log"]);
            command
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its own workers end with it.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

fn curl(arguments: &[&str]) -> String {
    let out = Command::new("curl").args(["-sS", "--max-time", "30"]).args(arguments).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn haproxy_before_the_front_end() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], &listener("127.0.0.1"));
    for send in ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options unique-id,crc32c"] {
        let haproxy = Peer::haproxy(&format!(
            "listen l\n bind ADDRESS\n unique-id-format abc\n server s {} {send} source 127.0.0.1\n",
            front_end.address(2)
        ));
        let mut client = from([127, 0, 0, 77], haproxy.address);
        assert_eq!(client.get("/one").status(), 200, "{send}");
        assert_eq!(client.get("/two").status(), 200);
        let seen = origin.take();
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|r| r.one("x-forwarded-for") == Some("127.0.0.77")), "{send}: {seen:?}");
    }
}

#[test]
fn curl_sends_it_before_plain_text_tls_and_http2() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let front_end = FrontEnd::new(
        &[origin.address],
        &format!(
            "{}{}tls = true\n[[certificate]]\nchain = {:?}\nkey = {:?}\n",
            listener("127.0.0.1"),
            listener("127.0.0.1").replace("0.0.3", "0.0.5"),
            site.chain,
            site.key
        ),
    );
    let (plain, secure) = (front_end.address(2), front_end.address(3));
    let url = format!("http://{plain}/plain");
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        assert_eq!(curl(&["--haproxy-protocol", version, &url]), "GET /plain\n");
    }
    let (port, ca) = (secure.port(), authority.file().display().to_string());
    let (url, resolve) =
        (format!("https://site.example:{port}/secure"), format!("site.example:{port}:{}", secure.ip()));
    for version in ["--http1.1", "--http2"] {
        let secured = ["--haproxy-protocol", version, "--cacert", &ca, "--resolve", &resolve, &url];
        assert_eq!(curl(&secured), "GET /secure\n");
    }
    assert!(origin.take().iter().all(|r| r.one("x-forwarded-for") == Some("127.0.0.1")));
    let without = Command::new("curl").args(["-s", "--max-time", "30", &format!("http://{plain}/")]).output();
    assert!(!without.unwrap().status.success());
}

#[test]
fn nginx_behind_the_front_end_with_and_without_tls() {
    let authority = TestAuthority::new();
    let app = authority.issue("app", &["app.internal"]);
    let answers = "location / { return 200 \"$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_port\"; }";
    let plain = Peer::nginx(&format!("listen ADDRESS proxy_protocol; {answers}"));
    let secure = Peer::nginx(&format!(
        "listen ADDRESS ssl proxy_protocol; ssl_certificate {}; ssl_certificate_key {}; {answers}",
        app.chain.display(),
        app.key.display()
    ));
    for version in ["v1", "v2"] {
        for (address, tls) in
            [(plain.address, ""), (secure.address, "tls = true\ntls_name = \"app.internal\"\n")]
        {
            let ca = if tls.is_empty() {
                String::new()
            } else {
                format!("[backend_tls]\nauthorities = {:?}\n", authority.file())
            };
            // With checks, which nginx takes as well.
            let front_end = FrontEnd::watching(
                "interval = \"50ms\"\nfall = 1",
                &format!("[[backend]]\naddress = \"{address}\"\nproxy_protocol = \"{version}\"\n{tls}{ca}"),
            );
            let mut client = front_end.client();
            let (own, to) = (client.stream.local_addr().unwrap(), front_end.address(0));
            for _ in 0..3 {
                let body = client.get("/").body;
                let expected = format!("127.0.0.1 {} {}", own.port(), to.port());
                assert_eq!(String::from_utf8_lossy(&body), expected, "{version} {tls}");
            }
        }
    }
}

#[test]
fn haproxy_behind_the_front_end() {
    let haproxy = Peer::haproxy(
        "listen l\n mode http\n bind ADDRESS accept-proxy\n http-request return status 200 content-type text/plain \
         lf-string %[src]:%[src_port]\n",
    );
    for version in ["v1", "v2"] {
        let front_end = FrontEnd::from_text(&format!(
            "[[backend]]\naddress = \"{}\"\nproxy_protocol = \"{version}\"\n",
            haproxy.address
        ));
        let mut client = front_end.client();
        let own = client.stream.local_addr().unwrap();
        assert_eq!(String::from_utf8_lossy(&client.get("/").body), own.to_string(), "{version}");
    }
}
