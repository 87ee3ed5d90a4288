//! `balance` under TLS, before clients that others wrote: curl and openssl.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_testkit::{IssuedFiles, OwnLoopback, TestAuthority, eventually};

use super::processes::{Origin, Process};
use crate::common::{plimsoll, text};

/// A front-end whose files are an authority's.
struct Secured {
    authority: TestAuthority,
    own: OwnLoopback,
    origin: Origin,
}

impl Secured {
    fn new() -> Self {
        let (authority, own, origin) = (TestAuthority::new(), OwnLoopback::new(), Origin::start("b0", &[]));
        Self { authority, own, origin }
    }

    fn issue(&self, name: &str) -> IssuedFiles {
        self.authority.issue(name, &["site.example", "www.site.example"])
    }

    /// Writes the configuration with the certificate `site` and these further lines; where it is.
    fn configure(&self, more: &str) -> String {
        let (listener, plain, admin) = (self.own.at(8443), self.own.at(8080), self.own.at(9090));
        let config = format!(
            "[[listener]]\naddress = \"{listener}\"\ntls = true\n[[listener]]\naddress = \"{plain}\"\nredirect = \"https:8443\"\n\
             [[certificate]]\nchain = \"site.pem\"\nkey = \"site.key\"\n[admin]\naddress = \"{admin}\"\n\
             [[backend]]\nname = \"b0\"\naddress = \"{}\"\n{more}",
            self.origin.address
        );
        let path = self.authority.path("plimsoll.toml");
        std::fs::write(&path, config).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn balance(&self, config: &str) -> Process {
        let process = Process::start(&["balance", "--config", config]);
        process.address("listening on https://");
        process
    }

    /// curl, which finds the site here and trusts the authority.
    fn curl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "30", "--cacert"]).arg(self.authority.file());
        for (port, at) in [(8443, self.own.at(8443)), (8080, self.own.at(8080))] {
            command.args(["--resolve", &format!("site.example:{port}:{}", at.ip())]);
        }
        command.args(args).stdin(Stdio::null()).output().unwrap()
    }

    /// The serial number of the certificate that a client gets now, as openssl tells.
    fn serial(&self) -> String {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-servername", "site.example", "-connect", &self.own.at(8443).to_string()]);
        let shown = client.stdin(Stdio::null()).output().unwrap();
        assert!(shown.status.success(), "{}", text(&shown.stderr));
        let file = self.authority.path("seen.pem");
        std::fs::write(&file, &shown.stdout).unwrap();
        serial_of(&file)
    }

    fn metrics(&self) -> String {
        let shown = self.curl(&[&format!("http://{}/metrics", self.own.at(9090))]);
        text(&shown.stdout)
    }
}

fn serial_of(file: &Path) -> String {
    let read = Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(file).output().unwrap();
    assert!(read.status.success(), "{}", text(&read.stderr));
    text(&read.stdout)
}

#[test]
fn curl_and_openssl_are_served() {
    let secured = Secured::new();
    let _ = secured.issue("site");
    let mut process = secured.balance(&secured.configure(""));
    for version in [["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3", "--tls-max", "1.3"]] {
        let answer = secured.curl(&[&version[..], &["https://site.example:8443/a"]].concat());
        assert!(answer.status.success() && answer.stdout.len() == 1_000, "{}", text(&answer.stderr));
    }
    assert!(
        !secured.curl(&["--tls-max", "1.1", "--tlsv1.0", "https://site.example:8443/a"]).status.success()
    );
    // From plain HTTP curl comes to the same target.
    let answer = secured.curl(&["--location", "--dump-header", "-", "http://site.example:8080/a?b=c"]);
    let shown = String::from_utf8_lossy(&answer.stdout);
    assert!(
        shown.contains("HTTP/1.1 308 ") && shown.contains("https://site.example:8443/a?b=c\r\n"),
        "{shown}"
    );
    assert!(shown.contains("HTTP/2 200 "), "{shown}");
    let session = secured.authority.path("session");
    let visit = |how: &str| {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-tls1_2", "-connect", &secured.own.at(8443).to_string(), how]);
        let shown = client.arg(&session).stdin(Stdio::null()).output().unwrap();
        text(&shown.stdout)
    };
    assert!(visit("-sess_out").contains("New, TLSv1.2"));
    let again = visit("-sess_in");
    assert!(again.contains("Reused, TLSv1.2"), "{again}");
    let metrics = secured.metrics();
    assert!(metrics.contains("plimsoll_tls_handshakes_total{outcome=\"resumed\"} 1\n"), "{metrics}");
    assert!(metrics.contains("plimsoll_tls_handshakes_total{outcome=\"failed\"} 1\n"), "{metrics}");
    process.signal("-TERM");
    assert_eq!(process.wait(), Some(0), "{}", process.said());
}

#[test]
fn a_certificate_that_is_replaced_is_served_without_being_told() {
    let secured = Secured::new();
    let first = secured.issue("site");
    let process = secured.balance(&secured.configure(""));
    assert_eq!(secured.serial(), serial_of(&first.chain));
    // As programs do that renew certificates: written beside, then renamed, one after the other.
    let renewed = secured.issue("renewed");
    std::fs::rename(&renewed.chain, &first.chain).unwrap();
    std::fs::rename(&renewed.key, &first.key).unwrap();
    let wanted = serial_of(&first.chain);
    eventually("the renewed certificate", || secured.serial() == wanted);
    // One that does not fit changes nothing, and says why.
    let other = secured.issue("other");
    std::fs::rename(&other.key, &first.key).unwrap();
    process.wait_for("is not the key of the certificate in", 0);
    assert_eq!(secured.serial(), wanted);
    std::fs::rename(&other.chain, &first.chain).unwrap();
    let wanted = serial_of(&first.chain);
    eventually("the third certificate", || secured.serial() == wanted);
}

#[test]
fn check_says_what_is_wrong_with_certificates() {
    let secured = Secured::new();
    let files = secured.issue("site");
    let config = secured.configure("");
    let check = || plimsoll(&["check", "--config", &config]);
    let good = check();
    let shown = text(&good.stdout);
    assert!(good.status.success(), "{}", text(&good.stderr));
    assert!(shown.contains(" (TLS), ") && shown.contains("sends clients to HTTPS at port 8443"), "{shown}");
    assert!(shown.contains(": site.example, www.site.example; until "), "{shown}");
    assert!(!shown.contains("warning"), "{shown}");
    // Without its chain.
    let chain = std::fs::read_to_string(&files.chain).unwrap();
    let end = "-----END CERTIFICATE-----\n";
    std::fs::write(&files.chain, &chain[..chain.find(end).unwrap() + end.len()]).unwrap();
    let shown = text(&check().stdout);
    assert!(shown.contains("lacks its chain: the certificate of CN=authority of a test"), "{shown}");
    let _ = secured.authority.issue_ended("site", &["site.example"]);
    let shown = text(&check().stdout);
    assert!(shown.contains(" ended at 2021-01-01 00:00 UTC, "), "{shown}");
    let other = secured.issue("other");
    std::fs::copy(&other.key, &files.key).unwrap();
    let bad = check();
    assert_eq!(bad.status.code(), Some(1));
    let shown = text(&bad.stderr);
    assert!(
        shown.contains("certificate[0].key: ") && shown.contains("is not the key of the certificate in"),
        "{shown}"
    );
}
