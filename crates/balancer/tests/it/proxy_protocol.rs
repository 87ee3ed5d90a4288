//! The PROXY protocol: from proxies before the front-end, and to back-ends.

pub(crate) mod peers;

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{PATIENCE, eventually};
use socket2::{Domain, SockAddr, Socket, Type};

use super::admin::rig::Rig;
use super::common::origin::{Origin, echo};
use super::common::{Client, FrontEnd, get};

/// A listener with this key, as the third of a front-end.
fn listener(trusted: &str) -> String {
    format!("[[listener]]\naddress = \"127.0.0.3:0\"\nproxy_protocol = [\"{trusted}\"]\n")
}

/// A client's connection from this address.
fn from(source: [u8; 4], to: SocketAddr) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SockAddr::from(SocketAddr::from((source, 0)))).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Client::of(stream)
}

/// A header of version 2 with what HAProxy may add.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, family], &length, rest].concat()
}

const V4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 7, 0x30, 0x39, 0, 80];

#[test]
fn a_trusted_proxy_says_who_the_client_is() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], &listener("127.0.0.2"));
    let v6 = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[1], &[0; 15], &[2, 0, 1, 0, 2]].concat();
    let tlvs = [&V4[..], &[3, 0, 4, 1, 2, 3, 4], &[4, 2, 0], &[0; 512]].concat();
    for (header, client) in [
        (b"PROXY TCP4 192.0.2.1 198.51.100.7 12345 80\r\n".to_vec(), "192.0.2.1"),
        (b"PROXY TCP6 2001:db8::1 ::2 1 2\r\n".to_vec(), "2001:db8::1"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.2"),
        (v2(0x21, 0x11, &V4), "192.0.2.1"),
        (v2(0x21, 0x11, &tlvs), "192.0.2.1"),
        (v2(0x21, 0x21, &v6), "2001:db8::1"),
        (v2(0x20, 0x00, &[]), "127.0.0.2"),
    ] {
        // At once with the request, and byte by byte, each of which the front-end sees alone or not.
        for piece in [usize::MAX, 1] {
            let mut proxy = from([127, 0, 0, 2], front_end.address(2));
            let all = [&header[..], get("/").as_bytes()].concat();
            for piece in all.chunks(piece.min(all.len())) {
                assert!(proxy.send(piece));
            }
            assert_eq!(proxy.response("GET").status(), 200);
            assert_eq!(proxy.get("/second").status(), 200, "only the connection begins so");
            for request in origin.take() {
                assert_eq!(request.one("x-forwarded-for"), Some(client));
            }
        }
    }
}

#[test]
fn without_a_header_a_proxy_gets_nothing_and_of_others_none_is_taken() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], &listener("127.0.0.2"));
    for no_header in [
        get("/").into_bytes(),
        b"PROXY TCP4 192.0.2.1 198.51.100.7 12345\r\n".to_vec(),
        v2(0x21, 0x31, &[0; 216]),
        v2(0x21, 0x11, &V4[..8]),
        v2(0x21, 0x11, &[0; 4081]),
        vec![b'x'; 4096],
    ] {
        let mut proxy = from([127, 0, 0, 2], front_end.address(2));
        proxy.send(&no_header);
        assert!(proxy.ends(), "{}", no_header.escape_ascii());
    }
    let mut stranger = from([127, 0, 0, 9], front_end.address(2));
    stranger.send("PROXY TCP4 192.0.2.1 198.51.100.7 1 2\r\n");
    assert_eq!(stranger.response_or_end("GET").status(), 400);
    assert!(origin.take().is_empty());
    assert_eq!(from([127, 0, 0, 9], front_end.address(2)).get("/").status(), 200);
    assert_eq!(front_end.client().get("/").status(), 200, "another listener has no such key");
    let seen: Vec<_> = origin.take().iter().map(|r| r.one("x-forwarded-for").unwrap().to_owned()).collect();
    assert_eq!(seen, ["127.0.0.9", "127.0.0.1"]);
}

#[test]
fn a_refused_header_counts_and_logs_and_limits_have_the_client_that_was_told() {
    let origin = Origin::echo();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let rig = Rig::from_text(&format!(
        "workers = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = [\"127.0.0.1\"]\n\
         [forwarded]\ntrusted = [\"192.0.2.9\"]\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[backend]]\naddress = \"{}\"\n[health]\nprobe = \"none\"\n[access_log]\nfile = {log:?}\n\
         [[route]]\nrate = \"1/h\"\n",
        origin.address
    ));
    let ask = |client: &str, more: &str| {
        let mut proxy = rig.client();
        proxy
            .send(format!("PROXY TCP4 {client} 198.51.100.7 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n{more}\r\n"));
        proxy.response("GET").status()
    };
    assert_eq!([ask("192.0.2.1", ""), ask("192.0.2.1", ""), ask("192.0.2.2", "")], [200, 429, 200]);
    // One whose fields are trusted, as the header says.
    let behind = "X-Forwarded-For: 203.0.113.5\r\n";
    assert_eq!([ask("192.0.2.9", behind), ask("192.0.2.9", behind)], [200, 429]);
    assert_eq!(origin.take().last().unwrap().one("x-forwarded-for"), Some("203.0.113.5, 192.0.2.9"));
    let mut bad = rig.client();
    bad.send("GET / HTTP/1.1\r\n\r\n");
    assert!(bad.ends());
    rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "reason=\"proxy_header\"") == 1.0);
    rig.stop();
    let lines = std::fs::read_to_string(log).unwrap();
    let clients: Vec<_> = lines.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(clients, ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.9", "192.0.2.9"]);
}

/// An origin that is told whose connections requests come on, and keeps the first line of each of its connections.
fn told() -> (Origin, Arc<Mutex<Vec<String>>>) {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&lines);
    let origin = Origin::scripted(move |conn| {
        let Some(line) = conn.line() else { return };
        kept.lock().unwrap().push(line);
        while let Some(request) = conn.request() {
            conn.write(&echo(&request));
        }
    });
    (origin, lines)
}

fn before_told(origin: &Origin, more: &str) -> FrontEnd {
    FrontEnd::from_text(&format!(
        "[[backend]]\naddress = \"{}\"\nproxy_protocol = \"v1\"\n{more}",
        origin.address
    ))
}

fn ends(client: &Client) -> String {
    let (source, destination) = (client.stream.local_addr().unwrap(), client.stream.peer_addr().unwrap());
    let (ip, to) = (source.ip(), destination.ip());
    let family = if ip.is_ipv4() { "TCP4" } else { "TCP6" };
    format!("PROXY {family} {ip} {to} {} {}", source.port(), destination.port())
}

#[test]
fn a_back_end_is_told_the_client_and_no_connection_has_two() {
    let (origin, lines) = told();
    let front_end = before_told(&origin, "");
    let mut clients = [front_end.client(), front_end.client(), front_end.client_v6()];
    for index in [0, 1, 0, 2, 1] {
        assert_eq!(clients[index].get("/").status(), 200);
    }
    assert_eq!(*lines.lock().unwrap(), clients.each_ref().map(ends));
    drop(clients);
    // What was kept for a client goes with it.
    origin.wait_until_closed();
}

#[test]
fn connections_kept_for_others_make_room_at_the_limit() {
    let (origin, lines) = told();
    let front_end = before_told(&origin, "max_connections = 1\n");
    let mut clients: Vec<_> = (0..4).map(|_| front_end.client()).collect();
    for _ in 0..2 {
        for client in &mut clients {
            assert_eq!(client.get("/").status(), 200);
        }
    }
    let all: Vec<_> = clients.iter().chain(&clients).map(ends).collect();
    assert_eq!(*lines.lock().unwrap(), all);
}

#[test]
fn what_one_proxy_tells_the_next_one_is_told() {
    let (origin, lines) = told();
    let more = "[[listener]]\naddress = \"127.0.0.3:0\"\nproxy_protocol = [\"127.0.0.0/8\"]\n";
    let inner = before_told(&origin, more);
    let outer = FrontEnd::from_text(&format!(
        "[[backend]]\naddress = \"{}\"\nproxy_protocol = \"v2\"\n",
        inner.address(2)
    ));
    let mut client = outer.client();
    assert_eq!(client.get("/").status(), 200);
    let request = origin.take().remove(0);
    assert_eq!(request.one("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(*lines.lock().unwrap(), [ends(&client)]);
}

#[test]
fn a_proxy_that_says_nothing_counts_and_one_that_goes_does_not() {
    let origin = Origin::echo();
    let rig = Rig::from_text(&format!(
        "workers = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = [\"127.0.0.1\"]\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"{}\"\n[health]\nprobe = \"none\"\n\
         [timeouts]\nhead = \"300ms\"\n",
        origin.address
    ));
    drop(rig.client());
    let mut begun = rig.client();
    begun.send("PROXY TCP4 ");
    assert!(begun.ends() && rig.client().ends());
    rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "reason=\"proxy_header\"") == 2.0);
}

#[test]
fn a_connection_from_before_a_reload_is_told_with_both_ends() {
    let (plain, (origin, lines)) = (Origin::echo(), told());
    let anywhere = "[[listener]]\naddress = \"0.0.0.0:0\"\n";
    let front_end = FrontEnd::new(&[plain.address], anywhere);
    let mut client = Client::connect(([127, 0, 0, 1], front_end.address(2).port()).into());
    assert_eq!(client.get("/").status(), 200);
    front_end.reload(&format!(
        "[[backend]]\naddress = \"{}\"\nproxy_protocol = \"v1\"\n{anywhere}",
        origin.address
    ));
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(*lines.lock().unwrap(), [ends(&client)]);
}

#[test]
fn checks_say_that_there_is_no_client() {
    let (origin, lines) = told();
    let front_end = FrontEnd::watching(
        "interval = \"100ms\"",
        &format!("[[backend]]\naddress = \"{}\"\nproxy_protocol = \"v1\"\n", origin.address),
    );
    eventually("a check", || lines.lock().unwrap().iter().any(|line| line == "PROXY UNKNOWN"));
    assert_eq!(front_end.client().get("/").status(), 200);
}
