//! Back-ends by the name of a service, before a name server of the test's own.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{OwnLoopback, eventually};

use super::names::plimsoll_by;
use super::processes::{Origin, Process, private_directory};

/// The name of the service, and another one that is its alias.
const SERVICE: &str = "_http._tcp.app.internal";
const ALIAS: &str = "_http._tcp.alias.internal";

/// A name server at port 53 of this address, which answers queries of type SRV with these records, with a time to live of a second.
fn serve_names(at: IpAddr, records: &Arc<Mutex<Vec<ServiceRecord>>>) {
    let socket = UdpSocket::bind((at, 53)).unwrap();
    let records = Arc::clone(records);
    // It ends with the test's process.
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let answer = dns_answer(&query[..length], &records.lock().unwrap());
            socket.send_to(&answer, from).unwrap();
        }
    });
}

/// A name server that says by UDP only that its answers are too long for that.
fn serve_names_by_tcp(at: IpAddr, records: Vec<ServiceRecord>) {
    let (socket, listener) = (UdpSocket::bind((at, 53)).unwrap(), TcpListener::bind((at, 53)).unwrap());
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let mut answer = dns_answer(&query[..length], &[]);
            // Truncated.
            answer[2] |= 0x02;
            socket.send_to(&answer, from).unwrap();
        }
    });
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 2];
            while stream.read_exact(&mut length).is_ok() {
                let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut query).unwrap();
                let answer = dns_answer(&query, &records);
                let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
                stream.write_all(&[&length, &answer[..]].concat()).unwrap();
            }
        }
    });
}

/// A name as messages have it.
fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|l| std::iter::once(l.len() as u8).chain(l.bytes()));
    labels.chain([0]).collect()
}

/// A record of type SRV.
#[derive(Clone)]
struct ServiceRecord {
    priority: u16,
    weight: u16,
    port: u16,
    host: &'static str,
}

/// The answer to a query with one question (RFC 1035).
fn dns_answer(query: &[u8], records: &[ServiceRecord]) -> Vec<u8> {
    let name_length = query[12..].iter().position(|&byte| byte == 0).unwrap() + 1;
    let question = &query[12..12 + name_length + 4];
    let is_srv = question[name_length..name_length + 2] == [0, 33];
    let records = if is_srv { records } else { &[] };
    let is_alias = question[..name_length] == encoded(ALIAS);
    let count = u16::try_from(records.len() + usize::from(is_alias)).unwrap().to_be_bytes();
    let mut answer = [&query[..2], &[0x84, 0, 0, 1], &count, &[0, 0, 0, 0], question].concat();
    // Records are of the name that stands here.
    let mut owner = 12;
    if is_alias {
        let target = encoded(SERVICE);
        answer.extend_from_slice(&[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 1, 0, target.len() as u8]);
        owner = answer.len() as u8;
        answer.extend_from_slice(&target);
    }
    for ServiceRecord { priority, weight, port, host } in records {
        let target = encoded(host);
        answer.extend_from_slice(&[0xc0, owner, 0, 33, 0, 1, 0, 0, 0, 1]);
        answer.extend_from_slice(&(6 + target.len() as u16).to_be_bytes());
        for number in [priority, weight, port] {
            answer.extend_from_slice(&number.to_be_bytes());
        }
        answer.extend_from_slice(&target);
    }
    answer
}

#[test]
fn a_service_leads_to_hosts_with_ports_priorities_and_weights() {
    let directory = private_directory();
    let (mut first, second, spare) =
        (Origin::start("first", &[]), Origin::start("second", &[]), Origin::start("spare", &[]));
    let hosts = [(&first, "first.internal"), (&second, "second.internal"), (&spare, "spare.internal")];
    let hosts: String =
        hosts.iter().map(|(origin, host)| format!("{} {host}\n", origin.address.ip())).collect();
    std::fs::write(directory.path().join("hosts"), hosts).unwrap();
    let record = |priority, weight, origin: &Origin, host| ServiceRecord {
        priority,
        weight,
        port: origin.address.port(),
        host,
    };
    let all = [record(1, 30, &first, "first.internal"), record(2, 0, &spare, "spare.internal")];
    let records = Arc::new(Mutex::new(all.to_vec()));
    let own = OwnLoopback::new();
    serve_names(own.at(53).ip(), &records);
    let admin = own.at(9090);
    let text = format!(
        "[[listener]]\naddress = \"{}\"\n[admin]\naddress = \"{admin}\"\n[[backend]]\nname = \"web\"\n\
         address = \"srv:{SERVICE}\"\n",
        own.at(8080)
    );
    std::fs::write(directory.path().join("plimsoll.toml"), text).unwrap();
    let mut balance =
        plimsoll_by(&[own.at(53).ip()], directory.path(), "balance --config plimsoll.toml --no-watch");
    let process = Process::run(&mut balance, Stdio::null());
    let at = process.address("listening on http://");
    let served_by = || -> BTreeSet<String> {
        let one = |n: u32| get_backend(at, &format!("/{n}"));
        (0..20).map(one).collect()
    };
    let only = |name: &str| BTreeSet::from([name.to_owned()]);
    eventually("the best priority", || served_by() == only("first"));
    // Half of what the other one has.
    records.lock().unwrap().push(record(1, 60, &second, "second.internal"));
    eventually("another one of that priority", || served_by().contains("second"));
    assert!(!served_by().contains("spare"));
    records.lock().unwrap().truncate(2);
    eventually("its end", || served_by() == only("first"));
    first.process.kill();
    eventually("the next priority", || served_by() == only("spare"));
    first.restart();
    eventually("the best priority again", || served_by() == only("first"));
}

#[test]
fn an_alias_of_a_service_is_found_by_tcp_beside_silent_name_servers() {
    let directory = private_directory();
    let origin = Origin::start("first", &[]);
    std::fs::write(directory.path().join("hosts"), format!("{} first.internal\n", origin.address.ip()))
        .unwrap();
    let record =
        |weight| ServiceRecord { priority: 1, weight, port: origin.address.port(), host: "first.internal" };
    let (own, silent) = (OwnLoopback::new(), OwnLoopback::new());
    serve_names_by_tcp(own.at(53).ip(), vec![record(1), record(2)]);
    let _silent = UdpSocket::bind((silent.at(53).ip(), 53)).unwrap();
    for name in [SERVICE, ALIAS] {
        let text =
            format!("[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"srv:{name}\"\n");
        std::fs::write(directory.path().join("plimsoll.toml"), text).unwrap();
        let servers = [silent.at(53).ip(), own.at(53).ip()];
        let checked =
            plimsoll_by(&servers, directory.path(), "check --config plimsoll.toml").output().unwrap();
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// The back-end that answers a GET; nobody where it is refused.
fn get_backend(at: SocketAddr, path: &str) -> String {
    let answer = Command::new("curl")
        .args(["--silent", "--include", "--max-time", "30", &format!("http://{at}{path}")])
        .output()
        .unwrap();
    let head = String::from_utf8_lossy(&answer.stdout).into_owned();
    let named = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("x-backend: ").map(str::to_owned));
    named.unwrap_or_default()
}
