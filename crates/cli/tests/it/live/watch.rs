//! Noticing that the configuration file changed.

use std::net::SocketAddr;
use std::os::unix::fs::symlink;

use super::processes::{Process, config};

#[test]
fn a_changed_file_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plimsoll.toml");
    let backend = SocketAddr::from(([127, 0, 0, 1], 9));
    std::fs::write(&file, config(&[backend], "")).unwrap();
    let mut process = Process::start(&["balance", "--config", file.to_str().unwrap()]);
    process.address("listening on http://");
    // As editors do it: another file takes the place of the old one.
    let fresh = directory.path().join("fresh");
    std::fs::write(&fresh, config(&[backend], "[timeouts]\nidle = \"5s\"\n")).unwrap();
    std::fs::rename(&fresh, &file).unwrap();
    process.wait_for("read ", 0);
    process.wait_for("idle", 0);
    process.signal("-TERM");
    assert_eq!(process.wait(), Some(0));
}

/// As Kubernetes mounts a ConfigMap: the file is a link through a link that is replaced.
#[test]
fn a_changed_link_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let backend = SocketAddr::from(([127, 0, 0, 1], 9));
    for (version, more) in [("..1", ""), ("..2", "[timeouts]\nidle = \"5s\"\n"), ("..3", "")] {
        std::fs::create_dir(at(version)).unwrap();
        std::fs::write(at(version).join("plimsoll.toml"), config(&[backend], more)).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/plimsoll.toml", at("plimsoll.toml")).unwrap();
    let mut process = Process::start(&["balance", "--config", at("plimsoll.toml").to_str().unwrap()]);
    process.address("listening on http://");
    for (count, version) in ["..2", "..3"].into_iter().enumerate() {
        // The watch begins a moment after the address is told; a change before that counts as well.
        symlink(version, at("..data_tmp")).unwrap();
        std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
        process.wait_for("read ", count);
    }
    process.signal("-TERM");
    assert_eq!(process.wait(), Some(0));
}
