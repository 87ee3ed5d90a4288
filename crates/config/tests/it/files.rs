//! Files on disk: the configuration itself and the token.

use std::fs;
use std::path::Path;

use plimsoll_config::{Config, HostPort};

use crate::LEAST;

fn load(dir: &Path, text: &[u8]) -> Result<Config, String> {
    let path = dir.join("plimsoll.toml");
    fs::write(&path, text).unwrap();
    let shown = format!("{}/", dir.display());
    Config::load(&path).map_err(|e| e.to_string().replace(&shown, ""))
}

#[test]
fn a_file_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.toml");
    let error = Config::load(&missing).unwrap_err().to_string();
    assert!(error.contains("missing.toml: cannot be read: No such file"), "{error}");
    assert!(Config::load(dir.path()).unwrap_err().to_string().contains("cannot be read"));
}

#[test]
fn a_file_that_is_no_text() {
    let dir = tempfile::tempdir().unwrap();
    let error = load(dir.path(), b"workers = 1\n# caf\xe9\n").unwrap_err();
    assert_eq!(error, "plimsoll.toml:2:6: is not UTF-8; save the file as UTF-8");
    let error = load(dir.path(), &vec![b'\n'; (4 << 20) + 1]).unwrap_err();
    assert!(error.contains("larger than 4 MiB"), "{error}");
    let error = load(dir.path(), &[0xff; 100]).unwrap_err();
    assert!(error.starts_with("plimsoll.toml:1:1: is not UTF-8"), "{error}");
}

#[test]
fn a_token_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{LEAST}[admin]\naddress = \"0.0.0.0:9090\"\ntoken_file = \"admin.token\"\n");
    let with = |token: &[u8]| {
        fs::write(dir.path().join("admin.token"), token).unwrap();
        load(dir.path(), text.as_bytes())
    };
    let token = with(b"0123456789abcdef\n").unwrap().admin.unwrap().token;
    assert_eq!(token.as_deref(), Some("0123456789abcdef"));
    let error = with(b"short-secret\n").unwrap_err();
    assert!(
        error.starts_with("plimsoll.toml:7:14: admin.token_file: the file admin.token: token has 12"),
        "{error}"
    );
    assert!(!error.contains("short-secret"));
    for bad in [&b""[..], b"0123456789 abcdef", &[0xff; 20], &[b'x'; 5000]] {
        assert!(with(bad).is_err());
    }
    fs::remove_file(dir.path().join("admin.token")).unwrap();
    let error = load(dir.path(), text.as_bytes()).unwrap_err();
    assert!(error.contains("admin.token_file: the file admin.token cannot be read"), "{error}");
    fs::create_dir(dir.path().join("admin.token")).unwrap();
    assert!(load(dir.path(), text.as_bytes()).unwrap_err().contains("is no regular file"));
}

#[test]
fn an_access_log_that_is_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("log")).unwrap();
    let error = load(dir.path(), format!("{LEAST}[access_log]\nfile = \"log\"\n").as_bytes()).unwrap_err();
    assert!(error.contains("access_log.file: is a directory"), "{error}");
    let error =
        load(dir.path(), format!("{LEAST}[decision_log]\ndirectory = \"plimsoll.toml\"\n").as_bytes());
    assert!(error.unwrap_err().contains("decision_log.directory: is a file"));
}

#[test]
fn a_handoff_key() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    let text = "mechanism = \"handoff\"\n[[listener]]\naddress = \"10.0.0.9:80\"\n[[backend]]\naddress = \"10.0.0.1:80\"\n\
                agent = \"[fd00::1]:7400\"\n[handoff]\nkey_file = \"key\"\ninterfaces = [\"eth0\"]\n";
    let with = |key: &str, mode: u32| {
        fs::write(&file, key).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        load(dir.path(), text.as_bytes())
    };
    let digits = "0123456789abcdef".repeat(4);
    assert!(with(&digits, 0o640).is_ok(), "a group may read it");
    let config = with(&format!("{digits}\n"), 0o600).unwrap();
    assert_eq!(config.failover, None);
    let shared = format!("{text}[failover]\naddress = \"::ffff:10.0.0.9\"\n");
    let failover = load(dir.path(), shared.as_bytes()).unwrap().failover.unwrap();
    let expected = ("10.0.0.9".parse().unwrap(), std::time::Duration::from_millis(1500));
    assert_eq!((failover.address, failover.settle_timeout), expected);
    let handoff = config.handoff.as_ref().unwrap();
    assert_eq!(handoff.key, plimsoll_wire::Key::parse(&digits).unwrap());
    assert_eq!(config.backends[0].agent, Some(HostPort { host: "fd00::1".to_owned(), port: 7400 }));
    assert_eq!((handoff.min_bytes, handoff.flows, handoff.fallback), (16 << 10, 100_000, false));
    assert!(format!("{config:?}").contains("Key(…)"), "the key does not show");
    assert_eq!(config.to_json()["handoff"]["key_file"], "(hidden)");
    for (key, mode, what) in [
        (&digits[1..], 0o600, "a key is 64 hexadecimal digits"),
        (&"g".repeat(64), 0o600, "a key is 64 hexadecimal digits"),
        (&digits, 0o644, "mode 644"),
        (&digits, 0o660, "mode 660"),
        (&digits, 0o601, "chmod 600"),
    ] {
        let error = with(key, mode).unwrap_err();
        assert!(error.contains("handoff.key_file: key"), "no file: {error}");
        assert!(error.contains(what), "{error}");
        assert!(!error.contains("89abcdef"), "{error}");
    }
}

#[test]
fn a_class_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("classes.toml");
    let text = format!("{LEAST}[classes]\nfile = \"classes.toml\"\n");
    let with = |classes: &str, keys: &str| {
        fs::write(&path, classes).unwrap();
        load(dir.path(), format!("{text}{keys}").as_bytes())
    };
    let search = "[[class]]\nname = \"search\"\ncpu_s = 0.012\ndisk_s = 0.001\nsize_bytes = 8120.0\n";
    let pattern = "[[pattern]]\nclass = \"search\"\npath = \"/search\"\n";
    let config = with(&format!("{search}{pattern}"), "").unwrap();
    let classes = config.classes.as_ref().unwrap();
    let cost = config.class_costs()[0];
    assert_eq!((cost.cpu.as_nanos(), cost.disk.as_nanos(), cost.size_bytes), (12_000_000, 1_000_000, 8120));
    assert_eq!(classes.file.table.class_of(b"GET", b"/search?q=1"), 1);
    assert_eq!(classes.operation_header.as_deref(), Some("x-apollo-operation-name"));
    assert!(!classes.file.names_operations && classes.file.warnings.is_empty());
    assert!(config.files.contains(&path), "it is read again on reload");

    let named = "parameters = { operationName = \"Search\" }\n";
    let other = with(&format!("{search}{pattern}{named}"), "operation_header = \"none\"\n").unwrap();
    let classes = other.classes.as_ref().unwrap();
    assert!(classes.file.names_operations && classes.operation_header.is_none());
    let changes = plimsoll_config::Config::diff(&config, &other);
    let changes = changes.to_string();
    assert!(changes.contains("classes: file changed"), "{changes}");
    assert!(changes.contains("operation_header x-apollo-operation-name -> none"), "{changes}");

    let odd = with(&format!("{search}{pattern}{}", search.replace("search", "other")), "").unwrap();
    assert_eq!(odd.classes.unwrap().file.warnings.len(), 1);
    // Errors name file, line and key.
    let error = with(&format!("{search}{}", pattern.replace("search", "serach")), "").unwrap_err();
    assert!(error.contains("classes.toml:7:1: pattern[0].class: "), "{error}");
    let error = with("[[class]]\nname = \"a\"\ncpu_s = -1\n", "").unwrap_err();
    assert!(error.contains("classes.toml:3:1: class[0].cpu_s: "), "{error}");
    fs::write(&path, b"# one\n# \xff\n").unwrap();
    let error = load(dir.path(), text.as_bytes()).unwrap_err();
    assert!(error.contains("classes.file: ") && error.contains("line 2: is not UTF-8"), "{error}");
}

#[test]
fn back_ends_that_a_directory_tells() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    fs::write(&file, "0123456789abcdef".repeat(4)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let with = |keys: &str| {
        let text = format!(
            "[[listener]]\naddress = \"10.0.0.1:80\"\n[discovery]\nservice = \"album\"\nkey_file = \"key\"\n{keys}"
        );
        load(dir.path(), text.as_bytes())
    };
    let config = with("").unwrap();
    let discovery = config.discovery.as_ref().unwrap();
    assert!(config.backends.is_empty(), "there need be no others");
    assert_eq!((&*discovery.service, &*discovery.partition, discovery.ttl.as_secs()), ("album", "0", 3));
    assert_eq!((discovery.group.to_string().as_str(), &discovery.interface), ("239.255.80.76:7369", &None));
    assert_eq!(config.to_json()["discovery"]["key_file"], "(hidden)");
    let etcd =
        with("transport = \"etcd\"\nendpoints = [\"http://10.0.0.5:2379\"]\nprefix = \"/a/\"\n").unwrap();
    assert_eq!(etcd.discovery.as_ref().unwrap().prefix, "/a");
    assert_eq!(plimsoll_config::Config::diff(&config, &etcd).needs_restart().len(), 3);
    for (keys, key, remedy) in [
        ("transport = \"etcd\"\n", "endpoints", "endpoints = ["),
        ("transport = \"etcd\"\nendpoints = [\"http://h:1\"]\nttl = \"1s\"\n", "ttl", "at least \"3s\""),
        (
            "transport = \"etcd\"\nendpoints = [\"http://h:1\"]\ninterface = \"lo\"\n",
            "interface",
            "remove it",
        ),
        ("endpoints = [\"http://h:1\"]\n", "endpoints", "transport = \"etcd\""),
        ("group = \"[ff02::1]:7369\"\n", "interface", "name of an interface"),
        ("[[backend]]\naddress = \"h\"\n", "backend[0].address", "h"),
    ] {
        let error = with(keys).unwrap_err();
        assert!(error.contains(key) && error.contains(remedy), "{error}");
    }
    assert!(with("[[backend]]\naddress = \"h:1\"\n").unwrap().backends.len() == 1, "beside it");
}

#[test]
fn front_ends_beside_one_another() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    fs::write(&file, "0123456789abcdef".repeat(4)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let text = "[[listener]]\naddress = \"10.0.0.1:80\"\n[[backend]]\nname = \"b0\"\naddress = \"10.0.0.1:8080\"\n\
                [policy]\nname = \"adaptload\"\n[peers]\nname = \"n0\"\nlocal = \"b0\"\naddress = \"10.0.0.1:7500\"\n\
                key_file = \"key\"\nothers = [\"n2=[fd00::2]:7500\", \"n1=node-1.internal:7501\"]\n";
    let config = load(dir.path(), text.as_bytes()).unwrap();
    let peers = config.peers.as_ref().unwrap();
    assert_eq!((peers.name.as_str(), &*peers.local, peers.period.as_millis()), ("n0", "b0", 1000));
    let others: Vec<_> = peers.others.iter().map(|p| (p.name.as_str(), p.host.as_str(), p.port)).collect();
    assert_eq!(others, [("n2", "fd00::2", 7500), ("n1", "node-1.internal", 7501)]);
    let shown = &config.to_json()["peers"];
    assert_eq!((&shown["key_file"], &shown["keep"]), (&"(hidden)".into(), &"30s".into()));
    assert_eq!(shown["others"], serde_json::json!(["n2=[fd00::2]:7500", "n1=node-1.internal:7501"]));
    // Everything about them takes a restart.
    let later = load(dir.path(), text.replace("10.0.0.1:7500", "10.0.0.1:7600").as_bytes()).unwrap();
    let changes = plimsoll_config::Config::diff(&config, &later);
    assert_eq!((changes.keys.len(), changes.needs_restart().len()), (1, 1));
    // Handing off, to the others only.
    let handed = format!(
        "mechanism = \"handoff\"\n{text}[handoff]\nkey_file = \"key\"\ninterfaces = [\"eth0\"]\n\
         [[backend]]\nname = \"b1\"\naddress = \"10.0.0.2:8080\"\nagent = \"10.0.0.2:7400\"\n"
    );
    let config = load(dir.path(), handed.as_bytes()).unwrap();
    assert!(config.handoff.is_some() && config.peers.is_some());
    let local = handed.replace("10.0.0.1:8080\"\n", "10.0.0.1:8080\"\nagent = \"10.0.0.1:7400\"\n");
    let error = load(dir.path(), local.as_bytes()).unwrap_err();
    assert!(
        error.contains("plimsoll.toml:7:9: backend[0].agent: packets cannot be led on")
            && error.contains("remove it:"),
        "{error}"
    );
}
