//! What a path may and may not lead to.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use plimsoll_origin::{OriginConfig, Source};

use crate::client::{MODIFIED_S, Running, site, write};

#[tokio::test]
async fn paths_lead_to_files_below_the_root_only() {
    let outside =
        site(&[("secret", b"secret"), ("root/a b.txt", b"spaced"), ("root/d/index.html", b"index")]);
    let root = outside.path().join("root");
    for name in ["ä.txt", "100%.txt", "...", "a?b"] {
        write(&root.join(name), name.as_bytes(), MODIFIED_S);
    }
    let origin = Running::files(&root).await;
    for (target, status, body) in [
        ("/a%20b.txt", 200, "spaced"),
        ("/%61%20b.txt?query=1", 200, "spaced"),
        ("//./a%20b.txt", 200, "spaced"),
        ("/%C3%A4.txt", 200, "ä.txt"),
        ("/100%25.txt", 200, "100%.txt"),
        ("/...", 200, "..."),
        ("/a%3fb", 200, "a?b"),
        ("/d/", 200, "index"),
        ("/d/index.html", 200, "index"),
        ("/d/index.html/", 404, ""),
        ("/d/none", 404, ""),
        ("/", 404, ""),
        ("/none/", 404, ""),
        ("/a%20b.txt/more", 404, ""),
        ("/../secret", 400, ""),
        ("/d/../../secret", 400, ""),
        ("/d/%2e%2e/%2E./secret", 400, ""),
        ("/..%2fsecret", 404, ""),
        ("/d%2findex.html", 404, ""),
        ("/%00", 400, ""),
        ("/a%20b.txt%00.html", 400, ""),
        ("/%zz", 400, ""),
        ("/%4", 400, ""),
    ] {
        let answer = origin.get(target).await;
        assert_eq!(answer.status, status, "{target}");
        assert!(status != 200 || answer.text() == body, "{target}: {}", answer.text());
    }
    let long = format!("/{}", "x".repeat(5000));
    assert_eq!(origin.get(&long).await.status, 404);
    let deep = "/d".repeat(3000);
    assert_eq!(origin.get(&deep).await.status, 404);
}

#[tokio::test]
async fn directories_get_their_slash() {
    let site = site(&[("d e/index.html", b"index"), ("evil.example/index.html", b"index")]);
    let origin = Running::files(site.path()).await;
    for (target, location) in
        [("/d%20e", "/d%20e/"), ("/d%20e?q=1&r", "/d%20e/?q=1&r"), ("//evil.example", "/evil.example/")]
    {
        let answer = origin.get(target).await;
        assert_eq!((answer.status, answer.header("location")), (301, location), "{target}");
    }
    let absolute = origin.ask("GET", "http://origin//evil.example", &[]).await;
    assert_eq!(absolute.header("location"), "/evil.example/");
}

#[tokio::test]
async fn symbolic_links() {
    let site = site(&[("outside/secret", b"secret"), ("root/a", b"inside")]);
    let root = site.path().join("root");
    symlink("a", root.join("within")).unwrap();
    symlink("../outside/secret", root.join("out")).unwrap();
    symlink(site.path().join("outside"), root.join("dir")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let strict = Running::files(&root).await;
    for (target, status) in [
        ("/within", 200),
        ("/out", 404),
        ("/dir/secret", 404),
        ("/dir", 404),
        ("/loop", 404),
        ("/dangling", 404),
    ] {
        assert_eq!(strict.get(target).await.status, status, "{target}");
    }
    // Two paths to one file are one object.
    assert_eq!(strict.get("/a").await.header("x-cache"), "hit");
    let follows = Running::start(OriginConfig::new(Source::files(&root, true).unwrap())).await;
    for (target, status) in [("/out", 200), ("/dir/secret", 200), ("/dir", 301), ("/loop", 404)] {
        assert_eq!(follows.get(target).await.status, status, "{target}");
    }
}

#[tokio::test]
async fn what_is_no_file() {
    let site = site(&[("sealed", b"x")]);
    let _socket = std::os::unix::net::UnixListener::bind(site.path().join("socket")).unwrap();
    fs::set_permissions(site.path().join("sealed"), fs::Permissions::from_mode(0o000)).unwrap();
    let origin = Running::files(site.path()).await;
    assert_eq!(origin.get("/socket").await.status, 404);
    // Who may read everything reads this too.
    let expected = if fs::read(site.path().join("sealed")).is_ok() { 200 } else { 403 };
    assert_eq!(origin.get("/sealed").await.status, expected);
}

#[test]
fn roots_that_cannot_be_served() {
    let site = site(&[("file", b"x")]);
    for (name, why) in [("none", "No such file"), ("file", "Not a directory")] {
        let text = Source::files(site.path().join(name), false).unwrap_err().to_string();
        assert!(text.contains(name) && text.contains(why), "{text}");
    }
}
