//! Who may ask what, and what is refused.

use std::io::Read;

use plimsoll_testkit::uninterrupted;

use super::rig::{Rig, text};
use crate::common::Client;
use crate::common::origin::Origin;

#[test]
fn every_path_and_method() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "");
    let index = rig.get("/");
    assert_eq!(index.status, 200);
    for path in [
        "/metrics",
        "/healthz",
        "/readyz",
        "/backends",
        "/backends/b0",
        "/policy",
        "/policy/tables",
        "/decisions",
        "/why?target=/",
    ] {
        assert_eq!(rig.get(path).status, 200, "{path}");
        let head = rig.call("HEAD", path, &[], "");
        assert_eq!((head.status, &*head.body), (200, ""), "{path}");
        let post = rig.call("POST", path, &[], "");
        post.assert_error(405);
        assert_eq!(post.field("allow"), "GET, HEAD", "{path}");
        let listed = path.split('?').next().unwrap().replace("b0", "NAME");
        assert!(index.body.contains(&listed), "{path}");
    }
    for (path, allow) in [
        ("/backends/b0/weight", "PUT"),
        ("/backends/b0/drain", "POST"),
        ("/backends/b0/undrain", "POST"),
        ("/decisions/flush", "POST"),
    ] {
        let get = rig.get(path);
        get.assert_error(405);
        assert_eq!(get.field("allow"), allow, "{path}");
    }
    for path in ["/nothing", "/backends/b0/else", "/metrics/", "/backends/b1"] {
        rig.get(path).assert_error(404);
    }
    assert_eq!(rig.get("/healthz").field("cache-control"), "no-store");
}

#[test]
fn a_token_opens_everything_but_health() {
    let origin = Origin::echo();
    let tables = |token: &str| format!("[admin]\naddress = \"127.0.0.1:0\"\ntoken = \"{token}\"\n");
    let rig = Rig::new(&[&origin], &tables("first-secret-token"));
    let with =
        |token: &str, path: &str| rig.call("GET", path, &[("Authorization", &format!("Bearer {token}"))], "");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(rig.get(path).status, 200, "{path}");
    }
    for path in ["/", "/metrics", "/backends", "/policy", "/why?target=/", "/decisions", "/nothing"] {
        let refused = rig.get(path);
        refused.assert_error(401);
        assert_eq!(refused.field("www-authenticate"), "Bearer realm=\"plimsoll\"");
        with("first-secret-tokens", path).assert_error(401);
    }
    rig.call("POST", "/backends/b0/drain", &[], "").assert_error(401);
    assert_eq!(with("first-secret-token", "/backends/b0").json()["drained"], false);
    assert_eq!(with("first-secret-token", "/metrics").status, 200);
    // With a token, any name that leads here will do.
    let named = [("Host", "front-end.example"), ("Authorization", "Bearer first-secret-token")];
    assert_eq!(rig.call("GET", "/policy", &named, "").status, 200);

    rig.reload(&text(&[(&origin, "")], &tables("second-secret-token")));
    with("first-secret-token", "/metrics").assert_error(401);
    assert_eq!(with("second-secret-token", "/metrics").status, 200);

    // Switched off, the address stays until a restart, but is of no use to anyone.
    rig.reload(&text(&[(&origin, "")], "[admin]\nenabled = false\n"));
    with("second-secret-token", "/metrics").assert_error(403);
    rig.get("/backends").assert_error(403);
    assert_eq!(rig.get("/healthz").status, 200);
}

#[test]
fn browsers_are_no_way_in() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "");
    for host in ["evil.example", "evil.example:80", "192.0.2.7", ""] {
        rig.call("GET", "/backends", &[("Host", host)], "").assert_error(403);
    }
    assert_eq!(rig.call("GET", "/backends", &[("Host", "localhost:1")], "").status, 200);
    let own = format!("http://{}", rig.admin);
    for site in ["http://evil.example", "null", "http://localhost:3000"] {
        rig.call("POST", "/backends/b0/drain", &[("Origin", site)], "").assert_error(403);
        rig.call("PUT", "/backends/b0/weight", &[("Origin", site)], "0").assert_error(403);
    }
    let state = rig.backend("b0");
    assert_eq!((&state["drained"], &state["weight"]), (&false.into(), &1.0.into()));
    assert_eq!(rig.call("POST", "/backends/b0/drain", &[("Origin", &own)], "").status, 200);
}

#[test]
fn bounded_in_bytes() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "");
    let body = "0".repeat(70_000);
    let refused = rig.call("PUT", "/backends/b0/weight", &[], &body);
    refused.assert_error(413);
    let long = "a".repeat(40_000);
    assert!([400, 414, 431].contains(&rig.get(&format!("/{long}")).status));
}

#[test]
fn connections_without_a_request_make_room() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "");
    let mut kept = Client::connect(rig.admin);
    assert_eq!(kept.get("/healthz").status(), 200);
    let silent: Vec<Client> = (0..80).map(|_| Client::connect(rig.admin)).collect();
    // There is no room for one more until the first ones are closed.
    assert_eq!(rig.get("/healthz").status, 200);
    assert!(kept.ends());
    for mut client in silent {
        assert_eq!(uninterrupted(|| client.stream.read(&mut [0; 1])).unwrap(), 0);
    }
}
