use std::os::unix::fs::symlink;
use std::time::Duration;

use plimsoll_testkit::{PATIENCE, Why, pace_async};

use super::*;

/// True when a change is noted, soon or late.
async fn noted(changes: &mut mpsc::Receiver<()>) -> bool {
    tokio::time::timeout(PATIENCE, changes.recv()).await.is_ok()
}

/// Leaves time for what was done to come through, then tells whether a change was noted.
async fn noted_by_now(directory: &Path, seen: &mut mpsc::Receiver<()>) -> bool {
    std::fs::write(directory.join("last"), "x").unwrap();
    pace_async(Duration::from_millis(500), Why::TimeIsUp).await;
    let noted = seen.try_recv().is_ok();
    while seen.try_recv().is_ok() {}
    noted
}

fn start(path: &Path) -> (FileWatch, mpsc::Receiver<()>) {
    let (sender, changes) = mpsc::channel(1);
    (FileWatch::start(path, Stamp::of(path), sender).unwrap(), changes)
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn other_files_of_the_directory_do_not_count() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let (_watch, mut changes) = start(&path);
        // Such as the access log.
        for i in 0..200 {
            std::fs::write(directory.path().join("other"), vec![b'x'; i]).unwrap();
        }
        std::fs::read(&path).unwrap();
        assert!(!noted_by_now(directory.path(), &mut changes).await);
        std::fs::write(&path, "other").unwrap();
        assert!(noted(&mut changes).await);
        std::fs::write(directory.path().join("fresh"), "three").unwrap();
        // The file may have been seen half written before; that is through now.
        noted_by_now(directory.path(), &mut changes).await;
        std::fs::rename(directory.path().join("fresh"), &path).unwrap();
        assert!(noted(&mut changes).await);
    });
}

#[test]
fn a_change_before_the_watch_counts() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let seen = Stamp::of(&path);
        std::fs::write(&path, "other").unwrap();
        let (sender, mut changes) = mpsc::channel(1);
        let _watch = FileWatch::start(&path, seen, sender).unwrap();
        assert!(noted(&mut changes).await);
    });
}

/// As Kubernetes mounts a ConfigMap: `file` leads to `..data/file`, `..data` to a directory with the present content.
#[test]
fn a_link_on_the_way_counts() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for version in ["..1", "..2"] {
            std::fs::create_dir(at(version)).unwrap();
            std::fs::write(at(version).join("file"), version).unwrap();
        }
        symlink("..1", at("..data")).unwrap();
        symlink("..data/file", at("file")).unwrap();
        let (mut watch, mut changes) = start(&at("file"));
        symlink("..2", at("..data_tmp")).unwrap();
        std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert!(noted(&mut changes).await);
        watch.follow().unwrap();
        // What the link leads to now is watched, what it led to before is not.
        while changes.try_recv().is_ok() {}
        std::fs::write(at("..1/file"), "old and longer").unwrap();
        assert!(!noted_by_now(&at("..1"), &mut changes).await);
        std::fs::write(at("..2/file"), "new and longer").unwrap();
        assert!(noted(&mut changes).await);
    });
}

#[test]
fn links_of_directories_and_links_elsewhere() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        // The temporary directory may be behind a link itself.
        let root = directory.path().canonicalize().unwrap();
        for name in ["v1", "v2", "etc"] {
            std::fs::create_dir(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("real"), name).unwrap();
        }
        symlink(root.join("v1"), root.join("current")).unwrap();
        symlink("../current/real", root.join("etc/file")).unwrap();
        let path = root.join("etc/file");
        let expected = [root.clone(), root.join("etc"), root.join("v1")];
        assert_eq!(directories(&path).unwrap(), BTreeSet::from(expected));
        let (_watch, mut changes) = start(&path);
        symlink("v2", root.join("next")).unwrap();
        std::fs::rename(root.join("next"), root.join("current")).unwrap();
        assert!(noted(&mut changes).await);
        symlink("loop", root.join("loop")).unwrap();
        assert!(directories(&root.join("loop")).is_err());
    });
}
