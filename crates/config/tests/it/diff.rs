//! What a reload changes.

use plimsoll_config::{Changes, Config};

use crate::{EXAMPLE, LEAST, parse};

fn changes(old: &str, new: &str) -> Changes {
    Config::diff(&parse(old), &parse(new))
}

fn lines(old: &str, new: &str) -> Vec<String> {
    changes(old, new).to_string().lines().map(str::to_owned).collect()
}

fn cluster(backends: &str) -> String {
    let tables = backends.split(' ').map(|b| {
        let mut parts = b.split('/');
        let (name, address, weight) =
            (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or("1"));
        format!("[[backend]]\nname = \"{name}\"\naddress = \"{address}\"\nweight = {weight}\n")
    });
    let tables: String = tables.collect();
    format!("[[listener]]\naddress = \"127.0.0.1:8080\"\n{tables}")
}

#[test]
fn equal_configurations_have_no_differences() {
    assert!(changes(EXAMPLE, EXAMPLE).is_empty());
    // Defaults written out, an alias, another order and comments change nothing.
    let (a, b) = (cluster("a/h:1 b/h:2"), cluster("b/h:2 a/h:1"));
    let b = format!("{b}[policy] # none\nname = \"wrr\"\n[limits]\nfields = 100\n[admin]\n");
    assert_eq!(lines(&a, &b), [""; 0]);
}

#[test]
fn backends_are_matched_by_name() {
    let (old, new) = (cluster("a/h:1 b/h:2 c/h:3/2"), cluster("d/h:4 a/h:1/2 b/i:2"));
    let c = changes(&old, &new);
    assert_eq!(
        c.to_string(),
        "backend d: added, h:4\nbackend c: removed\nbackend a: weight 1 -> 2\nbackend b: address h:2 -> i:2"
    );
    let moved: Vec<_> = c.backends_changed.iter().map(|b| (&*b.name, b.moved())).collect();
    assert_eq!(moved, [("a", false), ("b", true)]);
    assert_eq!((&*c.backends_added[0].name, &*c.backends_removed[0].name), ("d", "c"));
    assert!(c.keys.is_empty() && c.needs_restart().is_empty());
}

#[test]
fn listeners_are_matched_by_address() {
    let old = cluster("a/h:1");
    let new = format!(
        "{}[[listener]]\naddress = \"[::1]:8080\"\n",
        old.replace("127.0.0.1:8080", "127.0.0.1:8081")
    );
    assert_eq!(
        lines(&old, &new),
        ["listener 127.0.0.1:8081: added", "listener [::1]:8080: added", "listener 127.0.0.1:8080: removed"]
    );
    // The same address for datagrams is another listener.
    let direct = format!("mechanism = \"direct\"\n{old}[direct]\ninterfaces = [\"eth0\"]\n");
    let both = format!("{direct}[[listener]]\naddress = \"127.0.0.1:8080\"\nprotocol = \"udp\"\n");
    assert_eq!(lines(&direct, &both), ["listener 127.0.0.1:8080/udp: added"]);
}

#[test]
fn every_table_has_its_changes() {
    for (table, expected) in [
        ("[policy]\nseed = 2", "policy: seed 1 -> 2"),
        ("[shadow]\npolicy = \"random\"", "shadow: policy (none) -> random"),
        ("[target]\nkey = \"path\"", "target: key path_query -> path"),
        ("[admission]\nlimit = 5", "admission: limit adaptive -> 5"),
        ("[health]\nrise = 3", "health: rise 2 -> 3"),
        ("[timeouts]\nhead = \"1m\"", "timeouts: head 10s -> 60s"),
        ("[limits]\nbody = \"1MiB\"", "limits: body none -> 1MiB"),
        ("[forwarded]\ntrusted = [\"::1\"]", "forwarded: trusted [] -> [::1/128]"),
        ("[admin]\ntoken = \"0123456789abcdef\"", "admin: token (none) -> (hidden)"),
        ("[access_log]", "access_log: file (none) -> -"),
        ("[decision_log]", "decision_log: directory (none) -> decisions"),
    ] {
        let c = changes(LEAST, &format!("{LEAST}{table}\n"));
        assert_eq!(c.to_string().lines().next(), Some(expected));
        let name = expected.split(':').next().unwrap();
        assert!(c.section_changed(name) && c.keys.iter().all(|k| k.section == name));
        assert!(c.needs_restart().is_empty(), "{table}");
    }
}

#[test]
fn another_policy_brings_its_parameters() {
    let old = format!("{LEAST}[policy]\nname = \"lard\"\nt_low = 10\n");
    let new = format!("{LEAST}[policy]\nname = \"lard_r\"\n");
    assert_eq!(
        lines(&old, &new),
        ["policy: name lard -> lard_r", "policy: t_low 10 -> 25", "policy: k_s (none) -> 20"]
    );
}

#[test]
fn what_needs_a_restart_says_so() {
    let old = format!("workers = 1\n{LEAST}");
    let new = format!("workers = 2\n{LEAST}[admin]\naddress = \"127.0.0.1:9191\"\n[limits]\nretries = 0\n");
    let c = changes(&old, &new);
    let keys: Vec<_> = c.needs_restart().iter().map(|k| (k.section, k.key)).collect();
    assert_eq!(keys, [("", "workers"), ("admin", "address")]);
    assert!(c.to_string().contains("workers 1 -> 2 (after a restart)"), "{c}");
    let off = changes(LEAST, &format!("{LEAST}[admin]\nenabled = false\n"));
    assert_eq!(off.needs_restart().len(), 2);
}

#[test]
fn a_token_is_compared_and_not_shown() {
    let with = |token: &str| format!("{LEAST}[admin]\ntoken = \"{token}\"\n");
    assert_eq!(lines(&with("0123456789abcdef"), &with("fedcba9876543210")), ["admin: token changed"]);
    assert!(changes(&with("0123456789abcdef"), &with("0123456789abcdef")).is_empty());
    let c = parse(&with("0123456789abcdef"));
    assert!(!c.to_json().to_string().contains("0123") && !format!("{c:?}").contains("0123"));
}

#[test]
fn pools_and_routes() {
    let of = |pool: &str, routes: &str| {
        format!(
            "{}[[pool]]\nname = \"api\"\n{pool}[[backend]]\nname = \"p\"\naddress = \"p:1\"\npool = \"api\"\n{routes}",
            cluster("a/h:1")
        )
    };
    let (plain, lard) = (of("", ""), of("[pool.policy]\nname = \"lard\"\n[pool.limits]\nretries = 1\n", ""));
    assert_eq!(lines(&plain, &plain), [""; 0]);
    let changed = lines(&plain, &lard);
    assert_eq!(changed[0], "pool api: policy: name weighted_round_robin -> lard");
    assert_eq!(changed.last().unwrap(), "pool api: limits: retries 3 -> 1");
    let routed = of("", "[[route]]\npath = \"/a\"\npool = \"api\"\n");
    assert_eq!(lines(&plain, &routed), ["routes: changed, 0 -> 1"]);
    assert_eq!(lines(&cluster("a/h:1"), &plain), ["backend p: added, p:1", "pool api: added"]);
    let json = parse(&routed).to_json();
    assert_eq!(parse_json(&json, "pool")["policy"]["name"], "weighted_round_robin");
    assert_eq!(parse_json(&json, "route")["pool"], "api");
    // What is not written below a pool is as at the top, and what is of the whole front-end always.
    let config =
        parse(&of("[pool.timeouts]\nconnect = \"2s\"\n", "[timeouts]\nidle = \"9s\"\nfirst_byte = \"8s\"\n"));
    let pool = &config.pools[0];
    assert_eq!((pool.timeouts.idle.as_secs(), pool.timeouts.first_byte.as_secs()), (9, 60));
    assert_eq!((&pool.health, config.of_pool(pool).backends.len()), (&config.health, 1));
}

fn parse_json<'a>(json: &'a serde_json::Value, list: &str) -> &'a serde_json::Value {
    &json[list][0]
}
