//! Host names that lead to no address. The processes see a name service of the test's own, which knows one file of hosts.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_testbed::load::{OpenLoop, Req, open_loop};
use plimsoll_testkit::{OwnLoopback, eventually};

use super::processes::{Origin, Process, private_directory, run};

/// A command that runs `plimsoll` where names lead to what the file `hosts` in this directory says, and to nothing else.
fn plimsoll(directory: &Path, args: &str) -> Command {
    // Nobody answers at the address of the name server.
    plimsoll_by(&[Ipv4Addr::LOCALHOST.into()], directory, args)
}

/// The same; other questions than for addresses of hosts go to these name servers.
pub(super) fn plimsoll_by(servers: &[IpAddr], directory: &Path, args: &str) -> Command {
    let servers: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    let servers = servers + "options timeout:1 attempts:1\n";
    std::fs::write(directory.join("resolv.conf"), servers).unwrap();
    std::fs::write(directory.join("nsswitch.conf"), "hosts: files\n").unwrap();
    let mounts = ["hosts", "resolv.conf", "nsswitch.conf"]
        .map(|file| format!("mount --bind {file} /etc/{file} && "))
        .concat();
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-c",
        &format!("{mounts}exec \"$0\" {args}"),
        env!("CARGO_BIN_EXE_plimsoll"),
    ]);
    command.current_dir(directory);
    command
}

#[test]
fn a_back_end_takes_part_once_its_name_leads_to_an_address() {
    let directory = private_directory();
    let origin = Origin::start("late", &[]);
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("hosts"), "127.0.0.1 localhost\n").unwrap();
    let listener = OwnLoopback::new();
    let admin = listener.at(9090);
    let configure = |port: u16| {
        let text = format!(
            "[[listener]]\naddress = \"{}\"\n[admin]\naddress = \"{admin}\"\n[[backend]]\nname = \"late\"\n\
             address = \"late.example:{port}\"\n",
            listener.at(8080),
        );
        std::fs::write(at("plimsoll.toml"), text).unwrap();
    };
    // Nobody serves there.
    configure(1);

    let check = |more: &str| -> Output {
        plimsoll(directory.path(), &format!("check --config plimsoll.toml {more}")).output().unwrap()
    };
    let checked = check("");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    for part in
        ["not good: 1 error", "backend[0].address: cannot find the address of late.example: ", "--no-resolve"]
    {
        assert!(said.contains(part), "no `{part}` in:\n{said}");
    }
    let checked = check("--no-resolve");
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stderr));

    let mut balance = plimsoll(directory.path(), "balance --config plimsoll.toml --no-watch");
    let mut process = Process::run(&mut balance, Stdio::null());
    process.wait_for("cannot find the address of late.example", 0);
    process.address("listening on http://");
    let get = |path: &str| get(admin, path);
    let state: serde_json::Value = serde_json::from_str(&get("/backends/late")).unwrap();
    assert_eq!((&state["health"], &state["address"]), (&"down".into(), &serde_json::Value::Null));
    assert!(state["unresolved"].is_string() && get("/readyz").contains("no back-end takes requests"));
    assert!(get("/metrics").contains("plimsoll_backend_unresolved{backend=\"late\"} 1"));

    // The other port is what is followed now.
    configure(origin.address.port());
    process.signal("-HUP");
    process.wait_for("read plimsoll.toml again", 0);

    let hosts = format!("127.0.0.1 localhost\n{} late.example\n", origin.address.ip());
    // The same file, which is mounted there.
    std::fs::write(at("hosts"), hosts).unwrap();
    eventually("a back-end that takes requests", || get("/readyz").contains("ready\n"));
    let state: serde_json::Value = serde_json::from_str(&get("/backends/late")).unwrap();
    assert_eq!((&state["health"], &state["unresolved"]), (&"up".into(), &serde_json::Value::Null));
    assert_eq!(state["address"], origin.address.to_string());
    assert_eq!(check("").status.code(), Some(0));

    // A reload while the name leads nowhere changes nothing.
    std::fs::write(at("hosts"), "127.0.0.1 localhost\n").unwrap();
    process.signal("-HUP");
    process.wait_for("the address that it had stays in use", 0);
    process.wait_for("read plimsoll.toml again", 1);
    assert!(get("/readyz").contains("ready\n"));
    process.signal("-TERM");
    assert_eq!(process.wait(), Some(0), "{}", process.said());
}

#[test]
fn each_address_of_a_name_that_is_looked_up_again_is_a_back_end() {
    let directory = private_directory();
    let origins = [Origin::start("first", &[]), Origin::start("second", &[])];
    let at = |name: &str| directory.path().join(name);
    let lead = |origins: &[&Origin]| {
        let lines = origins.iter().map(|o| format!("{} web.example\n", o.address.ip()));
        // The same file, which is mounted there.
        std::fs::write(at("hosts"), format!("127.0.0.1 localhost\n{}", lines.collect::<String>())).unwrap();
    };
    lead(&[&origins[0]]);
    let listener = OwnLoopback::new();
    let admin = listener.at(9090);
    let text = format!(
        "[[listener]]\naddress = \"{}\"\n[admin]\naddress = \"{admin}\"\n[[backend]]\nname = \"web\"\n\
         address = \"web.example:8000\"\nresolve = \"1s\"\n[health]\ntimeout = \"10s\"\n",
        listener.at(8080),
    );
    std::fs::write(at("plimsoll.toml"), text).unwrap();
    let mut balance = plimsoll(directory.path(), "balance --config plimsoll.toml --no-watch");
    let mut process = Process::run(&mut balance, Stdio::null());
    let address = process.address("listening on http://");
    let names = |expected: &[&Origin]| {
        let expected: Vec<String> = expected.iter().map(|o| format!("web@{}", o.address)).collect();
        eventually(&format!("the back-ends {expected:?}"), || {
            let listed: serde_json::Value = serde_json::from_str(&get(admin, "/backends")).unwrap();
            let names = listed.as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap().to_owned());
            let mut names: Vec<String> = names.collect();
            names.sort();
            let mut expected = expected.clone();
            expected.sort();
            names == expected
        });
    };
    names(&[&origins[0]]);
    let heard = process.heard();
    let load = OpenLoop {
        rate_rps: 500.0,
        seconds: 6.0,
        connections: 16,
        ..OpenLoop::new(address, |n| Req::get(format!("/{}", n % 100)))
    };
    let summary = std::thread::scope(|scope| {
        let meanwhile = scope.spawn(|| {
            lead(&[&origins[0], &origins[1]]);
            heard.wait_for("a back-end joins", 1);
            lead(&[&origins[1]]);
            heard.wait_for("a back-end leaves", 0);
            // Nobody knows the name: the last addresses stay in use.
            lead(&[]);
            heard.wait_for("the address that it had stays in use", 0);
        });
        let summary = run(open_loop(load));
        meanwhile.join().unwrap();
        summary
    });
    assert_eq!(summary.succeeded, 3_000, "{:?} {:?}", summary.failures, summary.statuses);
    assert_eq!(summary.backends.len(), 2, "{:?}", summary.backends);
    names(&[&origins[1]]);
    process.signal("-TERM");
    assert_eq!(process.wait(), Some(0), "{}", process.said());
}

/// What the admin API answers.
fn get(admin: std::net::SocketAddr, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(admin).unwrap();
    stream.set_read_timeout(Some(plimsoll_testkit::PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}
