//! `plimsoll check`, run as a user runs it.

use std::fs;

use crate::common::{plimsoll, text};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plimsoll.toml");

#[test]
fn a_good_file_is_summed_up() {
    let output = plimsoll(&["check", "--config", EXAMPLE]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let out = text(&output.stdout);
    for part in [
        "plimsoll.toml is good.",
        "127.0.0.1:8080",
        "lard_r: t_low = 25, t_high = 65, k_s = 20, max_targets = 1000000",
        "shadow policy   weighted_round_robin",
        // (3 - 1) * 65 + 25 - 1 with weights 1 and 2.
        "at most 154 requests while all back-ends are up (t_low = 25, t_high = 65), more when they are not overloaded; 16384 may \
         wait for 10 s",
        "127.0.0.1:9090, without a token",
        "access.log, JSON lines",
        "decisions, at most 16 files of 64 MiB",
        "127.0.0.1:8082",
    ] {
        assert!(out.contains(part), "no `{part}` in:\n{out}");
    }
}

#[test]
fn it_shows_unix_sockets_and_says_which_are_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let (path, socket) = (dir.path().join("plimsoll.toml"), dir.path().join("app.sock"));
    let listener = "[[listener]]\naddress = \"127.0.0.1:0\"\n";
    fs::write(&path, format!("{listener}[[backend]]\naddress = \"unix:{}\"\n", socket.display())).unwrap();
    let said = || {
        let output = plimsoll(&["check", "--config", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stdout)
    };
    let missing = format!("no socket is to be seen at {}: No such file", socket.display());
    let address = format!("unix:{}", socket.display());
    assert!(said().contains(&missing) && said().contains(&address), "{}", said());
    fs::write(&socket, "").unwrap();
    assert!(said().contains("app.sock is no socket"), "{}", said());
    fs::remove_file(&socket).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(!said().contains("until a server listens there"), "{}", said());
}

#[test]
fn it_says_where_loads_come_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plimsoll.toml");
    let key = dir.path().join("load.key");
    fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let said = |table: &str| {
        let least = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n";
        fs::write(&path, format!("{least}[load_information]\n{table}")).unwrap();
        let output = plimsoll(&["check", "--config", path.to_str().unwrap()]);
        format!("{}{}", text(&output.stdout), text(&output.stderr))
    };
    let key = format!("key_file = {:?}\n", key.to_str().unwrap());
    let announced =
        said(&format!("from = \"broadcast\"\nlisten = \"127.0.0.1:7403\"\ninterval = \"200ms\"\n{key}"));
    assert!(announced.contains("127.0.0.1:7403; an agent's own interval counts up to 2 s"), "{announced}");
    let asked = said(&format!("from = \"poll\"\n{key}"));
    assert!(asked.contains("2 agents are asked for each request, for 10 ms at most"), "{asked}");
    let unused = said(&format!("from = \"poll\"\n{key}[policy]\nname = \"round_robin\"\n"));
    assert!(
        unused.contains("warning         this policy uses no loads: `load_information` has no effect"),
        "{unused}"
    );
    assert!(!asked.contains("no effect"), "{asked}");
    let nowhere = said(&format!(
        "from = \"broadcast\"\nlisten = \"0.0.0.0:7403\"\ngroup = \"239.255.74.1\"\ngroup_interface = \"none9\"\n{key}"
    ));
    assert!(
        nowhere.contains(
            "there is no network interface none9 here (load_information.group_interface); there are: "
        ),
        "{nowhere}"
    );
    assert!(said("from = \"header\"\n").contains("silence for 3 s is noticed"));
    let wrong = said("from = \"header\"\ntimeout = \"5ms\"\n");
    assert!(wrong.contains("remove it, or write `from = \"poll\"`"), "{wrong}");
}

#[test]
fn the_system_is_checked_for_a_front_end_or_a_back_end() {
    let output = plimsoll(&["check", "--system"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(["--config", "--interface", "--vip"].iter().all(|option| said.contains(option)), "{said}");
}

#[test]
fn the_effective_configuration_as_json() {
    let output = plimsoll(&["check", "--config", EXAMPLE, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(json["policy"]["name"], "lard_r");
    assert_eq!(json["policy"]["max_targets"], 1_000_000);
    assert_eq!(json["backend"][1]["weight"], 2.0);
    assert_eq!(json["timeouts"]["head"], "10s");
    assert_eq!(json["limits"]["body"], "100MiB");
}

#[test]
fn the_schema_is_that_of_the_documentation() {
    let output = plimsoll(&["check", "--schema"]);
    assert!(output.status.success());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plimsoll.schema.json");
    assert_eq!(text(&output.stdout), fs::read_to_string(path).unwrap());
}

#[test]
fn a_bad_file_is_refused_with_every_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.toml");
    fs::write(
        &path,
        "[[listener]]\naddress = \"8080\"\n[[backend]]\naddress = \"h:1\"\n[policy]\nname = \"lrad\"\n",
    )
    .unwrap();
    let output = plimsoll(&["check", "--config", path.to_str().unwrap()]);
    let message = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{message}");
    for part in [
        "bad.toml is not good: 2 errors",
        "bad.toml:2:11: listener[0].address: ",
        "write the address too, e.g. \"0.0.0.0:8080\"",
        "  2 | address = \"8080\"",
        "bad.toml:6:8: policy.name: there is no policy \"lrad\"; did you mean \"lard\"?",
    ] {
        assert!(message.contains(part), "no `{part}` in:\n{message}");
    }
}

#[test]
fn an_access_log_needs_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.toml");
    fs::write(&path, "[[listener]]\naddress = \"127.0.0.1:8080\"\n[[backend]]\naddress = \"10.0.0.1:80\"\n[access_log]\nfile = \"none/access.log\"\n")
        .unwrap();
    let check = || plimsoll(&["check", "--no-resolve", "--config", path.to_str().unwrap()]);
    let output = check();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("access_log.file: there is no directory") && message.contains("make it"),
        "{message}"
    );
    fs::create_dir(dir.path().join("none")).unwrap();
    assert!(check().status.success());
}

/// Nobody reads what it says: `2>&1 | true`.
#[test]
fn a_closed_standard_error_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let status = command.args(["check", "--config", "there/is/none.toml"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn exit_codes() {
    let output = plimsoll(&["check", "--config", "there/is/none.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there/is/none.toml: cannot be read"), "{}", text(&output.stderr));
    for usage in [&["check"][..], &["check", "--schema", "--config", "a"], &["check", "--config"]] {
        assert_eq!(plimsoll(usage).status.code(), Some(2), "{usage:?}");
    }
}

#[test]
fn the_system_of_a_back_end() {
    let out = plimsoll(&["check", "--system", "--interface", "nosuch0", "--vip", "10.77.0.1"]);
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("missing  interface nosuch0: there is no such interface"), "{stdout}");
    assert!(stdout.contains("TCP_REPAIR") && stdout.contains("packet programs"), "{stdout}");
    assert!(stderr.contains("missing on this machine"), "{stderr}");

    let out = plimsoll(&["check", "--system", "--json", "--interface", "nosuch0", "--vip", "10.77.0.1"]);
    let findings: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let of = |name: &str| findings.as_array().unwrap().iter().find(|f| f["name"] == name).unwrap();
    assert_eq!(of("interface nosuch0")["status"], "missing");
    assert!(of("interface nosuch0")["remedy"].is_string() && of("kernel")["remedy"].is_null());
}

#[test]
fn what_to_look_at_has_to_be_said() {
    for args in [
        &["check", "--system"][..],
        &["check", "--interface", "eth0"],
        &["check", "--system", "--vip", "10.0.0.1"],
    ] {
        assert_eq!(plimsoll(args).status.code(), Some(2), "{args:?}");
    }
}
