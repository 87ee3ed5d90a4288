//! Files with errors about back-ends behind Unix sockets, as those of `errors`.

use std::path::Path;

use plimsoll_config::Config;

use crate::{LEAST, wrong};

pub(crate) const BAD_SOCKETS: &[(&str, &str)] = &[
    ("backend[1].address", "[[backend]]\naddress = \"unix:\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"unix:run/app.sock\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"unix:///run/app.sock\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"unix:/run/app/\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"unix:/run/app\\u0000.sock\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"/run/app.sock\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"http://unix:/run/app.sock:/\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"unix@/run/app.sock\"\n"),
    (
        "backend[1].address",
        "[[backend]]\naddress = \"unix:/srv/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/\
         0123456789/0123456789/app.sock\"\n",
    ),
    (
        "backend[2].address",
        "[[backend]]\naddress = \"unix:/run/app.sock\"\n[[backend]]\nname = \"b\"\naddress = \"unix:/run/./app.sock\"\n",
    ),
    ("backend[1].name", "[[backend]]\naddress = \"unix:/run/our app.sock\"\n"),
    ("backend[1].resolve", "[[backend]]\naddress = \"unix:/run/app.sock\"\nresolve = \"5s\"\n"),
    ("backend[1].tls", "[[backend]]\naddress = \"unix:/run/app.sock\"\ntls = true\n"),
    ("backend[1].tls_name", "[[backend]]\naddress = \"unix:/run/app.sock\"\ntls_name = \"app\"\n"),
    ("backend[1].agent", "[[backend]]\naddress = \"unix:/run/app.sock\"\nagent = \"h:1\"\n"),
    ("backend[1].load_port", "[[backend]]\naddress = \"unix:/run/app.sock\"\nload_port = 1\n"),
    (
        "backend[0].address",
        "mechanism = \"direct\"\n[[listener]]\naddress = \"10.0.0.9:80\"\n[[backend]]\naddress = \"unix:/run/app.sock\"\n\
         [policy]\nname = \"round_robin\"\n[direct]\ninterfaces = [\"eth0\"]\n#",
    ),
];

fn parse(backend: &str) -> Config {
    let text = format!("[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\n{backend}\n");
    Config::parse(&text, "plimsoll.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_unix_socket_is_a_place_with_a_name() {
    let longest = format!("/{}", "a".repeat(106));
    for path in ["/run/app.sock", &longest] {
        let config = parse(&format!("address = \"unix:{path}\""));
        let backend = &config.backends[0];
        assert_eq!(backend.at.socket().map(|at| &**at), Some(Path::new(path)));
        assert_eq!((&*backend.name, backend.address()), (&*format!("unix:{path}"), format!("unix:{path}")));
        assert_eq!(backend.authority(), "localhost");
        assert_eq!(config.to_json()["backend"][0]["address"], format!("unix:{path}"));
    }
    let named = parse(
        "name = \"app\"\naddress = \"unix:/run/our app.sock\"\nresolve = \"once\"\nhttp2 = true\nload_port = 7401",
    );
    assert_eq!((&*named.backends[0].name, named.backends[0].http2), ("app", true));
}

#[test]
fn a_unix_socket_tells_no_load_over_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "00".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let socket = "[[backend]]\naddress = \"unix:/run/app.sock\"\n[load_information]\n";
    for (from, more) in [("poll", ""), ("broadcast", "listen = \"127.0.0.1:7403\"\n")] {
        let text = format!("{LEAST}{socket}from = \"{from}\"\nkey_file = {key:?}\n{more}");
        let errors = wrong(&text).to_string();
        assert!(errors.contains("backend[1].address") && errors.contains("`from = \"header\"`"), "{errors}");
    }
    Config::parse(&format!("{LEAST}{socket}from = \"header\"\n"), "plimsoll.toml").unwrap();
}
