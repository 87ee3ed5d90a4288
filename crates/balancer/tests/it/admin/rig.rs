//! A front-end with its admin API, a client for that, and a reader of what `/metrics` says.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_balancer::Balancer;
use plimsoll_config::Config;
use plimsoll_testkit::wait_for;
use serde_json::Value;

use crate::common::Client;
use crate::common::origin::Origin;

/// A front-end before back-ends that are called `b0`, `b1` and so on.
pub(crate) struct Rig {
    balancer: Option<Balancer>,
    pub(crate) admin: SocketAddr,
}

/// An answer of the admin API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The value of a field, empty when it is not there.
    pub(crate) fn field(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    /// Fails unless this is an error of this status that says what is wrong and what would be right.
    pub(crate) fn assert_error(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        let value = self.json();
        assert!(value["error"].as_str().is_some_and(|e| !e.is_empty()), "{self:?}");
        assert!(value["remedy"].as_str().is_some_and(|e| !e.is_empty()), "{self:?}");
    }
}

/// The configuration of [`Rig`]; of each back-end, lines behind its address.
pub(crate) fn text(backends: &[(&Origin, &str)], tables: &str) -> String {
    let admin = if tables.contains("[admin]") { "" } else { "[admin]\naddress = \"127.0.0.1:0\"\n" };
    let one = |(i, (origin, more)): (usize, &(&Origin, &str))| {
        format!("[[backend]]\nname = \"b{i}\"\naddress = \"{}\"\n{more}\n", origin.address)
    };
    let backends: String = backends.iter().enumerate().map(one).collect();
    format!(
        "workers = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[health]\nprobe = \"none\"\n{admin}{backends}{tables}"
    )
}

pub(crate) fn config(text: &str) -> Config {
    Config::parse(text, "test.toml").unwrap_or_else(|e| panic!("{text}\n{e}"))
}

impl Rig {
    pub(crate) fn new(origins: &[&Origin], tables: &str) -> Self {
        let backends: Vec<_> = origins.iter().map(|&o| (o, "")).collect();
        Self::from_text(&text(&backends, tables))
    }

    pub(crate) fn from_text(text: &str) -> Self {
        let balancer = Balancer::start(config(text)).unwrap();
        let admin = balancer.admin_address().unwrap();
        Self { balancer: Some(balancer), admin }
    }

    pub(crate) fn balancer(&self) -> &Balancer {
        self.balancer.as_ref().unwrap()
    }

    pub(crate) fn reload(&self, text: &str) {
        self.balancer().reload(config(text)).unwrap();
    }

    /// A client of the front-end.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.balancer().addresses()[0])
    }

    /// Sends so many requests for a target over one connection, all to be answered with 200.
    pub(crate) fn get_times(&self, times: usize, target: &str) {
        let mut client = self.client();
        for _ in 0..times {
            assert_eq!(client.get(target).status(), 200);
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "")
    }

    pub(crate) fn call(&self, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Answer {
        call(self.admin, method, path, fields, body)
    }

    /// One back-end, as `/backends` shows it.
    pub(crate) fn backend(&self, name: &str) -> Value {
        let answer = self.get(&format!("/backends/{name}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let accept = ("Accept", "application/openmetrics-text; version=1.0.0");
        let answer = self.call("GET", "/metrics", &[accept], "");
        assert_eq!(answer.status, 200);
        assert!(answer.field("content-type").starts_with("application/openmetrics-text"), "{answer:?}");
        Metrics::parse(&answer.body)
    }

    /// Waits until the metrics are like that: a request is counted a moment after its client has the answer.
    pub(crate) fn metrics_once(&self, are_so: impl Fn(&Metrics) -> bool) -> Metrics {
        wait_for("metrics that are so", || Some(self.metrics()).filter(&are_so))
    }

    pub(crate) fn stop(self) {
        self.stop_within(Duration::from_secs(5));
    }

    pub(crate) fn stop_within(mut self, drain: Duration) {
        self.balancer.take().unwrap().stop_within(drain);
    }
}

/// Sends a request to the admin API at this address.
pub(crate) fn call(
    admin: SocketAddr,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !fields.iter().any(|(name, _)| *name == "Host") {
        request.push_str(&format!("Host: {admin}\r\n"));
    }
    for (name, value) in fields {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut client = Client::connect(admin);
    client.send(request);
    let mut bytes = Vec::new();
    client.stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(balancer) = self.balancer.take() {
            balancer.stop_within(Duration::from_millis(20));
        }
    }
}

/// Samples by name with labels, as they are written.
pub(crate) struct Metrics {
    pub(crate) samples: BTreeMap<String, f64>,
}

impl Metrics {
    /// Reads the text format of OpenMetrics 1.0 and fails on what it does not allow.
    pub(crate) fn parse(text: &str) -> Self {
        let mut samples = BTreeMap::new();
        let mut families = BTreeMap::new();
        let mut current = (String::new(), String::new());
        let body = text.strip_suffix("# EOF\n").expect("the end is marked");
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(families.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {name}");
                current = (name.to_owned(), kind.to_owned());
                continue;
            }
            if line.starts_with("# HELP ") || line.starts_with("# UNIT ") {
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffix =
                name.strip_prefix(&current.0).unwrap_or_else(|| panic!("{line} is not of {current:?}"));
            let allowed: &[&str] = match &*current.1 {
                "counter" => &["_total"],
                "gauge" => &[""],
                "histogram" => &["_bucket", "_sum", "_count"],
                other => panic!("{other}"),
            };
            assert!(allowed.contains(&suffix), "{line}");
            let labels = series.strip_prefix(name).unwrap();
            if !labels.is_empty() {
                let inner = labels.strip_prefix('{').and_then(|l| l.strip_suffix('}')).unwrap();
                for label in inner.split(',') {
                    let (key, value) = label.split_once("=\"").unwrap();
                    assert!(
                        [
                            "backend", "policy", "code", "state", "stat", "role", "le", "version", "reason",
                            "pool", "route", "coding"
                        ]
                        .contains(&key)
                    );
                    let is_socket = key == "backend" && value.starts_with("unix:/");
                    assert!(value.ends_with('"') && (is_socket || !value.contains('/')), "{line}");
                }
            }
            let value: f64 = value.parse().unwrap();
            assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {series}");
        }
        Self { samples }
    }

    /// The sample of this name with these labels, 0 when it is not there.
    pub(crate) fn get(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or_default()
    }

    /// The sum of all samples of this name that have this among their labels.
    pub(crate) fn sum(&self, name: &str, label: &str) -> f64 {
        let of =
            |(series, _): &(&String, &f64)| series.split('{').next() == Some(name) && series.contains(label);
        self.samples.iter().filter(of).map(|(_, value)| value).sum()
    }

    /// Everything that must never fall: counters and the parts of histograms.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&String, f64)> {
        let grows =
            |name: &str| ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end));
        self.samples.iter().filter(move |(s, _)| grows(s.split('{').next().unwrap())).map(|(s, v)| (s, *v))
    }
}
