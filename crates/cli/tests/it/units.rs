//! The systemd units: what they grant is what is needed, and no more.

use std::fs;
use std::process::Command;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");

fn unit(name: &str) -> String {
    fs::read_to_string(format!("{DIRECTORY}/{name}.service")).unwrap()
}

/// The value of a setting that stands there once.
fn value<'a>(unit: &'a str, name: &str) -> &'a str {
    let mut found = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(found.next(), None, "{name} stands there twice");
    value
}

fn sorted(words: &str) -> Vec<&str> {
    let mut words: Vec<_> = words.split_whitespace().collect();
    words.sort_unstable();
    words
}

#[test]
fn units_grant_what_is_needed() {
    for name in ["plimsoll", "plimsoll-agent"] {
        let unit = unit(name);
        for set in ["AmbientCapabilities", "CapabilityBoundingSet"] {
            let expected = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_PERFMON"];
            assert_eq!(sorted(value(&unit, set)), expected, "{set} of {name}");
        }
        assert_eq!(value(&unit, "User"), "plimsoll");
        assert_eq!(value(&unit, "NoNewPrivileges"), "yes");
        assert_eq!(value(&unit, "RuntimeDirectoryMode"), "0700");
        assert!(!value(&unit, "RuntimeDirectory").is_empty());
        // It would make /sys/fs/bpf and /proc/sys/net read-only.
        assert!(!unit.lines().any(|line| line.starts_with("ProtectKernelTunables")), "{name}");
    }
}

/// The commands that units run are commands.
#[test]
fn units_run_commands() {
    for (name, command) in [("plimsoll", "balance"), ("plimsoll-agent", "agent")] {
        let unit = unit(name);
        let run: Vec<_> = value(&unit, "ExecStart").split_whitespace().collect();
        assert_eq!(run[..2], ["/usr/local/bin/plimsoll", command]);
        assert!(crate::common::plimsoll(&[command, "--help"]).status.success());
    }
}

/// By systemd's own reader, where there is one.
#[test]
fn systemd_understands_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for name in ["plimsoll", "plimsoll-agent"] {
        let path = directory.path().join(format!("{name}.service"));
        // It insists on a program that is there.
        fs::write(&path, unit(name).replace("/usr/local/bin/plimsoll", env!("CARGO_BIN_EXE_plimsoll")))
            .unwrap();
        let output = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
        let said = crate::common::text(&output.stderr);
        assert!(output.status.success() && !said.contains(name), "{said}");
    }
}
