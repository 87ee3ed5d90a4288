//! Back-ends by the name of a service, before a name server of the test's own.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{OwnLoopback, eventually};

use super::names::plimsoll_by;
use super::processes::{Origin, Process, private_directory};

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
    let count = u16::try_from(records.len()).unwrap().to_be_bytes();
    let mut answer = [&query[..2], &[0x84, 0, 0, 1], &count, &[0, 0, 0, 0], question].concat();
    for ServiceRecord { priority, weight, port, host } in records {
        let labels = host.split('.').flat_map(|l| std::iter::once(l.len() as u8).chain(l.bytes()));
        let target: Vec<u8> = labels.chain([0]).collect();
        answer.extend_from_slice(&[0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 1]);
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
         address = \"srv:_http._tcp.app.internal\"\n",
        own.at(8080)
    );
    std::fs::write(directory.path().join("plimsoll.toml"), text).unwrap();
    let mut balance =
        plimsoll_by(own.at(53).ip(), directory.path(), "balance --config plimsoll.toml --no-watch");
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
