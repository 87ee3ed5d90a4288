//! Loads that servers of others tell, by HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};

use plimsoll_agent::load::{ApiAccess, ApiAddress, LoadConfig, LoadRole, LoadService, PreparedLoad};
use plimsoll_testkit::{PATIENCE, eventually};
use plimsoll_wire::load::LoadGauge;

use super::asker::Asker;
use super::{key, loopback};

fn service(api: ApiAddress) -> LoadService {
    let mut config = LoadConfig::new(loopback(), key(), LoadRole::Answer(LoadGauge::new()));
    config.api = Some(api);
    PreparedLoad::new(config).unwrap().start().unwrap()
}

fn exchange(stream: &mut (impl Read + Write), what: &str, body: &str) -> String {
    let length = body.len();
    let request =
        format!("{what} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn call(service: &LoadService, what: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(service.api_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let answer = exchange(&mut stream, what, body);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    format!("{} {body}", head.split(' ').nth(1).unwrap())
}

#[test]
fn numbers_differences_and_expiry() {
    let service = service(ApiAddress::Loopback(loopback()));
    let mut asker = Asker::of(service.address());
    assert_eq!(call(&service, "PUT /load/php?ttl_s=60", "7"), "200 7\n");
    assert_eq!(call(&service, "POST /load/db?ttl_s=60", "+2"), "200 2\n");
    assert_eq!(call(&service, "POST /load/db?ttl_s=60", "-1"), "200 1\n");
    assert_eq!(asker.load(), (8, 0));
    let shown = call(&service, "GET /load", "");
    let shown: serde_json::Value = serde_json::from_str(shown.strip_prefix("200 ").unwrap()).unwrap();
    assert_eq!(shown["load"], 8);
    assert_eq!(shown["told"]["php"]["load"], 7);
    assert_eq!((&shown["answered"], &shown["refused"]["forged"]), (&1.into(), &0.into()));
    let metrics = call(&service, "GET /metrics", "");
    assert!(metrics.contains("\nplimsoll_load 8\n"), "{metrics}");
    assert!(metrics.contains("plimsoll_load_refused_total{reason=\"replayed\"} 0"), "{metrics}");
    // One that says no more is forgotten.
    assert_eq!(call(&service, "PUT /load/php?ttl_s=1", "5"), "200 5\n");
    eventually("a load expires", || asker.load() == (1, 0));
    assert_eq!(call(&service, "DELETE /load/db", ""), "200 0\n");
    assert_eq!(asker.load(), (0, 0));
    service.stop();
}

#[test]
fn what_is_no_load_is_refused_with_a_reason() {
    let service = service(ApiAddress::Loopback(loopback()));
    for (what, body, expected) in [
        ("PUT /load/x", "many", "400 the body is the number"),
        ("PUT /load/x", "-1", "400 the body is the number"),
        ("PUT /load/x", "65536", "400 a load is 65535 at most"),
        ("PUT /load/x?ttl_s=61", "1", "400 give ?ttl_s=N"),
        ("PUT /load/a%20b", "1", "400 a name has"),
        ("POST /load/x", "-1", "409 fewer"),
        ("POST /load/x", "1.5", "400 the body is +1"),
        ("PUT /load/x", &"1".repeat(100), "413 the body is a number"),
        ("DELETE /load/x", "", "404 nobody"),
        ("GET /load/x", "", "405 PUT, POST or DELETE"),
        ("GET /", "", "404 there are"),
    ] {
        let answer = call(&service, what, body);
        assert!(answer.starts_with(expected), "{what} {body}: {answer}");
    }
    assert_eq!(service.status().load, 0);
    service.stop();
}

#[test]
fn by_a_unix_socket_that_an_earlier_agent_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("load.sock");
    for _ in 0..2 {
        // What one that was killed leaves.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let service = service(ApiAddress::Unix(path.clone()));
        let answer = exchange(&mut UnixStream::connect(&path).unwrap(), "PUT /load/go", "3");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(service.status().load, 3);
        service.stop();
        assert!(!path.exists(), "it is removed at the end");
    }
}

#[test]
fn a_unix_socket_is_for_its_owner_or_for_a_group() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("load.sock");
    // The only group that any user may give a file to is one of its own.
    let own = std::fs::metadata(directory.path()).unwrap().gid();
    for (access, mode) in [(ApiAccess::Owner, 0o600), (ApiAccess::Group(own), 0o660)] {
        let mut config = LoadConfig::new(loopback(), key(), LoadRole::Answer(LoadGauge::new()));
        (config.api, config.api_access) = (Some(ApiAddress::Unix(path.clone())), access);
        let service = PreparedLoad::new(config).unwrap().start().unwrap();
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((found.permissions().mode() & 0o777, found.gid()), (mode, own), "{access:?}");
        service.stop();
    }
}

#[test]
fn connections_that_say_nothing_make_room_for_one_that_does() {
    let service = service(ApiAddress::Loopback(loopback()));
    let address = service.api_address().unwrap();
    let mut first = TcpStream::connect(address).unwrap();
    let ask = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"PUT /load/a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n3").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    };
    ask(&mut first);
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    // A writer is served at once, and stays while others are idle for longer.
    assert_eq!(call(&service, "PUT /load/b", "4"), "200 4\n");
    let mut oldest = &idle[0];
    oldest.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(matches!(oldest.read(&mut [0]), Ok(0) | Err(_)), "it was closed");
    drop(idle);
    service.stop();
}

#[test]
fn only_this_machine_may_tell() {
    let refused = |text: &str| text.parse::<ApiAddress>().unwrap_err();
    assert!(refused("0.0.0.0:7402").contains("loopback"));
    assert!(refused("load").contains("unix:PATH"));
    assert!("[::1]:0".parse::<ApiAddress>().is_ok() && "unix:/run/x".parse::<ApiAddress>().is_ok());
}
