//! Sizes that are learned from responses, and the tables of a policy that distributes by them.

use crate::admin::rig::Rig;
use crate::common::origin::Origin;

/// Answers by what the path says.
fn origin() -> Origin {
    Origin::answering(|request| {
        let body = |len: usize| "x".repeat(len);
        match request.target().split('?').next().unwrap() {
            "/large" => format!("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{}", body(if request.method() == "HEAD" { 0 } else { 5000 })),
            "/chunked" => format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{}\r\n0\r\n\r\n", body(1000)),
            "/same" => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
            "/part" => format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/100\r\nContent-Length: 10\r\n\r\n{}", body(10)),
            "/error" => format!("HTTP/1.1 500 Oops\r\nContent-Length: 20\r\n\r\n{}", body(20)),
            _ => format!("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", body(50)),
        }
        .into_bytes()
    })
}

fn known(rig: &Rig, target: &str) -> Option<u64> {
    rig.metrics_once(|m| m.get("plimsoll_load") == 0.0);
    rig.get(&format!("/why?target={target}")).json()["known_size_bytes"].as_u64()
}

#[test]
fn only_whole_documents_tell_their_size() {
    let origins = [origin()];
    let rig = Rig::new(&[&origins[0]], "[target]\ndynamic = [\"/cgi-bin/\"]\n");
    let mut client = rig.client();
    for (method, path, expected) in [
        ("HEAD", "/large", None),
        ("GET", "/large", Some(5000)),
        ("HEAD", "/large", Some(5000)),
        ("GET", "/chunked", Some(1000)),
        ("GET", "/same", None),
        ("GET", "/part", None),
        ("GET", "/error", None),
        ("POST", "/small", None),
        ("GET", "/small", Some(50)),
        ("POST", "/small", Some(50)),
    ] {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(client.response(method).status() >= 200);
        assert_eq!(known(&rig, path), expected, "{method} {path}");
    }
}

#[test]
fn the_tables_show_who_has_which_sizes() {
    let origins = [origin(), origin()];
    let tables = "[policy]\nname = \"adaptload\"\nbatch = 64\n[target]\ndynamic = [\"/cgi-bin/\", \"?\"]\n";
    let rig = Rig::new(&[&origins[0], &origins[1]], tables);
    let empty = rig.get("/policy/tables").json();
    assert_eq!(
        (&empty["policy"], &empty["tables"][0]["rows"]),
        (&"adaptload".into(), &serde_json::json!([]))
    );
    // 50 bytes a hundred times, and 5,000 once.
    for round in 0..3 {
        rig.get_times(100, "/small");
        rig.get_times(1, "/large");
        rig.get_times(2, "/cgi-bin/a");
        rig.get_times(1, &format!("/small?{round}"));
    }
    rig.metrics_once(|m| m.get("plimsoll_load") == 0.0);
    let policy = rig.get("/policy").json();
    // The first of each has no size yet; nine were computed.
    assert_eq!(
        (&policy["stats"]["sized_requests"], &policy["stats"]["unsized_requests"]),
        (&301.0.into(), &11.0.into())
    );
    let shown = rig.get("/policy/tables").json();
    let named = |name: &str| {
        let tables = shown["tables"].as_array().unwrap();
        tables.iter().find(|table| table["name"] == name).unwrap().clone()
    };
    let boundaries = named("boundaries");
    let rows = boundaries["rows"].as_array().unwrap();
    assert_eq!((&rows[0][0], &rows[1][0]), (&"b0".into(), &"b1".into()));
    // The last one has no end.
    assert!(rows[0][1].as_u64().is_some() && rows[1][1].is_null(), "{boundaries}");
    assert_eq!(named("histogram")["rows_left_out"], 0);
    assert!(!named("moves")["rows"].as_array().unwrap().is_empty());
}
