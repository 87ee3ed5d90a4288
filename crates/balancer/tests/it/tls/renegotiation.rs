//! A client that wants to negotiate anew.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use plimsoll_testkit::TestAuthority;

use super::{SECURE, before, tables};
use crate::common::FrontEnd;
use crate::common::origin::Origin;

/// `openssl` ends with the word that nothing is negotiated anew; it would wait for it as long as it does not come.
#[test]
fn who_wants_to_negotiate_anew_hears_at_once_that_it_cannot() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let patient = "[timeouts]\nhead = \"1h\"\n";
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&site], patient)));
    let address = front_end.address(SECURE).to_string();
    let mut command = Command::new("timeout");
    command.args([
        "60",
        "openssl",
        "s_client",
        "-tls1_2",
        "-connect",
        &address,
        "-servername",
        "site.example",
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut client = command.spawn().expect("openssl is installed");
    let mut input = client.stdin.take().unwrap();
    input.write_all(b"R\n").unwrap();
    let mut said = String::new();
    client.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    client.wait().unwrap();
    assert!(said.contains("no renegotiation"), "{said}");
    drop(input);
}
