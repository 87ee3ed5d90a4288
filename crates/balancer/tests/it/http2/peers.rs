//! With curl and nghttp as clients.

use std::process::Command;

use plimsoll_testkit::TestAuthority;

use super::mirror;
use crate::common::origin::Origin;
use crate::common::{FrontEnd, noise};

fn output(program: &str, arguments: &[&str]) -> Vec<u8> {
    let out = Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

#[test]
fn curl_speaks_it_with_and_without_tls() {
    let (authority, origin) = (TestAuthority::new(), mirror());
    let site = authority.issue("site", &["site.example"]);
    let text = format!(
        "[[backend]]\naddress = \"{}\"\n[[listener]]\naddress = \"127.0.0.2:0\"\ntls = true\n\
         [[certificate]]\nchain = \"{}\"\nkey = \"{}\"\n",
        origin.address,
        site.chain.display(),
        site.key.display()
    );
    let front_end = FrontEnd::from_text(&text);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    let body = noise(300_000, 7);
    std::fs::write(&file, &body).unwrap();
    let body_at = format!("@{}", file.display());
    let (plain, secure) = (front_end.address(0), front_end.address(2).port());
    let resolve = format!("site.example:{secure}:127.0.0.2");
    let ca = authority.file().display().to_string();
    let plain_url = format!("http://{plain}/up");
    let secure_url = format!("https://site.example:{secure}/up");
    let common = ["-sS", "-w", "%{http_version}", "--data-binary", &body_at];
    let got = output("curl", &[&common[..], &["--http2-prior-knowledge", &plain_url]].concat());
    assert!(got == [&body[..], b"2"].concat());
    let secured = ["--cacert", &ca, "--resolve", &resolve, &secure_url];
    assert!(output("curl", &[&common[..], &secured].concat()) == [&body[..], b"2"].concat());
    let older = [&common[..], &["--http1.1"], &secured].concat();
    assert!(output("curl", &older) == [&body[..], b"1.1"].concat());
}

/// Interim answers wait for a client however slowly it takes them: what is beyond 16 KiB of them is left out, but for the word that it may
/// send its body.
#[test]
fn interim_answers_are_bounded() {
    let origin = Origin::scripted(|conn| {
        while conn.request().is_some() {
            let pad = "p".repeat(10_000);
            for status in ["100 Continue", "100 Continue", "103 Early Hints"] {
                conn.write(format!("HTTP/1.1 {status}\r\nX-Pad: {pad}\r\n\r\n").as_bytes());
            }
            conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let url = format!("http://{}/", front_end.address(0));
    let heard = output("curl", &["-sS", "--max-time", "30", "-i", "--http2-prior-knowledge", &url]);
    let heard = String::from_utf8(heard).unwrap();
    let count = |text: &str| heard.matches(text).count();
    assert_eq!(
        [count("HTTP/2 100"), count("x-pad: "), count("HTTP/2 103"), count("HTTP/2 200")],
        [2, 1, 0, 1]
    );
}
