//! `plimsoll lab`. Most of it needs root.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use plimsoll_testkit::{ProcessWatch, eventually, unique_name};

use crate::common::{plimsoll, text};

mod demo;

/// A running `lab up`, killed when it is dropped.
struct Up {
    child: Child,
    name: String,
    note: serde_json::Value,
    holders: Vec<ProcessWatch>,
}

impl Up {
    /// Starts a lab of this name and waits until it is up.
    fn start(name: &str, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["lab", "up", "--json", "--name", name]).args(more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let note: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no lab; these tests need root"));
        let pid = |node: &serde_json::Value| u32::try_from(node["pid"].as_u64().unwrap()).unwrap();
        let holders =
            note["nodes"].as_array().unwrap().iter().map(|node| ProcessWatch::new(pid(node))).collect();
        Self { child, name: name.to_owned(), note, holders }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end of the command, of its nodes, and of its note; the exit code.
    fn end(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        self.wait_for_holders();
        assert!(!listed(&self.name));
        assert!(!Path::new(&format!("/run/plimsoll-lab/{}.json", self.name)).exists());
        code
    }

    fn wait_for_holders(&self) {
        eventually("the end of the lab", || self.holders.iter().all(ProcessWatch::is_gone));
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listed(name: &str) -> bool {
    let output = plimsoll(&["lab", "list", "--json"]);
    assert!(output.status.success());
    let names = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].clone();
    text(&output.stdout).lines().map(names).any(|listed| listed == name)
}

#[test]
fn a_lab_is_up_until_it_is_asked_to_end() {
    let mut up = Up::start(&unique_name("up-"), &["--backends", "3"]);
    assert!(listed(&up.name));
    assert_eq!(up.note["nodes"].as_array().unwrap().len(), 6);
    assert_eq!(up.note["virtual_address"], "10.77.0.100");
    let output = plimsoll(&["lab", "exec", &up.name, "b2", "--", "ip", "-brief", "address", "show", "eth0"]);
    let printed = text(&output.stdout);
    assert!(output.status.success() && printed.contains("10.77.0.13/24 fd77::13/64"), "{printed}");
    let code = |args: &[&str]| plimsoll(&[&["lab", "exec", &up.name], args].concat()).status.code();
    assert_eq!(code(&["client", "--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["client", "--", "no-such-program-here"]), Some(127));
    assert_eq!(code(&["b3", "--", "true"]), Some(1));
    let again = plimsoll(&["lab", "up", "--name", &up.name]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("already; give this one another name"));
    // That was no harm to the one that runs.
    assert!(listed(&up.name) && code(&["client", "--", "true"]) == Some(0));
    up.signal("-TERM");
    assert_eq!(up.end(), Some(0));
    let gone = plimsoll(&["lab", "exec", &up.name, "client", "--", "true"]);
    assert_eq!(gone.status.code(), Some(1));
}

/// Runs `lab link` on the link of this lab's client.
fn link(up: &Up, more: &[&str]) -> Output {
    plimsoll(&[&["lab", "link", &up.name, "client"], more].concat())
}

/// The link as JSON, after these changes.
fn linked(up: &Up, more: &[&str]) -> serde_json::Value {
    let output = link(up, &[more, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

#[test]
fn a_link_is_shown_and_changed_while_the_lab_runs() {
    let up = Up::start(&unique_name("l-"), &["--backends", "1", "--delay", "2ms", "--seed", "7"]);
    let at_first = linked(&up, &[]);
    assert_eq!((&at_first["node"], &at_first["from"]["delay_s"]), (&"client".into(), &0.002.into()));
    assert_eq!(at_first["from"]["loss"], 0.0);
    let changed = linked(&up, &["--way", "to", "--delay", "25ms", "--jitter", "5ms", "--loss", "100%"]);
    assert_eq!((&changed["from"]["delay_s"], &changed["to"]["delay_s"]), (&0.002.into(), &0.025.into()));
    assert_eq!((&changed["to"]["jitter_s"], &changed["to"]["loss"]), (&0.005.into(), &1.0.into()));
    // A request for a MAC address.
    let send = ["lab", "exec", &up.name, "front-end", "--", "bash", "-c", "echo x >/dev/udp/10.77.0.101/9"];
    assert!(plimsoll(&send).status.success());
    eventually("a frame that was lost", || linked(&up, &[])["to"]["counts"]["lost"].as_u64() > Some(0));
    let shown = text(&link(&up, &["--loss", "1%"]).stdout);
    assert!(shown.contains("from client") && shown.contains("1 %") && shown.contains("25 ms"), "{shown}");
    let cleared = link(&up, &["--clear"]);
    assert!(text(&cleared.stdout).contains("perfect"), "{}", text(&cleared.stdout));
    assert!(linked(&up, &[])["to"]["counts"].is_null());
    for (more, code, expected) in [
        (&["--reorder", "1%"][..], 2, "reorder needs a delay"),
        (&["--jitter", "1ms"], 2, "add --delay"),
        (&["--delay", "1ms", "--pareto", "0.5"], 2, "above 1"),
        (&["--rate-queue", "1MiB"], 2, "needs a rate"),
    ] {
        let output = link(&up, more);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(expected), "{more:?}: {stderr}");
    }
    let nowhere = plimsoll(&["lab", "link", &up.name, "b1"]);
    assert!(text(&nowhere.stderr).contains("no node `b1`"), "{}", text(&nowhere.stderr));
}

#[test]
fn a_lab_that_is_killed_leaves_nothing_and_its_name_is_free() {
    let name = unique_name("k-");
    let mut up = Up::start(&name, &["--backends", "1"]);
    let mut inside = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["lab", "exec", &up.name, "b0", "--", "sleep", "1000"])
        .spawn()
        .unwrap();
    up.signal("-KILL");
    // At once, while the first one is still being cleared.
    let mut next = Up::start(&name, &["--backends", "1"]);
    assert!(!inside.wait().unwrap().success());
    assert_eq!(up.child.wait().unwrap().code(), None);
    up.wait_for_holders();
    assert!(listed(&next.name) && !next.holders.iter().any(ProcessWatch::has_ended));
    next.signal("-INT");
    assert_eq!(next.end(), Some(0));
}

#[test]
fn a_note_that_is_left_is_recognised() {
    let name = unique_name("s-");
    let path = format!("/run/plimsoll-lab/{name}.json");
    std::fs::create_dir_all("/run/plimsoll-lab").unwrap();
    let node = r#"{"name":"switch","address":"10.77.0.254","address_v6":"fd77::254","pid":4294967295}"#;
    let note = format!(
        r#"{{"name":"{name}","pid":1,"virtual_address":"10.77.0.100","virtual_address_v6":"fd77::100","nodes":[{node}]}}"#
    );
    std::fs::write(&path, note).unwrap();
    let output = plimsoll(&["lab", "list"]);
    // Another test may have listed labs just now, and removed it.
    assert!(!text(&output.stdout).contains(&name) && !Path::new(&path).exists());
}

#[test]
fn wrong_usage_says_what_would_be_right() {
    let cases: [(&[&str], &str); 16] = [
        (&["lab"], "Usage"),
        (&["lab", "up", "--backends", "0"], "from 1 to 80"),
        (&["lab", "up", "--clients", "151"], "1 to 150 client addresses"),
        (&["lab", "up", "--rate", "fast"], "1gbit"),
        (&["lab", "up", "--delay", "1"], "1ms"),
        (&["lab", "up", "--jitter", "1ms"], "add --delay"),
        (&["lab", "up", "--reorder", "1%"], "reorder needs a delay"),
        (&["lab", "up", "--loss", "2"], "such as 1% or 0.01"),
        (&["lab", "link"], "NODE"),
        (&["lab", "link", "switch"], "no link to itself"),
        (&["lab", "link", "client", "--way", "up"], "from, to, both"),
        (&["lab", "up", "--name", "a/b"], "letters, digits"),
        (&["lab", "exec", "client"], "COMMAND"),
        (&["lab", "exec", "nowhere", "--", "true"], "no node `nowhere`"),
        (&["lab", "demo", "--mechanism", "magic"], "proxy, handoff"),
        (&["lab", "demo", "--size", "1GiB"], "64MiB"),
    ];
    for (args, expected) in cases {
        let output = plimsoll(args);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(expected), "{args:?}: {stderr}");
    }
}

#[test]
fn without_privileges_it_says_which() {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--"]);
    // The user must be able to read the program.
    let program = tempfile::tempdir().unwrap();
    let copy = program.path().join("plimsoll");
    std::fs::copy(env!("CARGO_BIN_EXE_plimsoll"), &copy).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program.path(), mode).unwrap();
    let output = command.arg(&copy).args(["lab", "up"]).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("needs root") && stderr.contains("CAP_SYS_ADMIN, CAP_NET_ADMIN"), "{stderr}");
}
