//! Nanoseconds to sniff a request, and to enter it into the estimate: `sniff_speed [REQUESTS]` prints one JSON line for each.
//!
//! The class table has 1,000 patterns, the file table 20,000 documents. Half of the requests are dynamic with five parameters; of the
//! others a fourth has If-Modified-Since. Requests are as browsers send them, of some 500 bytes.

use plimsoll_classes::ClassTable;
use plimsoll_policy::estimator::ClassCost;
use plimsoll_policy::{
    AdmissionControl, BackendId, BuildContext, Cluster, Core, Kind, Nanos, Request, TargetId, Time, build,
    mix,
};
use plimsoll_sniffer::{DynamicRule, FileTable, SiteFile, Sniffer};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

const PATTERNS: usize = 1000;
const FILES: u64 = 20_000;
const BACKENDS: usize = 16;
/// Requests in a period of the estimator: 4,000 a second.
const PER_PERIOD: usize = 800;

fn class_file() -> String {
    let mut text = String::new();
    for class in 0..50 {
        text += &format!("[[class]]\nname = \"class{class}\"\ncpu_s = 0.0{class:02}\n\n");
    }
    for n in 0..PATTERNS {
        let (class, path, value) = (n % 50, n / 10, n % 10);
        text += &format!(
            "[[pattern]]\nclass = \"class{class}\"\npath = \"/app{path}/run.cgi\"\nparameters = {{ type = \"t{value}\" }}\n\n"
        );
    }
    text
}

fn packets() -> Vec<Vec<u8>> {
    const FIELDS: &str = "Host: www.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
        Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\
        Accept-Encoding: gzip, deflate, br\r\nCookie: session=0123456789abcdef0123456789abcdef\r\nConnection: keep-alive\r\n";
    const SINCE: &str = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let packet = |n: u64| {
        let drawn = mix(n);
        if n.is_multiple_of(2) {
            let (path, value) = (drawn % 100, drawn / 100 % 10);
            return format!(
                "GET /app{path}/run.cgi?session={drawn}&type=t{value}&page=2&sort=up&lang=en HTTP/1.1\r\n{FIELDS}\r\n"
            );
        }
        let since = if n % 8 == 1 { SINCE } else { "" };
        format!("GET /images/photo{}.jpg HTTP/1.1\r\n{FIELDS}{since}\r\n", drawn % FILES)
    };
    (0..10_000).map(|n| packet(n).into_bytes()).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests: usize = std::env::args().nth(1).as_deref().unwrap_or("2000000").parse()?;
    let classes = ClassTable::read(&class_file())?.table;
    let mut files = FileTable::new(FILES as usize);
    for n in 0..FILES {
        let file = SiteFile { size_bytes: mix(n) % 100_000, modified_unix_s: 1 };
        files.set(format!("/images/photo{n}.jpg").as_bytes(), file)?;
    }
    let nanos = |s: f64| Nanos::from_secs_f64(s).unwrap_or(Nanos::ZERO);
    let costs = classes.classes().iter().map(|class| ClassCost {
        cpu: nanos(class.cpu_s),
        disk: nanos(class.disk_s),
        size_bytes: class.size_bytes as u64,
    });
    let context = BuildContext { class_costs: costs.collect(), ..BuildContext::default() };
    let sniffer = Sniffer { classes, files, is_complete: true, rule: DynamicRule::Usual };
    let packets = packets();

    let before_s = cpu_time::cpu_s()?;
    let mut contents = Vec::with_capacity(requests);
    for n in 0..requests {
        contents.extend(sniffer.sniff(&packets[n % packets.len()]));
    }
    let sniff_s = cpu_time::cpu_s()? - before_s;
    if contents.len() != requests
        || contents.iter().filter(|content| content.class != 0).count() != requests.div_ceil(2)
    {
        return Err("a request was not recognised".into());
    }

    // The whole of what the policy does for a connection with one request: choice, opening, request, closing, and its part of a tick.
    let policy = build("csld", &context, &[])?;
    let mut core = Core::new(policy, Cluster::new(BACKENDS), AdmissionControl::UNLIMITED);
    let connection = Request { kind: Kind::Connection, ..Request::of(0, TargetId(0)) };
    let before_s = cpu_time::cpu_s()?;
    for (n, content) in contents.iter().enumerate() {
        let now = Time::from_nanos(n as u64 * 250_000);
        if n % PER_PERIOD == 0 {
            core.tick(now);
        }
        core.sniffed(&content.to(BackendId((n % BACKENDS) as u16), Nanos::from_millis(150)), now);
    }
    let estimate_s = cpu_time::cpu_s()? - before_s;
    let before_s = cpu_time::cpu_s()?;
    for n in 0..requests {
        core.offer(
            &Request { number: n as u64, ..connection.clone() },
            Time::from_nanos((requests + n) as u64 * 250_000),
        );
    }
    let choose_s = cpu_time::cpu_s()? - before_s;
    for (what, seconds) in [("sniff", sniff_s), ("estimate", estimate_s), ("choose", choose_s)] {
        println!(
            r#"{{"what":"{what}","requests":{requests},"ns_per_request":{:.1}}}"#,
            seconds * 1e9 / requests as f64
        );
    }
    Ok(())
}
