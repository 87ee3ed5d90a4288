//! What the user is told: file, line, key, what is wrong and what would be right. The texts stand in
//! `tests/golden/errors.txt`; `UPDATE_GOLDEN=1 cargo test -p plimsoll-config` writes them anew.

use std::path::PathBuf;

use plimsoll_config::Config;

use crate::bad_connections::BAD_CONNECTIONS;
use crate::bad_resilience::BAD_RESILIENCE;
use crate::bad_routes::BAD_ROUTES;
use crate::bad_sockets::BAD_SOCKETS;
use crate::documents::golden;
use crate::{LEAST, wrong};

/// The key that each error has to name, and a file with that error; `LEAST` stands before those that start with a
/// table.
const BAD: &[(&str, &str)] = &[
    // Syntax.
    ("policy.name", "[policy]\nname = lard\n"),
    ("timeouts.head", "[timeouts]\nhead = 10s\n"),
    ("policy.seed", "[policy]\nseed =\n"),
    ("policy", "[policy\nseed = 1\n"),
    ("policy.seed", "[policy]\nseed = 1\nseed = 2\n"),
    ("policy", "[policy]\nseed = 1\n[policy]\n"),
    ("backend[1].address", "[[backend]]\naddress = \"10.0.0.2:80\n"),
    ("lard", "lard\n"),
    // What has to be there.
    ("listener", "[[backend]]\naddress = \"10.0.0.1:80\"\n#"),
    ("backend", "[[listener]]\naddress = \"127.0.0.1:0\"\n#"),
    ("backend", "backend = []\n[[listener]]\naddress = \"127.0.0.1:0\"\n#"),
    ("backend[1].address", "[[backend]]\nname = \"b\"\n"),
    ("shadow.policy", "[shadow]\nseed = 3\n"),
    // Keys and tables that are not known.
    ("workrs", "workrs = 2\n"),
    ("healht", "[healht]\nrise = 2\n"),
    ("queue", "queue = 5\n"),
    ("timeouts.first_bite", "[timeouts]\nfirst_bite = \"1s\"\n"),
    ("limits.zebra", "[limits]\nzebra = 1\n"),
    ("backend[1].wieght", "[[backend]]\naddress = \"h:1\"\nwieght = 2\n"),
    ("admission.path", "[admission]\npath = \"/\"\n"),
    ("policy.t_lwo", "[policy]\nname = \"lard\"\nt_lwo = 25\n"),
    ("policy.t_low", "[policy]\nname = \"random\"\nt_low = 25\n"),
    ("shadow.name", "[shadow]\npolicy = \"lard\"\nname = \"a\"\n"),
    // Types.
    ("workers", "workers = \"2\"\n"),
    ("timeouts.idle", "[timeouts]\nidle = 60\n"),
    ("limits.head", "[limits]\nhead = true\n"),
    ("policy.name", "[policy]\nname = 7\n"),
    ("policy.t_low", "[policy]\nname = \"lard\"\nt_low = \"25\"\n"),
    ("admin.enabled", "[admin]\nenabled = \"no\"\n"),
    ("policy", "[[policy]]\nname = \"lard\"\n"),
    ("listener", "[listener]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"10.0.0.1:80\"\n#"),
    ("forwarded.trusted", "[forwarded]\ntrusted = \"10.0.0.0/8\"\n"),
    ("forwarded.trusted[1]", "[forwarded]\ntrusted = [\"::1\", 5]\n"),
    ("target", "target = \"path\"\n"),
    // Back-ends beside one another and beside listeners.
    (
        "backend[0].weight",
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"10.0.0.1:80\"\nweight = 0\n#",
    ),
    (
        "backend[0].address",
        "[[listener]]\naddress = \"0.0.0.0:8080\"\n[[backend]]\naddress = \"localhost:8080\"\n#",
    ),
    ("backend[1].address", "[[backend]]\naddress = \"[::ffff:10.0.0.1]:80\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"::1:80\"\n"),
    // Ranges.
    ("workers", "workers = 0\n"),
    ("backend[1].weight", "[[backend]]\naddress = \"h:1\"\nweight = -1\n"),
    ("backend[1].weight", "[[backend]]\naddress = \"h:1\"\nweight = nan\n"),
    ("backend[1].max_connections", "[[backend]]\naddress = \"h:1\"\nmax_connections = 0\n"),
    ("timeouts.idle", "[timeouts]\nidle = \"25h\"\n"),
    ("timeouts.connect", "[timeouts]\nconnect = \"0s\"\n"),
    ("timeouts.connect", "[timeouts]\nconnect = \"1 parsec\"\n"),
    ("limits.head", "[limits]\nhead = \"2MiB\"\n"),
    ("limits.body", "[limits]\nbody = \"lots\"\n"),
    ("limits.fields", "[limits]\nfields = 257\n"),
    ("health.jitter", "[health]\njitter = 1.5\n"),
    ("policy.t_low", "[policy]\nname = \"lard\"\nt_low = 0\n"),
    ("policy.k_s", "[policy]\nname = \"lard_r\"\nk_s = -1.0\n"),
    ("policy.seed", "[policy]\nseed = -1\n"),
    ("decision_log.files", "[decision_log]\nfiles = 0\n"),
    ("admission.limit", "[admission]\nlimit = 0\n"),
    // Names and addresses.
    ("policy.name", "[policy]\nname = \"lrad\"\n"),
    ("policy.name", "[policy]\nname = \"banana\"\n"),
    ("policy.cache_policy", "[policy]\ncache_policy = \"lro\"\n"),
    ("mechanism", "mechanism = \"handoff\"\n"),
    ("health.probe", "[health]\nprobe = \"htp\"\n"),
    ("target.key", "[target]\nkey = \"url\"\n"),
    ("target.key", "[target]\nkey = \"header:\"\n"),
    ("target.dynamic", "[target]\ndynamic = \"/cgi-bin/\"\n"),
    ("target.dynamic[1]", "[target]\ndynamic = [\"?\", \"cgi-bin\"]\n"),
    ("target.dynamic[0]", "[target]\ndynamic = [\"*\"]\n"),
    ("admission.limit", "[admission]\nlimit = \"12\"\n"),
    ("listener[1].address", "[[listener]]\naddress = \"8080\"\n"),
    ("listener[1].address", "[[listener]]\naddress = \"::1\"\n"),
    ("listener[1].address", "[[listener]]\naddress = \"localhost:80\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"10.0.0.2\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"http://10.0.0.2/\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"10.0.0.256:80\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"fd00::1\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"h:0\"\n"),
    ("backend[1].name", "[[backend]]\naddress = \"h:1\"\nname = \"a b\"\n"),
    ("forwarded.trusted[0]", "[forwarded]\ntrusted = [\"10.0.0.1/8\"]\n"),
    ("forwarded.trusted[0]", "[forwarded]\ntrusted = [\"10.0.0.0/33\"]\n"),
    ("forwarded.trusted[0]", "[forwarded]\ntrusted = [\"::ffff:10.0.0.0/104\"]\n"),
    ("health.status", "[health]\nstatus = \"399-200\"\n"),
    ("health.path", "[health]\npath = \"health\"\n"),
    ("health.host", "[health]\nhost = \"a b\"\n"),
    ("access_log.file", "[access_log]\nfile = \"\"\n"),
    ("admin.token", "[admin]\ntoken = \"secret\"\n"),
    ("admin.token", "[admin]\ntoken = \"0123456789 abcdef\"\n"),
    ("admin.toekn", "[admin]\ntoekn = \"my-secret-my-secret\"\n"),
    ("admin.token", "[admin]\ntoken = my-secret\n"),
    ("admin.toekn", "[admin]\ntoekn = my-secret\n"),
    ("backend[1].address", "[[backend]]\naddress = \"h:+80\"\n"),
    ("admin.token", "[admin]\ntoken \"my-secret\"\n"),
    ("handoff.key_file", "[handoff]\ninterfaces = [\"eth0\"]\n"),
    ("handoff.key_file", "[handoff]\nkey_file = \"none\"\ninterfaces = [\"eth0\"]\n"),
    ("handoff.interfaces", "[handoff]\nkey_file = \"none\"\n"),
    ("handoff.interfaces", "[handoff]\ninterfaces = []\n"),
    ("handoff.interfaces[1]", "[handoff]\ninterfaces = [\"eth0\", \"eth0\"]\n"),
    ("handoff.interfaces[0]", "[handoff]\ninterfaces = [\"an interface\"]\n"),
    ("handoff.name", "[handoff]\nname = \"../x\"\n"),
    ("handoff.take_over_timeout", "[handoff]\ntake_over_timeout = \"1ms\"\n"),
    ("direct.interfaces", "[direct]\n"),
    ("direct.choices", "[direct]\ninterfaces = [\"eth0\"]\nchoices = 65\n"),
    ("direct.attach", "[direct]\ninterfaces = [\"eth0\"]\nattach = \"ebpf\"\n"),
    ("direct.interfaces", "mechanism = \"direct\"\n"),
    ("listener[1].protocol", "[[listener]]\naddress = \"10.0.0.1:53\"\nprotocol = \"udp\"\n"),
    ("listener[1].protocol", "[[listener]]\naddress = \"10.0.0.1:53\"\nprotocol = \"sctp\"\n"),
    ("backend[1].vlan", "[[backend]]\naddress = \"h:1\"\nvlan = 20\n"),
    (
        "backend[0].vlan",
        "mechanism = \"direct\"\n[direct]\ninterfaces = [\"eth0\"]\n[[backend]]\naddress = \"h:1\"\nvlan = 4095\n",
    ),
    ("listener[1].redirect", "[[listener]]\naddress = \"10.0.0.9:80\"\nredirect = \"http\"\n"),
    ("listener[1].tls", "[[listener]]\naddress = \"10.0.0.9:80\"\ntls = true\n"),
    ("listener[1].redirect", "[[listener]]\naddress = \"10.0.0.9:80\"\ntls = true\nredirect = \"https\"\n"),
    ("certificate[0].key", "[[certificate]]\nchain = \"/nowhere/site.pem\"\n"),
    ("certificate[0].chain", "[[certificate]]\nchain = \"/nowhere/site.pem\"\nkey = \"/nowhere/site.key\"\n"),
    ("tls.client_certificates", "[tls]\nclient_certificates = \"required\"\n"),
    ("tls.client_authorities", "[tls]\nclient_authorities = \"/nowhere/authorities.pem\"\n"),
    ("tls.min_version", "[tls]\nmin_version = \"1.1\"\n"),
    ("policy.name", "mechanism = \"direct\"\n[direct]\ninterfaces = [\"eth0\"]\n[policy]\nname = \"lard\"\n"),
    (
        "load_information.from",
        "mechanism = \"direct\"\n[direct]\ninterfaces = [\"eth0\"]\n[load_information]\nfrom = \"header\"\n",
    ),
    ("classes.file", "[classes]\n"),
    ("classes.file", "[classes]\nfile = \"none\"\n"),
    ("classes.operation_header", "[classes]\nfile = \"none\"\noperation_header = \"a b\"\n"),
    ("peers.name", "[peers]\nothers = []\n"),
    ("peers.local", "[peers]\nname = \"n0\"\nlocal = \"nobody\"\nothers = []\n"),
    ("peers.others", "[peers]\nname = \"n0\"\n"),
    ("peers.others[1]", "[peers]\nname = \"n0\"\nothers = [\"n1=h:1\", \"h:1\"]\n"),
    ("peers.others[0]", "[peers]\nname = \"n0\"\nothers = [\"n0=h:1\"]\n"),
    ("peers.others[1]", "[peers]\nname = \"n0\"\nothers = [\"n1=h:1\", \"n1=h:2\"]\n"),
    ("peers.period", "[peers]\nname = \"n0\"\nothers = []\nperiod = \"1ms\"\n"),
    ("peers.keep", "[peers]\nname = \"n0\"\nothers = []\nkeep = \"2s\"\n"),
    ("peers", "[policy]\nname = \"lard\"\n[peers]\nname = \"n0\"\nothers = []\n"),
    ("backend[1].resolve", "[[backend]]\naddress = \"h:1\"\nresolve = \"often\"\n"),
    ("backend[1].resolve", "[[backend]]\naddress = \"h:1\"\nresolve = \"10ms\"\n"),
    ("backend[1].agent", "[[backend]]\naddress = \"h:1\"\nresolve = \"5s\"\nagent = \"h:2\"\n"),
    ("discovery.service", "[discovery]\n"),
    ("discovery.service", "[discovery]\nservice = \"a b\"\n"),
    ("discovery.transport", "[discovery]\nservice = \"a\"\ntransport = \"gossip\"\n"),
    ("discovery.partition", "[discovery]\nservice = \"a\"\npartition = \"0/1\"\n"),
    ("discovery.ttl", "[discovery]\nservice = \"a\"\nttl = \"1ms\"\n"),
    ("discovery.group", "[discovery]\nservice = \"a\"\ngroup = \"10.0.0.1:80\"\n"),
    ("discovery.interface", "[discovery]\nservice = \"a\"\ninterface = \"an interface\"\n"),
    ("discovery.endpoints[0]", "[discovery]\nservice = \"a\"\nendpoints = [\"https://h:2379\"]\n"),
    ("discovery.prefix", "[discovery]\nservice = \"a\"\nprefix = \"services\"\n"),
    ("backend[1].partitions", "[[backend]]\naddress = \"h:1\"\npartitions = [\"0\"]\n"),
    (
        "backend[1].partitions",
        "[[backend]]\naddress = \"h:1\"\npartitions = [\"0\", \"2\"]\n[partitions]\ncount = 2\n",
    ),
    ("backend[1].partitions[0]", "[[backend]]\naddress = \"h:1\"\npartitions = [\"64\"]\n"),
    ("backend[1].partitions", "[[backend]]\naddress = \"h:1\"\npartitions = []\n"),
    (
        "partitions.count",
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"10.0.0.1:80\"\npartitions = [\"0\"]\n\
         [partitions]\ncount = 2\n#",
    ),
    ("partitions.count", "[partitions]\ncount = 65\n"),
    ("partitions.by", "[partitions]\ncount = 2\nby = \"path\"\n"),
    ("mechanism", "mechanism = \"auto\"\n[partitions]\ncount = 2\n"),
    ("shadow", "[shadow]\npolicy = \"random\"\n[partitions]\ncount = 2\n"),
    ("load_information.key_file", "[load_information]\nfrom = \"poll\"\n"),
    ("load_information.listen", "[load_information]\nfrom = \"broadcast\"\nkey_file = \"none\"\n"),
    ("load_information.timeout", "[load_information]\ntimeout = \"2s\"\n"),
    ("load_information.interval", "[load_information]\ninterval = \"1ms\"\n"),
    ("load_information.group", "[load_information]\ngroup = \"10.0.0.1\"\n"),
    ("load_information.listen", "[load_information]\nlisten = \"239.255.74.1:7403\"\n"),
    ("load_information.group_interface", "[load_information]\ngroup_interface = \"::1\"\n"),
    ("load_information.header", "[load_information]\nheader = \"a b\"\n"),
    ("load_information.metric", "[load_information]\nmetric = \"a=b\"\n"),
    ("load_information.size", "[load_information]\nsize = 9\n"),
    ("load_information.from", "[load_information]\nfrom = \"guess\"\n"),
    ("load_information.key_file", "[load_information]\nkey_file = \"none\"\n"),
    ("load_information.max_age", "[load_information]\nfrom = \"header\"\nmax_age = \"2ms\"\n"),
    ("load_information.interval", "[load_information]\nfrom = \"poll\"\ninterval = \"2s\"\n"),
    ("load_information.metric", "[load_information]\nfrom = \"broadcast\"\nmetric = \"a\"\n"),
    ("backend[1].load_port", "[[backend]]\naddress = \"h:1\"\nload_port = 0\n"),
    ("failover.address", "[failover]\n"),
    ("failover.address", "[failover]\naddress = \"127.0.0.1:80\"\n"),
    ("failover.address", "[failover]\naddress = \"192.0.2.80\"\n"),
    ("failover.settle_timeout", "[failover]\naddress = \"127.0.0.1\"\nsettle_timeout = \"1ms\"\n"),
    ("failover", "[failover]\naddress = \"127.0.0.1\"\n"),
    ("backend[1].agent", "[[backend]]\naddress = \"h:1\"\nagent = \"h\"\n"),
    // What does not go together.
    (
        "listener[2].address",
        "[[listener]]\naddress = \"0.0.0.0:81\"\n[[listener]]\naddress = \"127.0.0.1:81\"\n",
    ),
    ("backend[1].address", "[[backend]]\nname = \"b\"\naddress = \"10.0.0.1:80\"\n"),
    (
        "backend[2].name",
        "[[backend]]\nname = \"b\"\naddress = \"h:1\"\n[[backend]]\nname = \"b\"\naddress = \"h:2\"\n",
    ),
    ("policy.t_high", "[policy]\nname = \"lard\"\nt_low = 70\nt_high = 60\n"),
    ("policy.t_low", "[policy]\nname = \"lard\"\nt_low = 70\n"),
    ("health.fast_interval", "[health]\nfast_interval = \"2s\"\n"),
    ("health.path", "[health]\nprobe = \"tcp\"\npath = \"/\"\n"),
    ("admin.address", "[admin]\naddress = \"0.0.0.0:9090\"\n"),
    ("admin.address", "[[listener]]\naddress = \"0.0.0.0:9090\"\n[admin]\naddress = \"127.0.0.1:9090\"\n"),
    ("admin.address", "[[listener]]\naddress = \"0.0.0.0:9090\"\n"),
    ("admin.token_file", "[admin]\ntoken = \"0123456789abcdef\"\ntoken_file = \"none\"\n"),
    ("decision_log.directory", "[access_log]\nfile = \"d/./a.log\"\n[decision_log]\ndirectory = \"d\"\n"),
];

fn whole(text: &str) -> String {
    // What opens with a table follows the least configuration, a bare key stands before it.
    match text {
        text if text.ends_with('#') => text.to_owned(),
        text if text.starts_with('[') => format!("{LEAST}{text}"),
        text => format!("{text}{LEAST}"),
    }
}

/// All of them.
fn bad() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    [BAD, BAD_ROUTES, BAD_RESILIENCE, BAD_CONNECTIONS, BAD_SOCKETS].into_iter().flatten()
}

#[test]
fn every_error_names_line_key_and_remedy() {
    let mut out = String::new();
    for (key, text) in bad() {
        let errors = wrong(&whole(text));
        out += &format!("{}\n{}\n", text.trim_end_matches(['#', '\n']), errors.render());
        assert!(errors.errors().iter().any(|e| e.key == *key), "no error about {key}: {errors}");
        for error in errors.errors() {
            let place = error.place.unwrap();
            let start = format!("plimsoll.toml:{}:{}: {}", place.line, place.column, error.key);
            assert!(error.to_string().starts_with(&start), "{error}");
            assert!(!error.what.is_empty() && !error.remedy.is_empty(), "{error}");
        }
        assert!(!errors.render().contains("secret"), "a token is shown: {errors}");
    }
    golden(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/errors.txt")), &out);
}

/// What is wrong with announcements that come in by these keys.
fn wrong_announcements(keys: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("load.key");
    std::fs::write(&path, "0123456789abcdef".repeat(4)).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let file = path.to_str().unwrap();
    let text = format!("{LEAST}[load_information]\nfrom = \"broadcast\"\nkey_file = {file:?}\n{keys}");
    Config::parse(&text, "plimsoll.toml").map_or_else(|errors| errors.render(), |_| String::new())
}

#[test]
fn group_interface_and_listener_of_announcements_have_to_go_together() {
    let listen = |at: &str, more: &str| wrong_announcements(&format!("listen = {at:?}\n{more}"));
    for (wrong, remedy) in [
        (listen("0.0.0.0:7403", "group = \"ff05::7401\"\n"), "write e.g. \"[::]:7403\""),
        (listen("[::]:7403", "group = \"239.255.74.1\"\n"), "write e.g. \"0.0.0.0:7403\""),
        (listen("0.0.0.0:0", "group = \"239.255.74.1\"\n"), "write the port"),
        (listen("[::]:7403", "group = \"ff02::7401\"\n"), "name of an interface"),
        (
            listen("[::]:7403", "group = \"ff05::7401\"\ngroup_interface = \"10.0.0.1\"\n"),
            "name of an interface",
        ),
        (listen("0.0.0.0:7403", "group_interface = \"eth0\"\n"), "name the `group`"),
    ] {
        assert!(wrong.contains(remedy), "{wrong}");
    }
    for good in [
        listen("0.0.0.0:0", ""),
        listen("0.0.0.0:7403", "group = \"239.255.74.1\"\ngroup_interface = \"10.0.0.1\"\n"),
        listen("10.0.0.1:7403", "group = \"239.255.74.1\"\ngroup_interface = \"eth0\"\n"),
        listen("[::]:7403", "group = \"ff02::7401\"\ngroup_interface = \"eth0\"\n"),
        listen("[::]:7403", "group = \"ff05::7401\"\n"),
    ] {
        assert_eq!(good, "");
    }
}

#[test]
fn the_line_is_that_of_the_value() {
    let mut checked = 0;
    let all = bad();
    for (key, text) in all.filter(|(key, _)| key.contains('.')) {
        let text = whole(text);
        let name = key.rsplit('.').next().unwrap().split('[').next().unwrap();
        let Some(expected) =
            text.lines().collect::<Vec<_>>().iter().rposition(|l| l.starts_with(&format!("{name} =")))
        else {
            continue;
        };
        let error = wrong(&text);
        let found = error.errors().iter().find(|e| e.key == *key);
        let error = found.unwrap_or_else(|| panic!("no error about {key}: {error}"));
        if error.what == "missing" {
            continue;
        }
        checked += 1;
        assert_eq!(error.place.unwrap().line, expected + 1, "{error}\n{text}");
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn what_is_wrong_with_tls_hides_no_other_error() {
    let text = "mechanism = \"direct\"\n[[listener]]\naddress = \"192.0.2.80:80\"\ntls = true\n\
                [[backend]]\naddress = \"192.0.2.11:80\"\ntls = true\n[policy]\nname = \"lard\"\n\
                [tls]\nclient_certificates = \"required\"\n[direct]\ninterfaces = [\"eth0\"]\n[admin]\naddress = \"nowhere\"\n";
    let errors = wrong(text);
    let keys: Vec<&str> = errors.errors().iter().map(|error| &*error.key).collect();
    for key in
        ["listener[0].tls", "backend[0].tls", "tls.client_certificates", "policy.name", "admin.address"]
    {
        assert!(keys.contains(&key), "no {key} in {keys:?}");
    }
}

#[test]
fn all_errors_are_reported_at_once_in_the_order_of_the_file() {
    let text = "workers = 0\n[[listener]]\naddress = \"x\"\n[[backend]]\naddress = \"h\"\nweight = -1\n\
                [policy]\nname = \"lard\"\nt_low = 0\nt_hgih = 5\n[health]\nrise = 0\nfall = \"1\"\n";
    let errors = wrong(text);
    let keys: Vec<&str> = errors.errors().iter().map(|e| e.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "workers",
            "listener[0].address",
            "backend[0].address",
            "backend[0].weight",
            "policy.t_low",
            "policy.t_hgih",
            "health.rise",
            "health.fall"
        ]
    );
    assert_eq!(errors.to_string().lines().count(), 8);
}

#[test]
fn a_file_that_is_something_else_does_not_fill_the_screen() {
    let noise: String = (0..10_000).map(|n| format!("server {n} {{ listen 80; }}\n")).collect();
    assert!((1..=50).contains(&wrong(&noise).errors().len()));
    let keys: String = (0..10_000).map(|n| format!("key{n} = {n}\n")).collect();
    assert_eq!(wrong(&keys).errors().len(), 50);
    let line = format!("backend = [{}]\n", "{ address = \"h\" }, ".repeat(20_000));
    assert_eq!(wrong(&line).errors().len(), 50);
}

#[test]
fn deep_nesting_is_an_error() {
    wrong(&format!("a = {}", "[".repeat(100_000)));
    wrong(&format!("{} = 1", vec!["a"; 100_000].join(".")));
}
