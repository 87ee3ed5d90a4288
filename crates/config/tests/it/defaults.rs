//! What a configuration amounts to.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use plimsoll_config::{
    AccessLogFormat, AdmissionLimitConfig, Config, HealthProbe, IpNet, TargetKey, WhenFull,
};
use plimsoll_policy::params::ParamValue;
use plimsoll_policy::{AdmissionLimit, Nanos, Thresholds, Weight};

use crate::{EXAMPLE, LEAST, parse};

#[test]
fn the_least_configuration_has_the_documented_defaults() {
    let c = parse(LEAST);
    assert_eq!(c.listeners[0].address, "127.0.0.1:0".parse::<SocketAddr>().unwrap());
    let b = &c.backends[0];
    let at = b.at.host().unwrap();
    assert_eq!((&*b.name, at.host.as_str(), at.port), ("10.0.0.1:80", "10.0.0.1", 80));
    assert_eq!((b.weight, b.max_connections), (Weight::ONE, 4096));
    assert_eq!((c.policy.spec.name, c.policy.seed), ("weighted_round_robin", 1));
    assert_eq!((c.policy.cache_bytes, c.policy.cache.name), (32 << 20, "gds"));
    assert!(c.shadow.is_none() && c.access_log.is_none() && c.decision_log.is_none());
    assert_eq!((c.target.key.clone(), c.target.sizes), (TargetKey::PathQuery, 1_000_000));
    assert_eq!((c.admission.limit, c.admission.queue), (AdmissionLimitConfig::Adaptive, 16_384));
    assert_eq!((c.admission.queue_timeout, c.admission.retry_after_s), (Duration::from_secs(10), 1));
    let probe = HealthProbe::Http { path: "/".into(), host: None, status_min: 200, status_max: 499 };
    let with_path = parse(&format!("{LEAST}[health]\npath = \"/health\"\n")).health.probe;
    assert!(matches!(with_path, HealthProbe::Http { status_max: 399, .. }));
    assert_eq!((&c.health.probe, c.health.jitter_permille), (&probe, 200));
    assert_eq!(
        (c.health.interval, c.health.fast_interval),
        (Duration::from_secs(1), Duration::from_millis(250))
    );
    assert_eq!((c.health.timeout, c.health.rise, c.health.fall), (Duration::from_millis(500), 2, 2));
    let t = &c.timeouts;
    let seconds =
        [t.head, t.body, t.idle, t.backend_idle, t.connect, t.first_byte, t.drain].map(|d| d.as_secs());
    assert_eq!(seconds, [10, 60, 60, 30, 1, 60, 30]);
    let l = &c.limits;
    assert_eq!((l.head_bytes, l.fields, l.body_bytes, l.connections), (16 << 10, 100, None, 10_000));
    assert_eq!((l.requests_per_connection, l.retries), (1_000_000, 3));
    assert!(c.forwarded.trusted.is_empty());
    let admin = c.admin.unwrap();
    assert_eq!((admin.address.to_string().as_str(), admin.token), ("127.0.0.1:9090", None));
    assert!(c.workers >= 1);
}

#[test]
fn a_back_end_on_a_listeners_port_in_the_other_family_is_another_server() {
    for (listener, backend) in [("[::]:8080", "127.0.0.1:8080"), ("0.0.0.0:8080", "[::1]:8080")] {
        let c =
            parse(&format!("[[listener]]\naddress = \"{listener}\"\n[[backend]]\naddress = \"{backend}\"\n"));
        assert_eq!(c.backends.len(), 1);
    }
}

#[test]
fn values_are_read() {
    let c = parse(&format!(
        "workers = 3\n{LEAST}name = \"a\"\nweight = 0.5\n[[backend]]\naddress = \"[FD00::1]:81\"\n\
         [[backend]]\naddress = \"App.Internal:82\"\n"
    ));
    assert_eq!((c.workers, &*c.backends[0].name), (3, "a"));
    assert_eq!(c.backends[0].weight, Weight::new(0.5).unwrap());
    let at = |index: usize| c.backends[index].at.host().unwrap();
    assert_eq!((at(1).host.as_str(), at(1).port), ("fd00::1", 81));
    assert_eq!(c.backends[1].address(), "[fd00::1]:81");
    assert_eq!((at(2).host.as_str(), &*c.backends[2].name), ("app.internal", "App.Internal:82"));
}

#[test]
fn tables_are_read() {
    let c = parse(&format!(
        "{LEAST}[policy]\nname = \"LARD/R\"\nt_low = 10\nk_s = 2.5\nseed = 0x10\n\
         [target]\nkey = \"header:X-Key\"\n[admission]\nlimit = 12\nqueue_timeout = \"0s\"\nretry_after = \"1500ms\"\n\
         [health]\nprobe = \"tcp\"\ninterval = \"100ms\"\n[limits]\nbody = 1_000\n[admin]\nenabled = false\n\
         [access_log]\n[decision_log]\nwhen_full = \"stop\"\nfile_size = \"1MiB\"\n\
         [forwarded]\ntrusted = [\"10.0.0.0/8\", \"::1\"]\n"
    ));
    assert_eq!((c.policy.spec.name, c.policy.seed), ("lard_r", 16));
    let given: Vec<_> = c.policy.params.given().collect();
    let k = ParamValue::Seconds(Nanos::from_millis(2500));
    assert_eq!(given, [("t_low", ParamValue::Integer(10)), ("k_s", k)]);
    assert_eq!(c.policy.thresholds(), Thresholds { t_low: 10, t_high: 65 });
    assert_eq!(c.target.key, TargetKey::Header("x-key".into()));
    assert_eq!(c.admission_limit(), AdmissionLimit::Fixed(12));
    assert_eq!((c.admission.queue_timeout, c.admission.retry_after_s), (Duration::ZERO, 2));
    assert_eq!((&c.health.probe, c.health.fast_interval), (&HealthProbe::Tcp, Duration::from_millis(100)));
    assert_eq!(c.limits.body_bytes, Some(1000));
    assert_eq!(c.admin, None);
    let log = c.access_log.unwrap();
    assert_eq!((log.file, log.format), (None, AccessLogFormat::Combined));
    let log = c.decision_log.unwrap();
    assert_eq!((log.directory.as_path(), log.file_bytes), (Path::new("decisions"), 1 << 20));
    assert_eq!((log.files, log.when_full), (16, WhenFull::Stop));
    let net = IpNet { address: "10.0.0.0".parse().unwrap(), prefix_bits: 8 };
    assert_eq!(c.forwarded.trusted[0], net);
    assert_eq!(c.forwarded.trusted[1].prefix_bits, 128);
}

#[test]
fn trusted_blocks_hold_their_addresses_only() {
    let trusted = |block: &str, ip: &str| {
        let c = parse(&format!("{LEAST}[forwarded]\ntrusted = [\"{block}\"]\n"));
        c.forwarded.trusted[0].contains(ip.parse::<IpAddr>().unwrap())
    };
    assert!(trusted("10.0.0.0/8", "10.255.0.1") && !trusted("10.0.0.0/8", "11.0.0.1"));
    assert!(trusted("10.0.0.0/8", "::ffff:10.1.2.3"));
    assert!(trusted("0.0.0.0/0", "255.255.255.255") && !trusted("0.0.0.0/0", "::1"));
    assert!(trusted("::/0", "::1") && !trusted("::/0", "1.2.3.4"));
    assert!(trusted("::1", "::1") && !trusted("::1", "::2"));
    assert!(trusted("192.0.2.7", "192.0.2.7") && !trusted("192.0.2.7", "192.0.2.6"));
}

#[test]
fn paths_are_relative_to_the_file() {
    let text = format!("{LEAST}[access_log]\nfile = \"a.log\"\n[decision_log]\ndirectory = \"/var/d\"\n");
    let c = Config::parse(&text, "etc/plimsoll.toml").unwrap();
    assert_eq!(c.access_log.unwrap().file.unwrap(), Path::new("etc/a.log"));
    assert_eq!(c.decision_log.unwrap().directory, Path::new("/var/d"));
}

#[test]
fn every_policy_is_accepted_with_its_defaults_written_out() {
    for spec in plimsoll_policy::REGISTRY {
        let params: String = spec.params.iter().map(|p| format!("{} = {}\n", p.name, p.default)).collect();
        for table in ["[policy]\nname", "[shadow]\npolicy"] {
            let c = parse(&format!("{LEAST}{table} = \"{}\"\n{params}", spec.name));
            let policy = c.shadow.map_or(c.policy, |shadow| shadow.policy);
            assert_eq!(policy.spec.name, spec.name);
            assert_eq!(policy.params.given().count(), spec.params.len());
            assert_eq!(policy.params.iter().count(), spec.params.len());
            assert!(policy.build(1, std::sync::Arc::default()).is_ok());
        }
    }
}

/// The effective configuration in TOML.
fn to_toml(value: &serde_json::Value) -> String {
    let object = |value: &serde_json::Value| -> String {
        value.as_object().unwrap().iter().map(|(k, v)| format!("{k} = {v}\n")).collect()
    };
    let (mut top, mut rest) = (String::new(), String::new());
    for (key, value) in value.as_object().unwrap() {
        match value {
            serde_json::Value::Object(_) => rest += &format!("[{key}]\n{}", object(value)),
            serde_json::Value::Array(all) => {
                rest.extend(all.iter().map(|one| format!("[[{key}]]\n{}", object(one))));
            }
            scalar => top += &format!("{key} = {scalar}\n"),
        }
    }
    top + &rest
}

#[test]
fn the_effective_configuration_reads_back_as_the_same() {
    let named = LEAST.replace("[[backend]]", "[[backend]]\nname = \"a\"");
    let odd = format!(
        "{named}[health]\nprobe = \"none\"\n[limits]\nbody = \"3kB\"\n[target]\nkey = \"cookie:Id\"\n\
         [admin]\nenabled = false\n[admission]\nlimit = \"none\"\n"
    );
    for text in [EXAMPLE, &named, &odd] {
        let c = parse(text);
        let again = parse(&to_toml(&c.to_json()));
        assert!(Config::diff(&c, &again).is_empty(), "{}", Config::diff(&c, &again));
        // A policy's parameters are all written out now; apart from that, the same.
        assert!(again.policy.params.iter().eq(c.policy.params.iter()));
        let plain = |c: Config| Config { policy: parse(LEAST).policy, shadow: None, ..c };
        assert_eq!(plain(c), plain(again));
    }
}

#[test]
fn each_pool_has_a_cookie_of_its_own() {
    let cookies = |tables: &str| -> Vec<Option<String>> {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"h:1\"\n{tables}\
             [[backend]]\naddress = \"h:2\"\npool = \"api\"\n"
        );
        let config = Config::parse(&text, "test.toml").unwrap();
        let of_pools = config.pools.iter().map(|pool| pool.sticky.as_ref());
        std::iter::once(config.sticky.as_ref())
            .chain(of_pools)
            .map(|sticky| Some(sticky?.cookie.clone()))
            .collect()
    };
    let of = |all: [Option<&str>; 2]| all.map(|one| one.map(str::to_owned)).to_vec();
    let pool = "[[pool]]\nname = \"api\"\n";
    assert_eq!(cookies(&format!("[sticky]\n{pool}")), of([Some("plimsoll"), Some("plimsoll-api")]));
    let named = format!("[sticky]\ncookie = \"s\"\n{pool}");
    assert_eq!(cookies(&named), of([Some("s"), Some("s-api")]));
    assert_eq!(cookies(&format!("{named}[pool.sticky]\n")), of([Some("s"), Some("plimsoll-api")]));
    let own = format!("{named}[pool.sticky]\ncookie = \"t\"\n");
    assert_eq!(cookies(&own), of([Some("s"), Some("t")]));
    assert_eq!(cookies(&format!("{pool}[pool.sticky]\n")), of([None, Some("plimsoll-api")]));
}
