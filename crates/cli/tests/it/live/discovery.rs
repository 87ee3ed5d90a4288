//! Back-ends that a directory of services tells: nodes that publish themselves come, go and are killed while clients ask.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use plimsoll_policy::{TargetId, partition_of};
use plimsoll_testbed::load::{LoadSummary, OpenLoop, Req, open_loop};
use plimsoll_testkit::{EtcdServer, Why, eventually, pace, wait_for};
use tempfile::TempDir;

use super::processes::{FrontEnd, Origin, Process, assert_replays, config, private_directory, run};
use crate::common::{plimsoll, text};

const RATE_RPS: f64 = 500.0;

/// Where nodes of a test meet.
struct Meeting {
    directory: TempDir,
    /// Options of `publish` and `services`.
    options: Vec<String>,
    /// Keys of `[discovery]`.
    keys: String,
}

impl Meeting {
    fn at(options: &[&str], keys: &str) -> Self {
        let directory = private_directory();
        let key = directory.path().join("directory.key");
        std::fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let key = key.to_str().unwrap();
        let keys = format!("[discovery]\nservice = \"album\"\nkey_file = {key:?}\n{keys}");
        let options = [&["--key", key], options].concat().into_iter().map(str::to_owned).collect();
        Self { directory, options, keys }
    }

    /// On loopback, in a group of its own.
    fn multicast() -> Self {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let [.., high, low] = std::process::id().to_be_bytes();
        let port = 21_000 + COUNT.fetch_add(1, Ordering::Relaxed);
        let group = format!("239.254.{high}.{low}:{port}");
        let keys = format!("group = \"{group}\"\ninterface = \"lo\"\nttl = \"2s\"\n");
        Self::at(&["--group", &group, "--directory-interface", "lo", "--ttl", "2"], &keys)
    }

    fn etcd(server: &EtcdServer) -> Self {
        let url = server.endpoint();
        Self::at(&["--etcd", &url, "--ttl", "3"], &format!("transport = \"etcd\"\nendpoints = [{url:?}]\n"))
    }

    /// A node that publishes the server at this address as a replica of `album`.
    fn publish(&self, node: &str, address: SocketAddr) -> Process {
        let process = self.publish_these(node, address, &["album"]);
        process.wait_for("publishing album/0", 0);
        process
    }

    /// A node that publishes these services and partitions.
    fn publish_these(&self, node: &str, address: SocketAddr, offers: &[&str]) -> Process {
        let address = address.to_string();
        let options = self.options.iter().map(String::as_str);
        let named = ["--name", node, "--address", &address];
        let args = ["publish"].into_iter().chain(offers.iter().copied()).chain(named).chain(options);
        Process::start(&args.collect::<Vec<_>>())
    }

    /// What `plimsoll services` lists, as lines of JSON.
    fn services(&self, more: &[&str]) -> Vec<serde_json::Value> {
        let options = self.options.iter().map(String::as_str);
        let args: Vec<&str> =
            ["services", "--json"].into_iter().chain(options).chain(more.iter().copied()).collect();
        let out = plimsoll(&args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A front-end whose back-ends are these nodes.
    fn front_end(&self, nodes: &[&str]) -> FrontEnd {
        // A back-end that is only kept waiting for a processor is not down.
        let more = format!("{}[health]\ntimeout = \"10s\"\n[decision_log]\ndirectory = \"log\"\n", self.keys);
        let front_end = FrontEnd::start(&[], &more);
        knows(&front_end, nodes);
        front_end
    }
}

/// Waits until exactly these are the back-ends.
fn knows(front_end: &FrontEnd, nodes: &[&str]) {
    eventually(&format!("the back-ends {nodes:?}"), || {
        let backends = front_end.get("/backends");
        let names = backends.as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names == nodes
    });
}

/// Asks for 500 targets in turn while `meanwhile` runs on a thread of its own.
fn under_load(front_end: &FrontEnd, seconds: f64, meanwhile: impl FnOnce() + Send + 'static) -> LoadSummary {
    let load = OpenLoop {
        rate_rps: RATE_RPS,
        seconds,
        connections: 32,
        ..OpenLoop::new(front_end.address, |n| Req::get(format!("/{}", n % 500)))
    };
    let thread = std::thread::spawn(meanwhile);
    let summary = run(open_loop(load));
    thread.join().unwrap();
    assert_eq!(summary.requests, (RATE_RPS * seconds) as u64);
    assert_eq!(summary.succeeded, summary.requests, "{:?} {:?}", summary.failures, summary.statuses);
    summary
}

fn origins(many: usize) -> Vec<Origin> {
    (0..many).map(|i| Origin::start(&format!("o{i}"), &[])).collect()
}

#[test]
fn joins_leaves_and_deaths_lose_no_request() {
    let meeting = Meeting::multicast();
    let origins = origins(3);
    let addresses: Vec<SocketAddr> = origins.iter().map(|o| o.address).collect();
    let stays = meeting.publish("n0", addresses[0]);
    let mut leaves = meeting.publish("n1", addresses[1]);
    let mut front_end = meeting.front_end(&["n0", "n1"]);
    let heard = front_end.process.heard();
    let summary = under_load(&front_end, 10.0, move || {
        // A planned leave, and the return.
        leaves.signal("-TERM");
        assert_eq!(leaves.wait(), Some(0));
        heard.wait_for("a back-end leaves", 0);
        let mut dies = meeting.publish("n1", addresses[1]);
        heard.wait_for("a back-end joins", 2);
        let _third = meeting.publish("n2", addresses[2]);
        heard.wait_for("a back-end joins", 3);
        // One that is killed; its server still answers.
        pace(Duration::from_millis(300), Why::UnderLoad);
        dies.kill();
        heard.wait_for("a back-end leaves", 1);
        pace(Duration::from_millis(300), Why::UnderLoad);
    });
    assert_eq!(summary.backends.len(), 3, "{:?}", summary.backends);
    // The third one was killed as well, when its process was dropped.
    knows(&front_end, &["n0"]);
    drop(stays);
    eventually("the front-end to say that it hears nobody", || {
        front_end.text("/metrics").contains("plimsoll_directory_away 1")
    });
    let metrics = front_end.text("/metrics");
    assert!(metrics.contains("plimsoll_directory_announcements_total"), "{metrics}");
    knows(&front_end, &["n0"]);
    front_end.process.wait_for("the directory of services is away", 0);
    front_end.stop();
    assert_replays(&front_end.path("log"));
}

#[test]
fn an_etcd_that_is_killed_and_restarted_loses_no_request() {
    let mut server = EtcdServer::start();
    let meeting = Meeting::etcd(&server);
    let origins = origins(3);
    let nodes: Vec<Process> = (0..3).map(|i| meeting.publish(&format!("n{i}"), origins[i].address)).collect();
    let mut front_end = meeting.front_end(&["n0", "n1", "n2"]);
    let heard = front_end.process.heard();
    let summary = under_load(&front_end, 18.0, move || {
        for round in 0..2 {
            pace(Duration::from_millis(500), Why::UnderLoad);
            server.kill();
            heard.wait_for("the directory of services is away", round);
            // Longer than the leases.
            pace(Duration::from_secs(3), Why::UnderLoad);
            if round == 1 {
                server.forget();
            }
            server.restart();
            heard.wait_for("the directory of services is back", round);
        }
        // What was not published again would go.
        pace(Duration::from_secs(7), Why::UnderLoad);
        assert_eq!(heard.count("a back-end leaves"), 0);
        // And it is listened to.
        drop(nodes);
        heard.wait_for("a back-end leaves", 2);
    });
    assert_eq!(summary.backends.len(), 3, "{:?}", summary.backends);
    front_end.stop();
    assert_replays(&front_end.path("log"));
}

/// A front-end distributes among those that host its partition, and no others.
#[test]
fn a_partition_restricts_the_choices() {
    let meeting = Meeting::multicast();
    let origins = origins(3);
    let hosted: [&[&str]; 3] = [&["album/0"], &["album/0", "album/1"], &["album/1", "other/0"]];
    let _nodes: Vec<Process> =
        (0..3).map(|n| meeting.publish_these(&format!("n{n}"), origins[n].address, hosted[n])).collect();
    for (partition, nodes) in [("0", ["n0", "n1"]), ("1", ["n1", "n2"])] {
        let keys = format!("{}partition = \"{partition}\"\n", meeting.keys);
        let mut front_end = FrontEnd::start(&[], &keys);
        knows(&front_end, &nodes);
        under_load(&front_end, 1.0, || {});
        let answered = |name: &str| front_end.get(&format!("/backends/{name}"))["answers"]["2xx"].as_u64();
        assert!(nodes.iter().all(|name| answered(name).is_some_and(|n| n > 100)), "{partition}");
        front_end.stop();
    }
}

/// One front-end takes the replicas of all partitions, and a node that offers two is one back-end.
#[test]
fn one_front_end_distributes_among_the_holders_of_each_partition() {
    let meeting = Meeting::multicast();
    let origins = origins(3);
    let hosted: [&[&str]; 3] = [&["album/0"], &["album/0", "album/1"], &["album/1", "other/0"]];
    let nodes: Vec<Process> =
        (0..3).map(|n| meeting.publish_these(&format!("n{n}"), origins[n].address, hosted[n])).collect();
    let mut front_end = FrontEnd::start(&[], &format!("{}[partitions]\ncount = 2\n", meeting.keys));
    knows(&front_end, &["n0", "n1", "n2"]);
    let ask = |partition: usize| {
        let is_in = |path: &String| partition_of(TargetId::from_key(path.as_bytes()), 2) == partition;
        let paths: Vec<String> = (0..300).map(|n| format!("/{n}")).filter(is_in).collect();
        let load = OpenLoop {
            rate_rps: RATE_RPS,
            seconds: 0.5,
            connections: 8,
            ..OpenLoop::new(front_end.address, move |n| Req::get(paths[n as usize % paths.len()].clone()))
        };
        run(open_loop(load))
    };
    for (partition, stranger) in [(0, "o2"), (1, "o0")] {
        let summary = ask(partition);
        assert_eq!(summary.succeeded, summary.requests, "{:?} {:?}", summary.failures, summary.statuses);
        assert!(!summary.backends.contains_key(stranger), "{partition}: {:?}", summary.backends);
        assert_eq!(summary.backends.len(), 2, "{partition}: {:?}", summary.backends);
    }
    // The second holder of the first partition goes.
    nodes[1].signal("-TERM");
    front_end.process.wait_for("a back-end leaves", 0);
    let summary = ask(0);
    assert_eq!(summary.backends.keys().collect::<Vec<_>>(), ["o0"]);
    front_end.stop();
}

#[test]
fn what_is_published_is_listed() {
    let meeting = Meeting::multicast();
    let options =
        ["--weight", "2.5", "--load-inquiry", "192.0.2.1:7401", "--method", "GET /a", "--method", "b"];
    let publish = |node: &str, partitions: &[&str], more: &[&str]| {
        let fixed = ["--name", node, "--address", "192.0.2.1:80"];
        let own = meeting.options.iter().map(String::as_str);
        let args = ["publish"].into_iter().chain(partitions.iter().copied()).chain(fixed);
        Process::start(&args.chain(own).chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let images = publish("images-1", &["images/0", "images/1"], &options);
    let _album = publish("album-1", &["album"], &[]);
    eventually("all of them", || meeting.services(&[]).len() == 3);
    let listed = meeting.services(&["images/1"]);
    let expected = serde_json::json!([{
        "service": "images", "partition": "1", "node": "images-1", "address": "192.0.2.1:80", "weight": 2.5,
        "load_inquiry": "192.0.2.1:7401", "agent": null, "methods": ["GET /a", "b"],
    }]);
    assert_eq!(serde_json::Value::from(listed), expected);
    images.signal("-TERM");
    eventually("the rest", || meeting.services(&[]).len() == 1);
}

#[test]
fn an_agent_publishes_where_it_tells_its_load() {
    let meeting = Meeting::multicast();
    let key = meeting.directory.path().join("directory.key");
    let agent = |node: &str, listen: &str, more: &[&str]| {
        let fixed = ["agent", "--key", key.to_str().unwrap(), "--load-listen", listen, "--publish", "album"];
        let own = ["--publish-name", node, "--publish-address", "127.0.0.1:80"];
        // The key is given above.
        let meeting = meeting.options.iter().skip(2).map(String::as_str);
        let process = Process::start(
            &fixed.into_iter().chain(own).chain(meeting).chain(more.iter().copied()).collect::<Vec<_>>(),
        );
        let told = process.address("telling the load at ");
        (process, told)
    };
    let (_one, one) = agent("n1", "127.0.0.9:0", &[]);
    let (_all, all) = agent("n2", "0.0.0.0:0", &[]);
    let (_other, _) = agent("n3", "127.0.0.1:0", &["--load-inquiry", "127.0.0.7:7777"]);
    let (_index, _) = agent("n4", "127.0.0.1:0", &["--load-index", "a,b"]);
    let listed = wait_for("all of them", || Some(meeting.services(&[])).filter(|found| found.len() == 4));
    let told: Vec<_> = listed.iter().map(|replica| replica["load_inquiry"].as_str()).collect();
    let (one, all) = (one.to_string(), format!("127.0.0.1:{}", all.port()));
    assert_eq!(told, [Some(&*one), Some(&*all), Some("127.0.0.7:7777"), None]);
}

/// Two nodes of this machine that nobody has named.
fn both_unnamed_nodes_are_there(meeting: &Meeting) {
    let publish = |address: &str| {
        let options = meeting.options.iter().map(String::as_str);
        let fixed = ["publish", "album", "--address", address];
        Process::start(&fixed.into_iter().chain(options).collect::<Vec<_>>())
    };
    let nodes = [publish("192.0.2.1:80"), publish("192.0.2.1:81")];
    for node in &nodes {
        node.wait_for("publishing album/0", 0);
    }
    let ports = || {
        let of = |replica: &serde_json::Value| replica["address"].as_str().unwrap().to_owned();
        let mut addresses: Vec<String> = meeting.services(&[]).iter().map(of).collect();
        addresses.sort();
        addresses
    };
    let both = ["192.0.2.1:80", "192.0.2.1:81"];
    eventually("both", || ports() == both);
    assert_eq!(ports(), both, "and both stay");
}

#[test]
fn nodes_of_one_machine_need_no_names() {
    both_unnamed_nodes_are_there(&Meeting::multicast());
    let server = EtcdServer::start();
    both_unnamed_nodes_are_there(&Meeting::etcd(&server));
}

#[test]
fn a_check_says_who_tells_of_back_ends() {
    let meeting = Meeting::multicast();
    let file = meeting.directory.path().join("plimsoll.toml");
    std::fs::write(&file, config(&[], &meeting.keys)).unwrap();
    let out = plimsoll(&["check", "--config", file.to_str().unwrap()]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    assert!(said.contains("album/0 by multicast to 239.254.") && said.contains(" at lo;"), "{said}");
    assert!(said.contains("as many requests as the back-ends that are up allow"), "{said}");
}

/// Says why the command refuses these arguments.
fn refused(key: &Path, args: &[&str]) -> String {
    let out = plimsoll(&[args, &["--key", key.to_str().unwrap()]].concat());
    assert!(!out.status.success());
    text(&out.stderr)
}

#[test]
fn what_cannot_be_published_is_refused_with_the_remedy() {
    let meeting = Meeting::multicast();
    let key = meeting.directory.path().join("directory.key");
    let publish = |more: &[&str]| refused(&key, &[&["publish", "a", "--name", "n"], more].concat());
    for (args, remedy) in [
        (&["--address", "0.0.0.0:80"][..], "addresses at which others reach"),
        (&["--address", "10.0.0.1:80", "--weight", "70000"], "--weight"),
        (&["a/0", "--address", "10.0.0.1:80"], "a/0 is named twice"),
        (&["--address", "10.0.0.1:80", "--ttl", "1", "--etcd", "http://h:1"], "give 3 to 3600 s"),
        (&["--address", "10.0.0.1:80", "--etcd", "h:1"], "http://HOST:PORT"),
        (&["--address", "10.0.0.1:80", "--group", "10.0.0.1:80"], "multicast group"),
        (&["--address", "10.0.0.1:80", "--directory-interface", "none9"], "there are: "),
    ] {
        let said = publish(args);
        assert!(said.contains(remedy), "{said}");
    }
    let said = refused(&key, &["services", "a/b/c"]);
    assert!(said.contains("SERVICE/PARTITION"), "{said}");
    let said = refused(&key, &["services", "--etcd", "http://127.0.0.1:1"]);
    assert!(said.contains("the directory of services is away: etcd cannot be reached: "), "{said}");
    assert!(said.contains("Connection refused") && !said.contains("ConnectError"), "{said}");
}
